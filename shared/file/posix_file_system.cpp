#include "shared/file/posix_file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/file/file_errors.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

constexpr mode_t kDirectoryMode = 0700;

bool is_directory(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

/// File with direct and buffered I/O. Writes, and reads of whole blocks, bypass the page cache. The
/// cache would not help these reads: logs are read once, and readers of snapshot pages have their
/// own cache. Other reads go through the page cache. They see direct writes, because the kernel
/// drops the cached pages of the range after each direct write.
class PosixFile : public File {
 public:
  /// `direct` is empty if direct I/O is refused. `size` is empty for a file that is never written.
  PosixFile(PosixFileSystem& owner, std::string path, UniqueFd buffered, UniqueFd direct,
            std::optional<uint64_t> size)
      : owner_(owner),
        path_(std::move(path)),
        buffered_(std::move(buffered)),
        direct_(std::move(direct)),
        size_(size) {
    CHECK(buffered_.is_open());
  }

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    if (!size_) return io_error(write_text(path_, offset, total_bytes(slices)), EBADF);
    ATOLL_TRY(failure_.check());
    ATOLL_TRY(check_write(path_, *size_, offset, slices));
    const bool is_direct = this->is_direct();
    int error = write_all(owner_.calls_, writing(is_direct), offset, slices);
    if (error == EINVAL && is_direct) {
      refuse_direct();
      error = write_all(owner_.calls_, buffered_.get(), offset, slices);
    }
    if (error == 0) return {};
    return failure_.keep(io_error(write_text(path_, offset, total_bytes(slices)), error));
  }

  Result<void> grow(uint64_t bytes) override {
    if (!size_) return io_error("growth of " + path_, EBADF);
    ATOLL_TRY(failure_.check());
    auto grown = owner_.with_room(
        [&] { return grow_preallocated(owner_.calls_, buffered_.get(), path_, *size_, bytes); });
    CHECK(!grown || bytes >= *size_);
    if (grown) size_ = bytes;
    return grown;
  }

  Result<void> sync() override {
    if (!size_) return io_error("sync of " + path_, EBADF);
    ATOLL_TRY(failure_.check());
    // Never sync again after an error. The kernel may have dropped the data that it could not
    // write, and reports a write-back error only once.
    const int error = sync_data(owner_.calls_, writing(is_direct()));
    if (error == 0) return {};
    return failure_.keep(
        io_error("sync of " + path_ + " (0 to " + std::to_string(*size_) + ")", error));
  }

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    uint64_t done = 0;
    if (is_direct() && is_aligned(offset, into)) {
      const int error = read_blocks(owner_.calls_, direct_.get(), offset, into, done);
      if (error == EINVAL) {
        refuse_direct();
      } else if (error != 0) {
        return io_error(read_text(path_, offset, into.size()), error);
      } else if (done == into.size()) {
        return done;
      }
    }
    CHECK(done < into.size() || into.empty());
    // This read uses the page cache: it is unaligned, or the file ends with a partial block, or
    // direct I/O was refused.
    return read_all(owner_.calls_, buffered_.get(), path_, offset, into, done);
  }

  /// Finds holes in the file. Preallocated blocks that were never written are holes, and so are
  /// blocks whose write a power cut has lost. File systems without holes report all bytes as data.
  Result<uint64_t> next_data(uint64_t offset) const override {
    const int64_t found =
        uninterrupted([&] { return owner_.calls_.seek_data(buffered_.get(), offset); });
    // The kernel does not check the answer of a file system in user space. So an answer below
    // `offset` is treated as `offset`.
    if (found >= 0) return std::max(offset, static_cast<uint64_t>(found));
    // ENXIO: there is no data up to the end. EINVAL and all others: the file system cannot tell.
    if (errno != ENXIO) return offset;
    ATOLL_ASSIGN(const uint64_t bytes, size());
    return std::max(offset, bytes);
  }

  Result<uint64_t> size() const override { return size_of(buffered_.get(), path_); }
  const std::string& path() const override { return path_; }
  RawRead begin_raw_read() const override { return {is_direct() ? direct_.get() : -1, nullptr}; }

 private:
  bool is_direct() const { return is_direct_.load(std::memory_order_relaxed); }
  int writing(bool is_direct) const {
    CHECK(!is_direct || direct_.is_open());
    return (is_direct ? direct_ : buffered_).get();
  }
  void refuse_direct() const {
    owner_.direct_refused(path_, std::strerror(EINVAL));
    is_direct_.store(false, std::memory_order_relaxed);
  }

  PosixFileSystem& owner_;
  std::string path_;
  // UniqueFd ignores errors of `close`. Such an error affects only data that was never synced, and
  // no caller relies on this data.
  UniqueFd buffered_;
  UniqueFd direct_;
  /// False after the device or file system has first refused direct I/O. Any thread that reads or
  /// writes stores it. Relaxed: both descriptors stay valid as long as the file, so a thread that
  /// sees the old value is only refused once more.
  mutable std::atomic<bool> is_direct_ = direct_.is_open();
  std::optional<uint64_t> size_;
  FirstFailure failure_;
};

Result<std::unique_ptr<File>> PosixFileSystem::create(const std::string& path, uint64_t bytes) {
  ATOLL_ASSIGN(auto buffered, with_room([&] { return create_preallocated(calls_, path, bytes); }));
  auto file = make_file(path, std::move(buffered));
  if (!file) calls_.unlink(path.c_str());
  return file;
}

Result<std::unique_ptr<File>> PosixFileSystem::open(const std::string& path) {
  ATOLL_ASSIGN(auto buffered, open_descriptor(calls_, path, O_RDWR));
  return make_file(path, std::move(buffered));
}

