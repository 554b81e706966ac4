#include "coordinator/archive/archive_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/process/shell_command.h"

namespace atolldb {
namespace {

class DirectoryTarget : public ArchiveTarget {
 public:
  DirectoryTarget(FileSystem& file_system, std::string directory, IsCancelled is_cancelled)
      : files_(file_system),
        directory_(std::move(directory)),
        is_cancelled_(std::move(is_cancelled)) {
    CHECK(directory_.starts_with('/'));
  }

  Result<FileSum> put(const std::string& path, const std::string& name) override {
    // Does not make the directory. If the device of the archive is not mounted, the files would be
    // below its mount point, and lost after the mount.
    ATOLL_ASSIGN(const bool exists, files_.exists(directory_));
    if (!exists) {
      return make_error(ExitCode::failed,
                        directory_ + ": the directory of the archive is missing: make or mount it");
    }
    const std::string to = path_in(directory_, name);
    const std::string folder = to.substr(0, to.rfind('/'));
    if (folder != directory_) {
      ATOLL_TRY(files_.make_directory(folder));
    }
    ATOLL_ASSIGN(const bool is_there, files_.exists(to));
    ATOLL_ASSIGN(const FileSum sum, is_there ? check_present(path, to) : copy(path, to));
    ATOLL_TRY(files_.sync_directory(folder));
    return sum;
  }

  const std::string& directory() const override { return directory_; }
  std::string name() const override { return "directory " + directory_; }

 private:
  OnPart until_cancelled() const {
    return [this](std::span<const std::byte>) -> Result<void> {
      if (!is_cancelled_ || !is_cancelled_()) return {};
      return make_error(ExitCode::not_running, "the cluster stops: the next start continues");
    };
  }

  /// Accepts a file that the archive already has, if it equals the wanted one. A crash may have
  /// come after its copy and before the state counted it.
  Result<FileSum> check_present(const std::string& path, const std::string& to) {
    ATOLL_ASSIGN(const FileSum wanted, sum_of_file(files_, path, until_cancelled()));
    ATOLL_ASSIGN(const FileSum present, sum_of_file(files_, to, until_cancelled()));
    if (present == wanted) return present;
    return make_error(
        ExitCode::failed,
        fmt::format("{}: exists with {} bytes and the CRC32C {:08x}, but {} has {} "
                    "bytes and {:08x}: it is of other data or damaged: move it away, "
                    "or choose an empty directory",
                    to, present.bytes, present.crc32c, path, wanted.bytes, wanted.crc32c));
  }

  Result<FileSum> copy(const std::string& path, const std::string& to) {
    const std::string part = to + ".part";
    ATOLL_ASSIGN(const bool is_left, files_.exists(part));
    if (is_left) {
      ATOLL_TRY(files_.remove(part));
    }
    const Result<FileSum> copied = copy_part(path, part);
    if (!copied) {
      // Removes the part to free its room. Ignores an error, because the next attempt removes the
      // part, too.
      static_cast<void>(files_.remove(part));
      return copied;
    }
    ATOLL_TRY(files_.rename(part, to));
    return copied;
  }

  Result<FileSum> copy_part(const std::string& path, const std::string& part) {
    ATOLL_ASSIGN(const FileSum written, copy_file(files_, path, part, until_cancelled()));
    // Reads back what the device has. A device that loses writes is then found while the log file
    // still exists.
    ATOLL_TRY(files_.forget_cached(part));
    ATOLL_ASSIGN(const FileSum read, sum_of_file(files_, part, until_cancelled()));
    if (written == read) return read;
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: has {} bytes and the CRC32C {:08x}, but {} bytes with {:08x} "
                    "were written: check the device of the archive",
                    part, read.bytes, read.crc32c, written.bytes, written.crc32c));
  }

  FileSystem& files_;
  const std::string directory_;
  const IsCancelled is_cancelled_;
};

class CommandTarget : public ArchiveTarget {
 public:
  CommandTarget(FileSystem& file_system, std::string command, std::chrono::milliseconds timeout,
                IsCancelled is_cancelled)
      : files_(file_system),
        command_(std::move(command)),
        timeout_(timeout),
        is_cancelled_(std::move(is_cancelled)) {
    CHECK(!command_.empty() && timeout.count() > 0);
  }

  Result<FileSum> put(const std::string& path, const std::string& name) override {
    const Result<void> done =
        run_shell_command(expand_command(command_, path, name), timeout_, is_cancelled_);
    if (done) return sum_of_file(files_, path, {});
    return make_error(done.error().code,
                      fmt::format("{}: archive.command for {}: {}: run it by hand", path, name,
                                  done.error().message));
  }

  const std::string& directory() const override { return no_directory_; }
  std::string name() const override { return "command"; }
  void set_timeout(std::chrono::milliseconds timeout) override { timeout_.set(timeout); }

 private:
  FileSystem& files_;
  const std::string command_;
  Live<std::chrono::milliseconds> timeout_;
  const IsCancelled is_cancelled_;
  const std::string no_directory_;
};

}  // namespace

std::string expand_command(const std::string& command, const std::string& path,
                           const std::string& name) {
  std::string expanded;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] != '%') {
      expanded += command[i];
      continue;
    }
    CHECK(i + 1 < command.size());  // check_config ensures this
    const char kind = command[++i];
    CHECK(kind == 'p' || kind == 'f' || kind == '%');
    if (kind == '%') expanded += '%';
    if (kind == 'p') expanded += quote_for_shell(path);
    if (kind == 'f') expanded += quote_for_shell(name);
  }
  return expanded;
}

std::unique_ptr<ArchiveTarget> make_directory_target(FileSystem& file_system, std::string directory,
                                                     IsCancelled is_cancelled) {
  return std::make_unique<DirectoryTarget>(file_system, std::move(directory),
                                           std::move(is_cancelled));
}

std::unique_ptr<ArchiveTarget> make_command_target(FileSystem& file_system, std::string command,
                                                   std::chrono::milliseconds timeout,
                                                   IsCancelled is_cancelled) {
  return std::make_unique<CommandTarget>(file_system, std::move(command), timeout,
                                         std::move(is_cancelled));
}

std::unique_ptr<ArchiveTarget> make_archive_target(const Config::Archive& archive,
                                                   FileSystem& file_system,
                                                   IsCancelled is_cancelled) {
  CHECK(archive.is_on());
  if (archive.command.empty()) {
    return make_directory_target(file_system, archive.directory, std::move(is_cancelled));
  }
  return make_command_target(file_system, archive.command, archive.timeout,
                             std::move(is_cancelled));
}

}  // namespace atolldb
