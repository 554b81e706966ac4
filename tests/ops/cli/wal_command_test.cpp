// `atoll wal ls|verify|dump` on the files of a dead cluster.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/format/vid.h"
#include "engine/recovery/log_start.h"
#include "ops/cli/wal_data.h"
#include "tests/engine/log/log_blocks.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;
using test::BlockBuffer;

/// Two incarnations. In the first one, epochs 1 to 3 count and epoch 4 is above the cut. The second
/// one is the latest.
class LogCommandTest : public testing::Test {
 protected:
  LogCommandTest() {
    std::string pattern = (fs::temp_directory_path() / "atoll_log_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    options_.data_dir = folder_;
    begin(1);
    write(0, 1, 4);
    write(1, 1, 3);
    DdlLog ddl = *DdlLog::open(files_, folder_, start_.savepoint.cluster_uuid);
    EXPECT_TRUE(ddl.append(
        {DdlOperation::create_storage, 7, 1, "accounts", StorageType::mastertree, 8, 0}));
    EXPECT_TRUE(ddl.append(
        {DdlOperation::create_storage, 8, 1, "branches", StorageType::mastertree, 8, 0}));
    begin(2);
  }
  ~LogCommandTest() override { fs::remove_all(folder_); }

  void begin(uint64_t incarnation) {
    writers_.clear();
    start_ = *examine(files_, folder_);
    EXPECT_TRUE(store_cut(files_, folder_, start_));
    std::vector<LoggerPlace> places = {{0, 0, folder_}, {1, 0, folder_}};
    for (const LoggerPlace& place : places) {
      writers_.push_back(*LogWriter::create(
          files_, {place.directory, place.node, place.logger, incarnation, start_.start_epoch,
                   start_.savepoint.cluster_uuid, 64 * kLogBlockBytes}));
    }
    EXPECT_TRUE(begin_incarnation(files_, folder_, start_, places));
  }
  /// Writes a record for storage 7 and one for storage 8 in each epoch.
  void write(size_t writer, uint64_t first, uint64_t last) {
    for (uint64_t epoch = first; epoch <= last; ++epoch) {
      BlockBuffer buffer(1);
      LogBlock& block = buffer.all()[0];
      test::begin_block(block, epoch, 0);
      const std::array key = {std::byte{0xab}};
      for (uint32_t storage : {7u, 8u}) {
        test::add_record(block, LogType::insert, storage, Vid::make(epoch, storage).word(), key,
                         key);
      }
      ASSERT_TRUE(writers_[writer].append(std::array{buffer.all()}, epoch - 1));
      ASSERT_TRUE(writers_[writer].close_epoch(epoch, epoch - 1));
    }
  }
  void damage(const std::string& name, uint64_t offset) const {
    std::fstream file(folder_ + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put('?');
  }
  std::string output(Result<void> (*command)(const ClusterChoice&, const LogOptions&),
                     ExitCode expected = ExitCode::success) {
    testing::internal::CaptureStdout();
    const Result<void> done = command({}, options_);
    std::string text = testing::internal::GetCapturedStdout();
    problem_ = done ? "" : done.error().message;
    EXPECT_EQ(done ? ExitCode::success : done.error().code, expected) << problem_;
    return text;
  }

  PosixFileSystem files_;
  std::string folder_;
  LogOptions options_;
  LogStart start_;
  std::vector<LogWriter> writers_;
  std::string problem_;
};

TEST_F(LogCommandTest, ListsLogsByIncarnation) {
  EXPECT_NE(output(list_logs).find("running"), std::string::npos);
  options_.json = true;
  const auto json = nlohmann::json::parse(output(list_logs));
  EXPECT_EQ(json["schema_version"], 1);
  ASSERT_EQ(json["logs"].size(), 4u);
  EXPECT_EQ(json["logs"][0]["cut_epoch"], 3);
  EXPECT_EQ(json["logs"][0]["state"], "finished");
  EXPECT_EQ(json["logs"][0]["bytes"], 64 * kLogBlockBytes);
  EXPECT_EQ(json["logs"][3]["incarnation"], 2);
  EXPECT_TRUE(json["logs"][3]["cut_epoch"].is_null());
}

TEST_F(LogCommandTest, VerifiesAndTellsATornTailFromCorruption) {
  EXPECT_NE(output(verify_logs).find("intact"), std::string::npos);
  options_.json = true;
  const std::string name = "node0/log_1_0_000000.atlog";
  damage(name, 7 * kLogBlockBytes + 20);  // epoch 4, which is above the cut
  auto json = nlohmann::json::parse(output(verify_logs));
  EXPECT_TRUE(json["intact"]);
  EXPECT_EQ(json["ddl"]["records"], 2);
  EXPECT_EQ(json["incarnations"][0]["logs"][0]["end"]["kind"], "torn tail");
  EXPECT_EQ(json["incarnations"][0]["logs"][0]["end"]["offset"], 7 * kLogBlockBytes);
  EXPECT_EQ(json["incarnations"][0]["logs"][0]["files"][0]["records"], 6);

  damage(name, 3 * kLogBlockBytes + 20);
  json = nlohmann::json::parse(output(verify_logs, ExitCode::corruption));
  EXPECT_FALSE(json["intact"]);
  EXPECT_EQ(json["incarnations"][0]["logs"][0]["end"]["kind"], "corruption");
  EXPECT_NE(problem_.find(folder_ + "/" + name + ": offset 12288"), std::string::npos) << problem_;
  options_.json = false;
  const std::string text = output(verify_logs, ExitCode::corruption);
  EXPECT_NE(text.find("offset 12288"), std::string::npos) << text;
}

TEST_F(LogCommandTest, TellsThatADdlRecordIsMissingFromWhatTheLogsHold) {
  // Damages the last record, which creates storage 8.
  damage("coordinator/ddl_000000.atlog", kIoBlockBytes + 50);
  output(verify_logs, ExitCode::corruption);
  EXPECT_TRUE(problem_.contains("a record of storage 8, which none of the 1 records")) << problem_;
  EXPECT_TRUE(problem_.contains(folder_ + "/node0/log_1_0_000000.atlog: offset ")) << problem_;
}

TEST_F(LogCommandTest, DumpsRecordsByEpochAndStorage) {
  const auto records = [&](const std::string& storage, std::optional<uint64_t> epoch) {
    options_ = {{folder_, true}, epoch, storage};
    return nlohmann::json::parse(output(dump_logs))["records"];
  };
  EXPECT_EQ(records("", {}).size(), 14u);
  EXPECT_EQ(records("7", {}).size(), 7u);
  EXPECT_EQ(records("accounts", 2).size(), 2u);
  const auto above = records("8", 4);
  ASSERT_EQ(above.size(), 1u);
  EXPECT_EQ(above[0]["counts"], false);
  EXPECT_EQ(above[0]["key"], "ab");
  EXPECT_EQ(above[0]["ordinal"], 8);
  options_.json = false;
  EXPECT_NE(output(dump_logs).find("(above the cut)"), std::string::npos);
  options_.storage = "nobody";
  output(dump_logs, ExitCode::failed);
  EXPECT_NE(problem_.find("nobody"), std::string::npos);
}

TEST_F(LogCommandTest, SaysWhenThereIsNoLog) {
  options_.data_dir = folder_ + "/elsewhere";
  output(list_logs, ExitCode::failed);
  EXPECT_NE(problem_.find("--data-dir"), std::string::npos);
}

}  // namespace
}  // namespace atolldb::cli
