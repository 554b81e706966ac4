// Bodies of tests of the snapshot cache. A body returns an error text, or an empty text if all is
// right.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/snapshot/snapshot_cache.h"
#include "engine/snapshot/snapshot_writer.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

/// A snapshot of pages, each filled with its own number.
class NumberedPages {
 public:
  /// Returns the id of the storage to which the page of a number belongs.
  using StorageOf = std::function<uint32_t(uint32_t number)>;

  explicit NumberedPages(
      uint32_t count, const StorageOf& storage_of = [](uint32_t) { return 1u; })
      : count_(count) {
    SnapshotWriterSettings settings;
    settings.directory = "/data";
    settings.snapshot = 1;
    settings.epoch = 7;
    auto writer = SnapshotWriter::create(files_, settings);
    CHECK(writer.has_value());
    for (uint32_t page = 1; page <= count; ++page) {
      auto next = writer->next(storage_of(page));
      CHECK(next.has_value());
      auto* words = reinterpret_cast<uint64_t*>(*next);
      for (size_t i = kFirstWord; i < kWords; ++i) words[i] = page;
    }
    CHECK(writer->finish().has_value());
    CHECK(snapshot_.open({{1, 0, "/data", count + 1}}).has_value());
  }

  uint32_t count() const { return count_; }
  PowerCutFileSystem& file_system() { return files_; }
  SnapshotFiles& files() { return snapshot_; }
  static SnapshotPointer pointer(uint32_t page) { return SnapshotPointer::make(1, 0, page); }

  /// Returns true if every word of the page is its number.
  static bool is_page(const PageHeader* page, uint32_t number) {
    const auto* words = reinterpret_cast<const uint64_t*>(page);
    for (size_t i = kFirstWord; i < kWords; ++i) {
      if (words[i] != number) return false;
    }
    return page->self == pointer(number).word();
  }

 private:
  static constexpr size_t kFirstWord = sizeof(PageHeader) / sizeof(uint64_t);
  static constexpr size_t kWords = kPageBytes / sizeof(uint64_t);

  uint32_t count_;
  PowerCutFileSystem files_;
  SnapshotFiles snapshot_{files_, ClusterUuid{}};
};

/// A cache of `frames` frames, with its memory. `lender`: as for SnapshotCache.
struct TestCache {
  TestCache(SnapshotFiles& files, uint32_t frames, uint32_t readers, PagePool* lender = nullptr)
      : memory(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, frames * kPageBytes)),
               &std::free),
        cache(
            memory.get(), frames * kPageBytes, readers, files,
            [this](const Error& error) { last_error = error.message; }, lender) {}

  std::unique_ptr<std::byte, decltype(&std::free)> memory;
  std::string last_error;  // last error that the cache reported; for tests with one reader
  SnapshotCache cache;
};

/// Returns the counts of a storage in a cache. They are 0 if it has no slot.
inline StorageCount count_of(const SnapshotCache& cache, uint32_t storage_id) {
  const StorageCounts counts = cache.storage_counts();
  const StorageCount& slot = counts.slots()[storage_id % kMaxStorages];
  return slot.storage_id == storage_id ? slot : StorageCount();
}

/// Returns the sums of the counts of all storages. `storage_id` is 0.
inline StorageCount sum_of_counts(const StorageCounts& counts) {
  StorageCount sum = counts.others();
  for (const StorageCount& each : counts.slots()) {
    sum.pages_read += each.pages_read;
    sum.evictions += each.evictions;
  }
  return sum;
}

/// The counts by storage add up to those of the whole cache. REQUIRES: no thread uses the cache.
inline std::string counts_by_storage_add_up(const SnapshotCache& cache) {
  const SnapshotCache::Statistics whole = cache.statistics();
  const StorageCount sum = sum_of_counts(cache.storage_counts());
  if (sum.evictions != whole.evictions) {
    return std::to_string(sum.evictions) + " evictions by storage, " +
           std::to_string(whole.evictions) + " in all";
  }
  if (sum.pages_read - sum.evictions != whole.frames_in_use) {
    return std::to_string(sum.pages_read) + " pages read and " + std::to_string(sum.evictions) +
           " evicted, but " + std::to_string(whole.frames_in_use) + " in the cache";
  }
  return "";
}

