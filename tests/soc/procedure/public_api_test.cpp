// The public API of procedures, <atoll/procedure.h>: every call, and what happens to values that
// are used after the end of their transaction.
#include <atoll/procedure.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/procedure_attempt.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

namespace api = atoll_api;
using Got = api::Status;

class PublicApiTest : public ::testing::Test {
 protected:
  PublicApiTest() : cluster_(1, 2, {.clock = false}) {
    std::printf("seed: none, nothing here is random\n");
    array_control_ = &cluster_.create("numbers", StorageType::array, 16, 10);
    cluster_.create("words", StorageType::mastertree, 0, 0);
    cluster_.create("heap", StorageType::sequential, 0, 0);
    cluster_.create("names", StorageType::hash, 0, 0);
    LibraryLoad load(*cluster_.view().control, message_);
    api::Library library(node_functions(), load.number());
    EXPECT_EQ(library.find("numbers", array_), Got::ok);
    EXPECT_EQ(library.find("words", tree_), Got::ok);
    EXPECT_EQ(library.find("heap", heap_), Got::ok);
    EXPECT_EQ(library.find("names", hash_), Got::ok);
  }

  /// Runs the body as one transaction with this input.
  template <typename Body>
  Status run(Body&& body, std::string_view input = "") {
    return cluster_.worker(0).run([&](Transaction& transaction) {
      const ProcedureAttempt attempt(transaction, output_, message_);
      api::Context context(node_functions(), attempt.number(), input);
      return static_cast<Status>(body(context));
    });
  }

  TestCluster cluster_;
  StorageControl* array_control_ = nullptr;
  std::vector<std::byte> output_;
  std::string message_;
  api::Array array_;
  api::Mastertree tree_;
  api::Sequential heap_;
  api::Hash hash_;
};

TEST_F(PublicApiTest, APrefetchRunNamesRecordsAndHasNoOtherRight) {
  ASSERT_EQ(run([&](api::Context& context) {
              return tree_.insert(context.transaction(), "alice", "100");
            }),
            Status::ok);
  uint64_t ended = 0;
  const uint64_t indexes[] = {3, 10, ~uint64_t{0}};
  const api::Bytes keys[] = {"alice", "bob"};
  const auto name_all = [&](api::Prefetch& prefetch) {
    prefetch.records(array_, indexes, 3);
    prefetch.records(tree_, keys, 2);
    prefetch.records(tree_, keys, 2, 0);
    prefetch.records(hash_, keys, 2);
    prefetch.records(api::Array(), indexes, 3);
    prefetch.records(api::Mastertree(), keys, 2);
    prefetch.records(
        {array_.wanted(indexes, 3, 8, 8), tree_.wanted(keys, 2), hash_.wanted(keys, 2)});
    prefetch.records({array_.wanted(indexes, 3, 8, 9)});
    prefetch.records({api::Array().wanted(indexes, 3), api::Mastertree().wanted(keys, 2)});
  };
  EXPECT_EQ(cluster_.worker(0).run([&](Transaction& transaction) {
    {
      const PrefetchRun prefetch_run(transaction);
      ended = prefetch_run.number();
      api::Prefetch prefetch(node_functions(), ended, "input");
      EXPECT_EQ(prefetch.input().text(), "input");
      name_all(prefetch);
      // The number of a run is not that of an attempt.
      api::Context context(node_functions(), ended, "");
      int64_t value = 0;
      EXPECT_EQ(array_.get(context.transaction(), 3, value), Got::invalid_argument);
      EXPECT_EQ(array_.update(context.transaction(), 3, int64_t{1}), Got::invalid_argument);
      EXPECT_EQ(context.set_output("x"), Got::invalid_argument);
    }
    api::Prefetch late(node_functions(), ended, "");
    name_all(late);
    EXPECT_TRUE(transaction.plans_no_write());
    EXPECT_EQ(transaction.read_set_size() + transaction.page_version_set_size(), 0u);
    EXPECT_EQ(transaction.pointer_set_size(), 0u);
    return Status::ok;
  }),
            Status::ok);
}

