// The scrub of snapshot files and log files: it finds damage.
#include "engine/recovery/scrub.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "engine/log/log_files.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/snapshot/made_snapshot.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {
namespace {

class ScrubTest : public testing::Test {
 protected:
  ScrubTest() {
    const std::string problem = make_snapshot_file(files_, kUuid, place_, 5);
    EXPECT_EQ(problem, "");
  }
  Result<void> scrub() {
    found_.clear();
    return scrub_snapshot_file(files_, place_, kUuid, {reads(), [this](const ScrubDamage& damage) {
                                                         found_.push_back(damage);
                                                       }});
  }
  std::function<bool(uint64_t)> reads() {
    return [this](uint64_t bytes) {
      bytes_ += bytes;
      return goes_on_;
    };
  }

  static constexpr ClusterUuid kUuid = {7, 7};
  PowerCutFileSystem files_;
  SnapshotFilePlace place_{1, 0, "/data", kMadePages + 1};
  std::string path_ = snapshot_file_path("/data", 0, 1);
  std::vector<ScrubDamage> found_;
  uint64_t bytes_ = 0;
  bool goes_on_ = true;
};

TEST_F(ScrubTest, FindsNothingInAnIntactFileAndCountsWhatItReads) {
  ASSERT_TRUE(scrub());
  EXPECT_TRUE(found_.empty());
  EXPECT_EQ(bytes_, kMadePages * kPageBytes);
}

TEST_F(ScrubTest, NamesEachDamagedPageWithItsPlace) {
  ASSERT_TRUE(files_.corrupt(path_, kPageBytes + 1000, 1));
  ASSERT_TRUE(files_.corrupt(path_, 3 * kPageBytes + 1000, 1));
  ASSERT_TRUE(scrub());
  ASSERT_EQ(found_.size(), 2u);
  EXPECT_EQ(found_[0].path, path_);
  EXPECT_EQ(found_[0].offset, kPageBytes);
  EXPECT_EQ(found_[0].storage, 1u);
  EXPECT_NE(found_[0].reason.find("checksum"), std::string::npos) << found_[0].reason;
  EXPECT_EQ(found_[1].offset, 3 * kPageBytes);
}

TEST_F(ScrubTest, NamesAFileWhoseHeaderIsDamagedOrThatIsMissing) {
  ASSERT_TRUE(files_.corrupt(path_, 8, 1));
  ASSERT_TRUE(scrub());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].range, "all of its pages");
  ASSERT_TRUE(files_.remove(path_));
  ASSERT_TRUE(scrub());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_NE(found_[0].reason.find("missing"), std::string::npos) << found_[0].reason;
}

TEST_F(ScrubTest, EndsWhenItIsTold) {
  ASSERT_TRUE(files_.corrupt(path_, kPageBytes + 1000, 1));
  goes_on_ = false;
  ASSERT_TRUE(scrub());
  EXPECT_TRUE(found_.empty());
}

/// A log of several files. A bit is flipped in a file that is not the newest.
class LogScrubTest : public testing::Test {
 protected:
  LogScrubTest() {
    LogWriter writer = make_writer(files_, kFirst, 1, 1);
    std::mt19937_64 random(1);
    for (uint64_t epoch = 1; epoch <= 9; ++epoch) {
      write_epoch(writer, epoch, 2, epoch - 1, random);
    }
    flip();
  }
  void flip() {
    EXPECT_TRUE(files_.corrupt(path_, kDamaged + offsetof(LogBlockHeader, sequence), 1));
  }
  /// `repair_at`: the bit is flipped back before this read; 0: never.
  void scrub(uint64_t repair_at = 0) {
    reads_ = 0;
    found_.clear();
    LogStream stream;
    stream.directory = kFirst.directory;
    stream.incarnation = 1;
    const auto scrubbed = scrub_log(files_, stream,
                                    {[&](uint64_t) {
                                       if (++reads_ == repair_at) flip();
                                       return true;
                                     },
                                     [&](const ScrubDamage& damage) { found_.push_back(damage); }});
    ASSERT_TRUE(scrubbed) << scrubbed.error().message;
  }

  static constexpr uint64_t kDamaged = 3 * kLogBlockBytes;
  PowerCutFileSystem files_;
  const std::string path_ =
      path_in(node_directory(kFirst.directory, 0), to_string(LogFileName{1, 0, 1}));
  std::vector<ScrubDamage> found_;
  uint64_t reads_ = 0;
};

TEST_F(LogScrubTest, NamesADamagedBlock) {
  ASSERT_NO_FATAL_FAILURE(scrub());
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].path, path_);
  EXPECT_EQ(found_[0].offset, kDamaged);
}

TEST_F(LogScrubTest, TakesNoBlockForDamagedThatWasReadWhileItWasWritten) {
  ASSERT_NO_FATAL_FAILURE(scrub());
  const uint64_t of_one_pass = reads_ / 2;
  ASSERT_NO_FATAL_FAILURE(scrub(of_one_pass + 1));
  EXPECT_TRUE(found_.empty());
}

}  // namespace
}  // namespace atolldb::test
