// Tests of the reduction of sorted runs: multi-pass merges give what a single merge gives, with
// bounded memory and descriptors.
#include "engine/gleaner/run_reduction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "engine/log/log_files.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kReadChunk = SortedRunWriter::kMinChunkBytes;
const std::string kFolder = "/runs/node0";

/// Records how many files are open for reading, the most at once, and the size of the largest read.
class CountingFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    auto file = below().open_for_reading(path);
    if (!file) return file;
    return std::make_unique<CountedFile>(*this, *std::move(file));
  }

  uint32_t open = 0;
  uint32_t most_open = 0;
  uint64_t largest_read = 0;

 private:
  class CountedFile : public ForwardingFile {
   public:
    CountedFile(CountingFileSystem& owner, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), owner_(owner) {
      owner_.most_open = std::max(owner_.most_open, ++owner_.open);
    }
    ~CountedFile() override { --owner_.open; }
    Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
      owner_.largest_read = std::max<uint64_t>(owner_.largest_read, into.size());
      return below().read(offset, into);
    }

   private:
    CountingFileSystem& owner_;
  };
};

/// Random sorted runs. Each record has its own VID, and is an insert or an append. An insert covers
/// all earlier records of its key, so the order of elisions does not matter.
struct Runs {
  Runs(FileSystem& files, uint64_t seed, uint32_t count, uint32_t most_records) : random(seed) {
    CHECK(files.make_directory(kFolder).has_value());
    set.folder = kFolder;
    set.next_name = {4, 1, 0};
    uint64_t ordinal = 0;
    for (uint32_t i = 0; i < count; ++i) {
      add(files, 1 + random() % most_records, ordinal);
    }
  }

  void add(FileSystem& files, size_t count, uint64_t& ordinal) {
    BlockBuffer blocks(count);
    std::vector<const LogRecord*> records;
    uint64_t bytes = 0;
    for (LogBlock& block : blocks.all()) {
      begin_block(block, 1, 0);
      const auto storage = static_cast<uint32_t>(1 + random() % 2);
      const uint64_t key = __builtin_bswap64(random() % 200);
      CHECK(add_record(block, storage == 1 ? LogType::insert : LogType::append, storage,
                       Vid::make(1, ++ordinal).word(), std::as_bytes(std::span(&key, 1)),
                       random_bytes(random, random() % 900)));
      records.push_back(reinterpret_cast<const LogRecord*>(block.payload));
      bytes += records.back()->length;
    }
    std::ranges::sort(records, [](const LogRecord* a, const LogRecord* b) {
      if (a->storage_id != b->storage_id) return a->storage_id < b->storage_id;
      return SortKey::of(*a) < SortKey::of(*b);
    });
    // Each record is a sorted input of its own, so the merge only compacts and writes the records.
    RecordMerge merge;
    for (const LogRecord* record : records) {
      merge.add(
          std::as_bytes(std::span(reinterpret_cast<const std::byte*>(record), record->length)));
    }
    CHECK(merge.start().has_value());
    const SortedRunName name = set.next_name;
    ++set.next_name.number;
    set.paths.push_back(path_in(kFolder, to_string(name)));
    auto run = write_run(files, set.paths.back(), name, bytes, kReadChunk, merge);
    CHECK(run.has_value());
    set.runs.push_back(*std::move(run));
  }

  std::mt19937_64 random;
  RunSet set;
};

/// Returns the bytes of all records of a merge of these runs, or the error.
std::string merged(FileSystem& files, const RunMergeSettings& settings,
                   std::span<const SortedRun> runs) {
  RecordMerge merge;
  std::string all;
  auto done = add_runs(files, settings, runs, merge);
  if (done) done = merge.start();
  while (done && !merge.batch().empty()) {
    for (const SortKey& key : merge.batch()) {
      all.append(reinterpret_cast<const char*>(key.record), key.record->length);
    }
    done = merge.take(merge.batch().size());
  }
  return done ? all : done.error().message;
}

Result<void> proceed() { return {}; }

TEST(RunReduction, GivesWhatASingleMergeGives) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(40, 2000); ++round) {
    MemoryFileSystem disk;
    CountingFileSystem files(disk);
    const auto count = static_cast<uint32_t>(round % 40);
    Runs runs(files, first + round, count, round % 3 == 0 ? 4 : 60);
    const std::string expected = merged(files, {kReadChunk, 3 * kReadChunk}, runs.set.runs);
    uint64_t records = 0;
    for (const SortedRun& run : runs.set.runs) records += run.records;
    files.most_open = 0;
    const RunMergeSettings settings = {kReadChunk, 3 * kReadChunk,
                                       static_cast<uint32_t>(2 + round % 5)};
    const auto reduced = reduce_runs(files, settings, runs.set, proceed);
    ASSERT_TRUE(reduced) << reduced.error().message << ", ATOLL_SEED=" << first + round;
    EXPECT_LE(files.most_open, settings.max_runs);
    EXPECT_EQ(files.open, 0u);
    EXPECT_EQ(runs.set.runs.size(), std::min(count, settings.max_runs));
    EXPECT_EQ(disk.paths().size(), runs.set.runs.size()) << "merged runs were not removed";
    EXPECT_EQ(runs.set.paths.size(), runs.set.runs.size());
    uint64_t left = reduced->elided;
    for (const SortedRun& run : runs.set.runs) left += run.records;
    EXPECT_EQ(left, records) << "ATOLL_SEED=" << first + round;
    EXPECT_TRUE(merged(files, settings, runs.set.runs) == expected)
        << "ATOLL_SEED=" << first + round;
  }
}

