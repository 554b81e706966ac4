// Processor time by the phases of snapshots.
#include "shared/process/work_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace atolldb::test {
namespace {

uint64_t own_us() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 +
         static_cast<uint64_t>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}
void compute(uint64_t us) {
  const uint64_t end = own_us() + us;
  while (own_us() < end) {
  }
}
uint64_t total(const SnapshotWorkTimes& times, SnapshotWork work) {
  const auto index = static_cast<uint32_t>(work);
  return times.user_us[index].load(std::memory_order_relaxed) +
         times.system_us[index].load(std::memory_order_relaxed);
}

TEST(WorkClockTest, EachPhaseGetsTheTimeOfItsThreadSinceTheLastCall) {
  SnapshotWorkTimes times{};
  std::thread other([] { compute(250'000); });  // not counted
  WorkClock clock(&times);
  compute(150'000);
  clock.begin();
  compute(100'000);
  clock.charge(SnapshotWork::map);
  compute(200'000);
  clock.charge(SnapshotWork::sort);
  clock.charge(SnapshotWork::install);
  compute(50'000);
  clock.charge(SnapshotWork::map);
  other.join();
  // The kernel counts the time of a running thread at its ticks, up to 10 ms apart.
  constexpr uint64_t kSlack = 40'000;
  EXPECT_NEAR(static_cast<double>(total(times, SnapshotWork::map)), 150'000, kSlack);
  EXPECT_NEAR(static_cast<double>(total(times, SnapshotWork::sort)), 200'000, kSlack);
  EXPECT_LT(total(times, SnapshotWork::install), kSlack);
  EXPECT_EQ(total(times, SnapshotWork::compose), 0u);
}

TEST(WorkClockTest, WithoutCountersItDoesNothing) {
  WorkClock clock(nullptr);
  clock.begin();
  clock.charge(SnapshotWork::compose);
}

}  // namespace
}  // namespace atolldb::test
