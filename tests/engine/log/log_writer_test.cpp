// Tests of the log writer: files, markers, failed changes and full disks.
#include "engine/log/log_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "engine/format/log_block.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/fault_injector.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kWriterStart = (uint64_t{1} << 33) + 5;

LogWriterSettings settings(uint64_t blocks_per_file) {
  return {"/data", 3, 1, 7, kWriterStart, {1, 2, 3}, blocks_per_file * kLogBlockBytes};
}

LogBlock block_of(MemoryFileSystem& files, const std::string& name, uint64_t position) {
  LogBlock block;
  std::memcpy(&block, files.bytes("/data/node3/" + name).data() + position * kLogBlockBytes,
              sizeof block);
  return block;
}

/// Returns blocks of one epoch, with one record each.
BlockBuffer blocks_of_epoch(uint64_t epoch, size_t count) {
  BlockBuffer buffer(count);
  for (LogBlock& block : buffer.all()) {
    begin_block(block, epoch, 2);
    add_record(block, LogType::append, 1, epoch << 28, {}, std::array<std::byte, 8>{});
  }
  return buffer;
}

Result<void> append(LogWriter& writer, std::span<LogBlock> run, uint64_t durable_epoch) {
  return writer.append(std::array{run}, durable_epoch);
}

TEST(Crc32c, IsTheChecksumOfTheStandard) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span("123456789", 9))), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(LogWriter, BeginsWithAHeaderThatIsDurable) {
  MemoryFileSystem files;
  auto writer = LogWriter::create(files, settings(8));
  ASSERT_TRUE(writer) << writer.error().message;
  EXPECT_GE(files.syncs, 1u);
  EXPECT_EQ(writer->counters().blocks, 1u);
  EXPECT_EQ(writer->last_closed_epoch(), kWriterStart - 1);

  const LogBlock block = block_of(files, "log_7_1_000000.atlog", 0);
  EXPECT_EQ(block.header.magic, kLogBlockMagic);
  EXPECT_EQ(block.header.version, kLogFormatVersion);
  EXPECT_EQ(block.header.type, LogBlockType::file_header);
  EXPECT_EQ(block.header.crc, crc_of(block));
  EXPECT_EQ(block.header.epoch, kWriterStart - 1);
  EXPECT_EQ(block.header.incarnation, 7u);
  EXPECT_EQ(block.header.node, 3u);
  EXPECT_EQ(block.header.logger, 1u);
  LogFileHeader header;
  std::memcpy(&header, block.payload, sizeof header);
  EXPECT_EQ(header.file_bytes, 8 * kLogBlockBytes);
  EXPECT_EQ(header.start_epoch, kWriterStart);
  EXPECT_EQ(header.cluster_uuid[2], 3u);
}

TEST(LogWriter, FillsFilesToTheLastBlockAndNumbersBlocksAcrossThem) {
  MemoryFileSystem files;
  auto writer = LogWriter::create(files, settings(4));
  ASSERT_TRUE(writer);
  BlockBuffer first = blocks_of_epoch(kWriterStart, 2);
  ASSERT_TRUE(append(*writer, first.all(), kWriterStart - 1));
  ASSERT_TRUE(writer->close_epoch(kWriterStart, kWriterStart - 1));
  EXPECT_TRUE(writer->wants_next_file());
  BlockBuffer second = blocks_of_epoch(kWriterStart + 9, 4);
  ASSERT_TRUE(append(*writer, second.all(), kWriterStart));
  ASSERT_TRUE(writer->close_epoch(kWriterStart + 9, kWriterStart));

  uint64_t sequence = 0;
  for (const auto& [name, count] : {std::pair{"log_7_1_000000.atlog", 4},
                                    {"log_7_1_000001.atlog", 4},
                                    {"log_7_1_000002.atlog", 3}}) {
    for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i, ++sequence) {
      const LogBlock block = block_of(files, name, i);
      EXPECT_EQ(block.header.sequence, sequence) << name << ' ' << i;
      EXPECT_EQ(block.header.file_ordinal, sequence / 4);
      EXPECT_EQ(block.header.crc, crc_of(block));
      EXPECT_EQ(block.header.type == LogBlockType::file_header, i == 0);
    }
  }
  EXPECT_EQ(block_of(files, "log_7_1_000001.atlog", 0).header.epoch, kWriterStart);
  EXPECT_EQ(block_of(files, "log_7_1_000002.atlog", 0).header.epoch, kWriterStart)
      << "the epoch under way is not closed by the predecessor";
  EXPECT_EQ(block_of(files, "log_7_1_000001.atlog", 1).header.durable_epoch, kWriterStart);
  EXPECT_EQ(block_of(files, "log_7_1_000002.atlog", 2).header.type, LogBlockType::marker);
  EXPECT_EQ(writer->counters().blocks, sequence);
  EXPECT_EQ(writer->counters().bytes, sequence * kLogBlockBytes);
  EXPECT_EQ(writer->counters().files, 3u);
}

