// Recovery from checkpoints and logs, compared with the content that the transactions left at the
// cut.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/checkpoint/checkpoint_stage.h"
#include "tests/engine/gleaner/locked_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Runs transactions of all workers in turn, and takes checkpoints meanwhile: the parts of a
/// checkpoint are copied at different instants.
class InTurn {
 public:
  InTurn(uint64_t seed_value, uint32_t nodes, uint32_t workers)
      : random_(seed_value), stage(nodes, workers) {
    for (uint32_t i = 0; i < stage.worker_count(); ++i) {
      works.emplace_back(seed_value, i, stage.worker_count());
    }
  }

  std::string run(uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) {
      const auto chosen = static_cast<uint32_t>(random_() % works.size());
      std::string problem = works[chosen].step(stage.worker(chosen), stage.storages);
      if (problem.empty() && random_() % 40 == 0) stage.next_epoch();
      if (problem.empty() && takes_checkpoints && random_() % 100 == 0) {
        problem = advance_checkpoint();
      }
      if (!problem.empty()) return problem;
    }
    return {};
  }

 private:
  /// Copies the next part of a checkpoint, or installs it, or begins one.
  std::string advance_checkpoint() {
    if (!checkpoint_) {
      ++options_.id;
      options_.writers = 1 + static_cast<uint32_t>(random_() % 4);
      next_part_ = 0;
      checkpoint_ = std::make_unique<StagedCheckpoint>(stage.checkpoints(), stage.worker(0),
                                                       stage.storages, options_);
      return {};
    }
    if (next_part_ < options_.writers) {
      const uint32_t part = next_part_++;
      return checkpoint_->copy(stage.worker(part % stage.worker_count()), part);
    }
    std::string problem = stage.install(checkpoint_->finish());
    checkpoint_.reset();
    return problem;
  }

  std::mt19937_64 random_;
  CheckpointOptions options_{.id = 0};
  std::unique_ptr<StagedCheckpoint> checkpoint_;
  uint32_t next_part_ = 0;

 public:
  CheckpointStage stage;
  std::vector<RandomWork> works;
  bool takes_checkpoints = true;
};

TEST(Replay, RestoresTheContentOfTheCut) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(6, 60, 2); ++round) {
    const auto nodes = static_cast<uint32_t>(1 + round % 2);
    const auto workers = static_cast<uint32_t>(1 + round % 3);
    InTurn work(first + round, nodes, workers);
    // Power may fail before the first checkpoint, too.
    for (const uint64_t steps : {100u, 700u, 900u}) {
      ASSERT_EQ(work.run(steps), "") << "seed " << first + round;
      const CrashImage image = work.stage.crash();
      const Content expected = content_at(work.works, image.cut_epoch);
      for (const auto order : {ReplayOrder::newest_first, ReplayOrder::oldest_first}) {
        EXPECT_EQ(recover_and_compare(image,
                                      {.order = order,
                                       .threads = 1 + static_cast<uint32_t>(round % 3),
                                       .shares = 1 + static_cast<uint32_t>(round % 4)},
                                      expected),
                  "")
            << "seed " << first + round << ", order " << static_cast<int>(order);
      }
    }
  }
}

/// Each part of a replay reads other files, and gives the others what belongs to their shares.
TEST(Replay, PartsGiveEachOtherUpdatesAndAppends) {
  const uint64_t seed_value = seed();
  InTurn work(seed_value, 2, 2);
  ASSERT_EQ(work.run(2000), "") << "seed " << seed_value;
  const CrashImage image = work.stage.crash();
  const Content expected = content_at(work.works, image.cut_epoch);
  RecoveredCluster alone(image, {});
  EXPECT_EQ(alone.given(), 0u);
  for (const uint32_t shares : {2u, 3u}) {
    RecoveredCluster recovered(image, {.threads = 2, .shares = shares});
    EXPECT_EQ(recovered.problem(), "") << "seed " << seed_value;
    EXPECT_TRUE(recovered.content() == expected) << "seed " << seed_value;
    EXPECT_GT(recovered.given(), 0u) << "seed " << seed_value;
    EXPECT_EQ(recovered.counters().records, alone.counters().records) << "seed " << seed_value;
    EXPECT_EQ(recovered.counters().bytes, alone.counters().bytes) << "each file is read once";
  }
}

