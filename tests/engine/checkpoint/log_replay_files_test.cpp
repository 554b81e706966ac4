// The log files that a replay reads: exactly the blocks whose epochs count, from the newest file to
// the oldest.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/checkpoint/log_replay_files.h"
#include "engine/format/log_block.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Incarnation, node, number in the stream.
using BlockName = std::tuple<uint64_t, uint16_t, uint64_t>;

/// Logs of two incarnations. The first one ended with epochs after its cut.
struct WrittenStreams {
  explicit WrittenStreams(uint64_t seed_value) : random(seed_value) {
    const uint64_t blocks = 4 + random() % 5;
    uint64_t start = 5;
    for (uint64_t incarnation = 1; incarnation <= 2; ++incarnation) {
      const uint64_t end = start + 6 + random() % 10;
      const uint64_t cut = end - 1 - random() % 3;
      for (uint16_t node = 0; node < 2; ++node) {
        const LoggerPlace place = {node, 0, "/data"};
        LogWriter writer = make_writer(files, place, incarnation, start, blocks);
        for (uint64_t epoch = start; epoch <= end; ++epoch) {
          if (random() % 4 != 0) {
            write_epoch(writer, epoch, 1 + random() % 3, start - 1, random);
          } else {
            CHECK(writer.close_epoch(epoch, start - 1).has_value());
          }
        }
        LogStream stream;
        stream.directory = "/data";
        stream.node = node;
        stream.incarnation = incarnation;
        stream.start_epoch = start;
        streams.push_back({stream, cut});
      }
      last_cut = cut;
      start = end + 10;
    }
  }

  /// The blocks of records whose epochs count, as the reader of whole streams finds them.
  std::set<BlockName> blocks_from(uint64_t first_epoch) {
    std::set<BlockName> all;
    for (const PlannedStream& planned : streams) {
      auto reader = LogReader::open(files, planned.stream);
      CHECK(reader.has_value());
      for (;;) {
        const auto block = reader->next();
        CHECK(block.has_value());
        if (*block == nullptr) break;
        const LogBlockHeader& header = (*block)->header;
        if (header.type != LogBlockType::records) continue;
        if (header.epoch < first_epoch || header.epoch > planned.last_epoch) continue;
        all.insert({header.incarnation, header.node, header.sequence});
      }
    }
    return all;
  }
  /// The streams with epochs from `first_epoch` on.
  std::vector<PlannedStream> streams_from(uint64_t first_epoch) const {
    std::vector<PlannedStream> needed;
    for (const PlannedStream& planned : streams) {
      if (planned.last_epoch >= first_epoch) needed.push_back(planned);
    }
    return needed;
  }

  MemoryFileSystem files;
  std::mt19937_64 random;
  std::vector<PlannedStream> streams;
  uint64_t last_cut = 0;
};

/// Reads the files. Each block may occur once.
std::string read_blocks(FileSystem& files, const std::vector<LogReplayFile>& list,
                        std::set<BlockName>& blocks) {
  std::string problem;
  uint64_t bytes = 0;
  uint64_t outside = 0;
  const auto visit = [&](const LogBlock& block) -> Result<void> {
    const LogBlockHeader& header = block.header;
    const bool is_new = blocks.insert({header.incarnation, header.node, header.sequence}).second;
    if (!is_new) problem = "a block occurs twice";
    return {};
  };
  for (const LogReplayFile& file : list) {
    const auto read = read_log_file(files, file, visit, bytes, outside);
    if (!read) return read.error().message;
  }
  return problem;
}

