// Times of epochs that the coordinator records: only after commits, only past epochs, and nothing
// after a failure.
#include "coordinator/epoch/epoch_time_recorder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "coordinator/epoch/epoch_clock.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

class EpochTimeRecorderTest : public testing::Test {
 protected:
  EpochTimeRecorderTest() {
    std::printf("seed: none, nothing here is random\n");
    layout_.worker_count = 1;
    memory_.reset(static_cast<std::byte*>(::operator new(layout_.bytes(), kAlign)));
    std::memset(memory_.get(), 0, layout_.bytes());
    layout_.format(*nodes_.emplace_back(reinterpret_cast<NodeShared*>(memory_.get())));
    start_epochs(epochs_, 10);
    recorder_.start();
  }
  void commit_in(uint64_t epoch) { nodes_[0]->dirty_epoch.store(epoch, std::memory_order_relaxed); }
  void set_current(uint64_t epoch) { epochs_.current.store(epoch, std::memory_order_release); }
  /// Ends the recorder's thread, so that all is written.
  std::vector<EpochTime> recorded() {
    recorder_.stop();
    const auto times = read_epoch_times(files_, "/data", kUuid);
    EXPECT_TRUE(times) << times.error().message;
    return times ? *times : std::vector<EpochTime>{};
  }

  static constexpr ClusterUuid kUuid = {1, 2, 3};
  static constexpr std::align_val_t kAlign{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlign); }
  };
  NodeSharedLayout layout_;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<NodeShared*> nodes_;
  EpochBlock epochs_{};
  test::MemoryFileSystem files_;
  Logger logger_ = make_silent_logger("epoch-times");
  EpochTimeRecorder recorder_{files_, "/data", kUuid, logger_};
};

TEST_F(EpochTimeRecorderTest, RecordsNothingWithoutCommits) {
  set_current(20);
  recorder_.beat(epochs_, nodes_);
  EXPECT_TRUE(recorded().empty());
  EXPECT_TRUE(files_.paths().empty());
}

TEST_F(EpochTimeRecorderTest, RecordsTheLastPastEpochOncePerPeriod) {
  commit_in(15);
  set_current(20);
  recorder_.beat(epochs_, nodes_);
  commit_in(21);
  set_current(22);
  recorder_.beat(epochs_, nodes_);  // too early for another entry
  const std::vector<EpochTime> times = recorded();
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times.front().epoch, 19u);
  EXPECT_GT(times.front().unix_ms, 0u);
}

TEST_F(EpochTimeRecorderTest, GoesOnWithoutTimesAfterAFailure) {
  files_.changes_left = 1;
  commit_in(15);
  set_current(20);
  recorder_.beat(epochs_, nodes_);
  recorder_.stop();
  files_.changes_left = UINT64_MAX;
  EXPECT_TRUE(recorded().empty());
}

}  // namespace
}  // namespace atolldb
