// Growth of tiny pages: no order of inserts makes a page outgrow its bound.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/format/tree_page.h"
#include "engine/mastertree/inspect.h"
#include "engine/mastertree/mastertree.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

TEST(PageGrowth, DescendingHighKeysBetweenAscendingLowOnes) {
  TestCluster cluster(1, 1, {.clock = false});
  const MasterTree tree(cluster.create("tree", StorageType::mastertree, 8));
  const auto insert = [&](uint64_t key) {
    ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
      return tree.insert(txn, ordered_key(key), ordered_key(key));
    }),
              Status::ok);
    cluster.tick();
  };
  for (uint64_t low = 1; low <= 5; ++low) insert(low);
  // Each high key is the newest of its page and is above all low keys. Therefore the splits that it
  // causes leave the left page unchanged.
  for (uint64_t i = 0; i < 200; ++i) {
    insert(100'000 - 20 * i);
    insert(6 + i);
    TreeStatistics statistics;
    ASSERT_EQ(check_tree(cluster.view(), tree.storage(), statistics), "");
  }
}

}  // namespace
}  // namespace atolldb::test