TEST(Replay, HasTheSameResultInAnyOrderAndOverwritesLessInReverse) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(3, 20, 1); ++round) {
    InTurn work(first + round, 2, 2);
    ASSERT_EQ(work.run(2000), "") << "seed " << first + round;
    // The order matters only if the log after the last checkpoint has several files.
    work.takes_checkpoints = false;
    ASSERT_EQ(work.run(1500), "") << "seed " << first + round;
    const CrashImage image = work.stage.crash();
    const Content expected = content_at(work.works, image.cut_epoch);
    ReplayCounters reverse;
    ReplayCounters forward;
    EXPECT_EQ(recover_and_compare(image, {.order = ReplayOrder::newest_first}, expected, &reverse),
              "");
    EXPECT_EQ(recover_and_compare(image, {.order = ReplayOrder::oldest_first}, expected, &forward),
              "");
    EXPECT_EQ(reverse.records, forward.records);
    EXPECT_LT(reverse.overwritten, forward.overwritten) << "seed " << first + round;
    EXPECT_GT(reverse.older, forward.older) << "seed " << first + round;
  }
}

/// Transactions, epochs and checkpoints at the same time, each in its own threads.
TEST(Replay, RestoresTheContentWithCheckpointsAmidTransactions) {
  const uint64_t seed_value = seed();
  constexpr uint32_t kWriters = 2;
  constexpr uint32_t kWorkers = 2;
  CheckpointStage stage(1, kWorkers + kWriters);
  std::vector<RandomWork> works;
  for (uint32_t i = 0; i < kWorkers; ++i) works.emplace_back(seed_value, i, kWorkers);
  std::vector<std::string> problems(kWorkers + kWriters);
  std::atomic<uint32_t> running{kWorkers};
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t step = 0; step < rounds(3000, 40000, 1500) && problems[i].empty(); ++step) {
        problems[i] = works[i].step(stage.worker(i), stage.storages);
      }
      stage.worker(i).context->leave();
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  LockedFileSystem locked(stage.checkpoints());
  uint64_t checkpoints = 0;
  while (running.load(std::memory_order_acquire) != 0) {
    CheckpointOptions options;
    options.id = ++checkpoints;
    options.writers = kWriters;
    StagedCheckpoint checkpoint(locked, stage.worker(kWorkers), stage.storages, options);
    std::atomic<uint32_t> copying{kWriters};
    std::vector<std::jthread> writers;
    for (uint32_t part = 0; part < kWriters; ++part) {
      writers.emplace_back([&, part] {
        const std::string problem = checkpoint.copy(stage.worker(kWorkers + part), part);
        if (!problem.empty()) problems[kWorkers + part] = problem;
        copying.fetch_sub(1, std::memory_order_release);
      });
    }
    while (copying.load(std::memory_order_acquire) != 0) stage.next_epoch();
    writers.clear();
    ASSERT_EQ(stage.install(checkpoint.finish()), "");
    for (int i = 0; i < 20; ++i) stage.next_epoch();
  }
  threads.clear();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  EXPECT_GE(checkpoints, 1u);
  const CrashImage image = stage.crash();
  const Content expected = content_at(works, image.cut_epoch);
  EXPECT_EQ(recover_and_compare(image, {.threads = 3}, expected), "");
}