TEST(LogReplayFiles, HaveTheBlocksThatCountInDescendingOrder) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(50, 1000, 10); ++round) {
    WrittenStreams written(first + round);
    const uint64_t first_epoch = 1 + written.random() % written.last_cut;
    for (const auto order : {ReplayOrder::newest_first, ReplayOrder::oldest_first}) {
      const auto list =
          log_files_to_replay(written.files, written.streams_from(first_epoch), first_epoch, order);
      ASSERT_TRUE(list.has_value()) << list.error().message;
      for (size_t i = 1; i < list->size(); ++i) {
        const uint64_t one = (*list)[i - 1].closed_before;
        const uint64_t next = (*list)[i].closed_before;
        EXPECT_TRUE(order == ReplayOrder::newest_first ? one >= next : one <= next);
      }
      std::set<BlockName> blocks;
      EXPECT_EQ(read_blocks(written.files, *list, blocks), "") << "seed " << first + round;
      EXPECT_TRUE(blocks == written.blocks_from(first_epoch)) << "seed " << first + round;
    }
  }
}

TEST(LogReplayFiles, OfCoveredEpochsMayBeMissing) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(50, 1000, 10); ++round) {
    WrittenStreams written(first + round);
    const uint64_t first_epoch = 1 + written.random() % written.last_cut;
    const auto streams = written.streams_from(first_epoch);
    const auto list = log_files_to_replay(written.files, streams, first_epoch);
    ASSERT_TRUE(list.has_value());
    const std::set<BlockName> expected = written.blocks_from(first_epoch);
    std::set<std::string> needed;
    for (const LogReplayFile& file : *list) {
      needed.insert(path_of({file.stream.directory,
                             file.stream.node,
                             {file.stream.incarnation, file.stream.logger, file.ordinal}}));
    }
    // The oldest needed file of a stream is there, so the files before it are known to be covered.
    for (const std::string& path : written.files.paths()) {
      if (needed.contains(path)) continue;
      ASSERT_TRUE(written.files.remove(path).has_value());
    }
    const auto again = log_files_to_replay(written.files, streams, first_epoch);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    std::set<BlockName> blocks;
    EXPECT_EQ(read_blocks(written.files, *again, blocks), "") << "seed " << first + round;
    EXPECT_TRUE(blocks == expected) << "seed " << first + round;
  }
}

/// Reads the needed blocks of all streams, or returns the first error.
Result<std::set<BlockName>> read_all(FileSystem& files, const std::vector<PlannedStream>& streams) {
  const auto list = log_files_to_replay(files, streams, 1);
  if (!list) return std::unexpected(list.error());
  std::set<BlockName> blocks;
  const std::string problem = read_blocks(files, *list, blocks);
  if (!problem.empty()) return make_error(ExitCode::corruption, problem);
  return blocks;
}

TEST(LogReplayFiles, WithADamagedHeaderAreNamedWithTheOffsetOfTheHeader) {
  const uint64_t first = seed();
  constexpr uint64_t header_bytes = sizeof(LogBlockHeader) + sizeof(LogFileHeader);
  uint64_t named = 0;
  for (uint64_t round = 0; round < rounds(20, 400, 5); ++round) {
    WrittenStreams written(first + round);
    const std::set<BlockName> expected = written.blocks_from(1);
    for (const std::string& path : written.files.paths()) {
      std::byte& damaged = written.files.bytes(path)[written.random() % header_bytes];
      damaged ^= std::byte{4};
      const auto read = read_all(written.files, written.streams);
      damaged ^= std::byte{4};
      if (read) {
        EXPECT_TRUE(*read == expected) << "seed " << first + round << ": " << path;
        continue;
      }
      ++named;
      EXPECT_TRUE(read.error().message.starts_with(path + ": offset 0: "))
          << "seed " << first + round << ": " << path << ": " << read.error().message;
    }
  }
  EXPECT_GT(named, 5u) << "this has not shown much";
}

TEST(LogReplayFiles, OfALostLoggerAreAnErrorThatNamesTheFirstOne) {
  WrittenStreams written(seed());
  for (const std::string& path : written.files.paths()) {
    if (path.starts_with("/data/node1/log_2_")) {
      ASSERT_TRUE(written.files.remove(path).has_value());
    }
  }
  const auto list = log_files_to_replay(written.files, written.streams, 1);
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().code, ExitCode::corruption);
  EXPECT_TRUE(list.error().message.starts_with("/data/node1/log_2_0_000000.atlog"))
      << list.error().message;
}

}  // namespace
}  // namespace atolldb::test