TEST(LogWriter, WritesAllRunsAtOnceAndSyncsEachTouchedFileOnce) {
  MemoryFileSystem files;
  auto writer = LogWriter::create(files, settings(8));
  ASSERT_TRUE(writer);
  BlockBuffer buffer = blocks_of_epoch(kWriterStart, 9);
  files.writes = files.syncs = 0;
  const std::array runs = {buffer.run(6, 3), buffer.run(0, 2)};
  ASSERT_TRUE(writer->append(runs, 0));
  EXPECT_EQ(files.writes, 1u);
  EXPECT_EQ(files.syncs, 0u);
  ASSERT_TRUE(writer->prepare_next_file());
  EXPECT_FALSE(writer->wants_next_file());
  files.syncs = 0;
  ASSERT_TRUE(append(*writer, buffer.run(2, 4), 0));
  EXPECT_EQ(files.writes, 3u) << "the rest of the file, and the next one with its header";
  ASSERT_TRUE(writer->close_epoch(kWriterStart, 0));
  EXPECT_EQ(files.syncs, 2u);
  ASSERT_TRUE(writer->close_epoch(kWriterStart + 1, kWriterStart));
  EXPECT_EQ(files.syncs, 3u);
}

TEST(LogWriter, WritesTheLastBlocksOfAnEpochAndItsMarkerAtOnce) {
  MemoryFileSystem files;
  auto writer = LogWriter::create(files, settings(8));
  ASSERT_TRUE(writer);
  BlockBuffer buffer = blocks_of_epoch(kWriterStart + 2, 5);
  ASSERT_TRUE(append(*writer, buffer.run(0, 2), 0));
  files.writes = files.syncs = 0;
  const std::array runs = {buffer.run(4, 1), buffer.run(2, 2)};
  ASSERT_TRUE(writer->close_epoch(kWriterStart + 2, 0, runs));
  EXPECT_EQ(files.writes, 1u);
  EXPECT_EQ(files.syncs, 1u);
  EXPECT_EQ(writer->last_closed_epoch(), kWriterStart + 2);
  for (uint64_t position = 1; position < 7; ++position) {
    const LogBlock block = block_of(files, "log_7_1_000000.atlog", position);
    EXPECT_EQ(block.header.sequence, position);
    EXPECT_EQ(block.header.epoch, kWriterStart + 2);
    EXPECT_EQ(block.header.crc, crc_of(block));
    EXPECT_EQ(block.header.type == LogBlockType::marker, position == 6);
  }
}

TEST(LogWriter, AnswersItsFirstErrorForEver) {
  // Each change fails once: writes, syncs, and creations of further files.
  for (uint64_t works = 0;; ++works) {
    MemoryFileSystem files;
    auto writer = LogWriter::create(files, settings(4));
    ASSERT_TRUE(writer);
    files.changes_left = works;
    std::string problem;
    for (uint64_t epoch = kWriterStart; problem.empty() && epoch < kWriterStart + 4; ++epoch) {
      BlockBuffer buffer = blocks_of_epoch(epoch, 2);
      auto done = append(*writer, buffer.all(), epoch - 1);
      if (done) done = writer->close_epoch(epoch, epoch - 1);
      if (!done) problem = done.error().message;
    }
    if (problem.empty()) {
      EXPECT_GT(works, 10u);
      return;
    }
    files.changes_left = UINT64_MAX;  // the disk works again, but the writer stays failed
    files.syncs = files.writes = 0;
    auto again = writer->close_epoch(kWriterStart + 100, kWriterStart - 1);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message, problem);
    EXPECT_EQ(again.error().code, ExitCode::durability);
    EXPECT_FALSE(writer->prepare_next_file());
    EXPECT_EQ(files.syncs + files.writes, 0u);
  }
}

