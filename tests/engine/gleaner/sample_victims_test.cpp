// Samples of the pages that a job copies. They divide a storage without new log records among all
// reducers.
#include "engine/gleaner/sample_victims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "engine/format/tree_page.h"
#include "engine/gleaner/assign_partitions.h"
#include "engine/snapshot/snapshot_writer.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb {
namespace {

constexpr uint32_t kChildren = 4;

/// A Master-tree whose root has four children, in snapshots 1, 2, 3 and 1.
class SampleVictimsTest : public testing::Test {
 protected:
  SampleVictimsTest() {
    auto writer = SnapshotWriter::create(files_, {"/data", 0, 3, 30, {}});
    EXPECT_TRUE(writer);
    PageHeader* header = *writer->next(7);
    header->type = PageType::mastertree_interior;
    header->level = 1;
    header->version_word.store(PageVersion::make(0, kChildren, PageVersion::kAscending).word(),
                               std::memory_order_relaxed);
    auto* root = reinterpret_cast<InteriorPage*>(header);
    root->high = 0;
    const uint32_t snapshots[kChildren] = {1, 2, 3, 1};
    for (uint32_t i = 0; i < kChildren; ++i) {
      root->separators[i] = i * 1000;
      root->children[i].snapshot_word.store(SnapshotPointer::make(snapshots[i], 1, 9).word(),
                                            std::memory_order_relaxed);
    }
    EXPECT_TRUE(writer->finish());
    EXPECT_TRUE(base_.open({{3, 0, "/data", 2}}));
    PlannedStorage storage;
    storage.id = 7;
    storage.type = StorageType::mastertree;
    storage.base_root = SnapshotPointer::make(3, 0, 1);
    storage.has_victims = true;
    plan_.storages = {storage};
    plan_.reducers = {{0, 0}, {1, 0}};
  }

  test::MemoryFileSystem files_;
  SnapshotFiles base_{files_, {}};
  SnapshotPlan plan_;
};

TEST_F(SampleVictimsTest, ChildrenThatMayLeadToVictimsShareThePages) {
  plan_.victims = {2};
  const auto sample = sample_victims(base_, plan_, {{7, 100}});
  EXPECT_EQ(std::ranges::count(sample, SampledKey{7, 1, 1000}), 50);
  EXPECT_EQ(std::ranges::count(sample, SampledKey{7, 1, 2000}), 50);
  EXPECT_EQ(sample.size(), 100u) << "the other children are older than the victim";
}

TEST_F(SampleVictimsTest, AreBoundedAndGiveEachReducerAPart) {
  plan_.victims = {1};
  auto sample = sample_victims(base_, plan_, {{7, kUnknownVictimPages}});
  EXPECT_EQ(sample.size(), kMaxVictimSamples);
  assign_partitions(plan_.storages, {sample}, plan_.reducers);
  ASSERT_EQ(plan_.storages[0].partitions.size(), 2u);
  EXPECT_NE(plan_.storages[0].partitions[0].owner, plan_.storages[0].partitions[1].owner);
}

TEST_F(SampleVictimsTest, FewPagesAreOnePartition) {
  plan_.victims = {1};
  auto sample = sample_victims(base_, plan_, {{7, kSampledPerPartition}});
  assign_partitions(plan_.storages, {sample}, plan_.reducers);
  EXPECT_EQ(plan_.storages[0].partitions.size(), 1u);
}

TEST_F(SampleVictimsTest, ARootThatCannotBeReadHasNone) {
  plan_.victims = {1};
  plan_.storages[0].base_root = SnapshotPointer::make(3, 0, 77);
  EXPECT_TRUE(sample_victims(base_, plan_, {{7, 100}}).empty());
}

}  // namespace
}  // namespace atolldb
