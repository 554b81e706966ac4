// Records that parts of a replay give to each other (R100): how many, and when they are written.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/checkpoint/checkpoint_stage.h"
#include "tests/support/fault_injector.h"
#include "tests/support/seed.h"

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
    prepare_part(state, 0, storages, files);
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

/// More updates than the table of a thread may keep are given before the end of the files.
TEST(ReplayExchange, ManyUpdatesAreAllGiven) {
  TestCluster cluster(1, 1);
  const StagedStorages storages(cluster);
  MemoryFileSystem files;
  ReplayState state;
  prepare_part(state, 0, storages, files);
  Replayer replayer(state, *cluster.worker(0).transaction);
  GivenRecord record;
  uint64_t others = 0;  // records of the other share
  const std::string payload(2000, 'x');
  for (uint32_t i = 1; others * payload.size() < 3 * GivenUpdates::kMaxBytes; ++i) {
    const std::string key = std::to_string(i) + "-key";
    record.set(LogType::update, storages.tree->id, as_key(key), Vid::make(40, i).version(),
               as_key(payload));
    if (state.share.has(record.record(), *storages.tree)) continue;
    ++others;
    ASSERT_TRUE(replayer.replay(record.record(), "test"));
    ASSERT_TRUE(replayer.check_wanted());
  }
  EXPECT_FALSE(files.paths().empty()) << "most updates are in the file";
  const auto given = replayer.finish_given();
  ASSERT_TRUE(given && given->size() == 1u);
  EXPECT_EQ(given->front().to, 1u);
  EXPECT_EQ(given->front().run.records, others);
  replayer.writer().end();
  cluster.worker(0).context->leave();
}

/// The trees of two parts of a replay, which have the same worker.
class TwoParts {
 public:
  TwoParts() : cluster(1, 1, options()), storages(cluster) {
    for (uint32_t share = 0; share < 2; ++share) {
      prepare_part(states[share], share, storages, files);
      parts[share].push_back(
          std::make_unique<Replayer>(states[share], *cluster.worker(0).transaction));
    }
  }

  /// Replays a record of the tree in one part.
  void replay(uint32_t part, LogType type, const std::string& key, uint64_t epoch,
              const std::string& payload = {}) {
    GivenRecord record;
    record.set(type, storages.tree->id, as_key(key), Vid::make(epoch, 1).version(),
               as_key(payload));
    const auto done = parts[part][0]->replay(record.record(), "test");
    parts[part][0]->writer().end();  // the parts have the same transaction
    ASSERT_TRUE(done) << done.error().message;
  }
  /// Ends the replay of both parts, and returns the records of the tree.
  std::map<std::string, std::string> finish() {
    std::vector<std::vector<GivenFile>> given(2);
    cluster.worker(0).context->leave();
    for (const auto& part : parts) {
      const auto finished = give_records(part, run_in_turn);
      EXPECT_TRUE(finished) << finished.error().message;
      for (const GivenFile& file : *finished) given[file.to].push_back(file);
    }
    for (uint32_t share = 0; share < 2; ++share) {
      EXPECT_TRUE(take_records(files, given[share], parts[share], run_in_turn));
      EXPECT_TRUE(finish_replay(parts[share], run_in_turn));
    }
    cluster.view().control->epochs.settled.store(50, std::memory_order_release);
    remove_tombstones(*cluster.worker(0).context, *storages.tree);
    for (const auto& part : parts) EXPECT_TRUE(finish_blocked(part));
    std::string problem;
    const Content content = read_content(cluster.worker(0), storages, problem);
    EXPECT_EQ(problem, "");
    return content.tree;
  }

  TestCluster cluster;
  StagedStorages storages;
  MemoryFileSystem files;
  std::array<ReplayState, 2> states;
  std::array<std::vector<std::unique_ptr<Replayer>>, 2> parts;

 private:
  static TestClusterOptions options() {
    TestClusterOptions options;
    options.clock = false;
    options.start_epoch = 100;
    return options;
  }
};

/// The part with the deletion finds no room for a tombstone. The other part does not know it.
TEST(ReplayExchange, ABlockedDeletionDeletesAnOlderVersionThatAnotherPartHasStored) {
  for (const uint32_t deleting : {0u, 1u}) {
    TwoParts two;
    for (const std::string key : {"old", "new"}) {
      two.states[deleting].blocked.add(two.storages.tree->id, as_key(key),
                                       Vid::make(10, 1).with(Vid::kDeleted), {});
    }
    two.replay(1 - deleting, LogType::insert, "old", 5, "5");
    two.replay(1 - deleting, LogType::insert, "new", 15, "15");
    EXPECT_EQ(two.finish(), (std::map<std::string, std::string>{{"new", "15"}})) << deleting;
  }
}

/// Records grow, and so are moved, while another thread asks for their versions.
TEST(ReplayExchange, VersionsOfRecordsThatAreMovedMeanwhileAreFound) {
  TestClusterOptions options;
  options.clock = false;
  options.start_epoch = 100;
  TestCluster cluster(1, 2, options);
  const StagedStorages storages(cluster);
  const uint64_t keys = rounds(1000, 20'000);
  std::atomic<uint64_t> latest{0};  // number of the key that is stored; 0: none yet
  const auto key_of = [](uint64_t number) { return std::to_string(number); };
  std::jthread grower([&] {
    RecordWriter writer(*cluster.worker(1).transaction);
    const std::string payload(2000, 'x');
    for (uint64_t number = 1; number <= keys; ++number) {
      for (uint32_t step = 1; step <= 10; ++step) {
        Replayed result = Replayed::older;
        const Status status =
            writer.put(*storages.tree, as_key(key_of(number)), Vid::make(50, step),
                       as_key(payload).first(step * 200), result);
        EXPECT_EQ(status, Status::ok);
        latest.store(number, std::memory_order_release);
      }
    }
    writer.end();
    cluster.worker(1).context->leave();
    latest.store(keys + 1, std::memory_order_release);
  });
  RecordWriter writer(*cluster.worker(0).transaction);
  for (;;) {
    const uint64_t number = latest.load(std::memory_order_acquire);
    if (number > keys) break;
    if (number == 0) continue;
    ASSERT_NE(writer.version_of(*storages.tree, as_key(key_of(number))), 0u) << number;
  }
  writer.end();
  cluster.worker(0).context->leave();
}

}  // namespace
}  // namespace atolldb::test
