// Thread of a logger: when it writes, in which order, how it ends, and how it fails.
#include "soc/logger/logger_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/log/log_scan.h"
#include "engine/mastertree/mastertree.h"
#include "shared/file/forwarding_file_system.h"
#include "shared/sync/wait_word.h"
#include "tests/support/eventually.h"
#include "tests/support/fault_injector.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

/// Two nodes with a worker and a logger each. The test acts as the coordinator.
class LoggerThreadTest : public testing::Test {
 protected:
  static constexpr uint64_t kStart = 10;

  LoggerThreadTest()
      : cluster_(2, 1, options()), tree_(cluster_.create("tree", StorageType::mastertree)) {
    epochs().marker_wanted.store(kStart - 1, std::memory_order_relaxed);
    epochs().durable.store(kStart - 1, std::memory_order_relaxed);
    for (uint16_t node = 0; node < 2; ++node) {
      LogWriterSettings settings = {"/data", node, 0, 1, kStart, {}, 64 * kLogBlockBytes};
      auto writer = LogWriter::create(files_, settings);
      CHECK(writer.has_value());
      const TransactionLimits limits = options().limits;
      const auto ring = WorkerLogRing::at(cluster_.worker(node).local.get() + limits.log_offset(),
                                          limits.log_buffer);
      LoggerThread::Settings thread;
      thread.view = &cluster_.view();
      thread.node = node;
      thread.metrics = &metrics_[node];
      thread.on_failure = [this](const Error& error) {
        const std::lock_guard guard(mutex_);
        failures_.push_back(error);
      };
      loggers_.push_back(std::make_unique<LoggerThread>(
          std::move(thread),
          EpochLogger(cluster_.view(), *std::move(writer),
                      {{&cluster_.view().shared[node]->slot(0), ring}}),
          make_silent_logger("logger")));
    }
  }

  static TestClusterOptions options() {
    TestClusterOptions options;
    options.clock = false;
    options.start_epoch = kStart;
    options.limits.log_buffer = uint64_t{1} << 20;
    options.limits.is_logged = true;
    return options;
  }

  EpochBlock& epochs() { return cluster_.view().control->epochs; }
  LoggerSlot& slot(uint32_t node) { return cluster_.view().shared[node]->loggers[0]; }
  void start() {
    for (const auto& logger : loggers_) logger->start();
  }
  void commit(uint32_t node, const std::string& key) {
    const auto bytes = std::as_bytes(std::span(key));
    EXPECT_EQ(cluster_.worker(node).run(
                  [&](Transaction& txn) { return tree_.upsert(txn, bytes, bytes); }),
              Status::ok);
    cluster_.worker(node).context->leave();
  }
  void tick() { epochs().current.fetch_add(1, std::memory_order_seq_cst); }
  void wake_loggers() {
    epochs().marker_signal.fetch_add(1, std::memory_order_release);
    wake(epochs().marker_signal, kWakeAll);
  }
  /// Requests the marker of the newest epoch that is over.
  void want_marker() {
    epochs().marker_wanted.store(epochs().current.load(std::memory_order_seq_cst) - 1,
                                 std::memory_order_release);
    wake_loggers();
  }
  /// Waits until the condition holds. The loggers wake this thread when they report something.
  template <typename Condition>
  void await(Condition condition) {
    for (;;) {
      const uint32_t signal = epochs().logger_signal.load(std::memory_order_acquire);
      if (condition()) return;
      wait_on(epochs().logger_signal, signal, kMaxSleep);
    }
  }
  void await_durable(uint32_t node, uint64_t epoch) {
    await([&] { return slot(node).durable_epoch.load(std::memory_order_acquire) >= epoch; });
  }

  /// Returns the epochs of the blocks in a logger's file. Those of markers are negative.
  std::vector<int64_t> written(uint16_t node) {
    std::vector<int64_t> epochs;
    LogStream stream;
    stream.directory = "/data";
    stream.node = node;
    stream.incarnation = 1;
    const auto scan = scan_log(disk_, stream, [&](const LogBlock& block, const auto&, uint64_t) {
      const auto epoch = static_cast<int64_t>(block.header.epoch);
      if (block.header.type == LogBlockType::records) epochs.push_back(epoch);
      if (block.header.type == LogBlockType::marker) epochs.push_back(-epoch);
    });
    EXPECT_TRUE(scan) << scan.error().message;
    return epochs;
  }

  /// Creates no file while the disk is full.
  class FullDisk : public ForwardingFileSystem {
   public:
    FullDisk(FileSystem& below, const std::atomic<bool>& is_full)
        : ForwardingFileSystem(below), is_full_(is_full) {}
    Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
      if (is_full_.load(std::memory_order_relaxed)) {
        return make_error(ExitCode::disk_full, path + ": no space left");
      }
      return below().create(path, bytes);
    }

