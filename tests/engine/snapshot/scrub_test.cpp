// The scrub of snapshot files: it finds damaged pages.
#include "engine/snapshot/scrub.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace atolldb::test
