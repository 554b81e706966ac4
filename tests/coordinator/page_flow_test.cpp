// Flow control of volatile pools: limits by phase of a job, a pool that jobs drain in a simulation,
// and the budget that workers see.
#include "coordinator/snapshots/page_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "coordinator/snapshots/page_regulator.h"
#include "shared/memory/page_pool.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

// Pages that the flow control does not count as usable: two batches, and the reserve of a pool of
// 65,536 pages.
constexpr double kKept = 64 + 512;

class PageFlowTest : public testing::Test {
 protected:
  PoolReadings at(double seconds, double free, double taken = 0) const {
    return {start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(seconds)),
            65'536, static_cast<uint64_t>(free + kKept), static_cast<uint64_t>(taken)};
  }
  /// Tells the flow control of a job of two seconds, whose install takes one second and frees
  /// 4,000 pages. Ends 10 s after the start.
  void learn() {
    flow_.begin_job(at(7, 4'000));
    flow_.begin_install(at(9, 1'000, 3'000), false);
    flow_.end_job(at(10, 4'000, 4'000));
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  PageFlow flow_;
};

TEST_F(PageFlowTest, ThereIsNoLimitWithoutAJob) {
  EXPECT_FALSE(flow_.limit(at(0, 10)));
  EXPECT_FALSE(flow_.limit(at(1, 0, 100'000))) << "no job has been seen";
  EXPECT_FALSE(flow_.is_short());
}

TEST_F(PageFlowTest, TheFreePagesLastUntilTheInstallBegins) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  // With the 4,000 pages that the install frees, they also last for that second and the next job.
  EXPECT_NEAR(*flow_.limit(at(10, 4'000, 4'000)), 8'000.0 / 5, 1);
  EXPECT_NEAR(*flow_.limit(at(11, 2'000, 6'000)), 6'000 / 4.2, 1);
  EXPECT_NEAR(*flow_.limit(at(11, 500, 7'500)), 500 / 1.2, 1)
      << "it follows the pages that are left";
  EXPECT_NEAR(*flow_.limit(at(12, 500, 7'500)), 500 / 1.2, 1) << "some time is always left";
  EXPECT_NEAR(*flow_.limit(at(18, 500, 7'500)), 500 / 4.8, 1)
      << "it takes longer than the last one";
  EXPECT_EQ(*flow_.limit(at(18, -1, 7'500)), 0) << "workers wait for pages";
}

/// Installs free many pages and few, in turns. The average counts, so the pages are not taken in a
/// burst before an install that frees few.
TEST_F(PageFlowTest, TheAverageOfInstallsIsExpected) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_install(at(12, 1'000, 7'000), false);
  flow_.end_job(at(13, 1'000, 7'000));  // it has freed nothing
  flow_.begin_job(at(13, 4'000, 7'000));
  EXPECT_NEAR(*flow_.limit(at(13, 4'000, 7'000)), 6'000.0 / 5, 1) << "2,000 pages";
  EXPECT_NEAR(*flow_.limit(at(14.5, 500, 7'000)), 500 / 1.2, 1) << "not more than there are";
}

TEST_F(PageFlowTest, PagesThatAnInstallWillFreeAreCounted) {
  learn();  // the install has freed 4,000 of some 61,500 pages in use
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_install(at(12, 1'000, 7'000), false);
  // 1,000 pages and 4,000 to come, for one second of install and two of the next job. Half of the
  // limit is the present rate, which was not measured here.
  EXPECT_NEAR(*flow_.limit(at(12, 1'000, 7'000)), 5'000.0 / 3 / 2, 1);
  EXPECT_NEAR(*flow_.limit(at(12.5, 2'500, 7'500)), (4'500.0 / 2.6 + 500) / 2, 1) << "2,000 came";
  EXPECT_NEAR(*flow_.limit(at(12.6, 50, 8'000)), 500, 1) << "those to come are not there yet";
}

TEST_F(PageFlowTest, TheNextJobBeginsEarlyIfTheInstallWillFreeTooFewPagesForAnotherJob) {
  EXPECT_FALSE(flow_.will_be_short()) << "no job has been seen";
  learn();  // the install has taken one second and freed 4,000 of some 61,500 pages in use
  flow_.begin_job(at(10, 4'000, 4'000));
  static_cast<void>(flow_.limit(at(11, 3'000, 5'000)));
  static_cast<void>(flow_.limit(at(12, 2'000, 6'000)));  // 1,000 pages per second
  // 2,000 pages, and 4,000 that the install frees. It takes one second, and a job two.
  EXPECT_FALSE(flow_.will_be_short());
  static_cast<void>(flow_.limit(at(13, 1'000, 9'000)));
  EXPECT_TRUE(flow_.will_be_short()) << "1,000 pages, but 3,000 per second are taken";
}

TEST_F(PageFlowTest, AJobThatOverlapsAnInstallHasWorkedForAsLong) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_next(at(12, 1'000, 7'000));
  flow_.begin_install(at(12, 1'000, 7'000), false);
  // 1,000 pages and 4,000 to come. The install takes one second, the rest of the next job 1.2 s:
  // it has worked for one of two seconds then, and 60 % of its time are always expected.
  EXPECT_NEAR(*flow_.limit(at(12, 1'000, 7'000)), 5'000.0 / 2.2 / 2, 1);
  flow_.end_job(at(13, 4'000, 8'000));
  flow_.begin_job(at(13, 4'000, 8'000));
  EXPECT_NEAR(*flow_.limit(at(13, 4'000, 8'000)), 8'000 / 4.2, 1) << "1.2, 1 and 2 seconds";
  flow_.begin_install(at(14, 3'000, 9'000), false);
  flow_.end_job(at(15, 4'000, 10'000));
  flow_.begin_job(at(15, 4'000, 10'000));
  // Installs have freed 4,000 and 2,000 pages.
  EXPECT_NEAR(*flow_.limit(at(15, 4'000, 10'000)), 7'000.0 / 5, 1)
      << "the job that overlapped has taken two seconds, too";
}

TEST_F(PageFlowTest, AnInstallThatFreesLittleIsExpectedToFreeLittleMore) {
  learn();  // the install has taken one second
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_install(at(12, 1'000, 7'000), false);
  EXPECT_NEAR(*flow_.limit(at(12, 1'000, 7'000)), 5'000.0 / 3 / 2, 1);
  // After half of the expected time it has freed 100 pages of 4,000: half of the expectation is
  // 3,900, the other half 200 pages per second for the rest of 0.6 s.
  EXPECT_NEAR(*flow_.limit(at(12.5, 1'000, 7'100)), ((1'000 + 1'950 + 60) / 2.6 + 100) / 2, 1);
  // After all of the time only its own rate counts.
  EXPECT_NEAR(*flow_.limit(at(13, 1'000, 7'100)), ((1'000 + 60) / 2.6 + 50) / 2, 1);
}

TEST_F(PageFlowTest, AJobIsDueWhenThePagesWouldNotLastForAnother) {
  learn();
  // 1,000 pages per second: a job needs some 2,070, because it begins with a few more pages in use
  // than the one before.
  for (int i = 0; i <= 100; ++i) {
    EXPECT_FALSE(flow_.limit(at(10 + 0.1 * i, 20'000, 4'000 + 100.0 * i))) << i;
  }
  EXPECT_FALSE(flow_.is_short());
  EXPECT_FALSE(flow_.limit(at(20.1, 2'100, 14'100)));
  EXPECT_FALSE(flow_.is_short());
  const auto limit = flow_.limit(at(20.2, 1'900, 14'200));
  EXPECT_TRUE(flow_.is_short());
  ASSERT_TRUE(limit) << "no burst before the job begins";
  EXPECT_NEAR(*limit, 1'900 / (2.0 * (65'536 - 1'900 - kKept) / (65'536 - 4'000 - kKept)), 1);
}

TEST_F(PageFlowTest, AJobThatBeginsWithMorePagesIsExpectedToTakeLonger) {
  // 10,000 pages in use: two seconds.
  flow_.begin_job(at(7, 65'536 - 10'000 - kKept));
  flow_.begin_install(at(9, 40'000), false);
  flow_.end_job(at(10, 55'000));
  flow_.begin_job(at(11, 65'536 - 40'000 - kKept));
  EXPECT_NEAR(*flow_.limit(at(11, 24'000)), 24'000 / 8.0, 1) << "40,000 pages";
  flow_.end_job(at(12, 24'000));
  flow_.begin_job(at(13, 65'536 - 500 - kKept));
  EXPECT_NEAR(*flow_.limit(at(13, 60'000)), 60'500 / 1.5, 1) << "at least a quarter of a second";
}

/// After a load, whose jobs write a page for each page in use, records come into delta trees.
TEST_F(PageFlowTest, RecordsOfDeltaTreesCountAsPagesOfTheJob) {
  flow_.begin_job(at(7, 65'536 - 10'000 - kKept));
  flow_.begin_install(at(9, 40'000), false);  // two seconds for 10,000 pages
  flow_.end_job(at(10, 55'000));
  PoolReadings cold = at(11, 65'536 - 5'000 - kKept);
  cold.cold = 15'000;  // three times the work of pages in use
  flow_.begin_job(cold);
  EXPECT_NEAR(*flow_.limit(at(11, 24'000)), 29'000 / 21.0, 1) << "as long as 50,000 pages";
  flow_.begin_install(at(26, 5'000), false);  // 15 s
  flow_.end_job(at(27, 50'000));
  cold = at(28, 30'000);
  cold.cold = 0;
  for (int i = 0; i < 20; ++i) flow_.limit(at(28 + 0.1 * i, 30'000 - 1'000 * i, 1'000.0 * i));
  EXPECT_TRUE(flow_.is_short()) << "10,000 pages per second, and a job of some 16 s";
}

TEST_F(PageFlowTest, AFailedJobTeachesNothing) {
  flow_.begin_job(at(1, 4'000));
  flow_.end_job(at(3, 1'000));
  EXPECT_FALSE(flow_.limit(at(3, 1'000)));
  flow_.begin_job(at(4, 40'000));
  // A first job is expected to write the used pages, 50,000 a second.
  EXPECT_NEAR(*flow_.limit(at(4, 40'000)), 40'000 / ((65'536 - 40'000 - kKept) / 50'000.0), 10);
}

TEST_F(PageFlowTest, APacedJobTeachesNothingAndAShortOneLittle) {
  learn();
  flow_.begin_job(at(20, 4'000, 4'000));
  flow_.begin_install(at(80, 4'000, 4'000), true);
  flow_.end_job(at(81, 4'000, 4'000));
  flow_.begin_job(at(90, 4'000, 4'000));
  EXPECT_NEAR(*flow_.limit(at(90, 4'000, 4'000)), 6'000.0 / 5, 1) << "two seconds, as before";
  flow_.begin_install(at(90.1, 4'000, 4'000), false);
  flow_.end_job(at(91, 4'000, 4'000));
  flow_.begin_job(at(92, 4'000, 4'000));
  EXPECT_NEAR(*flow_.limit(at(92, 4'000, 4'000)), 5'000 / 3.7, 1) << "7/10 of two seconds";
}

/// One simulated pool of 65,536 pages. A job copes with the pages that were taken before it began;
/// its install frees them evenly.
TEST_F(PageFlowTest, APoolBendsAndDoesNotBreak) {
  std::mt19937_64 random(seed());
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  constexpr double kPages = 65'536;
  constexpr double kStep = 0.005;
  const double demand = between(20'000, 200'000);  // far more than the jobs can free
  const double make_s = between(1, 4);
  const double install_s = between(0.5, 3);
  double free = kPages;
  double taken = 0;
  double since_begin = 0;  // pages taken since the current job began
  double to_free = 0;
  double phase_left = 0;
  int phase = 0;  // idle, making, installing
  int jobs = 0;
  std::vector<double> tenths;   // pages taken in each tenth of a second after the third job
  std::vector<double> seconds;  // and in each second
  double now = 0;
  for (int step = 0; jobs < 12; ++step, now += kStep) {
    const PoolReadings readings = at(now, free, taken);
    const auto limit = flow_.limit(readings);
    const double wanted = demand * kStep;
    const double got = std::min({limit ? *limit * kStep : wanted, wanted, free});
    free -= got;
    taken += got;
    since_begin += got;
    if (jobs >= 3) {
      if (step % 20 == 0) tenths.push_back(0);
      if (step % 200 == 0) seconds.push_back(0);
      if (!tenths.empty()) tenths.back() += got;
      if (!seconds.empty()) seconds.back() += got;
    }
    phase_left -= kStep;
    if (phase == 2) {
      const double freed = std::min(to_free, kStep / install_s * (kPages - since_begin));
      free = std::min(free + freed, kPages - since_begin);
      to_free -= freed;
    }
    if (phase == 0 && (flow_.is_short() || free < 0.2 * kPages)) {
      flow_.begin_job(readings);
      phase = 1;
      since_begin = 0;
      phase_left = make_s * between(0.9, 1.1);
    } else if (phase == 1 && phase_left <= 0) {
      flow_.begin_install(readings, false);
      phase = 2;
      to_free = kPages - free - since_begin;
      phase_left = install_s * between(0.9, 1.1);
    } else if (phase == 2 && phase_left <= 0) {
      flow_.end_job(readings);
      phase = 0;
      ++jobs;
    }
  }
  ASSERT_GT(seconds.size(), 10u);
  tenths.pop_back();
  seconds.pop_back();  // they are not complete
  double sum = 0;
  for (const double each : seconds) sum += each;
  const double mean = sum / static_cast<double>(seconds.size());
  const double worst_second = *std::ranges::min_element(seconds);
  const double worst_tenth = 10 * *std::ranges::min_element(tenths);
  std::printf("of the mean: worst second %.2f, worst tenth %.2f\n", worst_second / mean,
              worst_tenth / mean);
  EXPECT_GT(worst_second, mean * 0.33) << "demand " << demand << ", job " << make_s
                                       << " s, install " << install_s << " s, mean " << mean;
  EXPECT_GT(worst_tenth, mean * 0.1) << "a stop";
}

class PageBudgetTest : public testing::Test {
 protected:
  PageBudgetTest() { node_->page_budget.store(kUnlimitedPages, std::memory_order_relaxed); }
  int64_t budget() const { return node_->page_budget.load(std::memory_order_relaxed); }
  uint32_t signal() const { return node_->page_signal.load(std::memory_order_relaxed); }

  const std::unique_ptr<NodeShared> node_ = std::make_unique<NodeShared>();
  double credit_ = 0;
};

TEST_F(PageBudgetTest, GrowsWithTheLimitAndHasNoBursts) {
  grant_pages(*node_, 10'000.0, 0.005, credit_);
  EXPECT_EQ(budget(), 500) << "pages for 50 ms";
  EXPECT_EQ(node_->page_limit.load(std::memory_order_relaxed), 10'000u);
  node_->page_budget.store(-100, std::memory_order_relaxed);
  grant_pages(*node_, 10'000.0, 0.005, credit_);
  EXPECT_EQ(budget(), -50);
  grant_pages(*node_, 10'000.0, 1, credit_);
  EXPECT_EQ(budget(), 500);
}

TEST_F(PageBudgetTest, PartsOfAPageAreNotLost) {
  grant_pages(*node_, 100.0, 0, credit_);
  node_->page_budget.store(-35, std::memory_order_relaxed);
  for (int i = 0; i < 240; ++i) grant_pages(*node_, 100.0, 0.00125, credit_);
  EXPECT_EQ(budget(), -5);
}

TEST_F(PageBudgetTest, WakesWorkersOnlyWhenItIsNotNegative) {
  node_->page_budget.store(-100, std::memory_order_relaxed);
  grant_pages(*node_, 10'000.0, 0.005, credit_);
  EXPECT_EQ(signal(), 0u);
  grant_pages(*node_, 10'000.0, 0.005, credit_);
  EXPECT_EQ(budget(), 0);
  EXPECT_EQ(signal(), 1u);
}

TEST_F(PageBudgetTest, ALargeDebtIsForgiven) {
  node_->page_budget.store(-1'000'000, std::memory_order_relaxed);
  grant_pages(*node_, 10'000.0, 0.005, credit_);
  EXPECT_EQ(budget(), -10 * kMaxPageDelay.count() - int64_t{PagePool::kBatchPages})
      << "the longest delay and a batch";
  node_->pages_total.store(32'000, std::memory_order_relaxed);
  node_->pages_free.store(1'000, std::memory_order_relaxed);
  EXPECT_EQ(max_page_delay(*node_), kMaxPageDelay);
  node_->pages_free.store(999, std::memory_order_relaxed);
  EXPECT_EQ(max_page_delay(*node_), kMaxScarceDelay);
  node_->page_budget.store(-1'000'000, std::memory_order_relaxed);
  grant_pages(*node_, 10'000.0, 0.005, credit_);
  EXPECT_EQ(budget(), -10 * kMaxScarceDelay.count() - int64_t{PagePool::kBatchPages})
      << "a longer delay while pages are scarce";
}

TEST_F(PageBudgetTest, EndsWithTheLimit) {
  grant_pages(*node_, 0.0, 0.005, credit_);
  EXPECT_EQ(node_->page_limit.load(std::memory_order_relaxed), 1u) << "a limit, in the status";
  node_->page_budget.store(-100, std::memory_order_relaxed);
  grant_pages(*node_, std::nullopt, 0.005, credit_);
  EXPECT_EQ(budget(), kUnlimitedPages);
  EXPECT_EQ(node_->page_limit.load(std::memory_order_relaxed), 0u);
  EXPECT_EQ(signal(), 2u);
}

TEST(ColdPages, AreThoseOfRecordsButNoMoreThanTheSnapshotHas) {
  constexpr uint32_t kSlots = 2;
  std::vector<std::vector<uint64_t>> memory;
  std::vector<MetricsSegment*> nodes;
  std::vector<const MetricsSegment*> metrics;
  for (int node = 0; node < 2; ++node) {
    const std::vector<uint64_t>& bytes =
        memory.emplace_back(MetricsSegment::bytes(kSlots) / sizeof(uint64_t) + 8);
    // Aligned to a cache line.
    const auto address = (reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64;
    nodes.push_back(reinterpret_cast<MetricsSegment*>(address));
    nodes.back()->slot_count = kSlots;
    metrics.push_back(nodes.back());
  }
  EXPECT_EQ(cold_pages(metrics, 100), 0u);
  nodes[0]->worker(1).delta_added.add(70);
  nodes[1]->worker(0).delta_added.add(20);
  EXPECT_EQ(cold_pages(metrics, 1'000), 45u) << "of an average node";
  EXPECT_EQ(cold_pages(metrics, 60), 30u);
  nodes[1]->worker(1).delta_drained.add(80);
  EXPECT_EQ(cold_pages(metrics, 60), 5u);
  nodes[1]->worker(1).delta_drained.add(11);
  EXPECT_EQ(cold_pages(metrics, 60), 0u) << "more seem drained than added";
}

TEST_F(PageBudgetTest, TheRegulatorLimitsDuringAJobAndLiftsTheLimitAtItsEnd) {
  const std::vector<NodeShared*> nodes = {node_.get()};
  node_->pages_free.store(1'064, std::memory_order_relaxed);
  PageRegulator regulator(nodes, [] { return uint64_t{0}; });
  regulator.start();
  const auto limit = [&] { return node_->page_limit.load(std::memory_order_relaxed); };
  EXPECT_EQ(limit(), 0u);
  regulator.begin_job();
  EXPECT_TRUE(eventually([&] { return limit() != 0; }));
  EXPECT_LE(budget(), 1'000);
  regulator.begin_install(false);
  regulator.end_job();
  EXPECT_TRUE(eventually([&] { return limit() == 0; }));
  regulator.begin_job();
  EXPECT_TRUE(eventually([&] { return limit() != 0; }));
  regulator.stop();
  EXPECT_EQ(limit(), 0u);
  EXPECT_EQ(budget(), kUnlimitedPages);
}

}  // namespace
}  // namespace atolldb::test
