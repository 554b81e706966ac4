// Tests of the log reader: whole logs, covered epochs, damage, gaps and torn tails.
#include "engine/log/log_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/format/increment.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/log/log_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kReaderStart = (uint64_t{1} << 33) + 7;
const LogStream kStream = {"/data", 0, 0, 5, kReaderStart, kUuid};

struct Written {
  MemoryFileSystem files;
  std::vector<LogBlock> blocks;  // blocks of records; no file headers, no markers
  uint64_t last_epoch = kReaderStart - 1;

  explicit Written(uint64_t seed, uint64_t epochs = 12, uint64_t blocks_per_file = 5) {
    std::mt19937_64 random(seed);
    LogWriter writer = make_writer(files, kFirst, 5, kReaderStart, blocks_per_file);
    for (uint64_t i = 0; i < epochs; ++i) {
      const uint64_t durable = last_epoch;
      last_epoch += 1 + random() % 3;
      BlockBuffer buffer(random() % 4);
      for (LogBlock& block : buffer.all()) fill_block(block, last_epoch, 1, random);
      const std::array runs = {buffer.all()};
      CHECK(writer.append(runs, durable).has_value());
      CHECK(writer.close_epoch(last_epoch, durable).has_value());
      blocks.insert(blocks.end(), buffer.all().begin(), buffer.all().end());
    }
  }
};

TEST(LogReader, ReadsWhatWasWrittenAcrossFiles) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(20, 500); ++round) {
    Written log(first + round);
    size_t next = 0;
    auto scan =
        scan_log(log.files, kStream, [&](const LogBlock& block, const std::string&, uint64_t) {
          if (block.header.type != LogBlockType::records) return;
          ASSERT_LT(next, log.blocks.size());
          ASSERT_EQ(std::memcmp(&block, &log.blocks[next], sizeof block), 0);
          ++next;
        });
    ASSERT_TRUE(scan) << scan.error().message;
    EXPECT_EQ(next, log.blocks.size());
    EXPECT_EQ(scan->durable_epoch, log.last_epoch);
    EXPECT_FALSE(scan->end.is_defect) << scan->end.reason;
    EXPECT_EQ(scan->intact_after_end, 0u);
  }
}

/// Returns the sequence numbers of the record blocks after epoch `covered`, and the result of the
/// scan. Adds the number of blocks read to `blocks`.
std::pair<std::vector<uint64_t>, LogScan> read_after(FileSystem& files, uint64_t covered,
                                                     CoveredBlocks how, uint64_t& blocks) {
  LogStream stream = kStream;
  stream.covered_epoch = covered;
  std::vector<uint64_t> found;
  const auto visit = [&](const LogBlock& block, const std::string&, uint64_t) {
    ++blocks;
    if (block.header.type != LogBlockType::records || block.header.epoch <= covered) return;
    found.push_back(block.header.sequence);
  };
  auto scan = scan_log(files, stream, visit, how);
  CHECK(scan.has_value());
  return {found, *std::move(scan)};
}

TEST(LogReader, LeavesOutWhatASnapshotCoversAndReadsTheRestAsItWouldHave) {
  const uint64_t first = seed();
  uint64_t all = 0;
  uint64_t read = 0;
  for (uint64_t round = 0; round < rounds(30, 3000); ++round) {
    std::mt19937_64 random(first + round);
    Written log(first + round, 60, 4 + random() % 200);
    const uint64_t covered = kReaderStart + random() % (log.last_epoch - kReaderStart + 2);
    const auto [expected, whole] = read_after(log.files, covered, CoveredBlocks::read, all);
    const auto check = [&](bool is_damaged) {
      uint64_t blocks = 0;
      const auto [found, scan] = read_after(log.files, covered, CoveredBlocks::skip, blocks);
      if (!is_damaged) read += blocks;
      if (is_damaged && scan.end.is_defect) return;
      EXPECT_EQ(found, expected) << "ATOLL_SEED=" << first + round;
      EXPECT_EQ(scan.durable_epoch, whole.durable_epoch);
      EXPECT_EQ(scan.end.offset, whole.end.offset);
      EXPECT_EQ(scan.end.file, whole.end.file);
      EXPECT_EQ(scan.first_record_epoch, whole.first_record_epoch);
    };
    check(false);
    // Damage to covered blocks must not change the result: the reader reads the rest, or names the
    // damage.
    for (int i = 0; i < 5; ++i) {
      const LogFileScan& file = whole.files[random() % whole.files.size()];
      auto& bytes = log.files.bytes(file.path);
      auto& damaged = bytes[random() % bytes.size()];
      damaged ^= std::byte{8};
      check(true);
      damaged ^= std::byte{8};
    }
  }
  EXPECT_LT(read, all * 8 / 10) << "next to nothing was left out";
}

