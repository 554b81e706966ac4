// Batches of a scan: buffers, ends and limits, and that a batch registers what single steps do. The
// oracle of the Master-tree, random histories and the tests of snapshots use batches, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/mastertree/batch_rules.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

Bytes key_view(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(ScanBatch, TheCommitVerifiesEachRecord) {
  for (const uint64_t key : {0u, 10u, 50u, 90u})
    EXPECT_EQ(batch_then_foreign_write(key), "") << key;
}

TEST(ScanBatch, ShowsOwnWrites) {
  for (const bool forward : {true, false}) {
    EXPECT_EQ(batches_see_own_writes(forward), "");
    EXPECT_EQ(batches_see_own_inserts(forward), "");
  }
}

TEST(ScanBatch, AnInsertIntoItsRangeIsAPhantom) {
  for (const bool forward : {true, false}) EXPECT_EQ(batch_then_foreign_insert(forward), "");
}

TEST(ScanBatch, RefusesBuffersThatAreTooSmall) {
  Stage stage;
  ASSERT_EQ(stage.a().begin(), Status::ok);
  MasterTreeCursor cursor(stage.tree().tree(), stage.a(), {}, true);
  std::array<ScanRow, 4> rows;
  std::array<std::byte, 4 * 8> payloads;
  std::array<std::byte, kMaxTreeKeyBytes> keys;
  const ScanBatch batch{.rows = rows, .payloads = payloads, .stride = 8, .keys = keys};
  uint32_t count = 7;
  for (int fault = 0; fault < 3; ++fault) {
    ScanBatch bad = batch;
    if (fault == 0) bad.rows = {};
    if (fault == 1) bad.payloads = bad.payloads.first(4 * 8 - 1);
    if (fault == 2) bad.keys = bad.keys.first(kMaxTreeKeyBytes - 1);
    EXPECT_EQ(cursor.next_many(bad, count), Status::invalid_argument) << fault;
    EXPECT_EQ(count, 0u);
  }
  EXPECT_EQ(cursor.next_many(batch, count), Status::ok);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(stage.a().commit(), Status::ok);
}

TEST(ScanBatch, EndsWithoutACurrentRecordAndGoesOnWithSingleSteps) {
  Stage stage;
  for (const bool forward : {true, false}) {
    ASSERT_EQ(stage.a().begin(), Status::ok);
    MasterTreeCursor cursor(stage.tree().tree(), stage.a(), {}, forward);
    std::vector<uint64_t> values;
    uint64_t value = 0;
    ASSERT_EQ(take_values(cursor, 3, values), Status::ok);
    EXPECT_EQ(cursor.get(&value, sizeof(value)), Status::invalid_argument);
    EXPECT_EQ(cursor.ref().record, nullptr);
    ASSERT_EQ(cursor.next(), Status::ok);
    EXPECT_EQ(cursor.get(&value, sizeof(value)), Status::ok);
    EXPECT_EQ(value, forward ? 30u : 60u);
    ASSERT_EQ(take_values(cursor, 100, values), Status::ok);
    EXPECT_EQ(text_of_values(values),
              forward ? "0 10 20 40 50 60 70 80 90 " : "90 80 70 50 40 30 20 10 0 ");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(take_values(cursor, 100, values), Status::end_of_scan);
      EXPECT_EQ(cursor.next(), Status::end_of_scan);
    }
    EXPECT_EQ(values.size(), 9u);
    EXPECT_EQ(stage.a().commit(), Status::ok);
  }
}

