#include "shared/file/pmem_file_system.h"

#include <fcntl.h>
#include <libpmem2.h>

#include <cerrno>
#include <cstring>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_errors.h"
#include "shared/file/forwarding_file_system.h"

namespace atolldb {
namespace {

/// Deleters for libpmem2's objects.
struct MapDeleter {
  void operator()(pmem2_map* map) const { pmem2_map_delete(&map); }
};
using Map = std::unique_ptr<pmem2_map, MapDeleter>;
struct ConfigDeleter {
  void operator()(pmem2_config* config) const { pmem2_config_delete(&config); }
};
struct SourceDeleter {
  void operator()(pmem2_source* source) const { pmem2_source_delete(&source); }
};

std::unexpected<Error> map_error(const std::string& path) {
  return make_error(ExitCode::durability,
                    "mapping of " + path + ": " + pmem2_errormsg() +
                        ": check the file system, or set durability.backend = \"posix\"");
}

/// `protection`: PMEM2_PROT_READ, perhaps with PMEM2_PROT_WRITE.
Result<Map> map_file(int descriptor, const std::string& path,
                     unsigned protection = PMEM2_PROT_READ | PMEM2_PROT_WRITE) {
  pmem2_config* config = nullptr;
  if (pmem2_config_new(&config) != 0) return map_error(path);
  const std::unique_ptr<pmem2_config, ConfigDeleter> config_owner(config);
  pmem2_source* source = nullptr;
  if (pmem2_source_from_fd(&source, descriptor) != 0) return map_error(path);
  const std::unique_ptr<pmem2_source, SourceDeleter> source_owner(source);
  // Page granularity, the coarsest, is enough. libpmem2 grants the finest one that is safe.
  pmem2_map* map = nullptr;
  if (pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_PAGE) != 0 ||
      pmem2_config_set_protection(config, protection) != 0 ||
      pmem2_map_new(&map, config, source) != 0) {
    return map_error(path);
  }
  CHECK(map != nullptr);
  return Map(map);
}

bool is_persistent(const Map& map) {
  CHECK(map != nullptr);
  return pmem2_map_get_store_granularity(map.get()) != PMEM2_GRANULARITY_PAGE;
}

/// Returns whether the file may have blocks that cannot be read: the kernel knows some, or its list
/// cannot be read. Returns false on a device that is no NVDIMM, which has no such list.
bool has_bad_blocks(int descriptor) {
  pmem2_source* source = nullptr;
  if (pmem2_source_from_fd(&source, descriptor) != 0) return true;
  const std::unique_ptr<pmem2_source, SourceDeleter> source_owner(source);
  pmem2_badblock_context* context = nullptr;
  const int error = pmem2_badblock_context_new(&context, source);
  if (error != 0) return error != PMEM2_E_NOSUPP;
  pmem2_badblock block{};
  const bool is_bad = pmem2_badblock_next(context, &block) == 0;
  pmem2_badblock_context_delete(&context);
  return is_bad;
}

/// A file that is opened for reading, on persistent memory. Reads copy from a mapping and do not
/// enter the kernel. Reads past the size at the opening use the descriptor, because the file may
/// have grown since.
class PmemReader final : public ForwardingFile {
 public:
  /// `size`: of the file, at most that of the mapping.
  PmemReader(std::unique_ptr<File> below, Map map, uint64_t size,
             std::atomic<uint64_t>& mapped_reads)
      : ForwardingFile(std::move(below)),
        map_(std::move(map)),
        size_(size),
        mapped_reads_(mapped_reads) {
    CHECK(is_persistent(map_) && size_ <= pmem2_map_get_size(map_.get()));
  }

  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    if (offset > size_ || into.size() > size_ - offset) return ForwardingFile::read(offset, into);
    const auto* address = static_cast<const std::byte*>(pmem2_map_get_address(map_.get()));
    CHECK(address != nullptr && offset + into.size() <= size_);
    if (!into.empty()) std::memcpy(into.data(), address + offset, into.size());
    mapped_reads_.fetch_add(1, std::memory_order_relaxed);
    return into.size();
  }

 private:
  Map map_;
  const uint64_t size_;
  std::atomic<uint64_t>& mapped_reads_;
};

}  // namespace

class PmemFile : public File {
 public:
  /// `map` is empty for a file without bytes.
  PmemFile(PmemFileSystem& owner, std::string path, UniqueFd descriptor, Map map, uint64_t size)
      : owner_(owner), path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {
    use(std::move(map));
    CHECK(descriptor_.is_open());
    CHECK((map_ == nullptr) == (size_ == 0));
  }

  Result<void> write(uint64_t offset, std::span<const std::span<const std::byte>> slices) override {
    ATOLL_TRY(failure_.check());
    ATOLL_TRY(check_write(path_, size_, offset, slices));
    for (const auto& slice : slices) {
      if (slice.empty()) continue;
      CHECK(address_ != nullptr && offset + slice.size() <= size_);
      if (is_persistent_) {
        copy_(address_ + offset, slice.data(), slice.size(),
              PMEM2_F_MEM_NONTEMPORAL | PMEM2_F_MEM_NODRAIN);
      } else {
        std::memcpy(address_ + offset, slice.data(),
                    slice.size());  // pmem2_memcpy would also call msync
      }
      offset += slice.size();
    }
    return {};
  }

