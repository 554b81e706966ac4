// Data path of the gleaner: mappers and reducers together, compared with a model.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/log/log_files.h"
#include "tests/engine/gleaner/snapshot_job_stage.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

TEST(DataPath, GivesOutExactlyWhatTheLogsHoldInSortOrder) {
  const uint64_t first = seed();
  uint64_t elided = 0;
  uint64_t runs = 0;
  for (uint64_t round = 0; round < rounds(12, 1000); ++round) {
    StageOptions options;
    options.nodes = static_cast<uint16_t>(1 + round % 3);
    options.mappers_per_node = static_cast<uint16_t>(1 + round % 2);
    options.reducers_per_node = static_cast<uint16_t>(1 + round / 2 % 2);
    options.keys = round % 4 == 3 ? 2000 : 30;
    SnapshotJobStage stage(first + round, options);
    ASSERT_EQ(stage.run(), "") << "ATOLL_SEED=" << first + round;
    ASSERT_EQ(stage.check(), "") << "ATOLL_SEED=" << first + round;
    elided += stage.elided;
    for (const auto& reducer : stage.reducers)
      runs += reducer->progress().sorted_runs.load(std::memory_order_relaxed);
  }
  EXPECT_GT(elided, 0u) << "no record was elided: the test has shown little";
  EXPECT_GT(runs, 10u) << "hardly any record was spilled: the test has shown little";
}

TEST(DataPath, LeavesOutExactlyTheRecordsOfCapturedRanges) {
  const uint64_t first = seed();
  uint64_t captured = 0;
  uint64_t left = 0;
  for (uint64_t round = 0; round < rounds(12, 500); ++round) {
    StageOptions options;
    options.keys = round % 2 == 0 ? 2000 : 30;
    SnapshotJobStage stage(first + round, options);
    const uint64_t expected = stage.capture_ranges();
    ASSERT_TRUE(do_ascend(stage.captured)) << "ATOLL_SEED=" << first + round;
    ASSERT_EQ(stage.run(), "") << "ATOLL_SEED=" << first + round;
    ASSERT_EQ(stage.check(), "") << "ATOLL_SEED=" << first + round;
    uint64_t counted = 0;
    for (const auto& mapper : stage.mappers) {
      counted += mapper->progress().records_captured.load(std::memory_order_relaxed);
    }
    ASSERT_EQ(counted, expected) << "ATOLL_SEED=" << first + round;
    captured += counted;
    left += stage.written.size();
  }
  EXPECT_GT(captured, left / 20);
  EXPECT_GT(left, captured / 20);
}

TEST(DataPath, RefusesCapturedRangesThatContradictThePlan) {
  StageOptions options;
  const auto error_of = [&](const std::vector<CapturedRange>& captured) {
    options.mapper.captured = captured;
    SnapshotJobStage stage(seed(), options);
    std::vector<ReducerInbox*> inboxes(stage.plan.reducers.size());
    const auto mapper =
        Mapper::create(stage.files, stage.plan, stage.plan.mappers[0], inboxes, options.mapper);
    return mapper ? std::string() : mapper.error().message;
  };
  using Stage = SnapshotJobStage;
  EXPECT_EQ(error_of({{Stage::kTree, 1, 5, false}, {Stage::kTree, 5, 0, true}}), "");
  const char* const order = "has captured ranges out of order";
  EXPECT_NE(error_of({{Stage::kTree, 1, 5, false}, {Stage::kTree, 4, 9, false}}).find(order),
            std::string::npos);
  EXPECT_NE(error_of({{Stage::kTree, 1, 1, false}}).find(order), std::string::npos);
  EXPECT_NE(error_of({{Stage::kTree, 1, 0, true}, {Stage::kTree, 4, 9, false}}).find(order),
            std::string::npos);
  EXPECT_NE(error_of({{Stage::kTree, 1, 5, false}, {Stage::kArray, 1, 5, false}}).find(order),
            std::string::npos);
  EXPECT_NE(error_of({{Stage::kArray, 1, 5, false}}).find("of a storage that is not a Master-tree"),
            std::string::npos);
}

/// Sums a counter over all mappers of a stage.
uint64_t sum(const SnapshotJobStage& stage, std::atomic<uint64_t> MapperProgress::* counter) {
  uint64_t all = 0;
  for (const auto& mapper : stage.mappers) {
    all += (mapper->progress().*counter).load(std::memory_order_relaxed);
  }
  return all;
}