TEST_F(PublicApiTest, AnArrayReadsWritesAndIncrements) {
  EXPECT_EQ(array_.record_count(), 10u);
  EXPECT_EQ(array_.payload_bytes(), 16u);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              int64_t value = -1;
              api::Place place;
              EXPECT_EQ(array_.get_for_update(txn, 3, value, place), Got::ok);
              EXPECT_EQ(value, 0);
              EXPECT_EQ(array_.update(txn, place, int64_t{7}), Got::ok);
              EXPECT_EQ(array_.update(txn, 4, int64_t{8}, 8), Got::ok);
              EXPECT_EQ(array_.update(txn, 5, api::Bytes("abcdefghijklmnop")), Got::ok);
              EXPECT_EQ(array_.increment(txn, 3, int64_t{5}), Got::ok);
              EXPECT_EQ(array_.get(txn, 3, value), Got::ok);
              EXPECT_EQ(value, 12) << "a transaction sees its own writes";
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              const uint64_t indexes[] = {5, 3};
              EXPECT_EQ(array_.prefetch(txn, indexes, 2), Got::ok);
              std::array<char, 32> rows{};
              EXPECT_EQ(array_.get_many(txn, indexes, 2, rows.data(), 31), Got::invalid_argument);
              EXPECT_EQ(array_.get_many(txn, indexes, 2, rows.data(), 32), Got::ok);
              EXPECT_EQ(std::string(rows.data(), 16), "abcdefghijklmnop");
              EXPECT_EQ(rows[16], 12);
              int64_t value = 0;
              EXPECT_EQ(array_.get(txn, 4, value, 8), Got::ok);
              EXPECT_EQ(value, 8);
              EXPECT_EQ(array_.get(txn, 4, value, 9), Got::out_of_range);
              EXPECT_EQ(array_.get(txn, 10, value), Got::out_of_range);
              EXPECT_EQ(array_.update(txn, 0, api::Bytes(rows.data(), size_t{1} << 32)),
                        Got::out_of_range)
                  << "a length of more than 32 bits is not cut";
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, ATreeReadsWritesAndIncrements) {
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              EXPECT_EQ(tree_.insert(txn, "alice", "100"), Got::ok);
              EXPECT_EQ(tree_.insert(txn, "alice", "100"), Got::already_exists);
              EXPECT_EQ(tree_.upsert(txn, api::ordered_key(7), std::string(8, '\0')), Got::ok);
              EXPECT_EQ(tree_.increment(txn, api::ordered_key(7), uint64_t{41}), Got::ok);
              EXPECT_EQ(tree_.update(txn, "bob", "1"), Got::not_found);
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              uint64_t number = 0;
              EXPECT_EQ(tree_.get(txn, api::ordered_key(7), number), Got::ok);
              EXPECT_EQ(number, 41u);
              EXPECT_EQ(tree_.get(txn, api::ordered_key(7), number, 1), Got::out_of_range);
              api::Payload payload;
              api::Place place;
              EXPECT_EQ(tree_.get_for_update(txn, "alice", payload, place), Got::ok);
              EXPECT_EQ(payload.text(), "100");
              EXPECT_EQ(tree_.update_range(txn, place, "bob", 0, "2"), Got::invalid_argument)
                  << "the place is not one of this key";
              EXPECT_EQ(tree_.update_range(txn, place, "alice", 0, "2"), Got::ok);
              EXPECT_EQ(tree_.update_range(txn, "alice", 2, "3"), Got::ok);
              EXPECT_EQ(tree_.get(txn, "alice", payload), Got::ok);
              EXPECT_EQ(payload.text(), "203");
              EXPECT_EQ(tree_.get_for_update(txn, "bob", payload, place), Got::not_found);
              EXPECT_EQ(payload.size(), 0u);
              EXPECT_EQ(tree_.remove(txn, place, "bob"), Got::invalid_argument);
              EXPECT_EQ(tree_.get_for_update(txn, "alice", payload, place), Got::ok);
              EXPECT_EQ(tree_.remove(txn, place, "alice"), Got::ok);
              EXPECT_EQ(tree_.remove(txn, "alice"), Got::not_found);
              EXPECT_EQ(tree_.get(txn, std::string(1025, 'k'), payload), Got::key_too_long);
              EXPECT_EQ(tree_.insert(txn, "long", std::string(2049, 'v')), Got::payload_too_long);
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, AnAdditionCreatesOrChangesARecordAndMakesItLonger) {
  const std::string longest(api::kMaxHashKeyBytes, 'k');
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              EXPECT_EQ(tree_.insert(txn, "short", std::string("\x05\0\0", 3)), Got::ok);
              EXPECT_EQ(tree_.add(txn, "short", int64_t{2}), Got::ok);
              EXPECT_EQ(tree_.add(txn, "new", int64_t{-7}, 4), Got::ok);
              EXPECT_EQ(tree_.add(txn, "last", uint32_t{9}, api::kMaxPayloadBytes - 4), Got::ok);
              EXPECT_EQ(tree_.add(txn, "last", uint32_t{9}, api::kMaxPayloadBytes - 3),
                        Got::payload_too_long);
              EXPECT_EQ(tree_.add(txn, "last", uint32_t{9}, ~uint32_t{0}), Got::payload_too_long);
              EXPECT_EQ(tree_.add(txn, std::string(1024, 'k'), 0.5), Got::ok);
              EXPECT_EQ(tree_.add(txn, std::string(1025, 'k'), 0.5), Got::key_too_long);
              EXPECT_EQ(hash_.insert(txn, "other", ""), Got::ok);  // the storage has a page now
              EXPECT_EQ(hash_.add(txn, longest, int32_t{3}), Got::ok);
              EXPECT_EQ(hash_.add(txn, longest, int32_t{4}), Got::ok);
              EXPECT_EQ(hash_.add(txn, longest + "k", int32_t{4}), Got::key_too_long);
              EXPECT_EQ(api::Mastertree().add(txn, "new", 1), Got::storage_not_found);
              return Got::ok;
            }),
            Status::ok);
  api::Transaction kept;
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = kept = context.transaction();
              EXPECT_EQ(tree_.add(txn, "new", int64_t{-7}, 4), Got::ok);
              int64_t sum = 0;
              EXPECT_EQ(tree_.get(txn, "short", sum), Got::ok);
              EXPECT_EQ(sum, 7);
              EXPECT_EQ(tree_.get(txn, "new", sum, 4), Got::ok);
              EXPECT_EQ(sum, -14) << "a transaction sees its own additions";
              int32_t before = -1;
              EXPECT_EQ(tree_.get(txn, "new", before), Got::ok);
              EXPECT_EQ(before, 0) << "missing bytes are zeros";
              EXPECT_EQ(tree_.get(txn, "new", sum, 5), Got::out_of_range);
              double real = 0;
              EXPECT_EQ(tree_.get(txn, std::string(1024, 'k'), real), Got::ok);
              EXPECT_EQ(real, 0.5);
              int32_t hashed = 0;
              EXPECT_EQ(hash_.get(txn, longest, hashed), Got::ok);
              EXPECT_EQ(hashed, 7);
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(tree_.add(kept, "new", int64_t{1}), Got::invalid_argument) << "its attempt has ended";
}