TEST(ScanBatch, CopiesTheFirstBytesOfPayloadsAndTheirLengths) {
  Stage stage;
  const MasterTree tree(stage.empty_tree("lengths"));
  for (const char* text : {"", "a", "abcdefgh", "abcdefghi", "b"}) {
    const std::string key = text;
    const std::string payload(key.size() * 3, 'x');
    stage.commit_alone(
        [&](Transaction& b) { return tree.insert(b, key_view(key), key_view(payload)); });
  }
  ASSERT_EQ(stage.a().begin(), Status::ok);
  MasterTreeCursor cursor(tree, stage.a(), {}, true);
  std::array<ScanRow, 8> rows;
  std::array<std::byte, 8 * 5> payloads{};
  std::array<std::byte, kMaxTreeKeyBytes> keys;
  uint32_t count = 0;
  const ScanBatch batch{.rows = rows, .payloads = payloads, .stride = 5, .keys = keys};
  ASSERT_EQ(cursor.next_many(batch, count), Status::ok);
  ASSERT_EQ(count, 5u);
  const std::array<size_t, 5> lengths = {0, 1, 8, 9, 1};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[i].key.size(), lengths[i]);
    EXPECT_EQ(rows[i].payload_bytes, 3 * lengths[i]);
    EXPECT_NE(rows[i].ref.record, nullptr);
    const auto copied = std::span(payloads).subspan(i * 5, std::min<size_t>(5, 3 * lengths[i]));
    EXPECT_TRUE(std::ranges::all_of(copied, [](std::byte byte) { return byte == std::byte{'x'}; }));
  }
  EXPECT_EQ(stage.a().commit(), Status::ok);
}

TEST(ScanBatch, UpdatesAndErasesThroughItsRows) {
  Stage stage;
  ASSERT_EQ(stage.a().begin(), Status::ok);
  MasterTreeCursor cursor(stage.tree().tree(), stage.a(), {}, true);
  std::array<ScanRow, 16> rows;
  std::array<std::byte, kMaxTreeKeyBytes> keys;
  uint32_t count = 0;
  ASSERT_EQ(cursor.next_many({.rows = rows, .payloads = {}, .keys = keys}, count), Status::ok);
  ASSERT_EQ(count, 10u);
  const uint64_t five = 5;
  const MasterTree tree = stage.tree().tree();
  ASSERT_EQ(tree.update_range(stage.a(), cursor.ref(rows[2]), rows[2].key, 0, bytes_view(&five, 8)),
            Status::ok);
  ASSERT_EQ(tree.erase(stage.a(), cursor.ref(rows[3]), rows[3].key), Status::ok);
  ASSERT_EQ(stage.a().commit(), Status::ok);
  EXPECT_EQ(stage.value_of(Kind::tree, 20), 5u);
  stage.commit_alone([&](Transaction& b) {
    uint64_t value = 0;
    const Status status = stage.tree().get(b, 30, value);
    return status == Status::not_found ? Status::ok : Status::procedure_failed;
  });
}

TEST(ScanBatch, LongestKeysFillTheBufferOneByOne) {
  Stage stage;
  const MasterTree tree(stage.empty_tree("long"));
  std::vector<std::string> all;
  for (char last = 'a'; last < 'e'; ++last) {
    all.push_back(std::string(MasterTree::kMaxKeyBytes - 1, 'k') + last);
    stage.commit_alone([&](Transaction& b) { return tree.insert(b, key_view(all.back()), {}); });
  }
  ASSERT_EQ(stage.a().begin(), Status::ok);
  MasterTreeCursor cursor(tree, stage.a(), {}, true);
  CursorReader reader(cursor, 16);
  for (const std::string& key : all) {
    ASSERT_EQ(reader.next(), Status::ok);
    EXPECT_TRUE(std::ranges::equal(reader.key(), key_view(key)));
  }
  EXPECT_EQ(reader.next(), Status::end_of_scan);
  EXPECT_EQ(stage.a().commit(), Status::ok);
}

TEST(ScanBatch, TheReadSetTakesExactlyItsCapacity) {
  constexpr uint32_t kReadSet = 20;
  for (const uint64_t other_reads : {10u, 11u}) {
    Stage stage({.limits = {.read_set = kReadSet,
                            .write_set = 30,
                            .pointer_set = 3,
                            .page_version_set = 3,
                            .log_buffer = 16384},
                 .clock = false});
    ASSERT_EQ(stage.a().begin(), Status::ok);
    uint64_t value = 0;
    for (uint64_t i = 0; i < other_reads; ++i) {
      ASSERT_EQ(stage.array().get(stage.a(), i, value), Status::ok);
    }
    MasterTreeCursor cursor(stage.tree().tree(), stage.a(), {}, true);
    std::vector<uint64_t> values;
    const bool fits = other_reads + 10 <= kReadSet;
    const Status wanted = fits ? Status::ok : Status::transaction_too_large;
    EXPECT_EQ(take_values(cursor, 100, values), wanted);
    EXPECT_EQ(values.size(), fits ? 10u : 0u);
    EXPECT_EQ(finish(stage.a(), wanted), wanted);
  }
}

