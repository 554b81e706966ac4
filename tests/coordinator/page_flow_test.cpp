// Flow control of volatile pools: limits by phase of a job, a pool that jobs drain in a simulation,
// and the budget that workers see.
#include "coordinator/snapshots/page_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "coordinator/snapshots/job_progress.h"
#include "coordinator/snapshots/page_regulator.h"
#include "shared/base/check.h"
#include "shared/memory/page_pool.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

// Free pages that the flow control does not count as usable: two batches, and 1/32 of a pool of
// 65,536 pages. During an install, the reserve of the pool takes the place of that part.
constexpr double kKept = 64 + 2'048;
constexpr double kKeptByInstall = 64 + 512;

class PageFlowTest : public testing::Test {
 protected:
  PoolReadings at(double seconds, double free, double taken = 0, double progress = 0) const {
    return {start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(seconds)),
            65'536,
            static_cast<uint64_t>(free + kKept),
            static_cast<uint64_t>(taken),
            0,
            progress};
  }
  /// The same during an install: `free` pages are usable then, too.
  PoolReadings amid_install(double seconds, double free, double taken) const {
    return at(seconds, free + kKeptByInstall - kKept, taken);
  }
  /// Tells the flow control of a job of two seconds, whose install takes one second and frees
  /// 4,000 pages. Ends 10 s after the start.
  void learn() {
    flow_.begin_job(at(7, 4'000));
    flow_.begin_install(at(9, 1'000, 3'000), false);
    flow_.end_job(at(10, 4'000, 4'000));
  }

  /// Returns the progress when this part of a job's time has passed, if no job has shown its
  /// progress: a quarter of the time passes without any.
  static double work_at(double part) { return (part - 0.25) / 0.75; }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  PageFlow flow_;
};

TEST_F(PageFlowTest, ThereIsNoLimitWhileNoJobIsDue) {
  EXPECT_FALSE(flow_.limit(at(0, 10)));
  EXPECT_FALSE(flow_.limit(at(1, 10))) << "no pages are taken";
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

TEST_F(PageFlowTest, AnInstallUsesAlsoThePagesThatAreForLongJobs) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  EXPECT_EQ(*flow_.limit(at(12, 0, 8'000)), 0);
  flow_.begin_install(at(12, 0, 8'000), false);
  EXPECT_GT(*flow_.limit(at(12, 0, 8'000)), 500);
}

TEST_F(PageFlowTest, PagesThatAnInstallWillFreeAreCounted) {
  learn();  // the install has freed 4,000 of some 61,500 pages in use
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_install(amid_install(12, 1'000, 7'000), false);
  // 1,000 pages and 4,000 to come, for one second of install and two of the next job. Half of the
  // limit is the present rate, which was not measured here.
  EXPECT_NEAR(*flow_.limit(amid_install(12, 1'000, 7'000)), 5'000.0 / 3 / 2, 1);
  EXPECT_NEAR(*flow_.limit(amid_install(12.5, 2'500, 7'500)), (4'500.0 / 2.6 + 500) / 2, 1)
      << "2,000 came";
  EXPECT_NEAR(*flow_.limit(amid_install(12.6, 50, 8'000)), 500, 1)
      << "those to come are not there yet";
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
  flow_.begin_install(amid_install(12, 1'000, 7'000), false);
  // 1,000 pages and 4,000 to come. The install takes one second, the rest of the next job 1.2 s:
  // it has worked for one of two seconds then, and 60 % of its time are always expected.
  EXPECT_NEAR(*flow_.limit(amid_install(12, 1'000, 7'000)), 5'000.0 / 2.2 / 2, 1);
  flow_.end_job(amid_install(13, 4'000, 8'000));
  flow_.begin_job(at(13, 4'000, 8'000));
  EXPECT_NEAR(*flow_.limit(at(13, 4'000, 8'000)), 8'000 / 4.2, 1) << "1.2, 1 and 2 seconds";
  flow_.begin_install(amid_install(14, 3'000, 9'000), false);
  flow_.end_job(amid_install(15, 4'000, 10'000));
  flow_.begin_job(at(15, 4'000, 10'000));
  // Installs have freed 4,000 and 2,000 pages.
  EXPECT_NEAR(*flow_.limit(at(15, 4'000, 10'000)), 7'000.0 / 5, 1)
      << "the job that overlapped has taken two seconds, too";
}

TEST_F(PageFlowTest, AnInstallThatFreesLittleIsExpectedToFreeLittleMore) {
  learn();  // the install has taken one second
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_install(amid_install(12, 1'000, 7'000), false);
  EXPECT_NEAR(*flow_.limit(amid_install(12, 1'000, 7'000)), 5'000.0 / 3 / 2, 1);
  // After half of the expected time it has freed 100 pages of 4,000: half of the expectation is
  // 3,900, the other half 200 pages per second for the rest of 0.6 s.
  EXPECT_NEAR(*flow_.limit(amid_install(12.5, 1'000, 7'100)),
              ((1'000 + 1'950 + 60) / 2.6 + 100) / 2, 1);
  // After all of the time only its own rate counts.
  EXPECT_NEAR(*flow_.limit(amid_install(13, 1'000, 7'100)), ((1'000 + 60) / 2.6 + 50) / 2, 1);
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

TEST_F(PageFlowTest, TheFirstJobIsDueByAnAssumedSpeedOnceLessThanHalfOfThePoolIsFree) {
  // 20,000 pages per second. At 28,000 free pages a job is expected to take 1.8 s.
  for (int i = 0; i <= 28; ++i) {
    EXPECT_FALSE(flow_.limit(at(0.05 * i, 56'000 - 1'000 * i, 1'000.0 * i))) << i;
    EXPECT_FALSE(flow_.is_short()) << i;
  }
  for (int i = 29; i <= 33; ++i) flow_.limit(at(0.05 * i, 56'000 - 1'000 * i, 1'000.0 * i));
  EXPECT_TRUE(flow_.is_short()) << "23,000 pages are free, less than 2/5 of all";
  const auto limit = flow_.limit(at(1.7, 23'000, 33'000));
  ASSERT_TRUE(limit);
  EXPECT_NEAR(*limit, 23'000 / ((65'536 - 23'000 - kKept) / 20'000.0), 1);
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
  // A first job is expected to write the used pages, 20,000 a second.
  EXPECT_NEAR(*flow_.limit(at(4, 40'000)), 40'000 / ((65'536 - 40'000 - kKept) / 20'000.0), 10);
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

TEST_F(PageFlowTest, TheProgressOfAJobTellsItsRest) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  // 0.4 of the time: a fifth of the expectation is that of past jobs, 1.2 s. The rest is 1.5 s, and
  // a margin of 0.35 of the whole 2.5 s. So the next job takes some 2.4 s.
  EXPECT_NEAR(*flow_.limit(at(11, 500, 7'500, work_at(0.4))), 500 / 2.14, 1);
  EXPECT_NEAR(*flow_.limit(at(11, 4'000, 7'500, work_at(0.4))), 8'000 / (2.14 + 1 + 2.4), 1);
  // From half of the time on, only the progress counts.
  EXPECT_NEAR(*flow_.limit(at(11, 500, 7'500, work_at(0.5))), 500 / 1.7, 1)
      << "1 s and 0.35 of 2 s";
  EXPECT_NEAR(*flow_.limit(at(16, 500, 7'500, work_at(0.75))), 500 / 4.8, 1)
      << "2 s and 0.35 of 8 s";
  EXPECT_NEAR(*flow_.limit(at(16, 500, 7'500, 1)), 500 / 2.1, 1) << "0.35 of 6 s";
}

TEST_F(PageFlowTest, AFasterJobLeavesFewerPages) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  EXPECT_NEAR(*flow_.limit(at(10.5, 400, 7'500)), 400 / 1.5, 1) << "without progress";
  EXPECT_NEAR(*flow_.limit(at(10.5, 400, 7'500, work_at(0.75))), 400 / (0.5 / 3 + 0.35 * 2 / 3), 1);
}

TEST_F(PageFlowTest, AJobThatOverlapsAnInstallShowsItsSpeedAfterTheInstall) {
  learn();
  flow_.begin_job(at(10, 4'000, 4'000));
  flow_.begin_next(at(12, 1'000, 7'000));
  flow_.begin_install(at(12, 1'000, 7'000), false);
  flow_.end_job(at(13, 4'000, 8'000));
  // It has mapped during the install of one second: half of its work.
  flow_.begin_job(at(13, 4'000, 8'000, 0.5));
  EXPECT_NEAR(*flow_.limit(at(13.5, 400, 8'000, 0.75)), 400 / (0.5 + 0.35 * 2), 1)
      << "half of the rest in half a second; 0.35 of the whole two seconds";
}

TEST(JobProfile, TellsThePassedTimeByTheLatestJob) {
  JobProfile profile;
  profile.begin(0);
  EXPECT_DOUBLE_EQ(profile.passed(0), 0);
  EXPECT_DOUBLE_EQ(profile.passed(0.5), 0.625) << "a quarter before the work, and half of the rest";
  EXPECT_DOUBLE_EQ(profile.passed(1), 1);
  profile.record(0.25, 1);
  profile.record(0.5, 2);
  profile.record(1, 8);
  profile.learn(10);
  profile.begin(0);
  EXPECT_DOUBLE_EQ(profile.passed(0.5), 0.2) << "mapping took a fifth of the time";
  EXPECT_DOUBLE_EQ(profile.passed(0.25), 0.1);
  EXPECT_DOUBLE_EQ(profile.passed(1), 0.8) << "the end of a job shows no progress";
  EXPECT_DOUBLE_EQ(profile.passed(0), 0);
  profile.begin(0.5);
  EXPECT_DOUBLE_EQ(profile.passed(0.5), 0) << "a job that overlapped an install";
  EXPECT_DOUBLE_EQ(profile.passed(1), 0.75) << "of the time since its begin";
  profile.record(1, 1);
  profile.learn(2);
  profile.begin(0);
  EXPECT_DOUBLE_EQ(profile.passed(0.5), 0.2) << "the job before had mapped before its begin";
  EXPECT_DOUBLE_EQ(profile.passed(1), 0.6) << "its composers needed half of its time";
  profile.record(0.4, 1);
  profile.learn(1);
  EXPECT_DOUBLE_EQ(profile.passed(1), 0.6) << "too little of its progress was published";
}

/// Captures have all records, or composers end before their first records are counted.
TEST(JobProfile, LearnsOfAJobWhoseComposersShowNoProgress) {
  JobProfile profile;
  profile.begin(0);
  profile.record(0.25, 1);
  profile.record(0.5, 8);
  profile.learn(10);
  profile.begin(0);
  EXPECT_DOUBLE_EQ(profile.passed(0.5), 0.8);
  EXPECT_DOUBLE_EQ(profile.passed(0.75), 1);
}

/// A simulated pool of 65,536 pages. A job copes with the pages that were taken before it began;
/// its install frees them evenly. Transactions want far more pages than the jobs can free.
class SimulatedPool {
 public:
  struct Result {
    double worst_second = 0;  // pages, as part of the mean
    double worst_tenth = 0;   // the same in a tenth of a second
    double free_part = 0;     // of the pool, at the begin of an install, on average
    double least_free = 1;    // of the pool
  };

  /// `speeds`: the time of a job is divided by one of them. `has_progress`: the flow control learns
  /// it. The first third of the time of a job is half of its work, and nothing is known of the
  /// first and the last tenth.
  SimulatedPool(uint64_t seed, std::vector<double> speeds, bool has_progress)
      : random_(seed), speeds_(std::move(speeds)), has_progress_(has_progress) {}

  Result run() {
    for (int step = 0; jobs_ < 15; ++step) {
      take(step);
      advance();
      now_s_ += kStep;
    }
    return result();
  }

 private:
  static constexpr double kPages = 65'536;
  static constexpr double kStep = 0.005;
  static constexpr int kFirstJobs = 3;  // not measured

  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  double progress() const {
    if (!has_progress_ || phase_ != 1) return 0;
    const double part = std::clamp((1 - left_s_ / job_s_ - 0.1) / 0.8, 0.0, 1.0);
    return part < 1.0 / 3 ? 1.5 * part : 0.5 + 0.75 * (part - 1.0 / 3);
  }
  PoolReadings readings() const {
    return {start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(now_s_)),
            static_cast<uint64_t>(kPages),
            static_cast<uint64_t>(free_),
            static_cast<uint64_t>(taken_),
            0,
            progress()};
  }
  void take(int step) {
    const auto limit = flow_.limit(readings());
    const double wanted = demand_ * kStep;
    const double got = std::min({limit ? *limit * kStep : wanted, wanted, free_});
    free_ -= got;
    taken_ += got;
    since_begin_ += got;
    if (jobs_ < kFirstJobs) return;
    least_free_ = std::min(least_free_, free_ / kPages);
    if (step % 20 == 0) tenths_.push_back(0);
    if (step % 200 == 0) seconds_.push_back(0);
    if (!tenths_.empty()) tenths_.back() += got;
    if (!seconds_.empty()) seconds_.back() += got;
  }
  void advance() {
    left_s_ -= kStep;
    if (phase_ == 2) {
      const double freed = std::min(to_free_, kStep / install_s_ * (kPages - since_begin_));
      free_ = std::min(free_ + freed, kPages - since_begin_);
      to_free_ -= freed;
    }
    if (phase_ == 0 && (flow_.is_short() || free_ < 0.2 * kPages)) {
      phase_ = 1;
      const double speed =
          speeds_[std::uniform_int_distribution<size_t>(0, speeds_.size() - 1)(random_)];
      left_s_ = job_s_ = make_s_ * between(0.9, 1.1) / speed;
      since_begin_ = 0;
      flow_.begin_job(readings());
    } else if (phase_ == 1 && left_s_ <= 0) {
      if (jobs_ >= kFirstJobs) free_parts_.push_back(free_ / kPages);
      flow_.begin_install(readings(), false);
      phase_ = 2;
      to_free_ = kPages - free_ - since_begin_;
      left_s_ = install_s_ * between(0.9, 1.1);
    } else if (phase_ == 2 && left_s_ <= 0) {
      flow_.end_job(readings());
      phase_ = 0;
      ++jobs_;
    }
  }
  static double mean_of(const std::vector<double>& values) {
    return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
  }
  Result result() {
    tenths_.pop_back();
    seconds_.pop_back();  // they are not complete
    CHECK(!seconds_.empty() && !free_parts_.empty());
    const double mean = mean_of(seconds_);
    return {*std::ranges::min_element(seconds_) / mean,
            10 * *std::ranges::min_element(tenths_) / mean, mean_of(free_parts_), least_free_};
  }

  std::mt19937_64 random_;
  const std::vector<double> speeds_;
  const bool has_progress_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const double demand_ = between(20'000, 200'000);
  const double make_s_ = between(1, 4);
  const double install_s_ = between(0.5, 3);
  PageFlow flow_;
  double now_s_ = 0;
  double free_ = kPages;
  double taken_ = 0;
  double since_begin_ = 0;  // pages taken since the current job began
  double to_free_ = 0;
  double left_s_ = 0;  // of the phase
  double job_s_ = 1;
  int phase_ = 0;  // idle, making, installing
  int jobs_ = 0;
  double least_free_ = 1;
  std::vector<double> tenths_;   // pages taken in each tenth of a second
  std::vector<double> seconds_;  // and in each second
  std::vector<double> free_parts_;
};

TEST(PageFlow, APoolBendsAndDoesNotBreak) {
  const uint64_t own_seed = seed();
  for (const bool has_progress : {false, true}) {
    const auto found = SimulatedPool(own_seed, {1}, has_progress).run();
    std::printf("of the mean: worst second %.2f, worst tenth %.2f\n", found.worst_second,
                found.worst_tenth);
    EXPECT_GT(found.worst_second, 0.33) << has_progress;
    EXPECT_GT(found.worst_tenth, 0.1) << "a stop; " << has_progress;
  }
}

/// Past jobs tell little if the speed of jobs changes. With progress, the pages are used up to a
/// small rest, and are taken more evenly.
TEST(PageFlow, ProgressMakesUpForJobsWhoseSpeedChanges) {
  constexpr int kRuns = 20;
  constexpr uint64_t kFirstSeed = 1;  // a fixed one: the sums of two kinds of runs are compared
  SimulatedPool::Result sums[2];
  for (const bool has_progress : {false, true}) {
    SimulatedPool::Result& sum = sums[has_progress ? 1 : 0];
    for (uint64_t run = 0; run < kRuns; ++run) {
      const auto found =
          SimulatedPool(kFirstSeed + run, {2, 1.4, 1, 0.7, 0.5, 0.33}, has_progress).run();
      sum.worst_second += found.worst_second / kRuns;
      sum.worst_tenth += found.worst_tenth / kRuns;
      sum.free_part += found.free_part / kRuns;
      sum.least_free = std::min(sum.least_free, found.least_free);
    }
    std::printf("worst second %.2f, tenth %.2f of the mean; free at the install %.2f, least %.3f\n",
                sum.worst_second, sum.worst_tenth, sum.free_part, sum.least_free);
  }
  EXPECT_GT(sums[1].worst_second, 1.3 * sums[0].worst_second);
  EXPECT_GT(sums[1].worst_tenth, 1.5 * sums[0].worst_tenth);
  EXPECT_LT(sums[1].free_part, 0.9 * sums[0].free_part);
  EXPECT_GT(sums[1].least_free, sums[0].least_free) << "nearly no free pages: long delays";
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

/// The metrics segments of two nodes.
class NodeMetrics {
 public:
  NodeMetrics() {
    for (int node = 0; node < 2; ++node) {
      const std::vector<uint64_t>& bytes =
          memory_.emplace_back(MetricsSegment::bytes(kSlots) / sizeof(uint64_t) + 8);
      // Aligned to a cache line.
      const auto address = (reinterpret_cast<uintptr_t>(bytes.data()) + 63) / 64 * 64;
      nodes_.push_back(reinterpret_cast<MetricsSegment*>(address));
      nodes_.back()->slot_count = kSlots;
      all_.push_back(nodes_.back());
    }
  }
  NodeMetrics(const NodeMetrics&) = delete;
  NodeMetrics& operator=(const NodeMetrics&) = delete;
  MetricsSegment& operator[](size_t node) { return *nodes_[node]; }
  GleanerMetrics& gleaner(size_t node) { return nodes_[node]->gleaner; }
  const std::vector<const MetricsSegment*>& all() const { return all_; }

 private:
  static constexpr uint32_t kSlots = 2;
  std::vector<std::vector<uint64_t>> memory_;
  std::vector<MetricsSegment*> nodes_;
  std::vector<const MetricsSegment*> all_;
};

TEST(ColdPages, AreThoseOfRecordsButNoMoreThanTheSnapshotHas) {
  NodeMetrics metrics;
  EXPECT_EQ(cold_pages(metrics.all(), 100), 0u);
  metrics[0].worker(1).delta_added.add(70);
  metrics[1].worker(0).delta_added.add(20);
  EXPECT_EQ(cold_pages(metrics.all(), 1'000), 45u) << "of an average node";
  EXPECT_EQ(cold_pages(metrics.all(), 60), 30u);
  metrics[1].worker(1).delta_drained.add(80);
  EXPECT_EQ(cold_pages(metrics.all(), 60), 5u);
  metrics[1].worker(1).delta_drained.add(11);
  EXPECT_EQ(cold_pages(metrics.all(), 60), 0u) << "more seem drained than added";
}

TEST(JobProgress, CountsTheMappedLogAndTheComposedRecordsOfAllNodes) {
  NodeMetrics metrics;
  metrics.gleaner(0).bytes_read = 700;
  JobProgress progress(metrics.all());
  progress.begin(1'000);
  EXPECT_EQ(progress.done(), 0);
  metrics.gleaner(0).bytes_read += 100;
  metrics.gleaner(1).bytes_read += 300;
  metrics.gleaner(1).records_received += 50;
  EXPECT_DOUBLE_EQ(progress.done(), 0.2) << "mapping is half of the work";
  metrics.gleaner(0).bytes_read += 700;
  EXPECT_DOUBLE_EQ(progress.done(), 0.5) << "there was more log than expected";
  metrics.gleaner(0).records_received += 50;
  metrics.gleaner(0).records_elided += 10;
  metrics.gleaner(1).records_composed += 40;
  EXPECT_DOUBLE_EQ(progress.done(), 0.75);
  metrics.gleaner(0).records_composed += 50;
  EXPECT_DOUBLE_EQ(progress.done(), 1);
  metrics.gleaner(1).paused_us += 1;
  EXPECT_EQ(progress.done(), 0) << "a job that pauses";
  progress.begin(0);
  metrics.gleaner(0).bytes_read += 1;
  EXPECT_EQ(progress.done(), 0) << "no log is expected";
}

/// A node publishes its counters a tenth of a second late.
TEST(JobProgress, DoesNotCountTheJobBefore) {
  NodeMetrics metrics;
  JobProgress progress(metrics.all());
  progress.begin(1'000);
  metrics.gleaner(0).bytes_read += 1'000;
  metrics.gleaner(0).records_received += 100;
  metrics.gleaner(0).records_composed += 90;
  EXPECT_DOUBLE_EQ(progress.done(), 0.95);
  progress.begin(1'000);
  metrics.gleaner(0).records_composed += 10;
  metrics.gleaner(0).paused_us += 5;
  EXPECT_EQ(progress.done(), 0) << "the job before has ended";
  metrics.gleaner(0).bytes_read += 500;
  EXPECT_DOUBLE_EQ(progress.done(), 0.25);
}

TEST_F(PageBudgetTest, TheRegulatorLimitsDuringAJobAndLiftsTheLimitAtItsEnd) {
  const std::vector<NodeShared*> nodes = {node_.get()};
  node_->pages_free.store(1'064, std::memory_order_relaxed);
  const NodeMetrics metrics;
  PageRegulator regulator(nodes, metrics.all(), [] { return uint64_t{0}; });
  regulator.start();
  const auto limit = [&] { return node_->page_limit.load(std::memory_order_relaxed); };
  EXPECT_EQ(limit(), 0u);
  regulator.begin_job(0);
  EXPECT_TRUE(eventually([&] { return limit() != 0; }));
  EXPECT_LE(budget(), 1'000);
  regulator.begin_install(false);
  regulator.end_job();
  EXPECT_TRUE(eventually([&] { return limit() == 0; }));
  regulator.begin_job(0);
  EXPECT_TRUE(eventually([&] { return limit() != 0; }));
  regulator.stop();
  EXPECT_EQ(limit(), 0u);
  EXPECT_EQ(budget(), kUnlimitedPages);
}

}  // namespace
}  // namespace atolldb::test