TEST(LogReader, ReportsHowManyBytesItHasSkipped) {
  const uint64_t first = seed();
  uint64_t skipped = 0;
  for (uint64_t round = 0; round < rounds(10, 1000); ++round) {
    std::mt19937_64 random(first + round);
    Written log(first + round, 60, 4 + random() % 200);
    LogStream stream = kStream;
    stream.covered_epoch = kReaderStart + random() % (log.last_epoch - kReaderStart + 2);
    const auto bytes_of = [&](CoveredBlocks how) {
      auto reader = LogReader::open(log.files, stream, how);
      CHECK(reader.has_value());
      uint64_t bytes = 0;
      for (auto block = reader->next(); block && *block != nullptr; block = reader->next()) {
        bytes += kLogBlockBytes;
      }
      skipped += reader->skipped_bytes();
      return bytes + reader->skipped_bytes();
    };
    EXPECT_EQ(bytes_of(CoveredBlocks::skip), bytes_of(CoveredBlocks::read))
        << "ATOLL_SEED=" << first + round;
  }
  EXPECT_GT(skipped, 0u);
}

TEST(LogReader, FindsEveryFlippedBitOrItIsInUnusedBytes) {
  const uint64_t first = seed();
  std::mt19937_64 random(first);
  Written log(first);
  const auto whole = scan_log(log.files, kStream);
  ASSERT_TRUE(whole);
  for (uint64_t round = 0; round < rounds(2000, 100'000); ++round) {
    const std::vector<std::string> paths = log.files.paths();
    const std::string& path = paths[random() % paths.size()];
    auto& bytes = log.files.bytes(path);
    const uint64_t offset = random() % bytes.size();
    const uint64_t block_offset = offset / kLogBlockBytes * kLogBlockBytes;
    LogBlockHeader header;
    std::memcpy(&header, bytes.data() + block_offset, sizeof header);
    const auto bit = static_cast<std::byte>(1 << random() % 8);
    bytes[offset] ^= bit;
    auto scan = scan_log(log.files, kStream);
    bytes[offset] ^= bit;
    ASSERT_TRUE(scan);
    const bool is_written = header.magic != 0;
    if (is_written && offset - block_offset < sizeof header + header.length) {
      EXPECT_TRUE(scan->end.is_defect) << path << ' ' << offset;
      EXPECT_EQ(scan->end.file, path) << offset;
      EXPECT_EQ(scan->end.offset, block_offset) << scan->end.reason;
    } else {
      EXPECT_EQ(scan->end.offset, whole->end.offset);
      EXPECT_EQ(scan->end.file, whole->end.file);
      EXPECT_EQ(scan->durable_epoch, whole->durable_epoch);
    }
  }
}

TEST(LogReader, NamesAMissingFileAndGoesOnToWhatFollows) {
  Written log(3);
  ASSERT_TRUE(log.files.remove("/data/node0/log_5_0_000002.atlog"));
  auto scan = scan_log(log.files, kStream);
  ASSERT_TRUE(scan);
  EXPECT_TRUE(scan->end.is_defect);
  EXPECT_EQ(scan->end.file, "/data/node0/log_5_0_000002.atlog");
  EXPECT_EQ(scan->files.size(), 2u);
  EXPECT_GT(scan->intact_after_end, 0u);
  EXPECT_EQ(scan->largest_epoch, log.last_epoch);
  EXPECT_LT(scan->durable_epoch, log.last_epoch);
}

TEST(LogReader, EndsWithoutADefectAtAFileThatWasMadeAhead) {
  MemoryFileSystem files;
  std::mt19937_64 random(1);
  LogWriter writer = make_writer(files, kFirst, 5, kReaderStart, 4);
  write_epoch(writer, kReaderStart, 2, 0, random);
  ASSERT_TRUE(writer.prepare_next_file());
  auto scan = scan_log(files, kStream);
  ASSERT_TRUE(scan);
  EXPECT_FALSE(scan->end.is_defect) << scan->end.reason;
  EXPECT_EQ(scan->end.file, "/data/node0/log_5_0_000001.atlog");
  EXPECT_EQ(scan->durable_epoch, kReaderStart);
  // A power cut may have left any part of the file.
  files.bytes("/data/node0/log_5_0_000001.atlog").resize(512);
  scan = scan_log(files, kStream);
  ASSERT_TRUE(scan);
  EXPECT_FALSE(scan->end.is_defect) << scan->end.reason;
}

/// A file system that answers next_data exactly, and counts the bytes that are read.
class SparseFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    auto file = below().open_for_reading(path);
    if (!file) return file;
    return std::make_unique<SparseFile>(*this, *std::move(file));
  }

  bool tells_holes = true;
  uint64_t bytes_read = 0;

 private:
  class SparseFile : public ForwardingFile {
   public:
    SparseFile(SparseFileSystem& owner, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), owner_(owner) {}
    Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
      auto count = below().read(offset, into);
      owner_.bytes_read += count.value_or(0);
      return count;
    }
    Result<uint64_t> next_data(uint64_t offset) const override {
      if (!owner_.tells_holes) return offset;
      std::array<std::byte, 512> bytes;
      for (;;) {
        auto count = below().read(offset, bytes);
        CHECK(count.has_value());
        for (uint64_t i = 0; i < *count; ++i) {
          if (bytes[i] != std::byte{}) return offset + i;
        }
        offset += *count;
        if (*count < bytes.size()) return offset;
      }
    }

   private:
    SparseFileSystem& owner_;
  };
};

