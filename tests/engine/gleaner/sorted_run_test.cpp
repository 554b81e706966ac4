// Tests of sorted runs on disk: writing, reading, damage and listing.
#include "engine/gleaner/sorted_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/gleaner/record_merge.h"
#include "shared/file/io_buffer.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kChunk = SortedRunWriter::kMinChunkBytes;
constexpr SortedRunName kName = {8, 1, 2};

/// Records with ascending keys and random payloads, of up to the maximum length.
struct RunRecords {
  RunRecords(uint64_t seed, size_t count) : blocks(count) {
    std::mt19937_64 random(seed);
    for (size_t i = 0; i < count; ++i) {
      LogBlock& block = blocks.all()[i];
      begin_block(block, 1, 0);
      const uint64_t key = __builtin_bswap64(i);
      CHECK(add_record(block, LogType::insert, 1, Vid::make(1, 1).word(),
                       std::as_bytes(std::span(&key, 1)), random_bytes(random, random() % 3990)));
      bytes += at(i).length;
    }
  }
  const LogRecord& at(size_t i) {
    return *reinterpret_cast<const LogRecord*>(blocks.all()[i].payload);
  }
  BlockBuffer blocks;
  uint64_t bytes = 0;
};

Result<SortedRun> write_run(FileSystem& files, RunRecords& records, size_t count) {
  IoBuffer buffer(2 * kChunk);
  auto writer =
      SortedRunWriter::create(files, "/data/run", kName, records.bytes, kChunk, buffer.bytes());
  if (!writer) return std::unexpected(writer.error());
  for (size_t i = 0; i < count; ++i) {
    if (auto added = writer->add(records.at(i)); !added) return std::unexpected(added.error());
  }
  return writer->finish();
}

/// Reads a run and compares it with `records`. Returns the first error, or an empty text.
std::string read_run(FileSystem& files, const SortedRun& run, RunRecords& records, size_t count,
                     uint32_t chunks_at_once = 1) {
  auto reader = SortedRunReader::open(files, run, chunks_at_once);
  if (!reader) return reader.error().message;
  RecordMerge merge;
  merge.add(*std::move(reader));
  if (auto started = merge.start(); !started) return started.error().message;
  for (size_t i = 0; i < count; ++i) {
    if (merge.batch().empty()) return "it ends early";
    const LogRecord* record = merge.batch().front().record;
    if (std::memcmp(record, &records.at(i), record->length) != 0) return "another record";
    if (auto advanced = merge.take(1); !advanced) return advanced.error().message;
  }
  return merge.batch().empty() ? "" : "it does not end";
}

TEST(SortedRun, GivesBackWhatWasWrittenWhateverTheSizes) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(60, 2000); ++round) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.make_directory("/data"));
    const size_t count = round % 60;
    RunRecords records(first + round, count);
    auto run = write_run(files, records, count);
    ASSERT_TRUE(run) << run.error().message << ", ATOLL_SEED=" << first + round;
    EXPECT_EQ(run->records, count);
    const auto at_once = static_cast<uint32_t>(1 + round % 5);
    ASSERT_EQ(read_run(files, *run, records, count, at_once), "") << "ATOLL_SEED=" << first + round;
  }
}

TEST(SortedRun, TellsEveryFlippedBit) {
  const uint64_t first = seed();
  std::mt19937_64 random(first);
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data"));
  RunRecords records(first, 30);
  auto run = write_run(files, records, 30);
  ASSERT_TRUE(run);
  ASSERT_GT(run->chunks, 2u);
  for (uint64_t round = 0; round < rounds(300, 20'000); ++round) {
    const uint64_t chunk = random() % run->chunks;
    auto* at = files.bytes("/data/run").data() + chunk * kChunk;
    RunChunkHeader header;
    std::memcpy(&header, at, sizeof header);
    const uint64_t offset = random() % (sizeof header + header.bytes);
    const auto bit = static_cast<std::byte>(1 << random() % 8);
    at[offset] ^= bit;
    const auto at_once = static_cast<uint32_t>(1 + round % 5);
    const std::string problem = read_run(files, *run, records, 30, at_once);
    at[offset] ^= bit;
    ASSERT_TRUE(problem.starts_with(fmt::format("/data/run: offset {}: ", chunk * kChunk)))
        << problem << ", ATOLL_SEED=" << first;
  }
}

TEST(SortedRun, TellsChunksOfAnotherPlaceAndRun) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.make_directory("/data"));
  RunRecords records(1, 30);
  auto run = write_run(files, records, 30);
  ASSERT_TRUE(run);
  auto& bytes = files.bytes("/data/run");
  std::swap_ranges(bytes.begin(), bytes.begin() + kChunk, bytes.begin() + kChunk);
  EXPECT_NE(
      read_run(files, *run, records, 30).find("/data/run: offset 0: the chunk belongs to another"),
      std::string::npos);
  std::swap_ranges(bytes.begin(), bytes.begin() + kChunk, bytes.begin() + kChunk);
  run->name.number = 3;
  EXPECT_NE(read_run(files, *run, records, 30).find("the chunk belongs to another run"),
            std::string::npos);
  run->name.number = 2;
  bytes.resize(2 * kChunk + 8);
  EXPECT_NE(read_run(files, *run, records, 30)
                .find(fmt::format("/data/run: offset {}: the file ends in this chunk", 2 * kChunk)),
            std::string::npos);
}

TEST(SortedRun, NamesAreReadAsTheyAreWrittenAndNoOthers) {
  const SortedRunName name = {12, 3, 400};
  EXPECT_EQ(to_string(name), "run_12_3_400.tmp");
  EXPECT_EQ(parse_sorted_run_name("run_12_3_400.tmp"), name);
  for (const char* other :
       {"", "run_", "run_1_2_3", "run_1_2_3.tmpx", "run_1_2_03.tmp", "run_1_2.tmp", "run_1-2_3.tmp",
        "log_1_2_000003.atlog", "run_1_2_x.tmp", "run_99999999999_1_1.tmp"}) {
    EXPECT_FALSE(parse_sorted_run_name(other)) << other;
  }
}

TEST(SortedRun, LeftoversAreListedAndRemovedAndNothingElse) {
  MemoryFileSystem files;
  EXPECT_EQ(list_sorted_runs(files, "/data", 1)->size(), 0u);  // the directory does not exist
  ASSERT_TRUE(files.make_directory("/data/node1"));
  ASSERT_TRUE(files.make_directory("/data/node2"));
  for (const char* path : {"/data/node1/run_1_0_0.tmp", "/data/node1/run_1_1_7.tmp",
                           "/data/node1/log_1_0_000000.atlog", "/data/node2/run_1_0_0.tmp"}) {
    ASSERT_TRUE(files.create(path, 4096));
  }
  EXPECT_EQ(*list_sorted_runs(files, "/data", 1),
            (std::vector<std::string>{"run_1_0_0.tmp", "run_1_1_7.tmp"}));
  ASSERT_TRUE(remove_sorted_runs(files, "/data", 1));
  EXPECT_EQ(files.paths(), (std::vector<std::string>{"/data/node1/log_1_0_000000.atlog",
                                                     "/data/node2/run_1_0_0.tmp"}));
}

}  // namespace
}  // namespace atolldb::test
