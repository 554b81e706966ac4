// Verification of YCSB databases with one planted error: each error is found and named.
#include <gtest/gtest.h>

#include "tests/bench/ycsb/database.h"

namespace atolldb::ycsb {
namespace {

constexpr uint32_t kNode = 1;
constexpr uint64_t kItem = 123;

/// Expects one violation whose text contains all `parts`.
void expect_violation(const std::vector<std::string>& violations,
                      const std::vector<std::string>& parts) {
  ASSERT_EQ(violations.size(), 1u) << (violations.empty() ? "none" : violations[0]);
  for (const std::string& part : parts) {
    EXPECT_NE(violations[0].find(part), std::string::npos) << violations[0];
  }
}

class Verify : public testing::TestWithParam<bool> {
 protected:
  Verify() : database_(2, 2, input()), table_(database_.table()) {
    const RunSummary& run = database_.run(60);
    EXPECT_GT(run.updates, 100u);
    EXPECT_EQ(database_.verify(), std::vector<std::string>{});
  }

  static JobInput input() {
    JobInput input;
    input.records = 1'000;
    input.is_array = GetParam();
    input.mix = input.is_array ? Mix{20, 80, 0, 0, 0} : Mix{20, 60, 20, 0, 0};
    return input;
  }

  uint64_t id() { return database_.id_of(kNode, kItem); }

  /// Overwrites a part of the record without reading it.
  void overwrite(uint32_t offset, Bytes bytes) {
    database_.transact([&](Transaction& txn) {
      return GetParam() ? table_.array().update(txn, id(), offset,
                                                static_cast<uint32_t>(bytes.size()), bytes.data())
                        : table_.tree().update_range(txn, ordered_key(id()), offset, bytes);
    });
  }

  test::YcsbDatabase database_;
  Table table_;
};

TEST_P(Verify, FindsATornField) {
  const std::byte garbage[4] = {};
  overwrite(60, garbage);
  expect_violation(database_.verify(), {"torn", "field 0"});
}

TEST_P(Verify, FindsALostUpdate) {
  // Makes two updates of the existing record, the second of which does not see the first.
  std::array<std::byte, 100> record;
  database_.transact([&](Transaction& txn) {
    uint32_t bytes = 0;
    return GetParam() ? table_.array().get(txn, id(), record.data())
                      : table_.tree().get(txn, ordered_key(id()), record.data(), 100, bytes);
  });
  fill_field(record.data(), 100, id(), 0, updates_of(record.data()) + 1);
  overwrite(0, record);
  overwrite(0, record);
  database_.runs.back()->updates += 2;
  expect_violation(database_.verify(), {"updates were lost"});
}

TEST_P(Verify, FindsAnUpdateThatWasNeverCommitted) {
  database_.transact([&](Transaction& txn) { return table_.update(txn, id(), 0); });
  expect_violation(database_.verify(), {"aborted updates were applied"});
}

TEST_P(Verify, TellsOfTornReadsOfTheRun) {
  database_.runs.back()->torn_reads = 3;
  expect_violation(database_.verify(), {"3 records were torn when a run read them"});
}

INSTANTIATE_TEST_SUITE_P(Storages, Verify, testing::Bool(), [](const auto& instance) {
  return std::string(instance.param ? "array" : "mastertree");
});

class VerifyTree : public Verify {};

TEST_P(VerifyTree, FindsAMissingRecord) {
  // Uses a record without updates, so that only its absence is detectable.
  std::array<std::byte, 100> fresh;
  const RecordShape shape;
  fill_record(fresh.data(), shape, id());
  uint64_t updates = 0;
  database_.transact([&](Transaction& txn) {
    uint32_t bytes = 0;
    std::array<std::byte, 100> record;
    const Status status = table_.tree().get(txn, ordered_key(id()), record.data(), 100, bytes);
    updates = updates_of(record.data());
    return status == Status::ok ? table_.tree().erase(txn, ordered_key(id())) : status;
  });
  database_.runs.back()->updates -= updates;
  expect_violation(database_.verify(), {"node 1: 500 records loaded", "499 were found"});
}

TEST_P(VerifyTree, FindsALostInsert) {
  const uint64_t inserted = database_.runs.back()->inserted[0][1];
  ASSERT_GT(inserted, 1u);
  database_.transact([&](Transaction& txn) {
    return table_.tree().erase(txn, ordered_key(database_.id_of(0, number_of(2, inserted - 1))));
  });
  expect_violation(database_.verify(), {"node 0: ", "inserted by worker 1"});
}

TEST_P(VerifyTree, FindsARecordThatWasNeverInserted) {
  database_.transact([&](Transaction& txn) {
    return table_.insert(txn, database_.id_of(kNode, number_of(200, 7)));
  });
  expect_violation(database_.verify(),
                   {"node 1: 0 records inserted by worker 199", "1 were found, numbers below 8"});
}

TEST_P(VerifyTree, FindsARecordOfTheWrongLength) {
  const uint64_t new_id = id();
  uint64_t updates = 0;
  database_.transact([&](Transaction& txn) {
    uint32_t bytes = 0;
    std::array<std::byte, 100> record;
    const Status status = table_.tree().get(txn, ordered_key(new_id), record.data(), 100, bytes);
    updates = updates_of(record.data());
    return status == Status::ok
               ? table_.tree().update(txn, ordered_key(new_id), {record.data(), 50})
               : status;
  });
  database_.runs.back()->updates -= updates;
  expect_violation(database_.verify(), {"has 50 bytes, not 100"});
}

INSTANTIATE_TEST_SUITE_P(Mastertree, VerifyTree, testing::Values(false),
                         [](const auto&) { return std::string("mastertree"); });

}  // namespace
}  // namespace atolldb::ycsb