TEST(Replay, NeedsOnlyTheLogFromTheBeginEpochOn) {
  const uint64_t seed_value = seed();
  CheckpointStage stage(1, 1, 3 * kLogBlockBytes);
  std::vector<RandomWork> works;
  works.emplace_back(seed_value, 0, 1);
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      ASSERT_EQ(works[0].step(stage.worker(0), stage.storages), "");
      if (i % 10 == 9) stage.next_epoch();
    }
  };
  run(200);
  ASSERT_EQ(stage.take_checkpoint({}), "");
  run(100);
  CrashImage image = stage.crash();
  const auto checkpoint = newest_checkpoint(*image.checkpoints, "/data");
  ASSERT_TRUE(checkpoint.has_value() && checkpoint->has_value());
  const auto needed =
      log_files_to_replay(*image.logs, image.streams(), (*checkpoint)->replay_epoch);
  ASSERT_TRUE(needed.has_value());
  uint64_t deleted = 0;
  for (uint32_t ordinal = 0; ordinal < needed->back().ordinal; ++ordinal, ++deleted) {
    ASSERT_TRUE(image.logs->remove(path_of(LogFilePlace{"/data", 0, {1, 0, ordinal}})).has_value());
  }
  EXPECT_GT(deleted, 3u);
  EXPECT_LT(needed->size(), needed->front().ordinal);
  const Content expected = content_at(works, image.cut_epoch);
  EXPECT_EQ(recover_and_compare(image, {}, expected), "");
  // Any needed file that is missing is an error that names it.
  for (const LogReplayFile& file : *needed) {
    const std::string path = path_of(LogFilePlace{"/data", 0, {1, 0, file.ordinal}});
    const MemoryFileSystem::Bytes bytes = image.logs->bytes(path);
    ASSERT_TRUE(image.logs->remove(path).has_value());
    const std::string problem = RecoveredCluster(image, {}).problem();
    EXPECT_NE(problem, "") << path;
    ASSERT_TRUE(image.logs->create(path, bytes.size()).has_value());
    image.logs->bytes(path) = bytes;
  }
  EXPECT_EQ(recover_and_compare(image, {}, expected), "");
}

/// Updates a record of 10 bytes at `offset` in each of several epochs, and recovers. Returns the
/// counters.
ReplayCounters recover_updates(uint32_t offset, const std::string& bytes,
                               uint32_t whole_version_bytes = 0) {
  CheckpointStage stage(1, 1, 3 * kLogBlockBytes);
  stage.worker(0).context->use_whole_versions(whole_version_bytes);
  const MasterTree tree(*stage.storages.tree);
  const std::string key = "key";
  std::string payload = "0123456789";
  const auto commit = [&](const auto& body) {
    EXPECT_EQ(stage.worker(0).run(body), Status::ok);
    stage.next_epoch();
  };
  commit([&](Transaction& txn) { return tree.insert(txn, as_key(key), as_key(payload)); });
  EXPECT_EQ(stage.take_checkpoint({}), "");
  for (char last = '0'; last < '5'; ++last) {
    const std::string changed = bytes + last;
    commit([&](Transaction& txn) {
      return tree.update_range(txn, as_key(key), offset, as_key(changed));
    });
    payload.replace(offset, changed.size(), changed);
  }
  ReplayCounters counters;
  Content expected;
  expected.tree[key] = payload;
  EXPECT_EQ(recover_and_compare(stage.crash(), {}, expected, &counters), "");
  return counters;
}

TEST(Replay, UpdatesOfWholeRecordsWaitForNoOtherVersion) {
  const ReplayCounters whole = recover_updates(0, "ABCDEFGHI");
  EXPECT_EQ(whole.updates, 0u);
  EXPECT_EQ(whole.inserted, 1u) << "the checkpoint has the record";
  EXPECT_EQ(whole.overwritten + whole.older, 5u);
  for (const ReplayCounters& part : {recover_updates(1, "BCDEFGHI"), recover_updates(0, "ABC")}) {
    EXPECT_EQ(part.updates, 1u) << "the newest one covers the others";
    EXPECT_EQ(part.records, whole.records);
  }
}

