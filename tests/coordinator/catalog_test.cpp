// The catalog of storages: names, ids, slots and limits.
#include "coordinator/catalog/catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/storage_lookup.h"

namespace atolldb {
namespace {

class CatalogTest : public testing::Test {
 protected:
  static StorageDefinition tree(std::string name) {
    return {std::move(name), StorageType::mastertree, 0, 0};
  }
  Result<uint32_t> create(const StorageDefinition& definition) {
    return catalog_.create(definition, [](const StorageControl&) { return Result<void>(); });
  }
  std::unique_ptr<ControlSegment> control_ = std::make_unique<ControlSegment>();
  std::vector<const MetricsSegment*> metrics_;
  Catalog catalog_{*control_, metrics_};
};

TEST_F(CatalogTest, WhatIsCreatedIsFoundUntilItIsHidden) {
  const auto id = create({"orders", StorageType::array, 24, 1000});
  ASSERT_TRUE(id) << id.error().message;
  const StorageControl* found = find_storage(*control_, "orders", StorageType::array);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id, *id);
  EXPECT_EQ(found->payload_bytes, 24u);
  EXPECT_EQ(found->record_count, 1000u);
  EXPECT_EQ(find_storage(*control_, "orders", StorageType::mastertree), nullptr);
  EXPECT_EQ(catalog_.hide("orders").value(), *id);
  EXPECT_EQ(find_storage(*control_, "orders"), nullptr);
  EXPECT_EQ(catalog_.list().size(), 1u);  // stays listed, because its pages are not yet released
  catalog_.free_slot(*id);
  EXPECT_TRUE(catalog_.list().empty());
  EXPECT_FALSE(catalog_.hide("orders"));
}

TEST_F(CatalogTest, IdsAreNeverReusedAndTheLimitIsNamed) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < kMaxStorages; ++i) {
    const auto id = create(tree("t" + std::to_string(i)));
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_GT(*id, last);
    last = *id;
  }
  const auto full = create(tree("one_more"));
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find(std::to_string(kMaxStorages)), std::string::npos);
  catalog_.free_slot(*catalog_.hide("t7"));
  const auto again = create(tree("t7"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_GT(*again, last);
}

TEST_F(CatalogTest, AStorageDoesNotHaveTheOperationsOfEarlierOnesInItsSlot) {
  struct Free {
    void operator()(MetricsSegment* metrics) const { std::free(metrics); }
  };
  std::vector<std::unique_ptr<MetricsSegment, Free>> nodes;
  for (int node = 0; node < 2; ++node) {
    const uint64_t bytes = MetricsSegment::bytes(2);
    nodes.emplace_back(static_cast<MetricsSegment*>(std::aligned_alloc(64, bytes)));
    std::memset(static_cast<void*>(nodes.back().get()), 0, bytes);
    nodes.back()->slot_count = 2;
    metrics_.push_back(nodes.back().get());
  }
  const auto count = [&](size_t node, uint32_t slot, uint32_t id, uint64_t operations) {
    nodes[node]->worker(slot).storage_operations[id % kMaxStorages].add(operations);
  };
  const uint32_t first = create(tree("first")).value();
  count(0, 0, first, 5);
  count(1, 1, first, 7);
  EXPECT_EQ(storage_operations(metrics_, control_->storage(first)), 12u);
  EXPECT_EQ(slot_operations(*nodes[1], first), 7u);
  catalog_.free_slot(*catalog_.hide("first"));
  catalog_.skip_ids(first + kMaxStorages - 1);
  const uint32_t second = create(tree("second")).value();
  ASSERT_EQ(second, first + kMaxStorages) << "the same slot";
  EXPECT_EQ(storage_operations(metrics_, control_->storage(second)), 0u);
  count(1, 0, second, 3);
  EXPECT_EQ(storage_operations(metrics_, control_->storage(second)), 3u);
}

TEST_F(CatalogTest, BadDefinitionsAreRefusedWithTheReason) {
  struct Case {
    StorageDefinition definition;
    const char* reason;
  };
  const Case cases[] = {
      {tree(""), "1 to 63"},
      {tree(std::string(64, 'a')), "1 to 63"},
      {tree("a b"), "1 to 63"},
      {tree("a/b"), "1 to 63"},
      {{"a", StorageType::none, 0, 0}, "type"},
      {{"a", StorageType::array, 8, 0}, "records"},
      {{"a", StorageType::array, 8, (uint64_t{1} << 40) + 1}, "records"},
      {{"a", StorageType::array, 0, 1}, "--payload-bytes"},
      {{"a", StorageType::array, 2001, 1}, "2000"},
      {{"a", StorageType::mastertree, 2049, 0}, "2048"},
      {{"a", StorageType::sequential, 2049, 0}, "2048"},
      {{"a", StorageType::mastertree, 0, 5}, "--records"},
      {{"a", StorageType::hash, 2049, 0}, "2048"},
      {{"a", StorageType::hash, 0, 5}, "--records"},
  };
  for (const Case& wrong : cases) {
    const auto id = create(wrong.definition);
    ASSERT_FALSE(id) << wrong.reason;
    EXPECT_NE(id.error().message.find(wrong.reason), std::string::npos) << id.error().message;
  }
  ASSERT_TRUE(create(tree(std::string(63, 'a'))));
  EXPECT_FALSE(create(tree(std::string(63, 'a'))));
}

TEST_F(CatalogTest, AStorageThatCannotBeMadeDurableDoesNotExist) {
  bool was_hidden = false;
  const auto failed = catalog_.create(tree("t"), [&](const StorageControl& storage) {
    EXPECT_STREQ(storage.name, "t");
    was_hidden = find_storage(*control_, "t") == nullptr;
    // Control threads list storages while the DDL thread still fills the slot of a new one.
    EXPECT_TRUE(catalog_.list().empty()) << "listed before its fields are published";
    return Result<void>(make_error(ExitCode::durability, "no device"));
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no device");
  EXPECT_TRUE(was_hidden) << "usable before it is durable (R34)";
  EXPECT_EQ(find_storage(*control_, "t"), nullptr);
  EXPECT_TRUE(catalog_.list().empty());
  EXPECT_TRUE(create(tree("t"))) << "its place and its name are free again";
}

}  // namespace
}  // namespace atolldb
