// Records that parts of a replay give to each other (R100): how many, and when they are written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/checkpoint/checkpoint_stage.h"
#include "tests/support/fault_injector.h"

namespace atolldb::test {
namespace {

/// Each epoch has a log file of its own, and three parts read the files.
TEST(ReplayExchange, AnUpdateIsNotGivenIfANewerOneCoversIt) {
  constexpr int kUpdates = 60;
  CheckpointStage stage(1, 1, 3 * kLogBlockBytes);
  const MasterTree tree(*stage.storages.tree);
  const std::string key = "key";
  const auto commit = [&](const auto& body) {
    EXPECT_EQ(stage.worker(0).run(body), Status::ok);
    stage.next_epoch();
  };
  std::string payload(200, '.');
  commit([&](Transaction& txn) { return tree.insert(txn, as_key(key), as_key(payload)); });
  for (int i = 0; i < kUpdates; ++i) {
    const std::string bytes = std::to_string(100 + i);
    commit([&](Transaction& txn) { return tree.update_range(txn, as_key(key), 5, as_key(bytes)); });
    payload.replace(5, bytes.size(), bytes);
  }
  const CrashImage image = stage.crash();
  for (const auto order : {ReplayOrder::newest_first, ReplayOrder::oldest_first}) {
    RecoveredCluster recovered(image, {.order = order, .shares = 3});
    EXPECT_EQ(recovered.problem(), "");
    EXPECT_EQ(recovered.content().tree, (std::map<std::string, std::string>{{key, payload}}));
    EXPECT_GT(recovered.given(), 0u) << "other parts have read updates of the record";
    EXPECT_LE(recovered.given(), 2u) << "two parts have one thread each, and give one update";
    EXPECT_EQ(recovered.counters().records, 1u + kUpdates);
  }
}

/// A write may take long. It must not delay the reuse of pages (R9).
TEST(ReplayExchange, WritesToFilesWithoutABeginEpoch) {
  TestCluster cluster(1, 1);
  const StagedStorages storages(cluster);
  for (const IoCall call : {IoCall::make_directory, IoCall::create, IoCall::grow, IoCall::write}) {
    MemoryFileSystem memory;
    FaultInjector files(memory);
    files.fail(call, 1, Fault::disk_full);
    ReplayState state;
    state.share = {0, 2, 50};
    state.given.file_system = &files;
    state.given.directory = "/given";
    for (StorageControl* storage : storages.all()) state.storages[storage->id] = storage;
    Replayer replayer(state, *cluster.worker(0).transaction);
    const auto& begin_epoch = cluster.worker(0).context->slot().begin_epoch;
    GivenRecord record;
    Result<void> replayed;
    for (int i = 0; i < 1000 && replayed; ++i) {
      const std::string payload(1000, 'x');
      const uint64_t version = Vid::make(40, static_cast<uint32_t>(1 + i)).version();
      record.set(LogType::insert, storages.tree->id, as_key("key"), version, as_key(payload));
      ASSERT_TRUE(replayer.replay(record.record(), "test"));
      EXPECT_NE(begin_epoch.load(std::memory_order_relaxed), kIdleEpoch);
      record.set(LogType::append, storages.heap->id, {}, version, as_key(payload));
      replayed = replayer.replay(record.record(), "test");
    }
    ASSERT_FALSE(replayed) << static_cast<int>(call);
    EXPECT_EQ(replayed.error().code, ExitCode::disk_full) << replayed.error().message;
    EXPECT_EQ(begin_epoch.load(std::memory_order_relaxed), kIdleEpoch) << static_cast<int>(call);
    replayer.writer().end();
    cluster.worker(0).context->leave();
  }
}

}  // namespace
}  // namespace atolldb::test