TEST(Replay, UpdatesOfSmallRecordsAreWholeVersions) {
  constexpr uint32_t kBytes = 10;  // of the record
  for (const uint32_t most : {kBytes, kWholeVersionBytes}) {
    const ReplayCounters whole = recover_updates(1, "BCD", most);
    EXPECT_EQ(whole.updates, 0u);
    EXPECT_EQ(whole.overwritten + whole.older, 5u);
  }
  EXPECT_EQ(recover_updates(1, "BCD", kBytes - 1).updates, 1u) << "the record is longer";
}

TEST(Replay, PausesWithoutABeginEpochWhileItIsAheadOfOthers) {
  InTurn work(seed(), 1, 1);
  ASSERT_EQ(work.run(1500), "");
  work.stage.next_epoch();
  const CrashImage image = work.stage.crash();
  const auto files = log_files_to_replay(*image.logs, image.streams(), image.start_epoch);
  ASSERT_TRUE(files.has_value() && files->size() >= 2);
  TestClusterOptions options;
  options.clock = false;
  options.start_epoch = image.cut_epoch + 10;
  TestCluster cluster(1, 1, options);
  const StagedStorages storages(cluster);
  ReplayState state;
  for (StorageControl* storage : storages.all()) state.storages[storage->id] = storage;
  // The first file is read before anything is counted. Only a higher limit ends the pause.
  state.pace.set_limit(0, ReplayPace::Clock::now() + std::chrono::hours(24));
  std::vector<std::unique_ptr<Replayer>> replayers;
  replayers.push_back(std::make_unique<Replayer>(state, *cluster.worker(0).transaction));
  Result<void> replayed;
  std::jthread thread([&] { replayed = replay_log(*image.logs, *files, replayers, run_in_turn); });
  const auto& begin_epoch = cluster.worker(0).context->slot().begin_epoch;
  while (replayers[0]->published().bytes == 0) std::this_thread::yield();
  while (begin_epoch.load(std::memory_order_seq_cst) != kIdleEpoch) std::this_thread::yield();
  const uint64_t paused_at = replayers[0]->published().bytes;
  state.pace.set_limit(UINT64_MAX);
  thread.join();
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_LT(paused_at, replayers[0]->published().bytes);
  EXPECT_EQ(replayers[0]->published().bytes, replayers[0]->counters().bytes);
}

TEST(Replay, RefusesDamagedLogsAndNamesTheFile) {
  const uint64_t seed_value = seed();
  std::mt19937_64 random(seed_value);
  InTurn work(seed_value, 1, 2);
  ASSERT_EQ(work.run(1500), "");
  work.stage.next_epoch();
  const CrashImage image = work.stage.crash();
  const auto checkpoint = newest_checkpoint(*image.checkpoints, "/data");
  ASSERT_TRUE(checkpoint.has_value());
  const uint64_t first = *checkpoint ? (*checkpoint)->replay_epoch : image.start_epoch;
  const auto files = log_files_to_replay(*image.logs, image.streams(), first);
  ASSERT_TRUE(files.has_value() && !files->empty());
  for (uint64_t round = 0; round < rounds(20, 200, 2); ++round) {
    const LogReplayFile& file = (*files)[random() % files->size()];
    const std::string path =
        path_of(LogFilePlace{"/data", file.stream.node, {1, file.stream.logger, file.ordinal}});
    MemoryFileSystem::Bytes& bytes = image.logs->bytes(path);
    // The header of a block is never unused.
    uint64_t blocks = 0;
    while (blocks * kLogBlockBytes < bytes.size() &&
           bytes[blocks * kLogBlockBytes] != std::byte{}) {
      ++blocks;
    }
    const uint64_t at = random() % blocks * kLogBlockBytes + random() % sizeof(LogBlockHeader);
    bytes[at] ^= std::byte{4};
    const std::string problem = RecoveredCluster(image, {}).problem();
    bytes[at] ^= std::byte{4};
    EXPECT_TRUE(problem.starts_with(path)) << path << " at " << at << ": " << problem;
  }
}

