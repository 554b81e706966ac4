// Recording, replay and verification of `atoll bench log`, with random records instead of TPC-C's.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/log_driver/driver.h"
#include "engine/format/vid.h"
#include "engine/log/log_files.h"
#include "engine/log/log_scan.h"
#include "shared/file/posix_file_system.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/support/seed.h"

namespace atolldb::log_bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class LogReplay : public ::testing::Test {
 protected:
  LogReplay() {
    std::string pattern = (std::filesystem::temp_directory_path() / "log-replay-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    options_.buffer_bytes = kMiB;
    options_.epoch_bytes = kMiB / 2;
    options_.file_bytes = kMiB;
    options_.most_bytes = 5 * kMiB;
    options_.workers = 3;
  }
  ~LogReplay() override { std::filesystem::remove_all(directory_); }

  Recording random_recording(size_t blocks) {
    test::BlockBuffer buffer(blocks);
    Recording recording;
    for (LogBlock& block : buffer.all()) {
      test::fill_block(block, 7, 1, random_);
      recording.records += count_records(block);
      recording.blocks.push_back(block);
    }
    return recording;
  }

  Result<Report> replayed(const Recording& recording) {
    return replay(recording, options_, directory_, [this] { return asked_++ == interrupt_at_; });
  }

  std::string log_file(uint32_t ordinal) const {
    return path_in(node_directory(directory_, 0), to_string(LogFileName{1, 0, ordinal}));
  }

  std::mt19937_64 random_{test::seed()};
  std::string directory_;
  Options options_;
  uint64_t asked_ = 0;
  uint64_t interrupt_at_ = ~uint64_t{0};
};

TEST_F(LogReplay, EveryRecordIsDurableAndReadBackIntactOverSeveralFiles) {
  const auto report = replayed(random_recording(100));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->verified()) << report->text();
  const LoggerWork& work = report->work;
  // An epoch has 42 blocks of each of three workers, and a marker.
  EXPECT_EQ(work.epochs, 10u);
  EXPECT_EQ(work.written.files, 5u);
  EXPECT_EQ(work.written.blocks, work.epochs * (3 * 42 + 1) + work.written.files);
  EXPECT_GT(work.records, work.epochs * 3 * 42);
  EXPECT_GE(work.files.syncs, work.epochs);
  EXPECT_LE(work.files.write_ns + work.files.sync_ns, work.close_ns);
  EXPECT_FALSE(report->is_interrupted);

  const nlohmann::json json = report->json();
  EXPECT_EQ(json["records"], work.records);
  EXPECT_EQ(json["verified"], true);
  EXPECT_GT(json["records_per_second"], 0.0);
  EXPECT_NE(report->text().find("log records/s by one logger (posix)"), std::string::npos);
}

