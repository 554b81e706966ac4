// Idle processors: reading the lines of /proc/stat, and counting between two readings.
#include "shared/process/idle_cpus.h"

#include <gtest/gtest.h>

#include <string>

namespace atolldb {
namespace {

TEST(IdleCpusTest, TheTicksOfEachProcessorAreParsed) {
  const auto ticks = parse_cpu_ticks(
      "cpu  900 0 0 900 0 0 0 0 0 0\n"
      "cpu0 10 1 20 300 40 5 6 7 99 99\n"
      "cpu12 1 2 3 4\n"  // an old kernel
      "intr 5 5\ncpufreq 1\ncpu\n");
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_EQ(ticks.at(0).idle, 340u) << "waiting for a device is idle time";
  EXPECT_EQ(ticks.at(0).total, 389u) << "time of guests is part of the user's";
  EXPECT_EQ(ticks.at(12).idle, 4u);
  EXPECT_EQ(ticks.at(12).total, 10u);
  EXPECT_TRUE(parse_cpu_ticks("").empty());
}

class IdleCpusReadings : public testing::Test {
 protected:
  double measure(IdleCpus& idle) {
    now_ += IdleCpus::kPause;
    return idle.measure(now_);
  }

  IdleCpus::Clock::time_point now_{};
  std::string text_;
  int reads_ = 0;
  const IdleCpus::ReadStat read_ = [this] {
    ++reads_;
    return text_;
  };
};

TEST_F(IdleCpusReadings, OnlyTheGivenProcessorsCountForTheTimeBetweenTwoReadings) {
  IdleCpus idle({0, 2}, read_);
  EXPECT_EQ(idle.cpu_count(), 2u);
  text_ = "cpu0 100 0 0 100\ncpu1 0 0 0 100\ncpu2 100 0 0 100\n";
  EXPECT_EQ(measure(idle), 0) << "the first reading";
  text_ = "cpu0 110 0 0 130\ncpu1 0 0 0 140\ncpu2 120 0 0 120\n";
  EXPECT_NEAR(measure(idle), 0.75 + 0.5, 1e-9);
  text_ = "cpu0 150 0 0 130\ncpu1 0 0 0 180\n";  // cpu0 is busy, and cpu2 was taken off-line
  EXPECT_EQ(measure(idle), 0);
  text_ = "";
  EXPECT_EQ(measure(idle), 0);
}

TEST_F(IdleCpusReadings, WithoutProcessorsNoneIsIdle) {
  IdleCpus idle({}, read_);
  EXPECT_EQ(idle.cpu_count(), 0u);
  text_ = "cpu0 0 0 0 100\n";
  measure(idle);
  text_ = "cpu0 0 0 0 200\n";
  EXPECT_EQ(measure(idle), 0);
}

TEST_F(IdleCpusReadings, TimesThatDecreaseDoNotCount) {
  IdleCpus idle({0}, read_);
  text_ = "cpu0 100 0 0 100\n";
  measure(idle);
  text_ = "cpu0 200 0 0 90\n";
  EXPECT_EQ(measure(idle), 0);
  text_ = "cpu0 100 0 0 110\n";
  EXPECT_EQ(measure(idle), 0);
}

TEST_F(IdleCpusReadings, TheFileIsReadOncePerPause) {
  IdleCpus idle({0}, read_);
  text_ = "cpu0 0 0 0 100\n";
  measure(idle);
  text_ = "cpu0 0 0 0 200\n";
  EXPECT_EQ(measure(idle), 1);
  EXPECT_EQ(reads_, 2);
  text_ = "cpu0 100 0 0 200\n";
  EXPECT_EQ(idle.measure(now_ + IdleCpus::kPause / 2), 1);
  EXPECT_EQ(reads_, 2);
  EXPECT_EQ(measure(idle), 0);
  EXPECT_EQ(reads_, 3);
}

}  // namespace
}  // namespace atolldb
