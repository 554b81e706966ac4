// What a node says about its part of a replay.
#include "soc/checkpoint/node_replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/soc/checkpoint/silo_cluster.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// What each node of a replay has logged, and how many bytes of files it had to read.
struct LoggedReplay {
  std::vector<std::string> logs;
  std::vector<uint64_t> bytes;
};

LoggedReplay replay_and_log(FileSystem& image, const ReplayPlan& plan) {
  constexpr uint32_t kNodes = 2;
  std::array<std::ostringstream, kNodes> logs;
  std::vector<Logger> loggers;
  for (std::ostringstream& log : logs) {
    loggers.push_back(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  }
  LoggedReplay result;
  ReplayedCluster replayed(image, plan, kNodes, 1, loggers);
  EXPECT_EQ(message_of(replayed.replay()), "");
  for (const std::ostringstream& log : logs) result.logs.push_back(log.str());
  for (const Json& each : replayed.read) result.bytes.push_back(each.at("bytes_total"));
  return result;
}

/// The last log file of a node has its whole size, although the log in it ends earlier.
void set_size_of_last_log(MemoryFileSystem& image, uint32_t node, uint64_t bytes) {
  std::string last;
  for (const std::string& path : image.paths()) {
    if (path.starts_with("/data/node" + std::to_string(node) + "/log_")) last = path;
  }
  image.bytes(last).resize(bytes);
}

TEST(NodeReplayTest, ANodeWarnsIfItsPartOfTheFilesIsMuchLargerThanAnEqualPart) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  SiloCluster silo(seed(), 2, 1);
  ASSERT_EQ(silo.work(400), "");
  silo.next_epoch();
  const ReplayPlan plan = silo.plan();
  const auto warnings = [&](uint64_t first, uint64_t second, LoggedReplay& replay) {
    const auto image = silo.logged.files().copy();
    set_size_of_last_log(*image, 0, first);
    set_size_of_last_log(*image, 1, second);
    replay = replay_and_log(*image, plan);
    return std::ranges::count_if(replay.logs, [](const std::string& log) {
      return log.find("cannot be divided equally") != std::string::npos;
    });
  };
  LoggedReplay replay;
  EXPECT_EQ(warnings(kMiB, 90 * kMiB, replay), 1);
  const size_t larger = replay.bytes[0] > replay.bytes[1] ? 0 : 1;
  const uint64_t sum = replay.bytes[0] + replay.bytes[1];
  const std::string text = fmt::format("this node reads {} of {} bytes, and an equal part has {}",
                                       replay.bytes[larger], sum, sum / 2);
  EXPECT_NE(replay.logs[larger].find(text), std::string::npos) << replay.logs[larger];
  EXPECT_NE(replay.logs[larger].find("durability.checkpoint_files"), std::string::npos);
  EXPECT_EQ(warnings(kMiB, 60 * kMiB, replay), 0) << "a part of this size takes little time";
  EXPECT_EQ(warnings(80 * kMiB, 90 * kMiB, replay), 0) << "the parts are nearly equal";
}

}  // namespace
}  // namespace atolldb::test
