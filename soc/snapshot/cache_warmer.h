// Warms the node's cache of snapshot pages after a start, and notes its pages for the next start.
//
// The thread waits for the first snapshot that transactions may read. Then it reads the pages that
// the node has noted before its start, those in use first, in large batches that are sorted by
// place. It evicts nothing, and ends when the cache is full. While readers miss pages, it pauses as
// long as it reads, so they get at least half of the device's time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/log/log_writer.h"
#include "engine/snapshot/snapshot_cache.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"

namespace atolldb {

struct CacheWarmerSettings {
  FileSystem* file_system = nullptr;  // outlives the warmer
  SnapshotCache* cache = nullptr;     // outlives the warmer
  ClusterUuid cluster_uuid = {};
  std::string directory;  // its folder node<k> holds the file of noted pages
  uint32_t node = 0;
};

/// Pages that the warmer has noted before the start, and those that the cache has again.
struct WarmProgress {
  uint64_t to_warm = 0;
  uint64_t warmed = 0;
  bool is_over = false;  // the warming has ended; from now on the pages of the cache are noted
};

class CacheWarmer {
 public:
  CacheWarmer(CacheWarmerSettings settings, Logger logger);
  CacheWarmer(const CacheWarmer&) = delete;
  CacheWarmer& operator=(const CacheWarmer&) = delete;
  ~CacheWarmer() { stop(); }

  void start();
  /// Tells that transactions may read this snapshot, the newest one. The first call starts the
  /// warming. After later calls the thread notes the pages of the cache. Thread: any.
  void note_snapshot(uint32_t snapshot);
  /// Runs an action that closes snapshot files, while the warmer reads none. Thread: any.
  Result<void> while_paused(const std::function<Result<void>()>& action);
  /// Ends the thread, and notes the pages of the cache. If the warming was not done yet, the old
  /// file stays.
  void stop();

  /// Thread: any.
  WarmProgress progress() const;

 private:
  void work();
  /// Returns the pages in the file of noted pages, or none if the file cannot be used.
  std::vector<uint64_t> noted_pages(uint32_t newest);
  void warm(std::vector<uint64_t> pages);
  /// Reads the pages of a sorted batch. Returns false if the cache is full or the warmer ends.
  bool warm_batch(const std::vector<uint64_t>& sorted, std::byte* buffer);
  /// Pauses after a read that began at `began`, if readers have missed pages since the last call.
  /// Returns false if the warmer ends.
  bool give_way(std::chrono::steady_clock::time_point began);
  void note_pages(uint32_t snapshot);

  const CacheWarmerSettings settings_;
  const Logger logger_;
  std::atomic<uint64_t> to_warm_{0};
  std::atomic<uint64_t> warmed_{0};
  uint64_t misses_seen_ = 0;  // used by the thread only
  std::mutex reading_;        // held while the thread reads pages, and by while_paused
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t newest_ = 0;     // guarded by mutex_; 0: no snapshot yet
  uint32_t noted_for_ = 0;  // guarded by mutex_; the last snapshot that the thread has handled
  bool is_warm_ = false;    // guarded by mutex_; the warming is over
  bool ends_ = false;       // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