TEST_F(PublicApiTest, AHashStorageHasPointOperationsAndScansOfAllRecords) {
  const std::string longest(api::kMaxHashKeyBytes, 'k');
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              EXPECT_EQ(hash_.insert(txn, "alice", "100"), Got::ok);
              EXPECT_EQ(hash_.insert(txn, "alice", "100"), Got::already_exists);
              EXPECT_EQ(hash_.insert(txn, "", "empty"), Got::ok);
              EXPECT_EQ(hash_.insert(txn, longest, "long"), Got::ok);
              EXPECT_EQ(hash_.insert(txn, longest + "k", "long"), Got::key_too_long);
              EXPECT_EQ(hash_.upsert(txn, api::ordered_key(7), std::string(8, '\0')), Got::ok);
              EXPECT_EQ(hash_.increment(txn, api::ordered_key(7), uint64_t{41}), Got::ok);
              EXPECT_EQ(hash_.update(txn, "bob", "1"), Got::not_found);
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              api::Payload payload;
              api::Place place;
              EXPECT_EQ(hash_.get_for_update(txn, "alice", payload, place), Got::ok);
              EXPECT_EQ(hash_.update_range(txn, place, "alice", 0, "2"), Got::ok);
              EXPECT_EQ(hash_.update_range(txn, place, "bob", 0, "2"), Got::invalid_argument);
              const std::array<api::Bytes, 3> keys = {api::Bytes("alice"), api::Bytes("bob"),
                                                      api::Bytes("")};
              std::array<char, 30> values{};
              std::array<api::Status, 3> found;
              EXPECT_EQ(hash_.get_many(txn, keys.data(), 3, values.data(), 10, found.data()),
                        Got::ok);
              EXPECT_EQ(found[1], Got::not_found);
              EXPECT_EQ(std::string(values.data(), 3), "200");
              EXPECT_EQ(std::string(values.data() + 20, 5), "empty");
              std::multiset<std::string> seen;
              api::Cursor cursor(hash_, txn);
              while (cursor.next() == Got::ok) seen.insert(std::string(cursor.key().text()));
              const auto seven = api::ordered_key(7);
              const std::string number(reinterpret_cast<const char*>(seven.data()), 8);
              EXPECT_EQ(seen, (std::multiset<std::string>{"", "alice", longest, number}));
              EXPECT_EQ(hash_.remove(txn, "alice"), Got::ok);
              EXPECT_EQ(hash_.get(txn, "alice", payload), Got::not_found);
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              EXPECT_EQ(api::Cursor(hash_, txn).from("a").next(), Got::operation_not_supported);
              EXPECT_EQ(api::Cursor(hash_, txn).until("b").next(), Got::operation_not_supported);
              EXPECT_EQ(api::Cursor(hash_, txn, api::Direction::backward).next(),
                        Got::operation_not_supported);
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, ManyKeysAreReadInOneCall) {
  constexpr size_t kKeys = 150;  // more than the node converts at a time
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) keys.push_back("key" + std::to_string(i));
  const std::vector<api::Bytes> views(keys.begin(), keys.end());
  EXPECT_EQ(run([&](api::Context& context) {
              for (size_t i = 0; i < kKeys; i += 2) {
                const Got put = tree_.upsert(context.transaction(), views[i], keys[i]);
                if (put != Got::ok) return put;
              }
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              EXPECT_EQ(tree_.prefetch(txn, views.data(), kKeys), Got::ok);
              std::vector<char> values(kKeys * 8);
              std::vector<Got> results(kKeys, Got::procedure_failed);
              EXPECT_EQ(tree_.get_many(txn, views.data(), kKeys, values.data(), 8, results.data()),
                        Got::ok);
              for (size_t i = 0; i < kKeys; ++i) {
                EXPECT_EQ(results[i], i % 2 == 0 ? Got::ok : Got::not_found) << i;
                if (i % 2 != 0) continue;
                EXPECT_EQ(std::string(&values[i * 8], keys[i].size()), keys[i]);
              }
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, CursorsCopyRowsInOrder) {
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              for (const char* key : {"a", "b", "c", "d"}) {
                EXPECT_EQ(tree_.insert(txn, key, std::string("value of ") + key), Got::ok);
              }
              EXPECT_EQ(array_.update(txn, 9, int64_t{9}), Got::ok);
              EXPECT_EQ(heap_.append(txn, "first"), Got::ok);
              EXPECT_EQ(heap_.append(txn, "second"), Got::ok);
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              std::string seen;
              api::Cursor middle(tree_, txn, api::Direction::backward);
              middle.from(std::string("b")).until(std::string("d"));  // temporary keys are copied
              while (middle.next() == Got::ok) {
                seen.append(middle.key().text()).append("=").append(middle.payload().text());
              }
              EXPECT_EQ(seen, "c=value of cb=value of b");
              EXPECT_EQ(middle.next(), Got::end_of_scan);
              api::Cursor keys(tree_, txn);
              keys.keys_only();
              EXPECT_EQ(keys.next(), Got::ok);
              EXPECT_EQ(keys.key().text(), "a");
              EXPECT_TRUE(keys.payload().empty());
              api::Cursor records(array_, txn, 8, 100);
              EXPECT_EQ(records.next(), Got::ok);
              EXPECT_EQ(records.next(), Got::ok);
              EXPECT_EQ(records.index(), 9u);
              EXPECT_EQ(records.payload().size(), 16u);
              EXPECT_EQ(static_cast<int>(*records.payload().begin()), 9);
              EXPECT_EQ(records.next(), Got::end_of_scan);
              api::Cursor appends(heap_, txn);
              EXPECT_EQ(appends.next(), Got::ok);
              EXPECT_EQ(appends.payload().text(), "first");
              EXPECT_NE(appends.epoch(), 0u);
              EXPECT_EQ(appends.next(), Got::ok);
              EXPECT_EQ(appends.payload().text(), "second");
              EXPECT_EQ(appends.next(), Got::end_of_scan);
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, CursorsCopyManyRowsAtOnce) {
  constexpr uint64_t kRecords = 100;
  ASSERT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              for (uint64_t i = 0; i < kRecords; ++i) {
                EXPECT_EQ(tree_.insert(txn, api::ordered_key(i), std::string(i % 20, 'x')),
                          Got::ok);
                EXPECT_EQ(hash_.insert(txn, api::ordered_key(i), "value"), Got::ok);
              }
              EXPECT_EQ(heap_.append(txn, "first"), Got::ok);
              return Got::ok;
            }),
            Status::ok);
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              api::Rows<7, 8> rows;
              api::Cursor cursor(tree_, txn);
              uint64_t next = 0;
              Got status = Got::ok;
              for (; (status = cursor.next_many(rows)) == Got::ok;) {
                EXPECT_GT(rows.size(), 0u);
                for (uint32_t i = 0; i < rows.size(); ++i, ++next) {
                  const auto key = api::ordered_key(next);
                  EXPECT_EQ(rows.key(i).text(), api::Bytes(key).text());
                  EXPECT_EQ(rows.payload_bytes(i), next % 20);
                  EXPECT_EQ(rows.payload(i).text(),
                            std::string(std::min<uint64_t>(next % 20, 8), 'x'));
                }
              }
              EXPECT_EQ(status, Got::end_of_scan);
              EXPECT_EQ(next, kRecords);
              EXPECT_EQ(rows.size(), 0u);

              api::Rows<64, 8, false> no_keys;
              api::Cursor last(tree_, txn, api::Direction::backward);
              EXPECT_EQ(last.next_many(no_keys), Got::ok);
              EXPECT_TRUE(no_keys.key(0).empty());
              EXPECT_EQ(no_keys.payload_bytes(0), 19u);

              api::Rows<64, 8> of_hash;
              api::Cursor all(hash_, txn);
              std::set<std::string> keys;
              while (all.next_many(of_hash) == Got::ok) {
                for (uint32_t i = 0; i < of_hash.size(); ++i) {
                  keys.emplace(of_hash.key(i).text());
                  EXPECT_EQ(of_hash.payload(i).text(), "value");
                }
              }
              EXPECT_EQ(keys.size(), kRecords);

              api::Rows<64, 16> of_array;
              api::Cursor numbers(array_, txn, 2, 100);
              EXPECT_EQ(numbers.next_many(of_array), Got::ok);
              EXPECT_EQ(of_array.size(), 8u);
              EXPECT_EQ(of_array.number(7), 9u);
              api::Cursor cut(array_, txn, 0, 9);
              EXPECT_EQ(cut.next_many(rows), Got::invalid_argument) << "8 bytes are too few";

              api::Cursor appends(heap_, txn);
              EXPECT_EQ(appends.next_many(rows), Got::ok);
              EXPECT_EQ(rows.payload(0).text(), "first");
              EXPECT_EQ(appends.next_many(rows), Got::end_of_scan);
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, CursorsHaveALimitAndAreClosed) {
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              std::vector<std::unique_ptr<api::Cursor>> open;
              for (uint32_t i = 0; i < api::kMaxOpenCursors; ++i) {
                open.push_back(std::make_unique<api::Cursor>(array_, txn, 0, 9));
                EXPECT_EQ(open.back()->next(), Got::ok);
              }
              api::Cursor more(tree_, txn);
              EXPECT_EQ(more.next(), Got::transaction_too_large);
              open.front()->close();
              EXPECT_EQ(more.next(), Got::end_of_scan);
              api::Cursor bound(tree_, txn);
              open.clear();
              EXPECT_EQ(bound.from(std::string(1024, 'k')).next(), Got::end_of_scan);
              api::Cursor long_bound(tree_, txn);
              EXPECT_EQ(long_bound.until(std::string(1025, 'k')).next(), Got::key_too_long);
              return Got::ok;
            }),
            Status::ok);
}

