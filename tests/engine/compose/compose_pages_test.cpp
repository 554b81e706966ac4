// Pages that composers write, pages that they leave unchanged, and input that they refuse.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/format/array_page.h"
#include "engine/format/tree_page.h"
#include "engine/snapshot/page_ahead.h"
#include "tests/engine/compose/random_captures.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

std::vector<GleanedLog> inserts(uint64_t count, uint64_t epoch, size_t payload_bytes) {
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < count; ++i) {
    logs.push_back({LogType::insert, big_endian(i * 16), 0, std::string(payload_bytes, 'x'),
                    Vid::make(epoch, i + 1)});
  }
  return logs;
}

SnapshotWalkTotals totals_of(SnapshotStage& stage) {
  auto totals = stage.walk([](const WalkedRecord&) { return Result<void>(); });
  EXPECT_TRUE(totals) << totals.error().message;
  return totals.value_or(SnapshotWalkTotals());
}

TEST(ComposePages, ChangesOfOnePagePerCentWriteThoseTheirAncestorsAndLittleMore) {
  std::mt19937_64 random(seed());
  constexpr uint64_t kRecords = 100'000;
  const std::vector<std::string> lows = {"", big_endian(kRecords * 5), big_endian(kRecords * 11)};
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round(inserts(kRecords, 3, 100), lows, 3));
  const SnapshotWalkTotals before = totals_of(stage);
  ASSERT_GT(before.leaf_pages, 1500u);
  const uint64_t ancestors = before.pages - before.leaf_pages;
  std::set<std::string> keys;
  while (keys.size() < before.leaf_pages / 100) keys.insert(big_endian(random() % kRecords * 16));
  std::vector<GleanedLog> logs;
  for (const std::string& key : keys) {
    logs.push_back({LogType::update, key, 0, "changed", Vid::make(5, 1)});
  }
  auto combined = stage.round(logs, lows, 5);
  ASSERT_TRUE(combined) << combined.error().message;
  EXPECT_LE(combined->pages_written, (keys.size() + ancestors) * 11 / 10);
  EXPECT_GE(combined->pages_written, keys.size() / 2);
  EXPECT_EQ(totals_of(stage).records, kRecords);
  EXPECT_EQ(totals_of(stage).leaf_pages, before.leaf_pages);
}