/// Fills the current file of a writer to its last block, with epochs of two blocks.
uint64_t fill_current(LogWriter& writer) {
  uint64_t epoch = kWriterStart;
  while (writer.bytes_left() >= 3 * kLogBlockBytes) {
    BlockBuffer buffer = blocks_of_epoch(epoch, 2);
    EXPECT_TRUE(append(writer, buffer.all(), epoch - 1));
    EXPECT_TRUE(writer.close_epoch(epoch, epoch - 1));
    ++epoch;
  }
  return epoch;
}

TEST(LogWriter, GoesOnWithoutRoomForItsNextFileUntilTheCurrentOneIsFull) {
  MemoryFileSystem memory;
  FaultInjector files(memory);
  auto writer = LogWriter::create(files, settings(13));
  ASSERT_TRUE(writer);
  EXPECT_FALSE(writer->wants_next_file());
  const uint64_t epoch = fill_current(*writer);
  EXPECT_TRUE(writer->wants_next_file() && writer->needs_next_file_soon());
  EXPECT_EQ(writer->bytes_left(), 0u);
  // In turn, the disk is full for the creation, for its sync, and for the sync of the directory.
  // Each time, no file is left.
  uint64_t failed = 0;
  for (const IoCall call : {IoCall::create, IoCall::sync, IoCall::sync_directory}) {
    files.fail(call, files.calls(call) + 1, Fault::disk_full);
    const auto made = writer->prepare_next_file();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ExitCode::disk_full) << made.error().message;
    EXPECT_EQ(writer->counters().failed_preallocations, ++failed);
    EXPECT_EQ(memory.paths().size(), 1u);
    EXPECT_TRUE(writer->wants_next_file());
  }
  // There is space again, and the writer continues as if nothing had failed.
  ASSERT_TRUE(writer->prepare_next_file());
  EXPECT_FALSE(writer->wants_next_file());
  BlockBuffer buffer = blocks_of_epoch(epoch, 2);
  ASSERT_TRUE(append(*writer, buffer.all(), epoch - 1));
  ASSERT_TRUE(writer->close_epoch(epoch, epoch - 1));
  EXPECT_EQ(writer->last_closed_epoch(), epoch);
}

TEST(LogWriter, EndsWithDiskFullWhenTheNextFileIsNeededAndHasNoRoom) {
  MemoryFileSystem memory;
  FaultInjector files(memory);
  auto writer = LogWriter::create(files, settings(13));
  ASSERT_TRUE(writer);
  const uint64_t epoch = fill_current(*writer);
  files.fail(IoCall::create, files.calls(IoCall::create) + 1, Fault::disk_full);
  const auto closed = writer->close_epoch(epoch, epoch - 1);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, ExitCode::disk_full);
  // The writer stays failed although there is space now, because an epoch is missing in its file.
  const auto again = writer->close_epoch(epoch + 1, epoch - 1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, closed.error().message);
  EXPECT_FALSE(writer->prepare_next_file());
}

TEST(LogWriter, TakesAnyOtherErrorOfItsNextFileForFinal) {
  MemoryFileSystem memory;
  FaultInjector files(memory);
  auto writer = LogWriter::create(files, settings(13));
  ASSERT_TRUE(writer);
  files.fail(IoCall::sync, files.calls(IoCall::sync) + 1, Fault::io_error);
  ASSERT_FALSE(writer->prepare_next_file());
  EXPECT_EQ(writer->counters().failed_preallocations, 0u);
  EXPECT_EQ(writer->close_epoch(kWriterStart, 0).error().code, ExitCode::durability);
}

TEST(LogWriter, RefusesAFileThatIsThere) {
  MemoryFileSystem files;
  ASSERT_TRUE(LogWriter::create(files, settings(8)));
  auto second = LogWriter::create(files, settings(8));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("log_7_1_000000.atlog"), std::string::npos);
}

TEST(LogWriterDeathTest, StopsWhenEpochsOrWhatIsDurableCannotBe) {
  MemoryFileSystem files;
  auto writer = LogWriter::create(files, settings(8));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->close_epoch(kWriterStart + 3, 0));
  BlockBuffer late = blocks_of_epoch(kWriterStart + 3, 1);
  EXPECT_DEATH((void)append(*writer, late.all(), 0), "closed_epoch_");
  EXPECT_DEATH((void)writer->close_epoch(kWriterStart + 3, 0), "closed_epoch_");
  EXPECT_DEATH((void)writer->close_epoch(kWriterStart + 4, kWriterStart + 4), "durable_epoch");
}

}  // namespace
}  // namespace atolldb::test
