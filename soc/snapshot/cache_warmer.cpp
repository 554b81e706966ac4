#include "soc/snapshot/cache_warmer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "engine/snapshot/cached_pages.h"
#include "shared/base/check.h"
#include "shared/file/io_buffer.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

/// Number of pages in a batch. The file lists pages in the order of their use, and batches keep
/// this order. Within a batch, pages are read in the order of their places.
constexpr size_t kBatchPages = 4096;

}  // namespace

CacheWarmer::CacheWarmer(CacheWarmerSettings settings, Logger logger)
    : settings_(std::move(settings)), logger_(std::move(logger)) {
  CHECK(settings_.file_system != nullptr && settings_.cache != nullptr);
}

void CacheWarmer::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { work(); });
}

void CacheWarmer::note_snapshot(uint32_t snapshot) {
  CHECK(snapshot != 0);
  {
    const std::lock_guard guard(mutex_);
    newest_ = std::max(newest_, snapshot);
  }
  changed_.notify_all();
}

Result<void> CacheWarmer::while_paused(const std::function<Result<void>()>& action) {
  const std::lock_guard guard(reading_);
  return action();
}

void CacheWarmer::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  uint32_t newest = 0;
  {
    const std::lock_guard guard(mutex_);
    if (is_warm_) newest = newest_;
  }
  if (newest != 0) note_pages(newest);
}

WarmProgress CacheWarmer::progress() const {
  const std::lock_guard guard(mutex_);
  // Relaxed: for display.
  return {to_warm_.load(std::memory_order_relaxed), warmed_.load(std::memory_order_relaxed),
          is_warm_};
}

void CacheWarmer::work() {
  name_thread("warm");
  become_batch_thread();
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait(lock, [this] { return ends_ || newest_ != noted_for_; });
    if (ends_) return;
    const uint32_t snapshot = noted_for_ = newest_;
    const bool was_warm = is_warm_;
    lock.unlock();
    if (was_warm) {
      note_pages(snapshot);
    } else {
      warm(noted_pages(snapshot));
    }
    lock.lock();
    is_warm_ = !ends_;  // a warming that was ended keeps the old file
  }
}

std::vector<uint64_t> CacheWarmer::noted_pages(uint32_t newest) {
  auto read = read_cached_pages(*settings_.file_system, settings_.directory, settings_.node);
  if (!read) {
    logger_->info("the cache is not warmed: {}", read.error().message);
    return {};
  }
  if (!*read) return {};
  CachedPages& cached = **read;
  const bool is_own = cached.cluster_uuid == settings_.cluster_uuid && cached.snapshot <= newest;
  if (!is_own) {
    logger_->info("the cache is not warmed: {}: is of other data",
                  cached_pages_path(settings_.directory, settings_.node));
    return {};
  }
  return std::move(cached.pages);
}

void CacheWarmer::warm(std::vector<uint64_t> pages) {
  if (pages.empty()) return;
  to_warm_.store(pages.size(), std::memory_order_relaxed);
  IoBuffer buffer(kPagesPerRead * kPageBytes);
  misses_seen_ = settings_.cache->statistics().misses;
  const auto began = Clock::now();
  for (size_t first = 0; first < pages.size(); first += kBatchPages) {
    const size_t count = std::min(kBatchPages, pages.size() - first);
    const auto begin = pages.begin() + static_cast<ptrdiff_t>(first);
    std::vector<uint64_t> batch(begin, begin + static_cast<ptrdiff_t>(count));
    std::ranges::sort(batch);
    if (!warm_batch(batch, buffer.bytes().data())) break;
  }
  logger_->info("{} of {} remembered snapshot pages are in the cache again, after {:.3f} s",
                warmed_.load(std::memory_order_relaxed), pages.size(),
                std::chrono::duration<double>(Clock::now() - began).count());
}

bool CacheWarmer::warm_batch(const std::vector<uint64_t>& sorted, std::byte* buffer) {
  for (size_t at = 0; at < sorted.size();) {
    size_t end = at + 1;
    while (end < sorted.size() && end - at < kPagesPerRead &&
           sorted[end] == sorted[at] + (end - at)) {
      ++end;
    }
    const auto began = Clock::now();
    std::optional<uint32_t> cached;
    {
      const std::lock_guard guard(reading_);
      cached = settings_.cache->warm(SnapshotPointer(sorted[at]), static_cast<uint32_t>(end - at),
                                     buffer);
    }
    if (!cached) return false;
    warmed_.fetch_add(*cached, std::memory_order_relaxed);
    if (!give_way(began)) return false;
    at = end;
  }
  return true;
}

bool CacheWarmer::give_way(Clock::time_point began) {
  const uint64_t misses = settings_.cache->statistics().misses;
  const auto pause = misses == misses_seen_ ? Clock::duration::zero() : Clock::now() - began;
  misses_seen_ = misses;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [this] { return ends_; });
  return !ends_;
}

/// Writes the file of noted pages. A failure only makes the next start slower.
void CacheWarmer::note_pages(uint32_t snapshot) {
  CachedPages cached;
  cached.cluster_uuid = settings_.cluster_uuid;
  cached.node = settings_.node;
  cached.snapshot = snapshot;
  cached.pages = settings_.cache->cached_pages(kMaxCachedPages);
  const auto written = write_cached_pages(*settings_.file_system, settings_.directory, cached);
  if (!written) logger_->info("the pages of the cache are not noted: {}", written.error().message);
}

}  // namespace atolldb