TEST(DataPath, FoldsRecordsOfKeysThatReturn) {
  const uint64_t first = seed();
  uint64_t folded = 0;
  uint64_t unfolded = 0;
  for (uint64_t round = 0; round < rounds(16, 1000); ++round) {
    StageOptions options;
    options.keys = round % 4 == 3 ? 2000 : 100;
    options.epochs = 40;
    // Tiny tables, which are often full; tables for all records of a mapper; and no tables.
    options.mapper.fold_bytes = round % 2 == 0 ? MapperSettings::kMinBucketBytes : 1 << 20;
    options.mapper.max_fold_tables = static_cast<uint32_t>(round / 2 % 4);
    options.mapper.fold_sample_records = 64;
    SnapshotJobStage stage(first + round, options);
    ASSERT_EQ(stage.run(), "") << "ATOLL_SEED=" << first + round;
    ASSERT_EQ(stage.check(), "") << "ATOLL_SEED=" << first + round;
    EXPECT_EQ(
        sum(stage, &MapperProgress::records_read),
        sum(stage, &MapperProgress::records_shipped) + sum(stage, &MapperProgress::records_elided))
        << "ATOLL_SEED=" << first + round;
    const uint64_t in_tables = sum(stage, &MapperProgress::records_folded);
    (options.mapper.max_fold_tables == 0 ? unfolded : folded) += in_tables;
  }
  EXPECT_GT(folded, 100u) << "hardly any record was folded: the test has shown little";
  EXPECT_EQ(unfolded, 0u);
}

TEST(DataPath, MergesInSeveralPassesWhateverTheNumberOfRuns) {
  const uint64_t first = seed();
  uint64_t written = 0;
  uint64_t left = 0;
  for (uint64_t round = 0; round < rounds(6, 300); ++round) {
    StageOptions options;
    options.max_merged_runs = static_cast<uint32_t>(2 + round % 3);
    options.keys = round % 2 == 0 ? 2000 : 30;
    options.epochs = 24;
    SnapshotJobStage stage(first + round, options);
    ASSERT_EQ(stage.run(), "") << "ATOLL_SEED=" << first + round;
    // The files that still exist are the inputs of the last merges.
    std::map<std::string, uint32_t> runs_of;
    for (const std::string& path : stage.disk.paths()) {
      if (path.starts_with("/runs/")) ++runs_of[path.substr(0, path.find("/run_"))];
    }
    for (const auto& [folder, runs] : runs_of) {
      EXPECT_LE(runs, options.max_merged_runs) << folder << ", ATOLL_SEED=" << first + round;
      left += runs;
    }
    ASSERT_EQ(stage.check(), "") << "ATOLL_SEED=" << first + round;
    for (const auto& reducer : stage.reducers) {
      written += reducer->progress().sorted_runs.load(std::memory_order_relaxed);
    }
  }
  EXPECT_GT(written, 3 * left) << "few runs were merged: the test has shown little";
}

TEST(DataPath, NeedsNoFileWhenAllFitsTheInbox) {
  StageOptions options;
  options.half_bytes = 16 << 20;
  options.mapper = {};
  SnapshotJobStage stage(seed(), options);
  ASSERT_EQ(stage.run(), "");
  for (const auto& reducer : stage.reducers)
    EXPECT_EQ(reducer->progress().sorted_runs.load(std::memory_order_relaxed), 0u);
  EXPECT_EQ(stage.check(), "");
}

TEST(DataPath, BringsTheSameRecordsIfTwoMappersReadPartsOfEachStream) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(5, 100); ++round) {
    StageOptions options;
    options.splits_streams = true;
    SnapshotJobStage stage(first + round, options);
    ASSERT_EQ(stage.run(), "") << "seed " << first + round;
    ASSERT_EQ(stage.check(), "") << "seed " << first + round;
  }
}

TEST(DataPath, RemovesItsFilesAlsoAfterErrors) {
  const uint64_t first = seed();
  const auto runs = [](SnapshotJobStage& stage) {
    size_t count = 0;
    for (const std::string& path : stage.disk.paths()) count += path.starts_with("/runs/") ? 1 : 0;
    return count;
  };
  {
    SnapshotJobStage stage(first, {});
    ASSERT_EQ(stage.run(), "");
    EXPECT_GT(runs(stage), 0u);
    stage.reducers.clear();
    EXPECT_EQ(runs(stage), 0u);
  }
  SnapshotJobStage stage(first, {});
  stage.disk.changes_left = 3;  // three succeed: the new directory, a new file and its first write
  EXPECT_NE(stage.run().find("input/output error"), std::string::npos);
  stage.disk.changes_left = UINT64_MAX;
  stage.reducers.clear();
  EXPECT_EQ(runs(stage), 0u);
}