TEST_F(PublicApiTest, ValuesThatOutliveTheirTransactionAreRefused) {
  api::Transaction kept;
  api::Place place;
  api::Input input;
  std::optional<api::Cursor> cursor;
  int64_t value = 0;
  EXPECT_EQ(array_.get(kept, 0, value), Got::invalid_argument) << "it has never begun";
  EXPECT_EQ(run(
                [&](api::Context& context) {
                  kept = context.transaction();
                  input = context.input();
                  EXPECT_EQ(input.text(), "hello");
                  EXPECT_EQ(array_.get_for_update(kept, 1, value, place), Got::ok);
                  cursor.emplace(array_, kept, 0, 9);
                  EXPECT_EQ(cursor->next(), Got::ok);
                  return Got::ok;
                },
                "hello"),
            Status::ok);
  const auto expect_refused = [&] {
    EXPECT_FALSE(kept.is_current());
    EXPECT_EQ(array_.get(kept, 0, value), Got::invalid_argument);
    EXPECT_EQ(array_.update(kept, place, int64_t{1}), Got::invalid_argument);
    EXPECT_EQ(tree_.insert(kept, "key", "value"), Got::invalid_argument);
    EXPECT_EQ(heap_.append(kept, "value"), Got::invalid_argument);
    EXPECT_EQ(cursor->next(), Got::invalid_argument);
    EXPECT_TRUE(cursor->payload().empty());
    EXPECT_THROW(static_cast<void>(input.text()), std::logic_error);
  };
  expect_refused();
  EXPECT_EQ(run([&](api::Context& context) {
              expect_refused();  // within the next transaction of this thread, too
              EXPECT_EQ(array_.update(context.transaction(), place, int64_t{1}),
                        Got::invalid_argument);
              return Got::ok;
            }),
            Status::ok);
  cursor.reset();  // closes nothing
}