   private:
    const std::atomic<bool>& is_full_;
  };

  PowerCutFileSystem disk_;
  std::atomic<bool> full_{false};
  FullDisk room_{disk_, full_};
  FaultInjector files_{room_};
  TestCluster cluster_;
  MasterTree tree_;
  LoggerMetrics metrics_[2] = {};
  std::mutex mutex_;
  std::vector<Error> failures_;  // guarded by mutex_
  std::vector<std::unique_ptr<LoggerThread>> loggers_;
};

TEST_F(LoggerThreadTest, ClosesEpochsInOrderAndTellsWhenTheyAreOnTheDevice) {
  start();
  EXPECT_EQ(slot(0).durable_epoch.load(std::memory_order_acquire), kStart - 1);
  commit(0, "one");
  tick();
  want_marker();
  for (uint32_t node = 0; node < 2; ++node) await_durable(node, kStart);
  // Two epochs with one marker. Only the first node has commits in them.
  commit(0, "two");
  tick();
  commit(0, "three");
  tick();
  want_marker();
  for (uint32_t node = 0; node < 2; ++node) await_durable(node, kStart + 2);
  EXPECT_EQ(disk_.unsynced_sectors(), 0u) << "it was told before the sync";
  EXPECT_EQ(written(0), (std::vector<int64_t>{10, -10, 11, 12, -12}));
  EXPECT_EQ(written(1), (std::vector<int64_t>{-10, -12})) << "the others' commits need its markers";
  EXPECT_EQ(metrics_[0].batches.get(), 2u);
}

TEST_F(LoggerThreadTest, TheTimesOfABatchAreThoseOfItsOldestEpoch) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  const uint64_t now_ns = monotonic_time_ns();
  epochs().ended_ns[kStart].store(now_ns - 5 * kSecondNs, std::memory_order_relaxed);
  epochs().ended_ns[kStart + 1].store(now_ns, std::memory_order_relaxed);
  commit(0, "one");
  tick();
  commit(0, "two");
  tick();
  want_marker();
  start();
  await_durable(0, kStart + 1);
  for (const auto* histogram : {&metrics_[0].epoch_end_ns, &metrics_[0].close_ns,
                                &metrics_[0].write_ns, &metrics_[0].sync_ns}) {
    EXPECT_EQ(histogram->count(), 1u);
  }
  EXPECT_GE(metrics_[0].epoch_end_ns.max_ns(), 5 * kSecondNs);
  EXPECT_EQ(slot(0).stage_ns[0].load(std::memory_order_relaxed), metrics_[0].epoch_end_ns.max_ns());
  EXPECT_EQ(slot(0).stage_ns[3].load(std::memory_order_relaxed), metrics_[0].sync_ns.max_ns());
  EXPECT_GE(slot(0).synced_at_ns.load(std::memory_order_relaxed), now_ns);
  // Now only epoch 12 is not yet durable.
  await_durable(1, kStart + 1);
  epochs().durable.store(kStart + 1, std::memory_order_release);
  epochs().ended_ns[kStart + 2].store(monotonic_time_ns(), std::memory_order_relaxed);
  commit(0, "three");
  tick();
  want_marker();
  await_durable(0, kStart + 2);
  EXPECT_LT(slot(0).stage_ns[0].load(std::memory_order_relaxed), 5 * kSecondNs);
}

TEST_F(LoggerThreadTest, WritesNothingWhileNoMarkerIsWanted) {
  start();
  commit(0, "one");
  tick();
  want_marker();
  for (uint32_t node = 0; node < 2; ++node) await_durable(node, kStart);
  const uint64_t writes = files_.calls(IoCall::write);
  const uint64_t syncs = files_.calls(IoCall::sync);
  for (int i = 0; i < 100; ++i) {
    tick();
    wake_loggers();
  }
  // When the next epoch is durable, both loggers have handled all of these wake-ups and that epoch,
  // with one write and one sync each.
  commit(1, "two");
  tick();
  want_marker();
  for (uint32_t node = 0; node < 2; ++node) await_durable(node, kStart + 101);
  EXPECT_EQ(files_.calls(IoCall::write), writes + 2);
  EXPECT_EQ(files_.calls(IoCall::sync), syncs + 2);
}