TEST(DataPath, TellsWhereASortedRunIsDamaged) {
  StageOptions options;
  options.half_bytes = 4 * SortedRunWriter::kMinChunkBytes;
  options.read_bytes = options.chunk_bytes;
  options.keys = 5000;
  options.epochs = 40;
  SnapshotJobStage stage(seed(), options);
  ASSERT_EQ(stage.run(), "");
  uint64_t damaged = 0;
  for (const std::string& path : stage.disk.paths()) {
    if (!path.starts_with("/runs/")) continue;
    // Damage the last chunk, which was not read when the merge began.
    auto& bytes = stage.disk.bytes(path);
    uint64_t chunk = bytes.size() - SortedRunWriter::kMinChunkBytes;
    while (bytes[chunk] == std::byte{}) chunk -= SortedRunWriter::kMinChunkBytes;
    if (chunk == 0) continue;
    bytes[chunk + 100] ^= std::byte{1};
    const std::string problem = stage.check();
    EXPECT_NE(
        problem.find(fmt::format("{}: offset {}: the chunk's checksum is wrong", path, chunk)),
        std::string::npos)
        << problem;
    ++damaged;
    break;
  }
  EXPECT_EQ(damaged, 1u) << "no run had two chunks";
}

/// Damages the stage's first stream in the first block for which `block_is_right` returns true.
/// With `zeros`, fills the file from that block on with this byte.
template <typename Which>
std::string damage(SnapshotJobStage& stage, Which block_is_right, std::byte* zeros = nullptr) {
  const PlannedStream& stream = stage.plan.mappers[0].streams[0];
  auto reader = LogReader::open(stage.files, stream.stream);
  CHECK(reader.has_value());
  for (;;) {
    auto block = reader->next();
    CHECK(block.has_value() && *block != nullptr);
    if (!block_is_right(**block)) continue;
    auto& bytes = stage.disk.bytes(reader->file());
    if (zeros != nullptr) {
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(reader->offset()), bytes.end(), *zeros);
    } else {
      bytes[reader->offset() + 70] ^= std::byte{4};
    }
    return fmt::format("{}: offset {}: ", reader->file(), reader->offset());
  }
}

TEST(DataPath, RefusesADamagedBlockOfTheEpochsItNeeds) {
  SnapshotJobStage stage(seed(), {});
  const std::string place = damage(stage, [&](const LogBlock& block) {
    return block.header.type == LogBlockType::records && block.header.epoch > stage.plan.base_epoch;
  });
  const std::string errors = stage.run();
  EXPECT_NE(errors.find(place + "the block's checksum is wrong"), std::string::npos) << errors;
  // All other mappers and reducers end, too. Each reducer reports an error.
  EXPECT_GE(std::ranges::count(errors, '\n'), 1 + static_cast<int>(stage.plan.reducers.size()));
}

TEST(DataPath, RefusesAStreamThatEndsBeforeItsLastEpochIsClosed) {
  SnapshotJobStage stage(seed(), {});
  std::byte zero{};
  const std::string place = damage(
      stage,
      [&](const LogBlock& block) {
        return block.header.type == LogBlockType::marker &&
               block.header.epoch >= stage.plan.mappers[0].streams[0].last_epoch;
      },
      &zero);
  const std::string errors = stage.run();
  EXPECT_NE(errors.find(place), std::string::npos) << errors;
  EXPECT_NE(errors.find("epochs up to"), std::string::npos) << errors;
}

TEST(DataPath, TakesAStreamThatIsTornAfterItsLastEpoch) {
  for (uint64_t first = seed();; ++first) {
    SnapshotJobStage stage(first, {});
    bool is_closed = false;
    bool is_next = false;
    // Damages a block after the marker that closes the last epoch. Not every stream has such a
    // block.
    const PlannedStream& stream = stage.plan.mappers[0].streams[0];
    auto reader = LogReader::open(stage.files, stream.stream);
    ASSERT_TRUE(reader);
    for (auto block = reader->next(); block && *block != nullptr; block = reader->next()) {
      is_next = is_next || is_closed;
      is_closed = reader->closed_epoch() >= stream.last_epoch;
    }
    if (!is_next) continue;
    is_closed = false;
    uint64_t closed = 0;
    damage(stage, [&](const LogBlock& block) {
      const bool is_after = closed >= stream.last_epoch;
      if (block.header.type == LogBlockType::marker) closed = block.header.epoch;
      return is_after;
    });
    ASSERT_EQ(stage.run(), "");
    EXPECT_EQ(stage.check(), "");
    return;
  }
}

