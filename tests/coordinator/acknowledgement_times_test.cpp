// Times of the stages of epochs: what is counted, and which epoch is the slowest one.
#include "coordinator/epoch/acknowledgement_times.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "coordinator/epoch/epoch_clock.h"

namespace atolldb {
namespace {

EpochTrace trace(uint64_t epoch, uint64_t total_ns) {
  EpochTrace trace;
  trace.epoch = epoch;
  trace.total_ns = total_ns;
  return trace;
}

TEST(SlowestEpochsTest, AgreesWithASearchOfAllEpochs) {
  const auto seed = std::random_device()();
  std::printf("seed: %u\n", seed);
  std::mt19937 random(seed);
  SlowestEpochs slowest;
  std::vector<EpochTrace> all;
  EXPECT_FALSE(slowest.since(0));
  uint64_t epoch = 0;
  for (int i = 0; i < 2'000; ++i) {
    epoch += 1 + random() % 3;
    all.push_back(trace(epoch, random() % 1'000));
    slowest.add(all.back());
    const uint64_t from = random() % (epoch + 2);
    const EpochTrace* expected = nullptr;
    for (const EpochTrace& each : all) {
      if (each.epoch < from) continue;
      if (expected == nullptr || each.total_ns >= expected->total_ns) expected = &each;
    }
    const auto found = slowest.since(from);
    ASSERT_EQ(found.has_value(), expected != nullptr) << "from " << from;
    if (found) {
      ASSERT_EQ(found->epoch, expected->epoch) << "from " << from;
    }
  }
}

TEST(SlowestEpochsTest, ForgetsTheOldestPastItsLimit) {
  SlowestEpochs slowest;
  for (uint64_t i = 1; i <= SlowestEpochs::kMaxEpochs; ++i) slowest.add(trace(i, 1'000 - i));
  EXPECT_EQ(slowest.since(0)->epoch, 1u);
  slowest.add(trace(SlowestEpochs::kMaxEpochs + 1, 1));
  EXPECT_EQ(slowest.since(0)->epoch, 2u);
}

/// Two nodes with a logger each, and the epoch words, in ordinary memory. The current epoch is 20,
/// and epoch e ended at 1000 * e.
class AcknowledgementTimesTest : public testing::Test {
 protected:
  AcknowledgementTimesTest() {
    start_epochs(epochs_, 10);
    epochs_.current.store(20, std::memory_order_release);
    for (uint64_t epoch = 10; epoch < 20; ++epoch) {
      epochs_.ended_ns[epoch].store(1'000 * epoch, std::memory_order_relaxed);
    }
    for (uint32_t node = 0; node < 2; ++node) {
      memory_.push_back(std::make_unique<NodeShared>());
      memory_.back()->logger_count = 1;
      slot(node).durable_epoch.store(9, std::memory_order_release);
    }
    times_ = std::make_unique<AcknowledgementTimes>(
        epochs_, std::vector<NodeShared*>{memory_[0].get(), memory_[1].get()});
  }
  LoggerSlot& slot(uint32_t node) { return memory_[node]->loggers[0]; }
  void sync(uint32_t node, uint64_t epoch, uint64_t at_ns, uint64_t stage_ns) {
    for (auto& stage : slot(node).stage_ns) stage.store(stage_ns++, std::memory_order_relaxed);
    slot(node).synced_at_ns.store(at_ns, std::memory_order_relaxed);
    slot(node).durable_epoch.store(epoch, std::memory_order_release);
  }

  EpochBlock epochs_{};
  std::vector<std::unique_ptr<NodeShared>> memory_;
  std::unique_ptr<AcknowledgementTimes> times_;
};

TEST_F(AcknowledgementTimesTest, AMarkerCountsOnceForItsNode) {
  times_->record_markers(50'000);
  EXPECT_EQ(times_->metrics().marker_ns[0].count(), 0u) << "no logger has synced yet";
  sync(1, 12, 30'000, 1);
  times_->record_markers(30'400);
  times_->record_markers(30'900);
  EXPECT_EQ(times_->metrics().marker_ns[0].count(), 0u);
  EXPECT_EQ(times_->metrics().marker_ns[1].count(), 1u);
  EXPECT_EQ(times_->metrics().marker_ns[1].max_ns(), 400u);
}

TEST_F(AcknowledgementTimesTest, EachEpochCountsAndTheOldestIsTracedWithTheLastLogger) {
  sync(0, 12, 30'000, 100);
  sync(1, 12, 31'000, 200);
  times_->record_durable(10, 12, 31'500, 32'000);
  EXPECT_EQ(times_->metrics().total_ns.count(), 2u) << "epochs 11 and 12";
  EXPECT_EQ(times_->metrics().total_ns.max_ns(), 32'000u - 11'000);
  EXPECT_EQ(times_->metrics().publish_ns.max_ns(), 500u);
  const auto slowest = times_->slowest().since(0);
  ASSERT_TRUE(slowest);
  EXPECT_EQ(slowest->epoch, 11u);
  EXPECT_EQ(slowest->total_ns, 21'000u);
  EXPECT_EQ(slowest->node, 1u);
  EXPECT_EQ(slowest->stage_ns,
            (std::array<uint64_t, kEpochStageCount>{200, 201, 202, 203, 500, 500}));
}

TEST_F(AcknowledgementTimesTest, EpochsWithoutCommitsDoNotCount) {
  sync(0, 15, 30'000, 1);
  sync(1, 15, 30'000, 1);
  times_->record_durable(15, 15, 31'000, 32'000);
  EXPECT_EQ(times_->metrics().total_ns.count(), 0u);
  EXPECT_EQ(times_->metrics().publish_ns.count(), 0u);
  EXPECT_FALSE(times_->slowest().since(0));
}

}  // namespace
}  // namespace atolldb