/// R39: a reader uses a page while another reader reads many times as many pages as there are
/// frames. The page must not change.
inline std::string a_page_is_not_evicted_while_it_is_read() {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 2);
  SnapshotReader holder(test.cache, 0);
  SnapshotReader churner(test.cache, 1);
  const PageHeader* held = nullptr;
  if (holder.get(NumberedPages::pointer(1), held) != Status::ok) return "page 1 is not read";
  // The other reader reads far more pages than there are frames, so it needs the frames again.
  std::atomic<uint32_t> read{0};
  std::thread other([&] {
    for (uint32_t turn = 0; turn < 4 * pages.count(); ++turn) {
      const uint32_t number = 2 + turn % (pages.count() - 1);
      const PageHeader* page = nullptr;
      if (churner.get(NumberedPages::pointer(number), page) != Status::ok) break;
      if (!NumberedPages::is_page(page, number)) break;
      read.fetch_add(1, std::memory_order_relaxed);
    }
  });
  // The other reader has read 7 pages when all evictable frames are evicted. Then it waits for the
  // holder. If it reads more pages, it has taken a frame that the holder may still use.
  while (read.load(std::memory_order_relaxed) < 7) std::this_thread::yield();
  std::string problem;
  for (int look = 0; look < 20'000 && problem.empty(); ++look) {
    std::this_thread::yield();
    if (read.load(std::memory_order_relaxed) > 7)
      problem = "a frame went to another page too early";
  }
  if (problem.empty() && !NumberedPages::is_page(held, 1)) problem = "the page changed";
  holder.leave();
  other.join();
  if (!problem.empty()) return problem;
  return read.load(std::memory_order_relaxed) == 4 * pages.count()
             ? ""
             : "the other reader saw a wrong page";
}

/// Reader `slot` reads so many other pages that pages 1 and 2 are evicted from the cache.
inline bool take_all_frames(TestCache& test, const NumberedPages& pages, uint32_t slot) {
  SnapshotReader other(test.cache, slot);
  bool is_read = true;
  for (uint32_t number = 3; number <= pages.count(); ++number) {
    const PageHeader* page = nullptr;
    is_read = is_read && other.get(NumberedPages::pointer(number), page) == Status::ok;
  }
  other.leave();
  return is_read;
}

/// R39: a reader reads a page again after other readers have taken all frames.
inline std::string a_page_that_was_evicted_is_read_again() {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 2);
  SnapshotReader reader(test.cache, 0);
  const PageHeader* page = nullptr;
  for (uint32_t turn = 0; turn < 3; ++turn) {
    for (uint32_t look = 0; look < 2; ++look) {
      if (reader.get(NumberedPages::pointer(1), page) != Status::ok) return "page 1 is not read";
      if (!NumberedPages::is_page(page, 1)) return "another page was taken for page 1";
    }
    reader.leave();
    if (!take_all_frames(test, pages, 1)) return "other pages are not read";
  }
  return "";
}

/// R39: a hint leads from a page to the frame of its child. Then the frame is reused for another
/// page. The reader must detect this.
inline std::string a_hint_is_only_a_hint() {
  NumberedPages pages(64);
  TestCache test(pages.files(), 8, 2);
  SnapshotReader reader(test.cache, 0);
  // This pointer stands for one in a parent page, because NumberedPages have no parent pages.
  DualPointer link;
  link.snapshot_word.store(NumberedPages::pointer(2).word(), std::memory_order_relaxed);
  const PageHeader* page = nullptr;
  for (uint32_t turn = 0; turn < 3; ++turn) {
    for (uint32_t look = 0; look < 2; ++look) {
      if (reader.get(NumberedPages::pointer(1), page) != Status::ok) return "page 1 is not read";
      if (reader.get_child(link, page) != Status::ok) return "page 2 is not read";
      if (!NumberedPages::is_page(page, 2)) return "another page was taken for page 2";
    }
    if (!link.load_acquire().is_null()) return "a hint is not a null word";
    if (turn == 0 && link.load_acquire() == VolatilePointer()) return "no hint was left";
    reader.leave();
    if (!take_all_frames(test, pages, 1)) return "other pages are not read";
  }
  return "";
}

}  // namespace atolldb::test