TEST(DataPath, RefusesRecordsThatCannotBeOfTheirStorage) {
  SnapshotJobStage stage(seed(), {});
  stage.plan.storages[0].record_count = 1;  // storage 0 is the array; its log has larger indexes
  const std::string errors = stage.run();
  EXPECT_NE(errors.find("of storage 3, has an index beyond the end of its array"),
            std::string::npos)
      << errors;
}

TEST(DataPath, RefusesAPlanWithAnOwnerThatItDoesNotHave) {
  SnapshotJobStage stage(seed(), {});
  stage.plan.storages[1].partitions[0].owner = {9, 1};
  const std::vector<ReducerInbox*> none(stage.plan.reducers.size());
  auto mapper = Mapper::create(stage.files, stage.plan, stage.plan.mappers[0], none);
  ASSERT_FALSE(mapper);
  EXPECT_NE(mapper.error().message.find("reducer 1 of node 9"), std::string::npos);
}

TEST(DataPath, RefusesAPlanThatContradictsItself) {
  const auto refuses = [](auto&& change) {
    SnapshotJobStage stage(seed(), {});
    change(stage.plan);
    const std::vector<ReducerInbox*> none(stage.plan.reducers.size());
    const auto mapper = Mapper::create(stage.files, stage.plan, stage.plan.mappers[0], none);
    return !mapper && mapper.error().code == ExitCode::failed;
  };
  EXPECT_FALSE(refuses([](SnapshotPlan&) {}));
  EXPECT_TRUE(refuses([](SnapshotPlan& plan) { plan.base = plan.snapshot; }));
  EXPECT_TRUE(refuses([](SnapshotPlan& plan) { plan.epoch = plan.base_epoch - 1; }));
  EXPECT_TRUE(refuses([](SnapshotPlan& plan) {
    plan.salvages = true;
    plan.files = {{1, 0, "/data", 2}};  // not a victim
  }));
  EXPECT_TRUE(refuses([](SnapshotPlan& plan) { std::swap(plan.storages[0], plan.storages[1]); }));
  EXPECT_TRUE(refuses([](SnapshotPlan& plan) {
    plan.storages[0].partitions.push_back(plan.storages[0].partitions.back());
  }));
  EXPECT_TRUE(refuses([](SnapshotPlan& plan) {
    plan.mappers[0].streams.push_back(plan.mappers[0].streams.front());
  }));
}

TEST(DataPath, EndsEverywhereWhenOneSideGivesUp) {
  // No reducer takes messages, so the mappers fill both halves of the inbox and wait.
  SnapshotJobStage stage(seed(), {});
  SharedInbox inbox(ReducerInbox::kMinHalfBytes);
  ASSERT_TRUE(inbox.reducer.begin(stage.plan.snapshot, 4));
  const std::vector<ReducerInbox*> views(stage.plan.reducers.size(), &inbox.mappers);
  std::atomic<uint32_t> failed{0};
  std::atomic<uint32_t> finished{0};
  {
    std::vector<std::jthread> threads;
    for (const PlannedMapper& task : stage.plan.mappers) {
      threads.emplace_back([&] {
        auto mapper = Mapper::create(stage.files, stage.plan, task, views);
        const auto done = (*mapper)->run();
        if (done) {
          finished.fetch_add(1, std::memory_order_relaxed);
        } else if (done.error().message.find("given up") != std::string::npos) {
          failed.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
    auto* control = reinterpret_cast<InboxControl*>(inbox.memory.base(0));
    while (control->swaps_wanted.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    inbox.reducer.give_up(stage.plan.snapshot);
  }
  // With some seeds a mapper has so few records that all of them fit into the inbox: it finishes.
  EXPECT_EQ(failed.load(std::memory_order_relaxed) + finished.load(std::memory_order_relaxed),
            stage.plan.mappers.size());
  EXPECT_GE(failed.load(std::memory_order_relaxed), 1u);
}

}  // namespace
}  // namespace atolldb::test