TEST(Replay, IgnoresTheTornTailAfterTheCut) {
  const uint64_t seed_value = seed();
  CheckpointStage stage(1, 1);
  std::vector<RandomWork> works;
  works.emplace_back(seed_value, 0, 1);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(works[0].step(stage.worker(0), stage.storages), "");
  stage.next_epoch();
  const uint64_t cut = stage.durable_epoch();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(works[0].step(stage.worker(0), stage.storages), "");
  stage.next_epoch();
  CrashImage image = stage.crash();
  image.cut_epoch = cut;
  const Content expected = content_at(works, cut);
  ASSERT_FALSE(expected == content_at(works, UINT64_MAX));
  EXPECT_EQ(recover_and_compare(image, {}, expected), "");  // complete, but after the cut
  const std::string path = path_of(LogFilePlace{"/data", 0, {1, 0, 0}});
  MemoryFileSystem::Bytes& bytes = image.logs->bytes(path);
  for (size_t at = 0; at < bytes.size(); at += kLogBlockBytes) {
    const auto* block = reinterpret_cast<const LogBlock*>(bytes.data() + at);
    if (block->header.type != LogBlockType::records || block->header.epoch <= cut) continue;
    bytes[at + 100] ^= std::byte{1};
    break;
  }
  EXPECT_EQ(recover_and_compare(image, {}, expected), "");
}

/// Recovers in both orders. Each replay keeps one record or tombstone for which a page has no room.
/// Replays of several parts may read the files in an order in which there is room.
void expect_one_blocked(const CrashImage& image, const Content& expected) {
  for (const auto order : {ReplayOrder::newest_first, ReplayOrder::oldest_first}) {
    for (uint32_t shares = 1; shares <= 4; ++shares) {
      RecoveredCluster recovered(image, {.order = order, .shares = shares});
      EXPECT_EQ(recovered.problem(), "") << shares;
      EXPECT_LE(recovered.blocked(), 1u) << shares;
      EXPECT_TRUE(shares > 1 || recovered.blocked() == 1);
      EXPECT_TRUE(recovered.content() == expected) << shares;
    }
  }
}

TEST(Replay, FindsRoomForRecordsWhoseRoomDeletedOnesTake) {
  // The two keys have the same slice, so they need the same page, and it has room for one record.
  CheckpointStage stage(1, 1);
  const MasterTree tree(*stage.storages.tree);
  TestWorker& worker = stage.worker(0);
  const std::string deleted = "a";
  const std::string left = std::string("a\0", 2);
  const std::string large(MasterTree::kMaxPayloadBytes, 'x');
  const auto insert = [&](const std::string& key) {
    return worker.run(
        [&](Transaction& txn) { return tree.insert(txn, as_key(key), as_key(large)); });
  };
  ASSERT_EQ(insert(deleted), Status::ok);
  stage.next_epoch();
  ASSERT_EQ(stage.take_checkpoint({}), "");
  const auto erase = [&](Transaction& txn) { return tree.erase(txn, as_key(deleted)); };
  ASSERT_EQ(worker.run(erase), Status::ok);
  for (int i = 0; i < 3; ++i) stage.next_epoch();
  // The tombstone may be elided from now on.
  stage.logged().cluster().view().control->epochs.oldest_begin.store(stage.logged().epoch(),
                                                                     std::memory_order_release);
  ASSERT_EQ(insert(left), Status::ok);
  stage.next_epoch();
  const std::string part = "yyy";
  const auto update = [&](Transaction& txn) {
    return tree.update_range(txn, as_key(left), 7, as_key(part));
  };
  ASSERT_EQ(worker.run(update), Status::ok);
  stage.next_epoch();
  Content expected;
  expected.tree[left] = large;
  expected.tree[left].replace(7, part.size(), part);
  expect_one_blocked(stage.crash(), expected);
}

