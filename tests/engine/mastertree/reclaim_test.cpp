// Pages of deleted records are reclaimed after bulk deletes, single deletes in random order, and
// churn in small layers (R45, R46, R70). Such loads lose hints. Therefore the test also walks the
// tree as the installer of each snapshot does. Afterwards the tree needs as many pages as a new
// tree that is loaded with the same content.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/install/install.h"
#include "engine/mastertree/inspect.h"
#include "engine/mastertree/mastertree.h"
#include "tests/support/seed.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

constexpr uint32_t kReclaimBatch = 8192;

Bytes view_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(uint64_t number) {
  const auto bytes = ordered_key(number);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A tree in a cluster of one worker, whose epochs the test advances.
class TreeUnderChurn {
 public:
  explicit TreeUnderChurn(uint64_t pool_bytes)
      : cluster_(1, 1, options(pool_bytes)),
        storage_(cluster_.create("tree", StorageType::mastertree, 8)),
        tree_(storage_) {}

  using Keys = std::vector<std::string>;

  /// Inserts or erases the keys in transactions of `batch`.
  void insert(const Keys& keys, uint32_t batch, const std::string& payload = "payload!") {
    change(keys, batch, [&](Transaction& txn, const std::string& key) {
      return tree_.insert(txn, view_of(key), view_of(payload));
    });
  }
  void erase(const Keys& keys, uint32_t batch) {
    change(keys, batch, [&](Transaction& txn, const std::string& key) {
      return tree_.erase(txn, view_of(key));
    });
  }
  /// Inserts the key in a transaction that its user aborts.
  void insert_in_vain(const std::string& key) {
    const Status status = cluster_.worker(0).run([&](Transaction& txn) {
      const Status one = tree_.insert(txn, view_of(key), view_of("payload!"));
      return is_abort(one) ? one : Status::user_abort;
    });
    ASSERT_EQ(status, Status::user_abort) << to_string(status);
    count_transaction();
  }

  /// Lets the grace period pass, and walks the tree as the installer of a snapshot does. The tree
  /// is in no snapshot.
  void walk() {
    WorkerContext& context = *cluster_.worker(0).context;
    context.leave();
    for (int i = 0; i < 6; ++i) cluster_.tick();
    InstallTask task;
    task.drop_policy = [](PageHeader&) { return DropVerdict::keep; };
    InstallReport report;
    ASSERT_EQ(install_snapshot(context, storage_, task, report), Status::ok);
    for (int i = 0; i < 6; ++i) cluster_.tick();
    context.pages().recycle();
    context.pages().flush();
  }
  uint64_t used_pages() {
    PagePool& pool = cluster_.pool(0);
    pool.collect_returns();
    return pool.page_count() - pool.free_count();
  }
  TreeStatistics check() {
    TreeStatistics statistics;
    EXPECT_EQ(check_tree(cluster_.view(), storage_, statistics), "");
    return statistics;
  }
  void expect_records(uint64_t count) { EXPECT_EQ(check().records, count); }

 private:
  static TestClusterOptions options(uint64_t pool_bytes) {
    TestClusterOptions options{.pool_bytes = pool_bytes, .clock = false};
    options.limits.write_set = kReclaimBatch;
    return options;
  }
  template <typename Change>
  void change(const Keys& keys, uint32_t batch, Change&& change_key) {
    for (size_t first = 0; first < keys.size(); first += batch) {
      const size_t end = std::min(keys.size(), first + batch);
      const Status status = cluster_.worker(0).run([&](Transaction& txn) {
        Status one = Status::ok;
        for (size_t i = first; i < end && one == Status::ok; ++i) one = change_key(txn, keys[i]);
        return one;
      });
      ASSERT_EQ(status, Status::ok) << to_string(status) << " at key number " << first;
      count_transaction();
    }
  }
  void count_transaction() {
    if (++transactions_ % 8 == 0) cluster_.tick();
  }

  TestCluster cluster_;
  StorageControl& storage_;
  MasterTree tree_;
  uint64_t transactions_ = 0;
};

/// Walks the churned tree three times. Then its pages must be within 5 % of those of a new tree
/// with `content`.
void expect_pages_back(TreeUnderChurn& churned, const TreeUnderChurn::Keys& content,
                       uint64_t pool_bytes) {
  TreeUnderChurn fresh(pool_bytes);
  fresh.insert(content, kReclaimBatch);
  fresh.walk();
  const uint64_t used_before = churned.used_pages();
  constexpr int kWalks = 3;
  for (int i = 0; i < kWalks; ++i) churned.walk();
  const uint64_t needed = fresh.used_pages();
  std::printf("%llu pages before the walks, %llu after; a new tree needs %llu\n",
              static_cast<unsigned long long>(used_before),
              static_cast<unsigned long long>(churned.used_pages()),
              static_cast<unsigned long long>(needed));
  // A tree that has shrunk may keep a root of its former height, and the path to its pages.
  constexpr uint64_t kPath = 6;
  EXPECT_LE(churned.used_pages(), needed + needed / 20 + kPath);
  churned.expect_records(content.size());
}

uint64_t key_count() { return rounds(100'000, 1'000'000); }
uint64_t pool_for(uint64_t keys) { return (uint64_t{16} << 20) + keys * 96; }

TreeUnderChurn::Keys some_keys(uint64_t count, const std::string& prefix) {
  TreeUnderChurn::Keys keys;
  for (uint64_t i = 0; i < count; ++i) keys.push_back(prefix + text_of(i));
  return keys;
}

/// Loads keys, and erases all but the first tenth, in key order or in random order.
void delete_most(const std::string& prefix, uint32_t batch, bool in_order) {
  std::mt19937_64 random(seed());
  const uint64_t count = prefix.empty() ? key_count() : rounds(20'000, 200'000);
  const uint64_t pool_bytes = pool_for(count);
  TreeUnderChurn tree(pool_bytes);
  TreeUnderChurn::Keys keys = some_keys(count, prefix);
  tree.insert(keys, kReclaimBatch);
  TreeUnderChurn::Keys erased(keys.begin() + static_cast<ptrdiff_t>(count / 10), keys.end());
  keys.resize(count / 10);
  if (!in_order) std::ranges::shuffle(erased, random);
  tree.erase(erased, batch);
  if (testing::Test::HasFailure()) return;
  expect_pages_back(tree, keys, pool_bytes);
}

TEST(MasterTreeReclaim, BulkDeletesWithoutScansGiveTheirPagesBack) {
  delete_most("", kReclaimBatch, true);
}

TEST(MasterTreeReclaim, BulkDeletesInRandomOrderGiveTheirPagesBack) {
  delete_most("", kReclaimBatch, false);
}

TEST(MasterTreeReclaim, SingleDeletesInRandomOrderGiveTheirPagesBack) { delete_most("", 1, false); }

TEST(MasterTreeReclaim, BulkDeletesBehindALongPrefixGiveTheirPagesBack) {
  delete_most(std::string(80, 'p'), kReclaimBatch, true);
}

/// Churn in layers of at most six keys, with single commits and aborts. `rest_bytes`: length of the
/// keys after their common slice.
void churn_small_layers(size_t rest_bytes) {
  std::mt19937_64 random(seed());
  constexpr uint64_t kLayers = 1500;
  constexpr uint64_t kLargePoolBytes = uint64_t{32} << 20;
  TreeUnderChurn tree(kLargePoolBytes);
  std::set<std::string> content;
  const auto some_key = [&] {
    std::string rest(rest_bytes, 'r');
    rest.front() = static_cast<char>('a' + random() % 6);
    return text_of(random() % kLayers) + rest;
  };
  for (uint64_t i = 0; i < 35'000 && !testing::Test::HasFailure(); ++i) {
    const std::string key = some_key();
    if (content.erase(key) != 0) {
      tree.erase({key}, 1);
    } else if (random() % 8 == 0) {
      tree.insert_in_vain(key);
    } else {
      content.insert(key);
      tree.insert({key}, 1);
    }
  }
  if (testing::Test::HasFailure()) return;
  const TreeUnderChurn::Keys left(content.begin(), content.end());
  expect_pages_back(tree, left, kLargePoolBytes);
  tree.erase(left, 1);
  expect_pages_back(tree, {}, kLargePoolBytes);
}

TEST(MasterTreeReclaim, ChurnInSmallLayersGivesItsPagesBack) { churn_small_layers(3); }

/// A limit of R70: records of one slice cannot be divided over two pages. So a layer with one
/// record stays if this record does not fit beside the shorter key of its slice.
TEST(MasterTreeReclaim, ALayerWithOneRecordStaysIfItsRecordDoesNotFitAboveIt) {
  const std::string slice = "abcdefgh";
  const std::string rest(200, 'r');
  const std::string longest(MasterTree::kMaxPayloadBytes, 'x');
  uint64_t layers[2] = {};
  for (const bool fits : {false, true}) {
    TreeUnderChurn tree(uint64_t{16} << 20);
    tree.insert({slice + "a" + rest}, 1, fits ? "small" : longest);
    tree.insert({slice + "b" + rest}, 1, "small");
    tree.insert({slice}, 1, longest);
    tree.erase({slice + "b" + rest}, 1);
    for (int i = 0; i < 3; ++i) tree.walk();
    tree.expect_records(2);
    layers[fits ? 1 : 0] = tree.check().layers;
  }
  EXPECT_EQ(layers[0], layers[1] + 1) << "only the small record takes the slot of its layer";
}

// Records that take the slots of their layers do not fit in the page above, so this page is split.
TEST(MasterTreeReclaim, ChurnInSmallLayersWithLongKeysGivesItsPagesBack) { churn_small_layers(60); }

}  // namespace
}  // namespace atolldb::test
