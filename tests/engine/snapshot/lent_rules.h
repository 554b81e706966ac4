// Bodies of tests of lent pages (R81): frames of the snapshot cache that belong to the volatile
// pool. A body returns an error text, or an empty text if all is right.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/snapshot/cache_rules.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// A cache of eight own frames whose lender is the pool of a small cluster, and snapshot pages that
/// fit in neither.
struct LendingPool {
  explicit LendingPool(uint32_t readers, uint64_t pool_bytes = uint64_t{2} << 20)
      : cluster(1, 1, {.pool_bytes = pool_bytes, .clock = false}),
        pages(static_cast<uint32_t>(2 * pool_bytes / kPageBytes)),
        cache(pages.files(), 8, readers, &cluster.pool(0)) {}

  PagePool& pool() { return cluster.pool(0); }
  PageAllocator& allocator() { return cluster.worker(0).context->pages(); }
  SnapshotCache::Statistics statistics() const { return cache.cache.statistics(); }

  /// Takes all free pages of the pool for volatile pages.
  std::vector<PageHeader*> take_all() {
    std::vector<PageHeader*> taken;
    while (PageHeader* page = allocator().take()) taken.push_back(page);
    return taken;
  }
  void give_back(const std::vector<PageHeader*>& taken) {
    for (PageHeader* page : taken) allocator().give_back(page);
    allocator().flush();
  }

  TestCluster cluster;
  NumberedPages pages;
  TestCache cache;
};

/// A thread that returns lent pages all the time: those that the pool wants back, or `always` a
/// few.
class LentPagesReturner {
 public:
  LentPagesReturner(PagePool& pool, SnapshotCache& cache, bool always = false)
      : thread_([this, &pool, &cache, always](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const uint64_t wanted = always ? 16 : pool.pages_to_reclaim();
            const uint32_t count = wanted == 0 ? 0 : cache.return_lent(wanted);
            returned_.fetch_add(count, std::memory_order_relaxed);
            if (count == 0) std::this_thread::yield();
          }
        }) {}
  uint64_t returned() const { return returned_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> returned_{0};
  std::jthread thread_;
};

/// R81: transactions take all pages of the pool, while a reader uses a lent page. The page must not
/// change before the reader leaves its round.
inline std::string a_lent_page_is_not_returned_while_it_is_read() {
  LendingPool test(1);
  SnapshotReader holder(test.cache.cache, 0);
  const PageHeader* held = nullptr;
  constexpr uint32_t kHeld = 60;
  for (const uint32_t number : {1u, kHeld}) {
    if (holder.get(NumberedPages::pointer(number), held) != Status::ok) return "a page is not read";
  }
  const uint64_t lent = test.pool().lent_count();
  if (lent == 0) return "no page was lent";
  std::vector<PageHeader*> taken = test.take_all();
  std::thread returner([&] { test.cache.cache.return_lent(lent); });
  while (test.statistics().evictions < 2) std::this_thread::yield();
  std::string problem;
  for (int look = 0; look < 2'000 && problem.empty(); ++look) {
    std::this_thread::yield();
    while (PageHeader* page = test.allocator().take()) taken.push_back(page);
    if (!NumberedPages::is_page(held, kHeld)) problem = "the page changed";
  }
  if (problem.empty() && test.pool().lent_count() != lent) problem = "pages came back too early";
  holder.leave();
  returner.join();
  if (problem.empty() && test.pool().lent_count() != 0) problem = "pages did not come back";
  test.give_back(taken);
  return problem;
}

}  // namespace atolldb::test