TEST(Replay, FindsNoRoomForADeletionAndKeepsTheKeyDeleted) {
  // As above. The checkpoint has the records that took the room after the other one was deleted.
  // They leave no room for its tombstone.
  CheckpointStage stage(1, 1);
  const MasterTree tree(*stage.storages.tree);
  TestWorker& worker = stage.worker(0);
  const std::string deleted = std::string("a\0", 2);
  const std::string left = "a";
  const std::string filler = std::string("a\0\0", 3);
  const std::string large(MasterTree::kMaxPayloadBytes, 'x');
  const auto insert = [&](const std::string& key, size_t bytes) {
    return worker.run([&](Transaction& txn) {
      return tree.insert(txn, as_key(key), as_key(large).first(bytes));
    });
  };
  StagedCheckpoint checkpoint(stage.checkpoints(), worker, stage.storages, {});
  ASSERT_EQ(insert(deleted, large.size()), Status::ok);
  stage.next_epoch();
  const std::string part = "yyy";
  const auto update = [&](Transaction& txn) {
    return tree.update_range(txn, as_key(deleted), 7, as_key(part));
  };
  ASSERT_EQ(worker.run(update), Status::ok);
  const auto erase = [&](Transaction& txn) { return tree.erase(txn, as_key(deleted)); };
  ASSERT_EQ(worker.run(erase), Status::ok);
  for (int i = 0; i < 3; ++i) stage.next_epoch();
  stage.logged().cluster().view().control->epochs.oldest_begin.store(stage.logged().epoch(),
                                                                     std::memory_order_release);
  ASSERT_EQ(insert(left, large.size()), Status::ok);
  size_t filler_bytes = large.size();
  while (insert(filler, filler_bytes) != Status::ok) ASSERT_GT(--filler_bytes, 0u);
  ASSERT_EQ(checkpoint.copy(worker, 0), "");
  ASSERT_EQ(stage.install(checkpoint.finish()), "");
  Content expected;
  expected.tree[left] = large;
  expected.tree[filler] = large.substr(0, filler_bytes);
  expect_one_blocked(stage.crash(), expected);
}

/// A record for Replayer::replay.
struct MadeRecord {
  MadeRecord(const StorageControl& storage, LogType type, const std::string& key, uint64_t epoch,
             const std::string& payload = {}) {
    record().type = type;
    record().storage_id = storage.id;
    record().key_bytes = static_cast<uint16_t>(key.size());
    record().payload_bytes = static_cast<uint16_t>(payload.size());
    record().length = LogRecord::bytes(record().key_bytes, record().payload_bytes);
    record().vid = Vid::make(epoch, 1).word();
    CHECK(record().length <= bytes.size());
    std::memcpy(record().key(), key.data(), key.size());
    std::memcpy(record().payload(), payload.data(), payload.size());
  }
  LogRecord& record() { return *reinterpret_cast<LogRecord*>(bytes.data()); }

  alignas(LogRecord) std::array<std::byte, 4096> bytes{};
};