TEST(LogReader, ReadsAnEmptyLogOnlyAsFarAsItWasWritten) {
  constexpr uint64_t kBlocks = 16384;  // 64 MiB
  MemoryFileSystem disk;
  std::mt19937_64 random(1);
  LogWriter writer = make_writer(disk, kFirst, 5, kReaderStart, kBlocks);
  write_epoch(writer, kReaderStart, 2, 0, random);
  ASSERT_TRUE(writer.prepare_next_file());
  SparseFileSystem files(disk);
  auto scan = scan_log(files, kStream);
  ASSERT_TRUE(scan);
  EXPECT_EQ(scan->durable_epoch, kReaderStart);
  EXPECT_EQ(scan->intact_after_end, 0u);
  EXPECT_LE(files.bytes_read, uint64_t{4} << 20) << "a buffer for each of the two files";
  files.tells_holes = false;
  ASSERT_TRUE(scan_log(files, kStream));
  EXPECT_GT(files.bytes_read, 2 * kBlocks * kLogBlockBytes);
}

TEST(LogReader, FindsInASparseFileWhatItFindsWithoutHoles) {
  const uint64_t first = seed();
  uint64_t found = 0;
  for (uint64_t round = 0; round < rounds(60, 2000); ++round) {
    std::mt19937_64 random(first + round);
    constexpr uint64_t kBlocks = 1500;  // nearly three read buffers of the reader
    Written log(first + round, 20, kBlocks);
    const std::string path = "/data/node0/log_5_0_000000.atlog";
    auto& bytes = log.files.bytes(path);
    // What a power cut may leave: blocks that moved after gaps, gaps in the chain, and garbage.
    const auto block = [&](uint64_t number) {
      return std::span(bytes).subspan(number * kLogBlockBytes, kLogBlockBytes);
    };
    for (uint64_t i = 0; i < random() % 5; ++i) {
      std::ranges::copy(block(random() % 30), block(30 + random() % (kBlocks - 30)).begin());
    }
    for (uint64_t i = 0; i < random() % 3; ++i)
      std::ranges::fill(block(1 + random() % 30), std::byte{});
    for (uint64_t i = 0; i < random() % 3; ++i) bytes[random() % bytes.size()] = std::byte{1};
    SparseFileSystem files(log.files);
    files.tells_holes = false;
    const auto whole = scan_log(files, kStream);
    const uint64_t whole_bytes = std::exchange(files.bytes_read, 0);
    files.tells_holes = true;
    const auto sparse = scan_log(files, kStream);
    ASSERT_TRUE(whole && sparse);
    EXPECT_EQ(sparse->end.offset, whole->end.offset) << "ATOLL_SEED=" << first + round;
    EXPECT_EQ(sparse->end.reason, whole->end.reason);
    EXPECT_EQ(sparse->durable_epoch, whole->durable_epoch);
    EXPECT_EQ(sparse->intact_after_end, whole->intact_after_end) << "ATOLL_SEED=" << first + round;
    EXPECT_EQ(sparse->largest_epoch, whole->largest_epoch);
    EXPECT_EQ(sparse->largest_durable_epoch, whole->largest_durable_epoch);
    EXPECT_LE(files.bytes_read, whole_bytes + (uint64_t{4} << 20));
    found += whole->intact_after_end;
  }
  EXPECT_GT(found, 0u) << "no block was intact after an end: the test has shown little";
}