TEST(ScanBatch, ADeadlineEndsIt) {
  Stage stage;
  ASSERT_EQ(stage.a().begin(stage.a().worker().current_epoch() + 2), Status::ok);
  MasterTreeCursor cursor(stage.tree().tree(), stage.a(), {}, true);
  std::vector<uint64_t> values;
  ASSERT_EQ(take_values(cursor, 3, values), Status::ok);
  stage.ticks(2);
  EXPECT_EQ(take_values(cursor, 3, values), Status::deadline_exceeded);
  EXPECT_EQ(values.size(), 3u);
  stage.a().rollback(Status::deadline_exceeded);
}

/// A tree of random keys, whose scans by single steps and by batches are compared.
class ScanBatchOracle : public testing::Test {
 protected:
  std::string any_key() {
    static const std::string parts[] = {"aaaaaaaa", "bbbbbbbb", std::string(8, '\0')};
    std::string key;
    if (random_() % 2 == 0) {
      for (uint64_t left = random_() % 3; left > 0; --left) key += parts[random_() % 3];
    }
    for (uint64_t left = random_() % 4; left > 0; --left) {
      key += static_cast<char>(random_() % 3 == 0 ? 0 : 'a' + random_() % 3);
    }
    return key;
  }
  void change(int count) {
    const auto body = [&](Transaction& b) {
      Status status = Status::ok;
      for (int i = 0; i < count && !is_abort(status); ++i) {
        const std::string key = any_key();
        const std::string payload(random_() % 40, static_cast<char>('a' + random_() % 26));
        status = random_() % 4 == 0 ? tree_.erase(b, key_view(key))
                                    : tree_.upsert(b, key_view(key), key_view(payload));
      }
      return is_abort(status) ? status : Status::ok;
    };
    // The first attempt may install the pages that it missed, so it may have to run again.
    EXPECT_EQ(stage_.cluster().worker(1).run(body), Status::ok);
  }

  struct Scanned {
    std::vector<std::pair<std::string, std::string>> records;
    uint32_t reads = 0;
    uint32_t pages = 0;
    bool operator==(const Scanned&) const = default;
  };
  Scanned scan(const ScanRange& range, bool forward, size_t rows) {
    const auto text = [](Bytes bytes) {
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    Scanned scanned;
    Transaction& a = stage_.a();
    EXPECT_EQ(a.begin(), Status::ok);
    MasterTreeCursor cursor(tree_, a, range, forward);
    CursorReader reader(cursor, rows);
    while (reader.next() == Status::ok) {
      EXPECT_EQ(reader.vid().word(), reader.ref().record->load_acquire().word());
      scanned.records.emplace_back(text(reader.key()), text(reader.payload()));
    }
    scanned.reads = a.read_set_size();
    scanned.pages = a.page_version_set_size();
    EXPECT_EQ(a.commit(), Status::ok);
    return scanned;
  }

  Stage stage_;
  MasterTree tree_{stage_.empty_tree("random")};
  std::mt19937_64 random_{seed()};
};

TEST_F(ScanBatchOracle, RegistersAndReturnsWhatSingleStepsDo) {
  for (uint64_t round = 0; round < rounds(300, 10'000); ++round) {
    change(1 + static_cast<int>(random_() % 20));
    stage_.ticks(static_cast<int>(random_() % 3));
    const std::string low = any_key();
    const std::string high = any_key();
    const ScanRange range{.low = key_view(low),
                          .has_low = random_() % 3 != 0,
                          .low_inclusive = random_() % 2 == 0,
                          .high = key_view(high),
                          .has_high = random_() % 3 != 0,
                          .high_inclusive = random_() % 2 == 0};
    const bool forward = random_() % 2 == 0;
    const Scanned wanted = scan(range, forward, 0);
    for (const size_t rows : {size_t{1}, size_t{1} + random_() % 40, size_t{500}}) {
      const Scanned found = scan(range, forward, rows);
      ASSERT_EQ(found.records, wanted.records) << "round " << round << ", rows " << rows;
      ASSERT_EQ(found, wanted) << "round " << round << ", rows " << rows;
    }
  }
}

}  // namespace
}  // namespace atolldb::test
