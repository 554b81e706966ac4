// Room on disks: the latest values stay while a file system cannot be read, or hangs.
#include "shared/metrics/disk_watch.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

constexpr std::chrono::milliseconds kShort{1};
constexpr std::chrono::hours kLong{1};

std::string disks_scrape(const DiskWatch& watch) {
  MetricFamilies families({});
  add_disks(families, watch);
  return prometheus::TextSerializer().Serialize(families.take());
}

TEST(DiskWatchTest, ServesTheRoomOfEachDirectoryThatCanBeRead) {
  const auto read = [](const std::string& directory) -> Result<FileSystemRoom> {
    if (directory == "/bad") return make_error(ExitCode::failed, "no such file system");
    return FileSystemRoom{25, 100};
  };
  const DiskWatch watch({"/data/\"a\"", "/bad"}, kLong, read);
  const std::string text = disks_scrape(watch);
  for (const char* line : {"atoll_disk_free_bytes{directory=\"/data/\\\"a\\\"\"} 25\n",
                           "atoll_disk_size_bytes{directory=\"/data/\\\"a\\\"\"} 100\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  }
  EXPECT_EQ(text.find("/bad"), std::string::npos) << text;
  EXPECT_EQ(disks_scrape(DiskWatch({"/bad"}, kLong, read)), "");
}

TEST(DiskWatchTest, ReadsAgainAndKeepsTheLatestRoomAfterAFailure) {
  std::atomic<int> reads{0};
  const auto read = [&](const std::string&) -> Result<FileSystemRoom> {
    const int number = reads.fetch_add(1, std::memory_order_relaxed);
    if (number >= 2) return make_error(ExitCode::failed, "the device has failed");
    return FileSystemRoom{number == 0 ? uint64_t{90} : uint64_t{10}, 100};
  };
  const DiskWatch watch({"/data"}, kShort, read);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (reads.load(std::memory_order_relaxed) < 4 && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
  }
  ASSERT_EQ(watch.disks().size(), 1u);
  EXPECT_EQ(watch.disks().front().room.free_bytes, 10u);
}

TEST(DiskWatchTest, AReadThatHangsDelaysNoScrape) {
  std::atomic<int> reads{0};
  std::promise<void> hangs;
  std::promise<void> goes_on;
  std::shared_future<void> may_go_on = goes_on.get_future().share();
  const auto read = [&, may_go_on](const std::string&) -> Result<FileSystemRoom> {
    if (reads.fetch_add(1, std::memory_order_relaxed) == 1) {
      hangs.set_value();
      may_go_on.wait();
    }
    return FileSystemRoom{25, 100};
  };
  const DiskWatch watch({"/data"}, kShort, read);
  hangs.get_future().wait();
  EXPECT_NE(disks_scrape(watch).find("atoll_disk_free_bytes{directory=\"/data\"} 25\n"),
            std::string::npos);
  goes_on.set_value();
}

TEST(DiskWatchTest, ReadsRealFileSystems) {
  const DiskWatch watch({"/", "/not/yet/made"});
  ASSERT_EQ(watch.disks().size(), 2u);
  for (const DiskWatch::Disk& disk : watch.disks()) {
    EXPECT_GT(disk.room.size_bytes, 0u) << disk.directory;
    EXPECT_LE(disk.room.free_bytes, disk.room.size_bytes) << disk.directory;
  }
}

TEST(DiskWatchTest, ServesTheTimeOfTheLastBackupFromItsNote) {
  const std::string folder = ::testing::TempDir() + "/backup_note_" + std::to_string(getpid());
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const auto read = [](const std::string&) -> Result<FileSystemRoom> {
    return FileSystemRoom{25, 100};
  };
  const auto scrape = [&] {
    return disks_scrape(
        DiskWatch({"/data"}, kLong, read, [&] { return last_backup_time(folder); }));
  };
  EXPECT_NE(scrape().find("atoll_backup_finished_seconds 0\n"), std::string::npos) << scrape();
  ASSERT_TRUE(write_backup_note(folder, {1'700'000'000, "20260101T000000Z", "/backups"}));
  EXPECT_EQ(last_backup_time(folder), 1'700'000'000u);
  EXPECT_NE(scrape().find("atoll_backup_finished_seconds 1700000000\n"), std::string::npos);
  ASSERT_TRUE(write_backup_note(folder, {1'700'000'001, "20260101T000001Z", "/backups"}));
  EXPECT_EQ(last_backup_time(folder), 1'700'000'001u);
  for (const char* text : {"", "{", "[]", "{\"finished_s\": -1}", "{\"finished_s\": \"x\"}"}) {
    std::ofstream(folder + "/last_backup.json") << text;
    EXPECT_EQ(last_backup_time(folder), 0u) << text;
  }
  std::filesystem::remove_all(folder);
  const auto unwritten = write_backup_note(folder, {1, "id", "/backups"});
  ASSERT_FALSE(unwritten);
  EXPECT_NE(unwritten.error().message.find(folder + "/last_backup.json: cannot be written"),
            std::string::npos)
      << unwritten.error().message;
  EXPECT_EQ(disks_scrape(DiskWatch({"/data"}, kLong, read)).find("backup"), std::string::npos);
}

}  // namespace
}  // namespace atolldb
