// The durable epoch: the minimum over all loggers of all nodes.
#include "coordinator/epoch/durable_epoch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/epoch/epoch_clock.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Two nodes with two loggers each, and the epoch words, in ordinary memory.
class DurableEpochTest : public testing::Test {
 protected:
  DurableEpochTest() {
    std::printf("seed: none, nothing here is random\n");
    start_epochs(epochs_, 10);
    epochs_.current.store(100, std::memory_order_release);
    for (uint32_t node = 0; node < 2; ++node) {
      memory_.push_back(std::make_unique<NodeShared>());
      memory_.back()->logger_count = 2;
      for (uint32_t logger = 0; logger < 2; ++logger) set_durable(node, logger, 9);
    }
  }
  std::vector<NodeShared*> nodes() { return {memory_[0].get(), memory_[1].get()}; }
  void set_durable(uint32_t node, uint32_t logger, uint64_t epoch) {
    memory_[node]->loggers[logger].durable_epoch.store(epoch, std::memory_order_release);
  }
  /// Signals the coordinator, as a logger does.
  void signal() {
    epochs_.logger_signal.fetch_add(1, std::memory_order_release);
    wake(epochs_.logger_signal, kWakeAll);
  }
  uint64_t durable() const { return epochs_.durable.load(std::memory_order_acquire); }
  /// Returns as soon as the epoch is durable. If it never is, the test's time-out ends the wait.
  void await_durable(uint64_t epoch) const {
    for (;;) {
      const uint32_t seen = epochs_.durable_signal.load(std::memory_order_acquire);
      if (durable() >= epoch) return;
      wait_on(epochs_.durable_signal, seen, kMaxSleep);
    }
  }

  EpochBlock epochs_{};
  std::vector<std::unique_ptr<NodeShared>> memory_;
};

TEST_F(DurableEpochTest, ItIsTheLeastOfAllLoggersOfAllNodes) {
  DurableEpoch epoch(epochs_, nodes(), [](const Error& error) { ADD_FAILURE() << error.message; });
  epoch.start();
  set_durable(0, 0, 20);
  set_durable(0, 1, 13);
  set_durable(1, 0, 14);
  signal();
  EXPECT_EQ(durable_on_all(nodes()), 9u);
  EXPECT_EQ(durable(), 9u) << "the last logger has not closed an epoch yet";
  set_durable(1, 1, 12);
  signal();
  await_durable(12);
  EXPECT_EQ(durable(), 12u);
  // Before it stops, the thread takes over epochs that loggers stored without a signal.
  set_durable(0, 1, 30);
  set_durable(1, 1, 30);
  epoch.stop();
  EXPECT_EQ(durable(), 14u);
}

TEST_F(DurableEpochTest, AFailedLoggerIsReportedOnceAndByName) {
  std::atomic<uint32_t> reports{0};
  Error reported;
  DurableEpoch epoch(epochs_, nodes(), [&](const Error& error) {
    if (reports.fetch_add(1, std::memory_order_acq_rel) == 0) reported = error;
  });
  epoch.start();
  memory_[1]->loggers[0].failure.store(static_cast<uint32_t>(ExitCode::disk_full),
                                       std::memory_order_release);
  for (int i = 0; i < 3; ++i) signal();
  epoch.stop();
  EXPECT_EQ(reports.load(std::memory_order_acquire), 1u);
  EXPECT_EQ(reported.code, ExitCode::disk_full);
  EXPECT_NE(reported.message.find("logger 0 of node 1"), std::string::npos) << reported.message;
}

}  // namespace
}  // namespace atolldb
