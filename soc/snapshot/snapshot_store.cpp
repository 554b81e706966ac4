#include "soc/snapshot/snapshot_store.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/memory/segment_file.h"

namespace atolldb {

namespace {

/// The error messages that were logged, so that each one is logged once. Transactions may request
/// an unreadable page thousands of times a second.
class LoggedErrors {
 public:
  bool is_new(const std::string& message) {
    const std::lock_guard guard(mutex_);
    if (messages_.size() >= kMaxMessages) messages_.clear();
    return messages_.insert(message).second;
  }

 private:
  static constexpr size_t kMaxMessages = 1000;
  std::mutex mutex_;
  std::set<std::string> messages_;
};

}  // namespace

void SnapshotStore::Free::operator()(std::byte* bytes) const { std::free(bytes); }

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::create(const SnapshotStoreSettings& settings,
                                                             const Logger& logger) {
  CHECK(settings.file_system != nullptr && settings.shared != nullptr);
  CHECK(settings.newest != nullptr && settings.reader_count > 0);
  const uint64_t least = SnapshotCache::min_bytes(settings.reader_count);
  if (settings.cache_bytes < least) {
    return make_error(ExitCode::config,
                      "memory.snapshot_cache: " + std::to_string(settings.cache_bytes) +
                          " bytes are too few for the " + std::to_string(settings.reader_count) +
                          " threads of a node that read snapshots: give it " +
                          std::to_string(least) + " or more");
  }
  const uint64_t lent = settings.lender == nullptr ? 0 : settings.lender->index_end();
  if (settings.cache_bytes / kPageBytes + lent >= SnapshotCache::kMaxFrames) {
    return make_error(ExitCode::config,
                      "memory.snapshot_cache: with the pages that memory.lend_pool adds, the cache "
                      "would have 8 TiB or more: lower memory.snapshot_cache, or set "
                      "memory.lend_pool = false");
  }
  std::unique_ptr<SnapshotStore> snapshots(new SnapshotStore(settings));
  // Reserves address space for the cache. Its pages take memory only when they are used.
  snapshots->memory_.reset(
      static_cast<std::byte*>(std::aligned_alloc(kSegmentStepBytes, settings.cache_bytes)));
  if (snapshots->memory_ == nullptr) {
    return make_error(ExitCode::resources, "memory.snapshot_cache: no address space for " +
                                               std::to_string(settings.cache_bytes) + " bytes");
  }
  ATOLL_TRY(bind_memory("snapshot cache", snapshots->memory_.get(), settings.cache_bytes,
                        settings.numa_node));
  if (settings.transparent_huge) {
    madvise(snapshots->memory_.get(), settings.cache_bytes,
            MADV_HUGEPAGE);  // only advice to the kernel
  }
  snapshots->cache_ = std::make_unique<SnapshotCache>(
      snapshots->memory_.get(), settings.cache_bytes, settings.reader_count, snapshots->files_,
      [logger, logged = std::make_shared<LoggedErrors>()](const Error& error) {
        if (logged->is_new(error.message)) logger->error("{}", error.message);
      },
      settings.lender);
  return snapshots;
}

}  // namespace atolldb
