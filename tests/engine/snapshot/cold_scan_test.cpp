// Scans of trees whose pages are in a snapshot only: single steps and batches return what the
// snapshot has, in any order of calls, and use the records that they have copied.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/snapshot/cold_storages.h"

namespace atolldb::test {
namespace {

std::string text_of(Bytes bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Random records in a snapshot: short keys, keys of one slice, and keys of several layers.
class ColdRecords : public testing::Test {
 protected:
  using Record = std::pair<std::string, std::string>;

  void SetUp() override {
    for (uint64_t i = 0; i < 1'500; ++i) model_[big_endian(i)] = std::string(48, letter());
    for (int i = 0; i < 700; ++i) model_[any_key()] = any_payload();
    ColdCluster first(stage_, 1);
    vid_ = Vid::make(first.next_epoch(), 1);
    std::vector<GleanedLog> logs;
    for (const auto& [key, payload] : model_) {
      logs.push_back({LogType::insert, key, 0, payload, vid_});
    }
    ASSERT_EQ(first.take(std::move(logs)), "");
  }

  char letter() { return static_cast<char>('a' + random_() % 26); }
  std::string any_key() {
    static const std::string parts[] = {"layer--1", "layer--2", std::string(8, '\0')};
    std::string key;
    for (uint64_t left = random_() % 4; left > 0; --left) key += parts[random_() % 3];
    for (uint64_t left = 1 + random_() % 9; left > 0; --left) key += letter();
    return key;
  }
  std::string any_payload() {
    const uint64_t most = std::array<uint64_t, 4>{20, 20, 300, 1'500}[random_() % 4];
    return std::string(random_() % most, letter());
  }

  ScanRange any_range() {
    const auto any = [&] {
      auto at = model_.begin();
      std::advance(at, random_() % model_.size());
      return random_() % 4 == 0 ? any_key() : at->first;
    };
    low_ = any();
    high_ = any();
    return {.low = bytes_of(low_),
            .has_low = random_() % 3 != 0,
            .low_inclusive = random_() % 2 == 0,
            .high = bytes_of(high_),
            .has_high = random_() % 3 != 0,
            .high_inclusive = random_() % 2 == 0};
  }
  std::vector<Record> records_of(const ScanRange& range, bool forward) const {
    std::vector<Record> records;
    for (const auto& [key, payload] : model_) {
      if (range.has_low && (key < low_ || (key == low_ && !range.low_inclusive))) continue;
      if (range.has_high && (key > high_ || (key == high_ && !range.high_inclusive))) continue;
      records.emplace_back(key, payload);
    }
    if (!forward) std::ranges::reverse(records);
    return records;
  }

  /// Takes one record. `reads`: reads its payload, or a part of it.
  std::string take_one(MasterTreeCursor& cursor, Status& status, bool reads) {
    status = cursor.next();
    if (status != Status::ok) return "";
    if (at_ == wanted_.size()) return "a record past the end";
    const auto& [key, payload] = wanted_[at_++];
    if (text_of(cursor.key()) != key) return "another key than " + key;
    if (cursor.payload_bytes() != payload.size() || cursor.vid() != vid_) return "another record";
    if (!reads || random_() % 8 == 0) return "";
    std::string buffer(random_() % 3 == 0 ? random_() % 64 : MasterTree::kMaxPayloadBytes, '?');
    // A second call reads the same.
    for (uint64_t left = 1 + random_() % 2; left > 0; --left) {
      const auto capacity = static_cast<uint32_t>(buffer.size());
      if (cursor.get(buffer.data(), capacity) != Status::ok) return "get failed";
      const std::string found = buffer.substr(0, std::min(buffer.size(), payload.size()));
      if (found != payload.substr(0, buffer.size())) return "another payload of " + key;
    }
    return "";
  }
  std::string take_many(MasterTreeCursor& cursor, Status& status) {
    std::vector<ScanRow> rows(1 + random_() % 60);
    const size_t stride = std::array<size_t, 4>{0, 5, 48, 2'048}[random_() % 4];
    std::vector<std::byte> payloads(rows.size() * stride);
    std::vector<std::byte> keys(random_() % 2 * (kMaxTreeKeyBytes + random_() % 200));
    uint32_t count = 0;
    status = cursor.next_many(
        {.rows = rows, .payloads = payloads, .stride = static_cast<uint32_t>(stride), .keys = keys},
        count);
    if (status != Status::ok) return "";
    if (count == 0 || count > wanted_.size() - at_) return "a batch past the end";
    for (size_t i = 0; i < count; ++i) {
      const auto& [key, payload] = wanted_[at_++];
      if (rows[i].payload_bytes != payload.size() || rows[i].vid != vid_) return "another row";
      const size_t bytes = std::min(stride, payload.size());
      const std::string found = text_of(Bytes(payloads).subspan(i * stride, bytes));
      if (found != payload.substr(0, bytes)) return "another payload of the row " + key;
      if (keys.empty()) continue;
      if (text_of(rows[i].key) != key) return "another key of a row than " + key;
      if (cursor.ref(rows[i]).snapshot().is_null()) return "a row without a place";
    }
    return "";
  }
  /// Evicts pages, if the cache is small.
  std::string read_others(Transaction& txn, const MasterTree& tree) {
    std::array<char, 2'048> buffer;
    for (int i = 0; i < 20; ++i) {
      const uint64_t key = random_() % 1'500;
      uint32_t bytes = 0;
      const Status status =
          tree.get(txn, bytes_of(big_endian(key)), buffer.data(), buffer.size(), bytes);
      if (status != Status::ok) return "a read failed";
      if (std::string(buffer.data(), bytes) != model_.at(big_endian(key))) return "a wrong read";
    }
    return "";
  }

  /// Scans a range by random calls, and compares the records with the model.
  std::string scan(ColdCluster& cold, Isolation isolation) {
    const bool forward = random_() % 2 == 0;
    const bool reads = random_() % 3 != 0;
    const uint64_t batches = random_() % 3;  // 0: none, 1: some, 2: only batches
    const bool evicts = random_() % 2 == 0;
    const ScanRange range = any_range();
    wanted_ = records_of(range, forward);
    at_ = 0;
    TransactionMode mode;
    mode.isolation = isolation;
    Transaction& txn = *cold.cluster.worker(0).transaction;
    if (txn.begin(kMaxEpoch, mode) != Status::ok) return "no transaction";
    const MasterTree tree(cold.storage);
    MasterTreeCursor cursor(tree, txn, range, forward);
    std::string problem;
    Status status = Status::ok;
    while (status == Status::ok && problem.empty()) {
      const bool is_batch = batches == 2 || (batches == 1 && random_() % 4 == 0);
      problem = is_batch ? take_many(cursor, status) : take_one(cursor, status, reads);
      if (problem.empty() && evicts && random_() % 8 == 0) problem = read_others(txn, tree);
    }
    if (problem.empty() && status != Status::end_of_scan) problem = std::string(to_string(status));
    if (problem.empty() && at_ != wanted_.size()) problem = "the scan ended too early";
    const bool registers = txn.read_set_size() != 0 || txn.page_version_set_size() != 0;
    if (problem.empty() && registers) problem = "a cold scan registers records or pages";
    if (txn.commit() != Status::ok && problem.empty()) problem = "the commit failed";
    const std::string at = " at record " + std::to_string(at_) + (forward ? "" : ", backward");
    return problem.empty() ? "" : problem + at;
  }

  std::mt19937_64 random_{seed()};
  SnapshotStage stage_{StorageType::mastertree};
  std::map<std::string, std::string> model_;
  Vid vid_;
  std::string low_;
  std::string high_;
  std::vector<Record> wanted_;
  size_t at_ = 0;  // number of the next record in `wanted_`
};

TEST_F(ColdRecords, AreReturnedByAnyMixOfCalls) {
  for (const uint32_t frames : {16u, 1'000u}) {
    ColdCluster cold(stage_, 1, true, frames);
    for (uint64_t round = 0; round < rounds(60, 3'000); ++round) {
      for (const Isolation isolation :
           {Isolation::serializable, Isolation::snapshot, Isolation::snapshot_read_only}) {
        ASSERT_EQ(scan(cold, isolation), "") << "round " << round << ", " << frames << " frames";
      }
    }
  }
}

/// A tree of numbers in a snapshot, with many records in a page and many more pages than frames.
class ColdNumbers : public testing::Test {
 protected:
  static constexpr uint64_t kRecords = 4'000;

  void SetUp() override {
    ColdCluster first(stage_, 1);
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back(
          {LogType::insert, big_endian(i), 0, payload_of(i), Vid::make(first.next_epoch(), 1)});
    }
    ASSERT_EQ(first.take(std::move(logs)), "");
  }
  static std::string payload_of(uint64_t i) { return std::string(40, '.') + std::to_string(i); }
  bool damage(SnapshotPointer page) {
    return stage_.power_cut()
        .corrupt(stage_.path(page.node(), page.snapshot()), page.page() * kPageBytes + 1000, 1)
        .has_value();
  }

  /// Reads all pages, which evicts them, and the page of this record last. Returns the result of
  /// the last read.
  static Status evict_and_read(ColdCluster& cold, uint64_t number) {
    Status status = Status::ok;
    for (uint64_t step = kRecords / 2; step <= kRecords && status == Status::ok; step += 10) {
      status = cold.run_amid([&](Transaction& other) {
        std::array<char, 64> buffer;
        uint32_t bytes = 0;
        const std::string key = big_endian((number + step) % kRecords);
        return MasterTree(cold.storage)
            .get(other, bytes_of(key), buffer.data(), buffer.size(), bytes);
      });
    }
    return status;
  }

  SnapshotStage stage_{StorageType::mastertree};
};

/// After a few pages a scan copies all records of a page at once. So it no longer needs the page,
/// even if the caller takes long for each record.
TEST_F(ColdNumbers, AreCopiedFromTheirPageAtOnce) {
  constexpr size_t kDamaged = 5;  // number of the page that is lost while it is scanned
  for (const bool forward : {true, false}) {
    ColdCluster cold(stage_, 2);
    Transaction& txn = *cold.cluster.worker(0).transaction;
    ASSERT_EQ(txn.begin(), Status::ok);
    MasterTreeCursor cursor(MasterTree(cold.storage), txn, {}, forward);
    std::vector<SnapshotPointer> pages;
    uint64_t of_damaged = 0;
    for (uint64_t i = 0; i < kRecords / 4; ++i) {
      const uint64_t number = forward ? i : kRecords - 1 - i;
      ASSERT_EQ(cursor.next(), Status::ok) << number;
      ASSERT_EQ(slice_of(cursor.key()), number);
      const SnapshotPointer page = cursor.ref().snapshot();
      if (pages.empty() || page != pages.back()) {
        pages.push_back(page);
        if (pages.size() == kDamaged) {
          ASSERT_TRUE(damage(page));
          ASSERT_EQ(evict_and_read(cold, number), Status::snapshot_unreadable);
        }
      }
      std::array<char, 64> buffer;
      ASSERT_EQ(cursor.get(buffer.data(), buffer.size()), Status::ok) << number;
      ASSERT_EQ(std::string(buffer.data(), cursor.payload_bytes()), payload_of(number));
      of_damaged += pages.size() == kDamaged ? 1 : 0;
    }
    EXPECT_GT(pages.size(), kDamaged + 1);
    EXPECT_GT(of_damaged, 20u);
    EXPECT_EQ(txn.commit(), Status::ok);
    ASSERT_TRUE(damage(pages[kDamaged - 1])) << "flips the same bit back";
  }
}

/// R4: a batch of cold records registers the pointer above them, and the commit verifies it.
TEST_F(ColdNumbers, OfABatchStandBelowARegisteredPointer) {
  ColdCluster cold(stage_, 2);
  const MasterTree tree(cold.storage);
  Transaction& txn = *cold.cluster.worker(0).transaction;
  for (const bool is_changed : {false, true}) {
    ASSERT_EQ(txn.begin(), Status::ok);
    MasterTreeCursor cursor(tree, txn, {}, true);
    std::vector<ScanRow> rows(500);
    std::vector<std::byte> payloads(rows.size() * 64);
    uint32_t count = 0;
    ASSERT_EQ(cursor.next_many({.rows = rows, .payloads = payloads, .stride = 64}, count),
              Status::ok);
    EXPECT_EQ(count, 500u);
    EXPECT_EQ(txn.pointer_set_size(), 1u);
    EXPECT_EQ(txn.read_set_size() + txn.page_version_set_size(), 0u);
    if (is_changed) {
      ASSERT_EQ(cold.run_amid([&](Transaction& other) {
        return tree.update(other, bytes_of(big_endian(100)), bytes_of("new"));
      }),
                Status::ok);
    }
    EXPECT_EQ(txn.commit(), is_changed ? Status::pointer_installed : Status::ok);
  }
}

}  // namespace
}  // namespace atolldb::test