TEST(LogReader, TakesNoFileOfAnotherStream) {
  Written log(3);
  for (int what = 0; what < 3; ++what) {
    LogStream stream = kStream;
    if (what == 0) stream.start_epoch = kReaderStart + 1;
    if (what == 1) stream.cluster_uuid = ClusterUuid{1};
    if (what == 2) {
      stream.logger = 1;
      log.files.bytes("/data/node0/log_5_0_000000.atlog");
      ASSERT_TRUE(
          log.files.rename("/data/node0/log_5_0_000000.atlog", "/data/node0/log_5_1_000000.atlog"));
    }
    auto scan = scan_log(log.files, stream);
    ASSERT_TRUE(scan);
    EXPECT_TRUE(scan->end.is_defect);
    EXPECT_EQ(scan->end.offset, 0u);
    EXPECT_TRUE(scan->files.empty());
  }
}

TEST(LogReader, NoticesRecordsThatCannotBeAlthoughTheChecksumFits) {
  for (const auto& damage : std::vector<void (*)(LogRecord&)>{
           [](LogRecord& record) { record.length += 8; },
           [](LogRecord& record) { record.length = 0; },
           [](LogRecord& record) { record.length = 4088; },
           [](LogRecord& record) { record.key_bytes = 9; },
           [](LogRecord& record) { record.type = static_cast<LogType>(9); },
           [](LogRecord& record) { record.type = LogType::add; },  // of a number without a type
           [](LogRecord& record) {
             record.type = LogType::add;
             record.number = static_cast<uint8_t>(IncrementType::i32);  // has 4 bytes, not 8
           },
           [](LogRecord& record) { record.vid += uint64_t{1} << 28; }}) {
    MemoryFileSystem files;
    LogWriter writer = make_writer(files, kFirst, 5, kReaderStart);
    BlockBuffer buffer(1);
    begin_block(buffer.all()[0], kReaderStart, 0);
    const std::array<std::byte, 8> key = {};
    add_record(buffer.all()[0], LogType::insert, 1, kReaderStart << 28, key, key);
    damage(*reinterpret_cast<LogRecord*>(buffer.all()[0].payload));
    seal_block(buffer.all()[0]);
    ASSERT_TRUE(writer.append(std::array{buffer.all()}, 0));
    auto scan = scan_log(files, kStream);
    ASSERT_TRUE(scan);
    EXPECT_TRUE(scan->end.is_defect);
    EXPECT_EQ(scan->end.offset, kLogBlockBytes);
    EXPECT_NE(scan->end.reason.find("record"), std::string::npos);
  }
}

TEST(LogReader, NoticesDamageAndGaps) {
  EXPECT_EQ(a_flipped_bit_is_noticed(), "");
  EXPECT_EQ(a_missing_block_is_noticed(), "");
}

TEST(LogFiles, HaveNamesThatAreReadBackExactly) {
  const LogFileName name = {uint64_t{1} << 40, 3, 1'000'001};
  EXPECT_EQ(parse_log_file_name(to_string(name)), name);
  EXPECT_EQ(to_string(LogFileName{3, 0, 12}), "log_3_0_000012.atlog");
  for (const char* other : {"log_3_0_12.atlog", "log_03_0_000012.atlog", "log_3_0_000012.atlog~",
                            "log_3_0_.atlog", "log_-3_0_000012.atlog", ""}) {
    EXPECT_FALSE(parse_log_file_name(other)) << other;
  }
  EXPECT_EQ(parse_node_directory_name("node12"), 12u);
  EXPECT_FALSE(parse_node_directory_name("node012"));
  EXPECT_FALSE(parse_node_directory_name("node"));
}

}  // namespace
}  // namespace atolldb::test
