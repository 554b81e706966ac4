// Starts that read several logs at the same time: neither result nor error depends on the threads.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/recovery/log_start.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint16_t kNodes = 8;
constexpr uint16_t kLoggersPerNode = 16;
constexpr uint64_t kEpochs = 3;

std::vector<LoggerPlace> many_loggers() {
  std::vector<LoggerPlace> places;
  for (uint16_t node = 0; node < kNodes; ++node) {
    for (uint16_t logger = 0; logger < kLoggersPerNode; ++logger) {
      places.push_back({node, logger, "/disk" + std::to_string(logger % 4)});
    }
  }
  return places;
}

std::string file_of(const LoggerPlace& place) {
  return place.directory + "/node" + std::to_string(place.node) + "/log_1_" +
         std::to_string(place.logger) + "_000000.atlog";
}

void run_backwards(size_t count, const std::function<void(size_t)>& task) {
  while (count-- > 0) task(count);
}

/// Ways to read the logs: the first is the one with which the others are compared.
std::vector<RunTasks> ways() { return {run_in_turn, run_backwards, on_threads(2), on_threads(9)}; }

/// Describes all that a start-up decides from the logs, or its error.
std::string text_of(const Result<LogStart>& start) {
  if (!start) return start.error().message;
  std::string text = "cut " + std::to_string(*start->savepoint.incarnations.back().cut_epoch) +
                     ", recovery " + std::to_string(start->recovery_epoch) + ", next " +
                     std::to_string(start->incarnation) + " from " +
                     std::to_string(start->start_epoch);
  for (const PlannedStream& planned : start->streams_to_read) {
    text += "; " + std::to_string(planned.stream.node) + "/" +
            std::to_string(planned.stream.logger) + " to " + std::to_string(planned.last_epoch);
  }
  for (const std::string& left : start->left_out) text += "; " + left;
  return text;
}

class ParallelStart : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(data_.begin(places_, 16), ""); }

  const std::vector<LoggerPlace> places_ = many_loggers();
  DataDirectory data_;
};

TEST_F(ParallelStart, FindsTheSameStreamsAndTheSameCutWithAnyNumberOfThreads) {
  data_.write_all(1, kEpochs);
  data_.write(5, kEpochs + 1);  // one log goes further, so its last epoch does not count
  std::string expected;
  for (const RunTasks& run : ways()) {
    const auto start = examine(data_.files, "/data", {}, Damage::refused, run);
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(start->streams_to_read.size(), places_.size());
    EXPECT_EQ(start->recovery_epoch, kEpochs);
    if (expected.empty()) expected = text_of(start);
    EXPECT_EQ(text_of(start), expected);
  }
}

TEST_F(ParallelStart, OmitsLogsWithoutRecordsInOrder) {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (i % 3 == 0) {
      data_.write(i, 1);
    } else {
      ASSERT_TRUE(data_.writers[i].close_epoch(1, 0));
    }
  }
  for (const RunTasks& run : ways()) {
    const auto start = examine(data_.files, "/data", {}, Damage::refused, run);
    ASSERT_TRUE(start) << start.error().message;
    ASSERT_EQ(start->streams_to_read.size(), (places_.size() + 2) / 3);
    for (size_t i = 0; i < start->streams_to_read.size(); ++i) {
      EXPECT_EQ(start->streams_to_read[i].stream.node, places_[3 * i].node);
      EXPECT_EQ(start->streams_to_read[i].stream.logger, places_[3 * i].logger);
    }
  }
}

TEST_F(ParallelStart, NamesTheFirstDamagedLogAndSalvagesTheSamePrefix) {
  data_.write_all(1, kEpochs);
  std::mt19937_64 random(seed());
  for (uint64_t round = 0; round < rounds(6, 60, 1); ++round) {
    const auto files = data_.files.copy();
    size_t first = places_.size();
    std::set<size_t> logs;
    for (uint64_t damaged = 1 + random() % 4; damaged > 0; --damaged) {
      const size_t log = random() % places_.size();
      if (!logs.insert(log).second) continue;  // a bit that is flipped twice is no damage
      // Block 3 is the marker of epoch 1: all logs have later epochs, so its loss is no torn tail.
      files->bytes(file_of(places_[log]))[3 * kLogBlockBytes + random() % 40] ^= std::byte{1};
      first = std::min(first, log);
    }
    SCOPED_TRACE("first damaged log " + std::to_string(first));
    std::string salvaged;
    for (const RunTasks& run : ways()) {
      const auto refused = examine(*files, "/data", {}, Damage::refused, run);
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ExitCode::corruption);
      EXPECT_TRUE(refused.error().message.starts_with(file_of(places_[first]) + ": "))
          << refused.error().message;
      const auto start = examine(*files, "/data", {}, Damage::left_out, run);
      ASSERT_TRUE(start) << start.error().message;
      EXPECT_EQ(start->recovery_epoch, 0u);
      if (salvaged.empty()) salvaged = text_of(start);
      EXPECT_EQ(text_of(start), salvaged);
    }
  }
}

/// Refuses to open files after `opens_left` of them were opened, as if a start-up were ended.
class EndedFileSystem : public ForwardingFileSystem {
 public:
  EndedFileSystem(FileSystem& below, int opens) : ForwardingFileSystem(below), opens_left_(opens) {}
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    if (opens_left_.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      return make_error(ExitCode::failed, path + ": ended");
    }
    return ForwardingFileSystem::open_for_reading(path);
  }

 private:
  std::atomic<int> opens_left_;
};

TEST_F(ParallelStart, ThatEndsAmongItsLogsChangesNothing) {
  data_.write_all(1, kEpochs);
  const uint64_t writes = data_.files.writes;
  const auto paths = data_.files.paths();
  const std::string whole = text_of(examine(data_.files, "/data"));
  for (const int opens : {0, 1, 7, 128, 200}) {
    for (const RunTasks& run : ways()) {
      EndedFileSystem ended(data_.files, opens);
      const auto start = examine(ended, "/data", {}, Damage::refused, run);
      ASSERT_FALSE(start) << opens;
      EXPECT_TRUE(start.error().message.ends_with(": ended")) << start.error().message;
    }
  }
  EXPECT_EQ(data_.files.writes, writes);
  EXPECT_EQ(data_.files.paths(), paths);
  EXPECT_EQ(text_of(examine(data_.files, "/data", {}, Damage::refused, on_threads(4))), whole);
}

}  // namespace
}  // namespace atolldb::test