TEST_F(LoggerThreadTest, AFailingSyncIsToldAndNothingIsDurableFromThere) {
  start();
  commit(0, "one");
  tick();
  want_marker();
  for (uint32_t node = 0; node < 2; ++node) await_durable(node, kStart);
  files_.fail(IoCall::sync, files_.calls(IoCall::sync) + 1, Fault::io_error);
  commit(0, "two");
  tick();
  want_marker();
  const auto has_failed = [&](uint32_t node) {
    return slot(node).failure.load(std::memory_order_acquire) != 0;
  };
  await([&] { return has_failed(0) || has_failed(1); });
  const uint32_t failed = has_failed(0) ? 0 : 1;
  EXPECT_EQ(slot(failed).failure.load(std::memory_order_acquire),
            static_cast<uint32_t>(ExitCode::durability));
  // The other logger continues. The failed logger has ended, whatever marker is wanted.
  await_durable(1 - failed, kStart + 1);
  loggers_[failed]->stop();
  EXPECT_EQ(slot(failed).durable_epoch.load(std::memory_order_acquire), kStart);
  ASSERT_EQ(failures_.size(), 1u);
  EXPECT_EQ(failures_[0].code, ExitCode::durability);
  EXPECT_TRUE(failures_[0].message.contains("/data/node")) << failures_[0].message;
  // The coordinator stops the cluster, too. Otherwise the other logger would wait for epochs that
  // the first never closes.
  cluster_.view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                       std::memory_order_release);
}

/// A logger's file has 64 blocks, and an epoch of one record needs two.
TEST_F(LoggerThreadTest, WithoutRoomForItsNextFileItGoesOnAndMakesItWhenThereIs) {
  start();
  full_.store(true, std::memory_order_relaxed);
  uint64_t epoch = kStart;
  const auto close_one = [&] {
    commit(0, "key");
    tick();
    want_marker();
    await_durable(0, epoch++);
  };
  const auto lacks = [&] { return metrics_[0].lacks_next_file.load(std::memory_order_relaxed); };
  for (int i = 0; i < 16; ++i) close_one();
  ASSERT_TRUE(eventually([&] { return lacks() == 1; }));
  EXPECT_GE(metrics_[0].failed_preallocations.get(), 1u);
  // The logger continues to try, though not with each epoch. Failed attempts leave no file.
  for (int i = 0; i < 10; ++i) close_one();
  EXPECT_LT(metrics_[0].failed_preallocations.get(), 10u);
  ASSERT_TRUE(eventually([&] { return metrics_[0].failed_preallocations.get() >= 3; }));
  EXPECT_EQ(slot(0).failure.load(std::memory_order_acquire), 0u);
  EXPECT_EQ(disk_.list("/data/node0")->size(), 1u);
  full_.store(false, std::memory_order_relaxed);
  ASSERT_TRUE(eventually([&] { return lacks() == 0; }));
  EXPECT_EQ(disk_.list("/data/node0")->size(), 2u);
  for (int i = 0; i < 10; ++i) close_one();
  EXPECT_EQ(slot(0).failure.load(std::memory_order_acquire), 0u);
  EXPECT_EQ(metrics_[0].files.get(), 1u) << "the second one is in use";
}

TEST_F(LoggerThreadTest, WithoutRoomForItsNextFileItEndsWhenTheCurrentOneIsFull) {
  start();
  full_.store(true, std::memory_order_relaxed);
  const auto has_failed = [&] { return slot(0).failure.load(std::memory_order_acquire); };
  uint64_t epochs = 0;
  while (has_failed() == 0) {
    commit(0, "key");
    tick();
    want_marker();
    await([&] {
      return has_failed() != 0 ||
             slot(0).durable_epoch.load(std::memory_order_acquire) >= kStart + epochs;
    });
    ++epochs;
  }
  EXPECT_EQ(has_failed(), static_cast<uint32_t>(ExitCode::disk_full));
  EXPECT_GE(epochs, 31u) << "it gave up while there was room in its file";
  cluster_.view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                       std::memory_order_release);
}

TEST_F(LoggerThreadTest, StopsWhenAllThatAnyNodeHasCommittedIsDurable) {
  start();
  commit(1, "one");
  commit(1, "two");
  // Both loggers are told to stop before the marker is wanted.
  std::vector<std::jthread> stops;
  for (const auto& logger : loggers_) stops.emplace_back([&] { logger->stop(); });
  tick();
  want_marker();
  stops.clear();
  for (uint16_t node = 0; node < 2; ++node) {
    EXPECT_EQ(slot(node).durable_epoch.load(std::memory_order_acquire), kStart);
    EXPECT_EQ(written(node).back(), -int64_t{kStart});
  }
}

TEST_F(LoggerThreadTest, StopsAtOnceWhenTheClusterHasFailed) {
  start();
  commit(0, "one");
  cluster_.view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                       std::memory_order_release);
  for (const auto& logger : loggers_) logger->stop();
  EXPECT_EQ(slot(0).durable_epoch.load(std::memory_order_acquire), kStart - 1);
}

}  // namespace
}  // namespace atolldb::test
