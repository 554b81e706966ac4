// The status of a cluster as JSON: counts of the snapshot caches by storage.
#include "coordinator/status.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shared/memory/page_header.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

void set_counts(MetricsSegment& node, uint32_t storage_id, uint64_t pages, uint64_t pages_read) {
  StorageCacheMetrics& slot = node.storage_caches[storage_id % kMaxStorages];
  slot.pages.store(pages, std::memory_order_relaxed);
  slot.pages_read.store(pages_read, std::memory_order_relaxed);
  slot.evictions.store(pages_read - pages, std::memory_order_relaxed);
  slot.storage_id.store(storage_id, std::memory_order_release);
}

Json cache_of(uint64_t pages, uint64_t pages_read) {
  return {{"used_bytes", pages * kPageBytes},
          {"pages_read", pages_read},
          {"evictions", pages_read - pages}};
}

TEST(ClusterStatusTest, CountsOfCachesByStorageAreSumsOverTheNodes) {
  constexpr uint32_t kDropped = 4;
  constexpr uint32_t kReplacement = kDropped + kMaxStorages;  // in the same slot
  const auto control = std::make_unique<ControlSegment>();
  std::vector<std::unique_ptr<MetricsSegment>> nodes;
  std::vector<const MetricsSegment*> metrics;
  for (int node = 0; node < 2; ++node) {
    nodes.push_back(std::make_unique<MetricsSegment>());
    metrics.push_back(nodes.back().get());
  }
  Config config;
  config.nodes.resize(nodes.size());
  // These counts need no `shared` segments.
  const StatusReport report(config, *control, {nullptr, nullptr}, metrics);
  const auto counts = [&](uint32_t storage_id) {
    Json storage = {{"id", storage_id}, {"name", "any"}};
    report.add_counts(storage);
    EXPECT_EQ(storage["operations"], 0) << "no thread has counted any";
    EXPECT_EQ(storage["name"], "any");
    return storage["snapshot_cache"];
  };
  EXPECT_EQ(counts(1), cache_of(0, 0));
  set_counts(*nodes[0], 1, 2, 7);
  EXPECT_EQ(counts(1), cache_of(2, 7));
  set_counts(*nodes[1], 1, 3, 10);
  EXPECT_EQ(counts(1), cache_of(5, 17));
  set_counts(*nodes[0], kDropped, 5, 5);
  set_counts(*nodes[1], kReplacement, 1, 1);
  EXPECT_EQ(counts(kReplacement), cache_of(1, 1)) << "node 0 still has the dropped storage";
  EXPECT_EQ(counts(kMaxStorages - 1), cache_of(0, 0));
}

}  // namespace
}  // namespace atolldb::test