/// Two parts find no room for versions of a key: one for its deletion, the other for an older
/// version of it and an update (R100). `deleting`: the part that has the deletion.
void expect_blocked_versions_to_meet(uint32_t deleting) {
  TestClusterOptions options;
  options.clock = false;
  options.start_epoch = 100;
  TestCluster cluster(1, 1, options);
  const StagedStorages storages(cluster);
  MemoryFileSystem files;
  std::array<ReplayState, 2> states;
  std::array<std::vector<std::unique_ptr<Replayer>>, 2> parts;
  for (uint32_t share = 0; share < 2; ++share) {
    prepare_part(states[share], share, storages, files);
    parts[share].push_back(
        std::make_unique<Replayer>(states[share], *cluster.worker(0).transaction));
  }
  const auto replay = [&](uint32_t part, LogType type, const std::string& key, uint64_t epoch,
                          const std::string& payload = {}) {
    MadeRecord made(*storages.tree, type, key, epoch, payload);
    const auto done = parts[part][0]->replay(made.record(), "test");
    parts[part][0]->writer().end();  // the parts have the same transaction
    ASSERT_TRUE(done) << done.error().message;
  };
  // These keys have one slice, so they need one page. Two of them take its room.
  const std::string key = std::string("a\0", 2);
  const std::string first = "a";
  const std::string second = std::string("a\0\0", 3);
  const std::string large(MasterTree::kMaxPayloadBytes, 'x');
  replay(deleting, LogType::insert, first, 20, large);
  std::string filler = large;
  const auto is_stored = [&] { return states[deleting].blocked.records().empty(); };
  for (replay(deleting, LogType::insert, second, 20, filler); !is_stored();
       replay(deleting, LogType::insert, second, 20, filler)) {
    states[deleting].blocked.records().clear();
    filler.pop_back();
  }
  replay(deleting, LogType::erase, key, 15);
  replay(1 - deleting, LogType::insert, key, 10, large);
  replay(1 - deleting, LogType::update, key, 12, "yyy");
  ASSERT_EQ(states[0].blocked.records().size(), 1u);
  ASSERT_EQ(states[1].blocked.records().size(), 1u);
  std::vector<std::vector<GivenFile>> given(2);
  for (const auto& part : parts) {
    cluster.worker(0).context->leave();
    const auto finished = give_records(part, run_in_turn);
    ASSERT_TRUE(finished) << finished.error().message;
    for (const GivenFile& file : *finished) given[file.to].push_back(file);
  }
  for (uint32_t share = 0; share < 2; ++share) {
    ASSERT_TRUE(take_records(files, given[share], parts[share], run_in_turn));
    const auto finished = finish_replay(parts[share], run_in_turn);
    ASSERT_TRUE(finished) << finished.error().message;
  }
  cluster.view().control->epochs.settled.store(50, std::memory_order_release);
  remove_tombstones(*cluster.worker(0).context, *storages.tree);
  for (const auto& part : parts) {
    const auto finished = finish_blocked(part);
    EXPECT_TRUE(finished) << finished.error().message;
  }
  std::string problem;
  const Content content = read_content(cluster.worker(0), storages, problem);
  EXPECT_EQ(problem, "");
  EXPECT_EQ(content.tree, (std::map<std::string, std::string>{{first, large}, {second, filler}}));
}

TEST(Replay, BlockedVersionsOfARecordMeetInOnePart) {
  for (const uint32_t deleting : {0u, 1u}) expect_blocked_versions_to_meet(deleting);
}

TEST(Replay, TakesPartInALaterCheckpoint) {
  // The recovered content is the base of a second checkpoint, which has other lists and pages.
  const uint64_t seed_value = seed();
  InTurn work(seed_value, 2, 2);
  ASSERT_EQ(work.run(2000), "");
  const CrashImage image = work.stage.crash();
  RecoveredCluster recovered(image, {.threads = 2});
  ASSERT_EQ(recovered.problem(), "");
  MemoryFileSystem files;
  CheckpointOptions options;
  options.id = 100;
  options.writers = 2;
  EpochBlock& epochs = recovered.cluster().view().control->epochs;
  epochs.durable.store(image.cut_epoch, std::memory_order_release);
  StagedCheckpoint checkpoint(files, recovered.cluster().worker(0), recovered.storages, options);
  for (uint32_t part = 0; part < options.writers; ++part) {
    ASSERT_EQ(checkpoint.copy(recovered.cluster().worker(part), part), "");
  }
  const CheckpointMetadata& metadata = checkpoint.finish();
  ASSERT_TRUE(install_checkpoint(files, "/data", metadata, metadata.end_epoch).has_value());
  CrashImage second;
  second.logs = std::make_unique<MemoryFileSystem>();
  second.checkpoints = files.copy();
  second.nodes = image.nodes;
  second.start_epoch = metadata.end_epoch + 1;  // no log is needed
  second.cut_epoch = metadata.end_epoch;
  const Content expected = content_at(work.works, image.cut_epoch);
  EXPECT_EQ(recover_and_compare(second, {.threads = 3}, expected), "");
  // A log that ends before the checkpoint has lost epochs.
  --second.cut_epoch;
  EXPECT_NE(RecoveredCluster(second, {}).problem(), "");
}

}  // namespace
}  // namespace atolldb::test