TEST_F(PublicApiTest, OnlyTheThreadOfTheTransactionMayUseIt) {
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              std::thread([&] {
                int64_t value = 0;
                EXPECT_EQ(array_.get(txn, 0, value), Got::invalid_argument);
                EXPECT_EQ(context.set_output("no"), Got::invalid_argument);
              }).join();
              return context.set_output("yes");
            }),
            Status::ok);
  EXPECT_EQ(api::Bytes(output_).text(), "yes");
}

TEST_F(PublicApiTest, AStorageThatWasDroppedOrNeverFoundIsRefused) {
  api::Array none;
  api::Mastertree wrong;
  EXPECT_EQ(run([&](api::Context& context) {
              const api::Transaction txn = context.transaction();
              int64_t value = 0;
              EXPECT_EQ(none.get(txn, 0, value), Got::storage_not_found);
              EXPECT_EQ(context.find("numbers", wrong), Got::storage_not_found);
              EXPECT_EQ(message_, "storage \"numbers\" of type mastertree: there is none");
              EXPECT_EQ(api::Cursor(wrong, txn).next(), Got::storage_not_found);
              EXPECT_EQ(context.find("numbers", none), Got::ok);
              EXPECT_EQ(none.get(txn, 0, value), Got::ok);
              return Got::ok;
            }),
            Status::ok);
  array_control_->state.store(static_cast<uint32_t>(StorageState::dropping),
                              std::memory_order_seq_cst);
  const auto expect_dropped = [&](api::Context& context) {
    int64_t value = 0;
    EXPECT_EQ(array_.get(context.transaction(), 0, value), Got::storage_not_found);
    EXPECT_EQ(api::Cursor(array_, context.transaction(), 0, 9).next(), Got::storage_not_found);
    return Got::ok;
  };
  EXPECT_EQ(run(expect_dropped), Status::ok);
  // Another storage gets the slot and the name. Ids are never used again.
  array_control_->id += kMaxStorages;
  array_control_->state.store(static_cast<uint32_t>(StorageState::ready),
                              std::memory_order_seq_cst);
  EXPECT_EQ(run(expect_dropped), Status::ok);
}

}  // namespace
}  // namespace atolldb::test