  /// Keeps writes that are not synced yet, because the old and the new mapping share the same
  /// memory.
  Result<void> grow(uint64_t bytes) override {
    ATOLL_TRY(failure_.check());
    auto grown = owner_.posix_.with_room(
        [&] { return grow_preallocated(owner_.calls_, descriptor_.get(), path_, size_, bytes); });
    if (!grown || bytes == size_) return grown;
    auto mapped = map_file(descriptor_.get(), path_);
    if (!mapped) return failure_.keep(std::unexpected(mapped.error()));
    use(*std::move(mapped));
    CHECK(pmem2_map_get_size(map_.get()) >= bytes);
    size_ = bytes;
    needs_kernel_ = true;
    return {};
  }

  Result<void> sync() override {
    ATOLL_TRY(failure_.check());
    if (is_persistent_) {
      drain_();
      owner_.drains_.fetch_add(1, std::memory_order_relaxed);
    }
    if (is_persistent_ && !needs_kernel_) return {};
    if (const int error = sync_data(owner_.calls_, descriptor_.get()); error != 0) {
      return failure_.keep(
          io_error("sync of " + path_ + " (0 to " + std::to_string(size_) + ")", error));
    }
    needs_kernel_ = false;
    owner_.kernel_syncs_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }

  /// Reads through the descriptor, where a bad block gives an error. The writer of a file reads
  /// little, so it gains nothing from the mapping.
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    return read_all(owner_.calls_, descriptor_.get(), path_, offset, into);
  }

  Result<uint64_t> size() const override { return size_of(descriptor_.get(), path_); }
  const std::string& path() const override { return path_; }

 private:
  void use(Map map) {
    map_ = std::move(map);
    if (map_ == nullptr) return;
    address_ = static_cast<std::byte*>(pmem2_map_get_address(map_.get()));
    CHECK(reinterpret_cast<uintptr_t>(address_) % kIoBlockBytes == 0);
    copy_ = pmem2_get_memcpy_fn(map_.get());
    drain_ = pmem2_get_drain_fn(map_.get());
    CHECK(copy_ != nullptr && drain_ != nullptr);
    is_persistent_ = is_persistent(map_);
  }

  PmemFileSystem& owner_;
  std::string path_;
  UniqueFd descriptor_;
  Map map_;
  uint64_t size_;
  // True if the next sync needs the kernel, to write the size and block list of a new or grown
  // file. True also for an old file: its creator may have died before the sync.
  bool needs_kernel_ = true;
  bool is_persistent_ = false;
  std::byte* address_ = nullptr;
  pmem2_memcpy_fn copy_ = nullptr;
  pmem2_drain_fn drain_ = nullptr;
  FirstFailure failure_;
};

Result<std::unique_ptr<File>> PmemFileSystem::create(const std::string& path, uint64_t bytes) {
  ATOLL_ASSIGN(auto descriptor,
               posix_.with_room([&] { return create_preallocated(calls_, path, bytes); }));
  auto file = map(path, std::move(descriptor));
  if (!file) calls_.unlink(path.c_str());
  return file;
}

Result<std::unique_ptr<File>> PmemFileSystem::open(const std::string& path) {
  ATOLL_ASSIGN(auto descriptor, open_descriptor(calls_, path, O_RDWR));
  return map(path, std::move(descriptor));
}

Result<std::unique_ptr<File>> PmemFileSystem::open_for_reading(const std::string& path) {
  ATOLL_ASSIGN(auto file, posix_.open_for_reading(path));
  ATOLL_ASSIGN(const uint64_t size, file->size());
  if (size == 0) return file;
  ATOLL_ASSIGN(const auto descriptor, open_descriptor(calls_, path, O_RDONLY));
  auto map = map_file(descriptor.get(), path, PMEM2_PROT_READ);
  // Without a mapping, reads take the way of `posix`, which is slower but never wrong.
  if (!map || !is_persistent(*map) || has_bad_blocks(descriptor.get())) return file;
  // Another process may have cut the file between the two openings.
  if (pmem2_map_get_size(map->get()) < size) return file;
  return std::make_unique<PmemReader>(std::move(file), *std::move(map), size, mapped_reads_);
}

Result<std::unique_ptr<File>> PmemFileSystem::map(const std::string& path, UniqueFd descriptor) {
  ATOLL_ASSIGN(auto size, size_of(descriptor.get(), path));
  Map mapping;
  if (size > 0) {
    ATOLL_ASSIGN(auto mapped, map_file(descriptor.get(), path));
    mapping = std::move(mapped);
    switch (pmem2_map_get_store_granularity(mapping.get())) {
      case PMEM2_GRANULARITY_BYTE:
        found(Granularity::byte, path);
        break;
      case PMEM2_GRANULARITY_CACHE_LINE:
        found(Granularity::cache_line, path);
        break;
      case PMEM2_GRANULARITY_PAGE:
        found(Granularity::page, path);
        break;
    }
  }
  return std::make_unique<PmemFile>(*this, path, std::move(descriptor), std::move(mapping), size);
}

std::string PmemFileSystem::describe() const {
  const std::lock_guard lock(mutex_);
  switch (coarsest_) {
    case Granularity::none_yet:
      return "pmem, no file yet";
    case Granularity::byte:
      return "pmem, byte granularity: non-temporal copies and drain";
    case Granularity::cache_line:
      return "pmem, cache-line granularity: non-temporal copies and drain";
    case Granularity::page:
      return "pmem, page granularity (no persistent memory): copies and fdatasync";
  }
  CHECK(false);
}

void PmemFileSystem::found(Granularity granularity, const std::string& path) {
  CHECK(granularity != Granularity::none_yet);
  {
    const std::lock_guard lock(mutex_);
    if (granularity <= coarsest_) return;
    coarsest_ = granularity;
  }
  if (granularity == Granularity::page && warn_) {
    warn_(path +
          " is not on persistent memory: syncs go through the kernel, as with durability.backend "
          "= \"posix\", which is the faster choice there");
  }
}

}  // namespace atolldb