TEST(ComposePages, PagesOfATreeWithoutBaseAreFull) {
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round(inserts(50'000, 3, 40), {""}, 3));
  // Bytes of all records in the pages. Each record has a slot, a head and a payload of 40 bytes.
  const uint64_t bytes = 50'000 * (kSlotBytes + TreeRecord::bytes_with(8, 40));
  EXPECT_LE(totals_of(stage).leaf_pages, bytes / kBorderUsableBytes * 103 / 100 + 2);
}

TEST(ComposePages, RandomInsertsDoNotLeavePagesOfFewRecords) {
  std::mt19937_64 random(seed());
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round(inserts(20'000, 3, 40), {""}, 3));
  for (uint64_t epoch = 4; epoch < 10; ++epoch) {
    std::set<std::string> keys;
    while (keys.size() < 600) keys.insert(big_endian(random() % 20'000 * 16 + 1 + epoch));
    std::vector<GleanedLog> logs;
    for (const std::string& key : keys) {
      logs.push_back({LogType::insert, key, 0, std::string(40, 'y'), Vid::make(epoch, 1)});
    }
    ASSERT_TRUE(stage.round(logs, {""}, epoch));
  }
  const SnapshotWalkTotals totals = totals_of(stage);
  EXPECT_EQ(totals.records, 20'000u + 6 * 600);
  EXPECT_GE(totals.records / totals.leaf_pages, 25u);  // 55 records fit in a page
}

TEST(ComposePages, ATreeWhoseRecordsAreAllErasedHasNoPages) {
  SnapshotStage stage(StorageType::mastertree);
  auto logs = inserts(20'000, 3, 40);
  const std::vector<std::string> lows = {"", big_endian(200'000)};
  ASSERT_TRUE(stage.round(logs, lows, 3));
  for (GleanedLog& log : logs) log = {LogType::erase, log.key, 0, {}, Vid::make(4, 1)};
  auto combined = stage.round(logs, lows, 4);
  ASSERT_TRUE(combined) << combined.error().message;
  EXPECT_TRUE(combined->root.is_null());
  EXPECT_EQ(combined->pages_written, 0u);
}

TEST(ComposePages, AnEmptiedPageIsJoinedWithItsNeighbour) {
  SnapshotStage stage(StorageType::mastertree);
  auto logs = inserts(2000, 3, 40);
  ASSERT_TRUE(stage.round(logs, {""}, 3));
  const uint64_t pages = totals_of(stage).leaf_pages;
  logs.resize(500);
  for (GleanedLog& log : logs) log = {LogType::erase, log.key, 0, {}, Vid::make(4, 1)};
  ASSERT_TRUE(stage.round(logs, {""}, 4));
  EXPECT_EQ(totals_of(stage).records, 1500u);
  EXPECT_LE(totals_of(stage).leaf_pages, pages * 3 / 4 + 1);
}

TEST(ComposePages, WithoutALogRecordTheRootStaysAndNothingIsWritten) {
  for (const StorageType type : {StorageType::mastertree, StorageType::array}) {
    SnapshotStage stage(type, 10'000, 64);
    auto logs = inserts(100, 3, 64);
    if (type == StorageType::array) {
      for (GleanedLog& log : logs) log.type = LogType::update;
    }
    ASSERT_TRUE(stage.round(logs, {""}, 3));
    const SnapshotPointer root = stage.storage.base_root;
    auto combined = stage.round({}, {""}, 4);
    ASSERT_TRUE(combined) << combined.error().message;
    EXPECT_EQ(combined->root, root);
    EXPECT_EQ(combined->pages_written, 0u);
  }
}

TEST(ComposePages, AnArraysPagesThatWereNeverWrittenAreNotThere) {
  SnapshotStage stage(StorageType::array, 1'000'000, 8);
  ASSERT_TRUE(stage.round({{LogType::update, big_endian(777'777), 0, "12345678", Vid::make(3, 1)}},
                          {""}, 3));
  EXPECT_EQ(totals_of(stage).pages, ArrayShape(1'000'000, 8).levels);
}

TEST(ComposePages, AnUpdateWithoutARecordIsNamedWithStorageAndKey) {
  SnapshotStage stage(StorageType::mastertree);
  for (const std::string& key : {std::string("ab"), std::string("abcdefgh-and-more")}) {
    auto combined = stage.round({{LogType::update, key, 0, "12345678", Vid::make(3, 1)}}, {""}, 3);
    ASSERT_FALSE(combined);
    EXPECT_EQ(combined.error().code, ExitCode::corruption);
    EXPECT_NE(combined.error().message.find("storage 7: log records of the key 0x6162"),
              std::string::npos)
        << combined.error().message;
  }
}

TEST(ComposePages, AnUpdateWithoutARecordDoesNotMatterWhenAnInsertFollows) {
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round({{LogType::update, "k", 50, "12", Vid::make(3, 1)},
                           {LogType::insert, "k", 0, "whole", Vid::make(3, 2)}},
                          {""}, 3));
  Model found;
  ASSERT_TRUE(stage.read_all(found));
  EXPECT_EQ(found["k"].payload, "whole");
  EXPECT_EQ(found["k"].vid, Vid::make(3, 2));
}

TEST(ComposePages, RecordsOutOfOrderOrOutsideThePartitionAreRefused) {
  SnapshotStage stage(StorageType::mastertree);
  const GleanedLog a{LogType::insert, "a", 0, "1", Vid::make(3, 1)};
  const GleanedLog b{LogType::insert, "b", 0, "1", Vid::make(3, 1)};
  auto combined = stage.round({b, a}, {""}, 3);
  ASSERT_FALSE(combined);
  EXPECT_NE(combined.error().message.find("not sorted"), std::string::npos);
  // Two more wrong orders: keys that differ only past their first 16 bytes, and versions of one
  // key.
  const std::string prefix(16, 'p');
  const GleanedLog c{LogType::insert, prefix + "c", 0, "1", Vid::make(3, 1)};
  const GleanedLog d{LogType::insert, prefix + "d", 0, "1", Vid::make(3, 1)};
  const GleanedLog newer{LogType::insert, "a", 0, "1", Vid::make(3, 2)};
  for (const auto& [left, right] : {std::pair(d, c), std::pair(newer, a)}) {
    combined = stage.round({left, right}, {""}, 3);
    ASSERT_FALSE(combined);
    EXPECT_NE(combined.error().message.find("not sorted"), std::string::npos);
  }
  SnapshotStage array(StorageType::array, 100, 8);
  combined =
      array.round({{LogType::update, big_endian(100), 0, "12345678", Vid::make(3, 1)}}, {""}, 3);
  ASSERT_FALSE(combined);
  EXPECT_NE(combined.error().message.find("outside the partition"), std::string::npos);
}

TEST(ComposePages, PartitionsOfAnArrayBeginWithAChildOfTheRoot) {
  SnapshotStage stage(StorageType::array, 100'000, 8);
  auto combined = stage.round({}, {"", big_endian(1)}, 3);
  ASSERT_FALSE(combined);
  EXPECT_NE(combined.error().message.find("must begin at multiples of"), std::string::npos);
}

TEST(ComposePages, KeysThatShareAWholeLayerGetOneOfTheirOwn) {
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round({{LogType::insert, "12345678a", 0, "1", Vid::make(3, 1)}}, {""}, 3));
  EXPECT_EQ(totals_of(stage).layers, 1u);
  ASSERT_TRUE(stage.round({{LogType::insert, "12345678b", 0, "2", Vid::make(4, 1)}}, {""}, 4));
  EXPECT_EQ(totals_of(stage).layers, 2u);
  ASSERT_TRUE(stage.round({{LogType::erase, "12345678a", 0, "", Vid::make(5, 1)},
                           {LogType::erase, "12345678b", 0, "", Vid::make(5, 1)},
                           {LogType::insert, "2", 0, "3", Vid::make(5, 1)}},
                          {""}, 5));
  EXPECT_EQ(totals_of(stage).layers, 1u);
  EXPECT_EQ(totals_of(stage).records, 1u);
}

TEST(ComposePages, ACapturedPageReplacesTheLayersOfItsRange) {
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round({{LogType::insert, "12345678a", 0, "1", Vid::make(3, 1)},
                           {LogType::insert, "12345678b", 0, "2", Vid::make(3, 2)},
                           {LogType::insert, "2", 0, "3", Vid::make(3, 3)}},
                          {""}, 3));
  EXPECT_EQ(totals_of(stage).layers, 2u);
  const Model model = {{"12345678a", {"1", Vid::make(3, 1)}}, {"2", {"3", Vid::make(3, 3)}}};
  const std::string last = "12345679";
  OneCapture source(model, {0, slice_of(std::as_bytes(std::span(last))), false});
  const std::vector<GleanedLog> logs = {{LogType::erase, "12345678b", 0, "", Vid::make(4, 1)}};
  ASSERT_TRUE(stage.round(logs, {""}, 4, &source));
  EXPECT_EQ(stage.misfits, 0u);
  EXPECT_EQ(totals_of(stage).layers, 1u);
  check_stage(stage, model);
  check_files(stage, {});
}

/// Pages that come from the cache are counted apart.
TEST(ComposePages, PagesOfTheCacheDoNotCountAsRead) {
  const auto composed_with = [](bool has_cache) {
    SnapshotStage stage(StorageType::mastertree);
    EXPECT_TRUE(stage.round(inserts(20'000, 3, 40), {""}, 3));
    constexpr uint32_t kFrames = 1'000;
    const auto pages = static_cast<uint32_t>(stage.composed.at(0).pages_written);
    EXPECT_LT(pages, kFrames);
    TestCache cache(stage.reader, kFrames, 1);
    IoBuffer buffer(kPagesPerRead * kPageBytes);
    for (uint32_t page = 1; page <= pages; page += kPagesPerRead) {
      EXPECT_TRUE(cache.cache.warm(SnapshotPointer::make(1, 0, page), kPagesPerRead,
                                   buffer.bytes().data()));
    }
    PageAhead ahead(stage.reader, BatchReader::Method::automatic,
                    has_cache ? &cache.cache : nullptr);
    stage.ahead = &ahead;
    // Changes records of pages that are so far from each other that no read gets two of them.
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < 20'000; i += 1'000) {
      logs.push_back({LogType::update, big_endian(i * 16), 0, "changed", Vid::make(4, i + 1)});
    }
    EXPECT_TRUE(stage.round(logs, {""}, 4));
    return std::move(stage.composed.at(0));
  };
  const ComposedPartition without = composed_with(false);
  const ComposedPartition with = composed_with(true);
  EXPECT_EQ(without.pages_cached, 0u);
  EXPECT_GT(without.pages_read, 20u) << "the changed pages, and those above them";
  EXPECT_GE(with.pages_cached, 4u) << "the first page above the changed ones has more of them";
  EXPECT_EQ(with.pages_read + with.pages_cached, without.pages_read);
}

/// Captures a range of one of two partitions.
class OneSideCapture : public OneCapture {
 public:
  OneSideCapture(const Model& model, const SliceRange& range)
      : OneCapture(model, range), low_(range.low) {}

  Result<void> capture_pages_of(uint32_t storage, const CaptureTask& task,
                                std::vector<CapturedPage>& captured) override {
    if (!task.range.contains(low_)) return {};
    return OneCapture::capture_pages_of(storage, task, captured);
  }

 private:
  const uint64_t low_;
};

/// A page of the base crosses the bound of two partitions. A captured page replaces its part in one
/// of them, and the other one keeps its part.
TEST(ComposePages, RecordsAtTheBoundOfPartitionsAreCountedOnce) {
  constexpr uint64_t kKeys = 3 * kMaxBorderSlots;  // a few pages
  constexpr uint64_t kBound = kKeys / 2 - 3;       // not the end of one
  for (const SliceRange& range : {SliceRange{0, kBound, false}, {kBound, kKeys, false}}) {
    SnapshotStage stage(StorageType::mastertree);
    std::vector<GleanedLog> logs;
    Model model;
    for (uint64_t key = 0; key < kKeys; ++key) {
      const std::string bytes = big_endian(key);
      logs.push_back({LogType::insert, bytes, 0, "payload", Vid::make(3, key + 1)});
      // The captured page has few records.
      if (!range.contains(key) || key % 50 == 0) model[bytes] = {"payload", Vid::make(3, key + 1)};
    }
    ASSERT_TRUE(stage.round(logs, {""}, 3));
    OneSideCapture source(model, range);
    ASSERT_TRUE(stage.round({}, {"", big_endian(kBound)}, 4, &source));
    EXPECT_EQ(stage.misfits, 0u);
    EXPECT_EQ(stage.captured_pages, 1u);
    ASSERT_EQ(stage.metadata.record_counts.size(), 1u);
    EXPECT_FALSE(stage.metadata.record_counts[0].is_estimate);
    EXPECT_EQ(stage.metadata.record_counts[0].records, model.size());
    check_stage(stage, model);
    check_files(stage, {});
  }
}

/// Pages of the base are read to find layers below them, if a captured page takes their place. If
/// the base has no layers, a sample of them is read, to count their records.
TEST(ComposePages, PagesUnderACapturedPageAreNotReadIfTheBaseHasNoNextLayers) {
  for (const bool has_layers : {false, true}) {
    SnapshotStage stage(StorageType::mastertree);
    std::vector<GleanedLog> logs;
    for (uint64_t key = 0; key < 4'000; ++key) {
      logs.push_back({LogType::insert, big_endian(key), 0, "payload", Vid::make(3, key + 1)});
    }
    Model model = {{big_endian(0), {"payload", Vid::make(3, 1)}},
                   {big_endian(2'000), {"payload", Vid::make(3, 2'001)}},
                   {big_endian(3'999), {"payload", Vid::make(3, 4'000)}}};
    if (has_layers) {
      for (const char* end : {"a", "b"}) {
        const std::string key = big_endian(5'000) + end;
        logs.push_back({LogType::insert, key, 0, "payload", Vid::make(3, 9'000)});
        model[key] = {"payload", Vid::make(3, 9'000)};
      }
    }
    ASSERT_TRUE(stage.round(logs, {""}, 3));
    const uint64_t pages = totals_of(stage).pages;
    ASSERT_GT(pages, 20u);
    OneCapture source(model, {0, 4'000, false});
    const std::vector<GleanedLog> erased = {
        {LogType::erase, big_endian(7), 0, "", Vid::make(4, 1)}};
    ASSERT_TRUE(stage.round(erased, {""}, 4, &source));
    EXPECT_EQ(stage.misfits, 0u);
    uint64_t read = 0;
    for (const ComposedPartition& each : stage.composed) read += each.pages_read;
    if (has_layers) {
      EXPECT_GT(read, pages - 5);
    } else {
      EXPECT_LT(read, 5 + pages / 16)
          << "the root, the first page, the one in which the captured one ends, and the sample";
      const RecordCount& count = stage.metadata.record_counts.at(0);
      EXPECT_TRUE(count.is_estimate);
      EXPECT_LT(count.records, 4'000 / pages) << "all pages have the same size, so it is close";
    }
    check_stage(stage, model);
    check_files(stage, {});
  }
}

TEST(ComposePages, ARecordWithoutRoomBesideItsSliceGetsALayer) {
  SnapshotStage stage(StorageType::mastertree);
  const std::string big(2048, 'x');
  ASSERT_TRUE(
      stage.round({{LogType::insert, "abc", 0, big, Vid::make(3, 1)},
                   {LogType::insert, std::string("abc\0\0\0\0\0and", 11), 0, big, Vid::make(3, 2)}},
                  {""}, 3));
  EXPECT_EQ(totals_of(stage).layers, 2u);
  EXPECT_EQ(totals_of(stage).records, 2u);
}

TEST(ComposePages, ACancelledCompositionEndsWithAnError) {
  SnapshotStage stage(StorageType::mastertree);
  SnapshotPlan plan;
  plan.storages = {stage.storage};
  plan.storages[0].partitions = {{"", {}}};
  plan.epoch = 3;
  auto writer = SnapshotWriter::create(*stage.files, {"/data", 0, 1, 3, {}});
  std::mutex mutex;
  VectorLogSource source(SnapshotStage::kStorage, inserts(10'000, 3, 8));
  int asked = 0;
  auto composed =
      compose({plan, 0, 0, source, stage.reader, *writer, mutex, [&] { return ++asked == 3; }});
  ASSERT_FALSE(composed);
  EXPECT_NE(composed.error().message.find("cancelled"), std::string::npos);
  EXPECT_EQ(asked, 3);
}

TEST(ComposePages, PagesThatDoNotFitThePlanAreNotCombined) {
  using Change = void (*)(ComposedPage&);
  for (const StorageType type : {StorageType::array, StorageType::mastertree}) {
    for (const Change change : {Change([](ComposedPage& page) { page.low += 7; }),
                                Change([](ComposedPage& page) { page.page = {}; }),
                                Change([](ComposedPage& page) { page.level = 1000; })}) {
      SnapshotStage stage(type, 1'000'000, 8);
      stage.before_combine = [&] { change(stage.composed.at(0).pages.at(0)); };
      const auto combined =
          stage.round({{type == StorageType::array ? LogType::update : LogType::insert,
                        big_endian(0), 0, "12345678", Vid::make(3, 1)}},
                      {""}, 3);
      ASSERT_FALSE(combined);
      EXPECT_EQ(combined.error().code, ExitCode::failed);
      EXPECT_TRUE(combined.error().message.contains("do not fit")) << combined.error().message;
    }
  }
}

TEST(ComposePages, DamageIsFoundByAWalkWithFileAndPage) {
  SnapshotStage stage(StorageType::mastertree);
  ASSERT_TRUE(stage.round(inserts(5000, 3, 40), {""}, 3));
  ASSERT_TRUE(stage.power_cut().corrupt(stage.path(0, 1), 7 * kPageBytes + 2000, 1));
  auto totals = stage.walk([](const WalkedRecord&) { return Result<void>(); });
  ASSERT_FALSE(totals);
  EXPECT_EQ(totals.error().code, ExitCode::corruption);
  EXPECT_NE(totals.error().message.find(stage.path(0, 1) + ": page 7"), std::string::npos);
}

}  // namespace
}  // namespace atolldb::test