TEST(RunReduction, ReducersOfAProcessShareItsDescriptors) {
  EXPECT_EQ(merged_runs_of(0), kMaxMergedRuns);
  EXPECT_EQ(merged_runs_of(1), kMaxMergedRuns);
  for (uint32_t reducers = 2; reducers <= 16; ++reducers) {
    EXPECT_LE(reducers * merged_runs_of(reducers), kMaxMergedRuns) << reducers;
    EXPECT_GE(merged_runs_of(reducers), kMinMergedRuns) << reducers;
  }
  EXPECT_EQ(merged_runs_of(17), kMinMergedRuns);
  EXPECT_EQ(merged_runs_of(64), kMinMergedRuns);
}

TEST(RunReduction, ReadsNoMoreRunsThanNecessary) {
  MemoryFileSystem disk;
  const auto written_runs = [&](uint32_t count) {
    Runs runs(disk, seed(), count, 3);
    const auto reduced = reduce_runs(disk, {kReadChunk, kReadChunk, 4}, runs.set, proceed);
    CHECK(reduced.has_value());
    for (const std::string& path : runs.set.paths) CHECK(disk.remove(path).has_value());
    return reduced->runs;
  };
  EXPECT_EQ(written_runs(4), 0u);
  EXPECT_EQ(written_runs(5), 1u);
  EXPECT_EQ(written_runs(7), 1u);   // a group of four: four runs are left
  EXPECT_EQ(written_runs(8), 2u);   // a group of four, and a group of two
  EXPECT_EQ(written_runs(16), 4u);  // four groups of four, in one pass
}

TEST(RunReduction, BoundsBuffersAndDescriptors) {
  // With the default chunk size, 128 runs have two buffers of 128 KiB each.
  constexpr uint64_t kDefaultChunk = 128 * 1024;
  EXPECT_EQ(runs_at_once({kDefaultChunk, 1 << 20}), kMaxMergedRuns);
  EXPECT_EQ(runs_at_once({kDefaultChunk / 2, 1 << 20}), kMaxMergedRuns);
  EXPECT_EQ(runs_at_once({kMergeReadBytes / 8, 1 << 20}), 4u);
  EXPECT_EQ(runs_at_once({kMergeReadBytes, 1 << 20}), 2u);
  MemoryFileSystem disk;
  CountingFileSystem files(disk);
  Runs runs(files, seed(), kMaxMergedRuns + 2, 2);
  EXPECT_TRUE(reduce_runs(files, {kReadChunk, 1 << 20}, runs.set, proceed));
  EXPECT_LE(files.most_open, kMaxMergedRuns);
  EXPECT_EQ(merged(files, {kReadChunk, 1 << 20}, runs.set.runs).empty(), false);
  EXPECT_LE(files.largest_read * 2 * kMaxMergedRuns, 2 * kMergeReadBytes);
}

TEST(RunReduction, EndsWithTheErrorOfItsCheckAndKeepsTrackOfAllFiles) {
  MemoryFileSystem disk;
  Runs runs(disk, seed(), 20, 5);
  uint32_t calls = 0;
  const auto stops = [&]() -> Result<void> {
    if (++calls < 3) return {};
    return make_error(ExitCode::failed, "given up");
  };
  const auto reduced = reduce_runs(disk, {kReadChunk, kReadChunk, 2}, runs.set, stops);
  ASSERT_FALSE(reduced);
  EXPECT_EQ(reduced.error().message, "given up");
  std::ranges::sort(runs.set.paths);
  EXPECT_EQ(disk.paths(), runs.set.paths);

  // Whichever change of the disk fails, the run set lists each file that exists.
  for (uint64_t changes = 0;; ++changes) {
    MemoryFileSystem broken;
    Runs others(broken, seed(), 9, 5);
    broken.changes_left = changes;
    const auto done = reduce_runs(broken, {kReadChunk, kReadChunk, 3}, others.set, proceed);
    for (const std::string& path : broken.paths()) {
      EXPECT_TRUE(std::ranges::count(others.set.paths, path) == 1) << path;
    }
    if (done) break;
  }
}

TEST(RunReduction, TellsWhereARunIsDamaged) {
  MemoryFileSystem disk;
  Runs runs(disk, seed(), 6, 5);
  const std::string path = runs.set.runs[2].path;
  disk.bytes(path)[100] ^= std::byte{1};
  const auto reduced = reduce_runs(disk, {kReadChunk, kReadChunk, 3}, runs.set, proceed);
  ASSERT_FALSE(reduced);
  EXPECT_EQ(reduced.error().code, ExitCode::corruption);
  EXPECT_NE(reduced.error().message.find(path + ": offset 0: the chunk's checksum is wrong"),
            std::string::npos)
      << reduced.error().message;
}

}  // namespace
}  // namespace atolldb::test