Result<std::unique_ptr<File>> PosixFileSystem::make_file(const std::string& path,
                                                         UniqueFd buffered) {
  ATOLL_ASSIGN(auto size, size_of(buffered.get(), path));
  ATOLL_ASSIGN(auto direct, open_direct(buffered, O_RDWR, path));
  return std::make_unique<PosixFile>(*this, path, std::move(buffered), std::move(direct), size);
}

/// Opens the file of `buffered` again, for direct I/O. Opens by descriptor, not by path, because
/// the path may have been renamed or may name another file. Returns an empty descriptor if direct
/// I/O is refused, or if /proc is not mounted.
Result<UniqueFd> PosixFileSystem::open_direct(const UniqueFd& buffered, int flags,
                                              const std::string& path) {
  CHECK(buffered.is_open());
  const std::string name = fmt::format("/proc/self/fd/{}", buffered.get());
  const int number =
      uninterrupted([&] { return calls_.open(name.c_str(), flags | O_DIRECT | O_CLOEXEC, 0); });
  if (number < 0) {
    if (errno != EINVAL && errno != EOPNOTSUPP && errno != ENOENT) {
      return io_error("opening " + path, errno);
    }
    direct_refused(path, errno == ENOENT ? "/proc is not mounted" : std::strerror(errno));
  }
  return UniqueFd(number);
}

Result<std::unique_ptr<File>> PosixFileSystem::open_for_reading(const std::string& path) {
  ATOLL_ASSIGN(auto buffered, open_descriptor(calls_, path, O_RDONLY));
  if (is_directory(path)) return io_error("opening " + path, EISDIR);
  ATOLL_ASSIGN(auto direct, open_direct(buffered, O_RDONLY, path));
  return std::make_unique<PosixFile>(*this, path, std::move(buffered), std::move(direct),
                                     std::nullopt);
}

Result<void> PosixFileSystem::sync_directory(const std::string& path) {
  ATOLL_ASSIGN(const UniqueFd directory, open_descriptor(calls_, path, O_RDONLY | O_DIRECTORY));
  const int error = sync_all(calls_, directory.get());
  if (error != 0) return io_error("sync of directory " + path, error);
  return {};
}

Result<void> PosixFileSystem::make_directory(const std::string& path) {
  if (is_directory(path)) {
    // The process that made the directory may have died before its sync. Ignores the error if this
    // user cannot read the parent: then another user made the directory.
    auto synced = sync_directory(parent_of(path));
    const bool is_foreign = ::euidaccess(parent_of(path).c_str(), R_OK) != 0;
    return is_foreign ? Result<void>() : synced;
  }
  const std::string parent = parent_of(path);
  if (parent != path) {
    ATOLL_TRY(make_directory(parent));
  }
  if (calls_.mkdir(path.c_str(), kDirectoryMode) != 0) {
    const int error = errno;
    if (error != EEXIST || !is_directory(path)) {
      return io_error("creation of directory " + path, error == EEXIST ? ENOTDIR : error);
    }
  }
  return sync_directory(parent);
}

Result<std::vector<std::string>> PosixFileSystem::list(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) return io_error("listing of " + path, error.value());
  std::ranges::sort(names);
  return names;
}

Result<bool> PosixFileSystem::exists(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return io_error("look-up of " + path, errno);
}

Result<void> PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (calls_.rename(from.c_str(), to.c_str()) == 0) return {};
  return io_error("renaming of " + from + " to " + to, errno);
}

Result<void> PosixFileSystem::remove(const std::string& path) {
  const int error = removal_.remove(path);
  if (error == 0) return {};
  return io_error("removal of " + path, error);
}

Result<bool> PosixFileSystem::link(const std::string& from, const std::string& to) {
  if (calls_.link(from.c_str(), to.c_str()) == 0) return true;
  const int error = errno;
  // EPERM: the file system has no hard links, or fs.protected_hardlinks forbids this one.
  const bool is_impossible =
      error == EXDEV || error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK;
  if (is_impossible) return false;
  return io_error("linking of " + from + " to " + to, error);
}

Result<void> PosixFileSystem::remove_directory(const std::string& path) {
  if (calls_.rmdir(path.c_str()) == 0) return {};
  return io_error("removal of directory " + path, errno);
}

Result<void> PosixFileSystem::forget_cached(const std::string& path) {
  auto file = open_descriptor(calls_, path, O_RDONLY);
  if (!file) {
    auto exists = this->exists(path);
    if (exists && !*exists) return {};
    return std::unexpected(file.error());
  }
  // Dirty pages cannot be dropped, so this writes them first. It ignores an error: the kernel marks
  // pages that the device has refused as clean, so they can be dropped, too.
  calls_.fdatasync(file->get());
  const int error = calls_.drop_cached_pages(file->get());
  if (error != 0) return io_error("dropping cached pages of " + path, error);
  return {};
}

std::string PosixFileSystem::describe() const {
  const std::lock_guard lock(mutex_);
  return refusal_ ? "posix, buffered I/O (" + *refusal_ + ")" : "posix, direct I/O";
}

void PosixFileSystem::direct_refused(const std::string& path, const std::string& reason) {
  CHECK(!reason.empty());
  {
    const std::lock_guard lock(mutex_);
    if (refusal_) return;
    refusal_ = "direct I/O is refused for " + path + ": " + reason;
  }
  if (warn_) {
    warn_("direct I/O is refused for " + path + ": " + reason +
          ": files go through the page cache, which costs memory and copies; they are as durable");
  }
}

}  // namespace atolldb
