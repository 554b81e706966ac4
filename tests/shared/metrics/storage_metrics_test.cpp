// Metrics by storage: what each type has, and the limit of the series.
#include "shared/metrics/storage_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

class StorageMetricsTest : public ::testing::Test {
 protected:
  void add(uint32_t id, StorageType type, const std::string& name, uint64_t records = 0) {
    StorageControl& storage = control_->storage(id);
    storage.id = id;
    storage.type = type;
    storage.record_count = records;
    std::strncpy(storage.name, name.c_str(), kMaxStorageName);
    storage.state.store(static_cast<uint32_t>(StorageState::ready), std::memory_order_release);
  }
  std::string scrape(const StorageSpaces* spaces) const {
    MetricFamilies families({});
    add_storages(families, *control_, spaces, metrics_);
    return prometheus::TextSerializer().Serialize(families.take());
  }
  void expect_line(const std::string& text, const std::string& line) const {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << " is missing in\n" << text;
  }

  std::unique_ptr<ControlSegment> control_ = std::make_unique<ControlSegment>();
  StorageSpaces spaces_;
  std::vector<const MetricsSegment*> metrics_;
};

TEST_F(StorageMetricsTest, EachTypeHasTheRecordsThatAreCounted) {
  EXPECT_EQ(scrape(&spaces_), "") << "there is no storage";
  add(1, StorageType::mastertree, "tree");
  const std::string tree_only = scrape(nullptr);
  expect_line(tree_only, "atoll_storage_operations_total{storage=\"tree\"} 0");
  EXPECT_EQ(tree_only.find("atoll_storage_records"), std::string::npos)
      << "nothing counts the records of a tree without a log";
  add(2, StorageType::array, "accounts", 100);
  add(3, StorageType::sequential, "log");
  spaces_.set({{1, 7, {}}, {3, 2, 50}, {9, 1, 1}});  // 9 was dropped after the snapshot
  const std::string text = scrape(&spaces_);
  expect_line(text, "atoll_storage_snapshot_pages{storage=\"tree\"} 7");
  expect_line(text, "atoll_storage_snapshot_bytes{storage=\"tree\"} 28672");
  expect_line(text, "atoll_storage_snapshot_pages{storage=\"accounts\"} 0");
  expect_line(text, "atoll_storage_records{storage=\"accounts\"} 100");
  expect_line(text, "atoll_storage_records{storage=\"log\"} 50");
  EXPECT_EQ(text.find("atoll_storage_records{storage=\"tree\"}"), std::string::npos) << text;
  spaces_.set({{1, 7, 42}});
  expect_line(scrape(&spaces_), "atoll_storage_records{storage=\"tree\"} 42");
  expect_line(scrape(nullptr), "atoll_storage_records{storage=\"accounts\"} 100");
  EXPECT_EQ(scrape(nullptr).find("atoll_storage_snapshot"), std::string::npos) << "there is no log";
}

TEST_F(StorageMetricsTest, CheckpointsHaveRecordsAndNoPages) {
  add(1, StorageType::mastertree, "tree");
  StorageSpaces counted(false);
  counted.set({{.id = 1, .records = 42, .is_estimate = true}});
  const std::string text = scrape(&counted);
  expect_line(text, "atoll_storage_records{storage=\"tree\"} 42");
  EXPECT_EQ(text.find("atoll_storage_snapshot"), std::string::npos) << text;
  EXPECT_EQ(text.find("atoll_storage_copied_pages_total"), std::string::npos) << text;
}

TEST_F(StorageMetricsTest, TheOldestStoragesHaveSeriesOfTheirOwnAndAllOthersShareOne) {
  const auto series = [&] {
    const std::string text = scrape(nullptr);
    size_t count = 0;
    for (size_t at = 0; (at = text.find("\natoll_storage_records{", at)) != std::string::npos;
         ++at) {
      ++count;
    }
    return count;
  };
  // The ids begin behind the slots, so that the order of slots is not that of ids.
  constexpr uint32_t kFirstId = kMaxStorages - 10;
  for (uint32_t i = 0; i < kMaxStorageSeries; ++i) {
    add(kFirstId + i, StorageType::array, "s" + std::to_string(i), i);
  }
  EXPECT_EQ(series(), kMaxStorageSeries);
  const std::string others = std::string("storage=\"") + kOtherStorages + '"';
  EXPECT_EQ(scrape(nullptr).find(others), std::string::npos);
  for (uint32_t i = 0; i < 3; ++i) {
    add(kFirstId + kMaxStorageSeries + i, StorageType::array, "late" + std::to_string(i), 1'000);
  }
  EXPECT_EQ(series(), kMaxStorageSeries + 1);
  const std::string text = scrape(nullptr);
  expect_line(text, "atoll_storage_records{storage=\"other\"} 3000");
  expect_line(text, "atoll_storage_records{storage=\"s255\"} 255");
  EXPECT_EQ(text.find("late"), std::string::npos) << text;
}

}  // namespace
}  // namespace atolldb
