// Files of snapshots are kept while a pointer may refer to them, or a transaction may have read
// such a pointer.
#include "coordinator/snapshots/kept_snapshots.h"

#include <gtest/gtest.h>

namespace atolldb {
namespace {

class KeptSnapshotsTest : public testing::Test {
 protected:
  void add(uint32_t id) {
    SnapshotMetadata snapshot;
    snapshot.id = id;
    kept_.add(snapshot);
  }
  std::vector<uint32_t> ids() const {
    std::vector<uint32_t> ids;
    for (const SnapshotMetadata& snapshot : kept_.all()) ids.push_back(snapshot.id);
    return ids;
  }
  using Ids = std::vector<uint32_t>;

  KeptSnapshots kept_;
};

TEST_F(KeptSnapshotsTest, OnesThatPointersAreLeftToStayAndSoDoAllLaterOnes) {
  for (const uint32_t id : {3u, 5u, 6u, 9u}) add(id);
  kept_.release_before(5, 100);
  kept_.forget(1000);
  EXPECT_EQ(ids(), (Ids{5, 6, 9}));
  // After a failed installation, pointers to any snapshot may be left. The argument 0 then releases
  // no snapshot.
  kept_.release_before(0, 1000);
  kept_.forget(2000);
  EXPECT_EQ(ids(), (Ids{5, 6, 9}));
  kept_.release_before(9, 2000);
  kept_.forget(3000);
  EXPECT_EQ(ids(), (Ids{9}));
}

TEST_F(KeptSnapshotsTest, OnesThatWereReleasedAreKeptUntilAllThreadsHaveBegunLater) {
  add(1);
  add(2);
  kept_.release_before(2, 50);
  kept_.forget(50);
  EXPECT_EQ(ids(), (Ids{1, 2})) << "who began in that epoch may know a pointer";
  // Only the first release of a snapshot counts: a later one does not make it stay longer.
  add(3);
  kept_.release_before(3, 60);
  kept_.forget(51);
  EXPECT_EQ(ids(), (Ids{2, 3}));
  kept_.forget(61);
  EXPECT_EQ(ids(), (Ids{3}));
}

}  // namespace
}  // namespace atolldb