TEST_F(LogReplay, DamageToOneByteOfWhatWasWrittenIsFound) {
  const auto report = replayed(random_recording(50));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  const uint64_t last_epoch = report->work.epochs;
  auto sound = verify_replay(directory_, report->work.records, last_epoch);
  ASSERT_TRUE(sound.has_value());
  EXPECT_TRUE(sound->empty());

  // An offset in the first records of the third block: the first two blocks are headers, and the
  // third one is full.
  const auto offset = static_cast<std::streamoff>(
      2 * kLogBlockBytes + std::uniform_int_distribution<uint64_t>(0, 500)(random_));
  std::fstream file(log_file(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const auto byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(offset);
  file.put(byte);
  file.close();
  const auto damaged = verify_replay(directory_, report->work.records, last_epoch);
  ASSERT_TRUE(damaged.has_value()) << damaged.error().message;
  ASSERT_FALSE(damaged->empty());
  EXPECT_NE(damaged->front().find(log_file(0) + ": offset 8192"), std::string::npos)
      << damaged->front();
}

TEST_F(LogReplay, ARecordTooFewOrAnEpochTooFewIsFound) {
  const auto report = replayed(random_recording(10));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  const auto too_few = verify_replay(directory_, report->work.records + 1, report->work.epochs);
  ASSERT_TRUE(too_few.has_value());
  EXPECT_EQ(too_few->size(), 1u);
  const auto too_early = verify_replay(directory_, report->work.records, report->work.epochs + 1);
  ASSERT_TRUE(too_early.has_value());
  EXPECT_EQ(too_early->size(), 1u);
}

TEST_F(LogReplay, TheBackendThatKeepsNothingIsMeasuredButNotVerified) {
  options_.backend = FileBackend::null;
  const auto report = replayed(random_recording(10));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->work.epochs, 10u);
  EXPECT_FALSE(report->verify_done);
  EXPECT_FALSE(report->verified());
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(LogReplay, AnInterruptionEndsTheRunAfterAnEpochAndWhatIsWrittenIsVerified) {
  interrupt_at_ = 2;
  const auto report = replayed(random_recording(10));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->is_interrupted);
  EXPECT_EQ(report->work.epochs, 2u);
  EXPECT_TRUE(report->verified()) << report->text();
}

TEST_F(LogReplay, WhatIsRecordedFromALogAreItsLatestBlocksFromAnEpochOn) {
  const Recording random = random_recording(1'000);
  const auto report = replayed(random);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  PosixFileSystem files;
  const auto all = read_recording(files, directory_, 0, 1'000'000);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_EQ(all->records, report->work.records);
  EXPECT_EQ(all->blocks.size(), report->work.epochs * 3 * 42);
  // The second recording begins with the blocks of the first worker. They differ from the original
  // blocks only in the versions.
  const LogBlock& first = all->blocks.front();
  ASSERT_EQ(first.header.length, random.blocks.front().header.length);
  const auto& record = *reinterpret_cast<const LogRecord*>(first.payload);
  const auto& original = *reinterpret_cast<const LogRecord*>(random.blocks.front().payload);
  EXPECT_EQ(Vid(record.vid).epoch(), 1u);
  EXPECT_EQ(Vid(record.vid).ordinal(), Vid(original.vid).ordinal());
  EXPECT_EQ(std::memcmp(record.key(), original.key(), record.length - sizeof(LogRecord)), 0);

  const auto later = read_recording(files, directory_, 3, 1'000'000);
  ASSERT_TRUE(later.has_value()) << later.error().message;
  EXPECT_EQ(later->blocks.size(), all->blocks.size() - 2 * 3 * 42);
  EXPECT_EQ(later->blocks.front().header.epoch, 3u);

  const auto few = read_recording(files, directory_, 0, 5);
  ASSERT_TRUE(few.has_value()) << few.error().message;
  ASSERT_EQ(few->blocks.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const LogBlock& block = all->blocks[all->blocks.size() - 5 + i];
    EXPECT_EQ(few->blocks[i].header.sequence, block.header.sequence);
  }
}

TEST_F(LogReplay, ADirectoryWithoutRecordsCannotBeRecorded) {
  PosixFileSystem files;
  const auto none = read_recording(files, directory_, 0, 10);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ExitCode::failed);
  EXPECT_NE(none.error().message.find(directory_), std::string::npos) << none.error().message;
}

TEST_F(LogReplay, OptionsOutOfTheirRangesNameTheFlag) {
  const auto flag_of = [](auto change) {
    Options options;
    change(options);
    const auto checked = check_options(options);
    return checked ? std::string("none") : checked.error().message.substr(0, 26);
  };
  EXPECT_EQ(flag_of([](Options&) {}), "none");
  EXPECT_EQ(flag_of([](Options& options) { make_smoke(options); }), "none");
  EXPECT_TRUE(flag_of([](Options& o) { o.seconds = 0; }).starts_with("bench log: --seconds: "));
  EXPECT_TRUE(flag_of([](Options& o) { o.workers = 0; }).starts_with("bench log: --workers: "));
  EXPECT_TRUE(flag_of([](Options& o) {
                o.nvm_write_ns = 10'000'001;
              }).starts_with("bench log: --nvm-write-ns"));
  EXPECT_TRUE(
      flag_of([](Options& o) { o.epoch_bytes = 4'096; }).starts_with("bench log: --epoch-bytes"));
  EXPECT_TRUE(flag_of([](Options& o) {
                o.epoch_bytes = o.workers * o.buffer_bytes;
              }).starts_with("bench log: --epoch-bytes"));
  EXPECT_TRUE(
      flag_of([](Options& o) { o.file_bytes += 1; }).starts_with("bench log: --file-bytes"));
  EXPECT_TRUE(flag_of([](Options& o) { o.most_bytes = 0; }).starts_with("bench log: --most-bytes"));
  EXPECT_FALSE(parse_backend("disk").has_value());
  EXPECT_EQ(parse_backend("pmem"), FileBackend::pmem);
}

}  // namespace
}  // namespace atolldb::log_bench
