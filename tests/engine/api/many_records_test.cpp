// Calls of the public API for many records: limits, errors, entries of the read set, transactions
// that read a snapshot, and pages that are missing in memory. many_records_oracle_test.cpp compares
// their results with a model.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/api/library_stage.h"
#include "tests/engine/snapshot/cold_storages.h"

namespace atolldb::test {
namespace {

using Got = api::Status;
using Transactions = TransactionLimits;

class ManyRecords : public testing::Test {
 protected:
  explicit ManyRecords(Transactions limits = {}) : cluster_(1, 1, {.limits = limits}) {
    std::printf("seed: none, nothing here is random\n");
    numbers_control_ = &cluster_.create("numbers", StorageType::array, 16, 100);
    cluster_.create("words", StorageType::mastertree);
    cluster_.create("names", StorageType::hash);
    cluster_.create("heap", StorageType::sequential);
    numbers_ = library_storage<api::Array>(cluster_, "numbers");
    words_ = library_storage<api::Mastertree>(cluster_, "words");
    names_ = library_storage<api::Hash>(cluster_, "names");
    heap_ = library_storage<api::Sequential>(cluster_, "heap");
  }

  template <typename Body>
  Got run(Body&& body) {
    return run_procedure(cluster_.worker(0), body);
  }
  Transaction& transaction() { return *cluster_.worker(0).transaction; }
  /// Inserts the keys 0 .. count-1 of ordered_key, with payloads of 8 bytes.
  void fill(const api::Mastertree& tree, uint64_t count) {
    ASSERT_EQ(run([&](api::Transaction txn) {
                for (uint64_t i = 0; i < count; ++i) {
                  const Got got = tree.upsert(txn, api::ordered_key(i), "12345678");
                  if (got != Got::ok) return got;
                }
                return Got::ok;
              }),
              Got::ok);
  }

  TestCluster cluster_;
  StorageControl* numbers_control_ = nullptr;
  api::Array numbers_;
  api::Mastertree words_;
  api::Hash names_;
  api::Sequential heap_;
};

TEST_F(ManyRecords, AnEmptyBatchDoesNothing) {
  EXPECT_EQ(run([&](api::Transaction txn) {
              EXPECT_EQ(numbers_.find_many(txn, nullptr, 0, nullptr), Got::ok);
              EXPECT_EQ(numbers_.find_many_for_update(txn, nullptr, 0, nullptr), Got::ok);
              EXPECT_EQ(words_.get_many_for_update(txn, nullptr, 0, nullptr, 0, nullptr, nullptr),
                        Got::ok);
              EXPECT_EQ(words_.insert_many(txn, nullptr, nullptr, 0), Got::ok);
              EXPECT_EQ(txn.prefetch({}), Got::ok);
              EXPECT_EQ(txn.prefetch({numbers_.wanted(nullptr, 0), words_.wanted(nullptr, 0)}),
                        Got::ok);
              EXPECT_EQ(transaction().read_set_size(), 0u);
              return Got::ok;
            }),
            Got::ok);
}

TEST_F(ManyRecords, ABatchIsAsLongAsItsTransactionMayBe) {
  constexpr size_t kKeys = 150;  // the node converts 16 at a time
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) keys.push_back("key" + std::to_string(1000 + i));
  const std::vector<api::Bytes> views = views_of(keys);
  for (const api::Mastertree* tree : {&words_, static_cast<api::Mastertree*>(&names_)}) {
    EXPECT_EQ(run([&](api::Transaction txn) {
                return tree->insert_many(txn, views.data(), views.data(), kKeys);
              }),
              Got::ok);
    EXPECT_EQ(run([&](api::Transaction txn) {
                FoundRecords found(kKeys);
                EXPECT_EQ(found.get(*tree, txn, views), Got::ok);
                for (size_t i = 0; i < kKeys; ++i) {
                  EXPECT_EQ(found.results[i], Got::ok);
                  EXPECT_EQ(found.payload(i), keys[i]);
                  EXPECT_EQ(tree->update_range(txn, found.places[i], keys[i], 0, "K"), Got::ok);
                }
                return Got::ok;
              }),
              Got::ok);
  }
  EXPECT_EQ(run([&](api::Transaction txn) {
              std::array<uint64_t, kKeys> indexes;
              std::array<api::Place, kKeys> places;
              for (size_t i = 0; i < kKeys; ++i) indexes[i] = i % 100;
              EXPECT_EQ(numbers_.find_many_for_update(txn, indexes.data(), kKeys, places.data()),
                        Got::ok);
              for (size_t i = 0; i < kKeys; ++i) {
                int64_t number = -1;
                EXPECT_EQ(numbers_.get(txn, places[i], number), Got::ok);
                EXPECT_EQ(number, i < 100 ? 0 : 1) << "an own write of the same batch is seen";
                EXPECT_EQ(numbers_.update(txn, places[i], number + 1), Got::ok);
              }
              return Got::ok;
            }),
            Got::ok);
}

TEST_F(ManyRecords, KeysAndPayloadsHaveTheirLimits) {
  const std::string longest(api::kMaxKeyBytes, 'k');
  const std::string longest_hashed(api::kMaxHashKeyBytes, 'k');
  const std::string payload(api::kMaxPayloadBytes, 'v');
  const auto insert = [&](const api::Mastertree& tree, api::Transaction txn, std::string_view key,
                          std::string_view value) {
    const api::Bytes keys[] = {"a", key};
    const api::Bytes payloads[] = {"", value};
    return tree.insert_many(txn, keys, payloads, 2);
  };
  const auto expect_refused = [&](const api::Mastertree& tree, std::string_view key,
                                  std::string_view value, Got expected) {
    EXPECT_EQ(run([&](api::Transaction txn) { return insert(tree, txn, key, value); }), expected);
    EXPECT_EQ(run([&](api::Transaction txn) {
                api::Payload found;
                return tree.get(txn, "a", found);
              }),
              Got::not_found)
        << "the roll-back has removed the first record";
  };
  expect_refused(words_, longest + "k", "", Got::key_too_long);
  expect_refused(words_, longest, payload + "v", Got::payload_too_long);
  expect_refused(names_, longest_hashed + "k", "", Got::key_too_long);
  expect_refused(names_, longest_hashed, payload + "v", Got::payload_too_long);
  EXPECT_EQ(run([&](api::Transaction txn) { return insert(words_, txn, longest, payload); }),
            Got::ok);
  EXPECT_EQ(run([&](api::Transaction txn) { return insert(names_, txn, longest_hashed, payload); }),
            Got::ok);
  EXPECT_EQ(run([&](api::Transaction txn) {
              const std::string too_long = longest + "k";
              const std::vector<api::Bytes> keys = {longest, too_long, "b"};
              FoundRecords found(3);
              EXPECT_EQ(found.get(words_, txn, keys), Got::ok);
              EXPECT_EQ(found.results[0], Got::ok);
              EXPECT_EQ(found.lengths[0], api::kMaxPayloadBytes);
              EXPECT_EQ(found.payload(0), payload.substr(0, FoundRecords::kStride));
              EXPECT_EQ(found.results[1], Got::key_too_long);
              EXPECT_EQ(found.results[2], Got::not_found);
              const std::vector<api::Bytes> hashed = {too_long, longest_hashed};
              EXPECT_EQ(found.get(names_, txn, hashed), Got::ok);
              EXPECT_EQ(found.results[0], Got::key_too_long);
              EXPECT_EQ(found.results[1], Got::ok);
              EXPECT_EQ(
                  txn.prefetch({words_.wanted(keys.data(), 3), names_.wanted(hashed.data(), 2, 0)}),
                  Got::ok);
              return Got::ok;
            }),
            Got::ok);
}

TEST_F(ManyRecords, AKeyThatOccursTwiceOrExistsIsNotInsertedTwice) {
  const api::Bytes twice[] = {"a", "b", "a"};
  EXPECT_EQ(run([&](api::Transaction txn) { return words_.insert_many(txn, twice, twice, 3); }),
            Got::already_exists);
  EXPECT_EQ(run([&](api::Transaction txn) { return words_.insert_many(txn, twice, twice, 2); }),
            Got::ok)
      << "the roll-back has removed both";
  const api::Bytes more[] = {"c", "b"};
  EXPECT_EQ(run([&](api::Transaction txn) { return words_.insert_many(txn, more, more, 2); }),
            Got::already_exists);
}

TEST_F(ManyRecords, BytesPastThePayloadAndForeignPlacesAreRefused) {
  fill(words_, 2);
  EXPECT_EQ(
      run([&](api::Transaction txn) {
        const uint64_t indexes[] = {1, 100, ~uint64_t{0}};
        api::Place places[3];
        EXPECT_EQ(numbers_.find_many(txn, indexes, 3, places, 8, 9), Got::out_of_range);
        EXPECT_EQ(numbers_.find_many(txn, indexes, 3, places, ~uint32_t{0}, 1), Got::out_of_range);
        EXPECT_EQ(txn.prefetch({numbers_.wanted(indexes, 3, 16, 1)}), Got::out_of_range);
        EXPECT_EQ(txn.prefetch({numbers_.wanted(indexes, 3, 16, 0)}), Got::ok);
        int64_t number = 0;
        EXPECT_EQ(numbers_.get(txn, places[0], number), Got::invalid_argument)
            << "a place that no call has set";
        EXPECT_EQ(numbers_.find_many(txn, indexes, 3, places, 16, 0), Got::ok);
        EXPECT_EQ(numbers_.get(txn, places[0], number, 8), Got::ok);
        EXPECT_EQ(numbers_.get(txn, places[0], number, 9), Got::out_of_range);
        EXPECT_EQ(numbers_.get(txn, places[0], &number, 16, 0), Got::ok);
        for (const int i : {1, 2}) {
          EXPECT_EQ(numbers_.get(txn, places[i], number), Got::out_of_range);
          EXPECT_EQ(numbers_.get(txn, places[i], &number, 0, 0), Got::out_of_range);
          EXPECT_EQ(numbers_.update(txn, places[i], number), Got::out_of_range);
        }
        EXPECT_EQ(words_.remove(txn, places[0], api::ordered_key(1)), Got::invalid_argument)
            << "a place of another storage";
        const auto key = api::ordered_key(1);
        FoundRecords found(1);
        EXPECT_EQ(found.get(words_, txn, {key}), Got::ok);
        EXPECT_EQ(words_.remove(txn, found.places[0], api::ordered_key(0)), Got::invalid_argument)
            << "a place of another key";
        EXPECT_EQ(names_.remove(txn, found.places[0], key), Got::invalid_argument);
        EXPECT_EQ(numbers_.get(txn, found.places[0], number), Got::invalid_argument);
        return Got::ok;
      }),
      Got::ok);
}

TEST_F(ManyRecords, APlaceOfACursorIsThatOfItsCurrentRecord) {
  fill(words_, 40);
  fill(names_, 3);
  EXPECT_EQ(run([&](api::Transaction txn) {
              api::Place place;
              api::Cursor cursor(words_, txn);
              EXPECT_EQ(cursor.get_place(place), Got::invalid_argument) << "not open yet";
              cursor.keys_only().from(api::ordered_key(7));
              EXPECT_EQ(cursor.next(), Got::ok);
              EXPECT_EQ(cursor.get_place(place), Got::ok);
              EXPECT_EQ(words_.update_range(txn, place, cursor.key(), 0, "x"), Got::ok);
              EXPECT_EQ(words_.remove(txn, place, api::ordered_key(8)), Got::invalid_argument);
              api::Rows<4, 8> rows;
              EXPECT_EQ(cursor.next_many(rows), Got::ok);
              EXPECT_EQ(cursor.get_place(place), Got::invalid_argument)
                  << "there is no current record after a batch";
              EXPECT_EQ(cursor.next(), Got::ok);
              EXPECT_EQ(cursor.get_place(place), Got::ok);
              EXPECT_EQ(words_.remove(txn, place, cursor.key()), Got::ok);
              const std::string removed(cursor.key().text());
              cursor.close();
              EXPECT_EQ(cursor.get_place(place), Got::invalid_argument);
              api::Payload payload;
              EXPECT_EQ(words_.get(txn, removed, payload), Got::not_found);
              EXPECT_EQ(words_.get(txn, api::ordered_key(7), payload), Got::ok);
              EXPECT_EQ(payload.text(), "x2345678");
              for (api::Cursor all(names_, txn); all.next() == Got::ok;) {
                EXPECT_EQ(all.get_place(place), Got::ok);
                EXPECT_EQ(names_.remove(txn, place, all.key()), Got::ok);
              }
              EXPECT_EQ(api::Cursor(names_, txn).next(), Got::end_of_scan);
              api::Cursor array(numbers_, txn, 0, 9);
              EXPECT_EQ(array.next(), Got::ok);
              EXPECT_EQ(array.get_place(place), Got::operation_not_supported);
              return Got::ok;
            }),
            Got::ok);
}

TEST_F(ManyRecords, StoragesThatWereNotFoundOrAreDroppedAreRefused) {
  const uint64_t indexes[] = {1, 2};
  const api::Bytes keys[] = {"a", "b"};
  const api::Array no_array;
  const api::Mastertree no_tree;
  EXPECT_EQ(run([&](api::Transaction txn) {
              api::Place places[2];
              EXPECT_EQ(no_array.find_many(txn, indexes, 2, places, 0, 0), Got::storage_not_found);
              EXPECT_EQ(no_array.get(txn, places[0], places, 0, 1), Got::storage_not_found);
              FoundRecords found(2);
              EXPECT_EQ(found.get(no_tree, txn, {keys[0], keys[1]}), Got::storage_not_found);
              EXPECT_EQ(no_tree.insert_many(txn, keys, keys, 2), Got::storage_not_found);
              EXPECT_EQ(txn.prefetch({numbers_.wanted(indexes, 2), no_array.wanted(indexes, 2)}),
                        Got::storage_not_found);
              EXPECT_EQ(txn.prefetch({no_tree.wanted(keys, 2)}), Got::storage_not_found);
              // The types of the C++ interface prevent these calls, but the node checks them, too.
              api::Wanted wrong = words_.wanted(keys, 2);
              wrong.storage = numbers_.wanted(indexes, 2).storage;
              wrong.indexes = indexes;
              wrong.bytes = 17;
              EXPECT_EQ(txn.prefetch({wrong}), Got::out_of_range);
              return Got::ok;
            }),
            Got::ok);
  numbers_control_->state.store(static_cast<uint32_t>(StorageState::dropping),
                                std::memory_order_seq_cst);
  EXPECT_EQ(run([&](api::Transaction txn) {
              api::Place places[2];
              EXPECT_EQ(numbers_.find_many(txn, indexes, 2, places), Got::storage_not_found);
              EXPECT_EQ(numbers_.find_many_for_update(txn, indexes, 2, places),
                        Got::storage_not_found);
              EXPECT_EQ(txn.prefetch({numbers_.wanted(indexes, 2)}), Got::ok) << "a hint";
              return Got::ok;
            }),
            Got::ok);
}

/// Wanted of a later version, which has a member more.
struct LongWanted {
  api::Wanted known;
  uint64_t more = ~uint64_t{0};
};

/// Wanted with the members that have no default.
struct ShortWanted {
  explicit ShortWanted(const api::Wanted& known)
      : storage(known.storage), count(known.count), indexes(known.indexes), keys(known.keys) {}

  const api::abi::StorageHandle* storage;
  size_t count;
  const uint64_t* indexes;
  const api::Bytes* keys;
};
static_assert(sizeof(ShortWanted) == api::abi::kLeastWantedBytes);

TEST_F(ManyRecords, APrefetchTakesAsManyMembersAsTheLibraryHas) {
  const uint64_t indexes[] = {1, 2};
  const api::Bytes keys[] = {"a", "b"};
  const api::Wanted array = numbers_.wanted(indexes, 2, 8, 8);
  const api::Wanted past_end = numbers_.wanted(indexes, 2, 9, 8);
  const api::Wanted tree = words_.wanted(keys, 2);
  std::vector<std::byte> output;
  std::string message;
  const auto with_prefetch = [&](auto&& body) {
    EXPECT_EQ(cluster_.worker(0).run([&](Transaction& txn) {
      const ProcedureAttempt attempt(txn, output, message);
      body([&](const auto& all, size_t bytes) {
        return node_functions().prefetch_wanted(
            attempt.number(), reinterpret_cast<const api::Wanted*>(all), std::size(all), bytes);
      });
      return Status::ok;
    }),
              Status::ok);
  };
  with_prefetch([&](const auto& prefetch) {
    const LongWanted good[] = {{array}, {tree}, {array}};
    EXPECT_EQ(prefetch(good, sizeof(LongWanted)), Got::ok);
    const LongWanted bad[] = {{array}, {tree}, {past_end}};
    EXPECT_EQ(prefetch(bad, sizeof(LongWanted)), Got::out_of_range) << "each element is read";
    // The node would take the next element for an offset if it read as much as its own Wanted has.
    const ShortWanted few[] = {ShortWanted(past_end), ShortWanted(tree), ShortWanted(array)};
    EXPECT_EQ(prefetch(few, sizeof(ShortWanted)), Got::ok);
    EXPECT_EQ(prefetch(few, sizeof(ShortWanted) - 1), Got::invalid_argument);
  });
}

TEST_F(ManyRecords, CallsAfterTheEndOfTheAttemptAreRefused) {
  const uint64_t index = 1;
  const api::Bytes key = "a";
  api::Transaction kept;
  api::Place place;
  EXPECT_EQ(run([&](api::Transaction txn) {
              kept = txn;
              return numbers_.find_many_for_update(txn, &index, 1, &place);
            }),
            Got::ok);
  const auto expect_refused = [&] {
    api::Place other;
    int64_t number = 0;
    EXPECT_EQ(numbers_.find_many(kept, &index, 1, &other), Got::invalid_argument);
    EXPECT_EQ(numbers_.get(kept, place, number), Got::invalid_argument);
    EXPECT_EQ(words_.insert_many(kept, &key, &key, 1), Got::invalid_argument);
    FoundRecords found(1);
    EXPECT_EQ(found.get(words_, kept, {key}), Got::invalid_argument);
    EXPECT_EQ(kept.prefetch({words_.wanted(&key, 1)}), Got::invalid_argument);
  };
  expect_refused();
  EXPECT_EQ(run([&](api::Transaction txn) {
              expect_refused();
              int64_t number = 0;
              EXPECT_EQ(numbers_.get(txn, place, number), Got::invalid_argument)
                  << "a place of another attempt";
              return Got::ok;
            }),
            Got::ok);
}

/// <atoll/storages.h> says which calls take entries of the read set.
TEST_F(ManyRecords, CallsTakeTheEntriesOfTheReadSetThatTheHeaderStates) {
  fill(words_, 10);
  EXPECT_EQ(run([&](api::Transaction txn) {
              const auto entries = [&] { return transaction().read_set_size(); };
              const uint64_t indexes[] = {1, 2, 3};
              api::Place places[3];
              EXPECT_EQ(numbers_.find_many_for_update(txn, indexes, 3, places), Got::ok);
              EXPECT_EQ(numbers_.update(txn, places[0], int64_t{1}), Got::ok);
              EXPECT_EQ(numbers_.update(txn, 5, int64_t{1}), Got::ok);
              EXPECT_EQ(numbers_.increment(txn, 6, int64_t{1}), Got::ok);
              EXPECT_EQ(words_.increment(txn, api::ordered_key(9), int64_t{1}), Got::ok);
              EXPECT_EQ(words_.add(txn, api::ordered_key(8), int64_t{1}), Got::ok);
              EXPECT_EQ(words_.upsert(txn, api::ordered_key(7), "other"), Got::ok);
              const auto key = api::ordered_key(1);
              const api::Bytes wanted = key;
              EXPECT_EQ(txn.prefetch({numbers_.wanted(indexes, 3), words_.wanted(&wanted, 1)}),
                        Got::ok);
              EXPECT_EQ(entries(), 0u);
              int64_t number = 0;
              EXPECT_EQ(numbers_.get(txn, places[1], number), Got::ok);
              EXPECT_EQ(numbers_.get(txn, places[1], number, 8), Got::ok);
              EXPECT_EQ(entries(), 1u) << "reads in sequence of one record";
              EXPECT_EQ(numbers_.increment(txn, 6, int64_t{1}, 8), Got::ok);
              EXPECT_EQ(entries(), 2u) << "another number of the record";
              EXPECT_EQ(words_.update(txn, api::ordered_key(2), "12345678"), Got::ok);
              EXPECT_EQ(words_.remove(txn, api::ordered_key(3)), Got::ok);
              EXPECT_EQ(entries(), 4u);
              const api::Bytes more[] = {"x", "y", "z"};
              EXPECT_EQ(words_.insert_many(txn, more, more, 3), Got::ok);
              EXPECT_EQ(entries(), 7u);
              api::Cursor cursor(words_, txn);
              cursor.until(api::ordered_key(3));
              while (cursor.next() == Got::ok) {
              }
              EXPECT_EQ(entries(), 10u);
              return Got::ok;
            }),
            Got::ok);
}

class FewEntries : public ManyRecords {
 protected:
  static constexpr uint32_t kEntries = 32;
  FewEntries() : ManyRecords({.read_set = kEntries, .write_set = kEntries}) {}
};

TEST_F(FewEntries, ATransactionThatIsTooLargeSaysSo) {
  std::vector<uint64_t> indexes(100);
  std::vector<std::string> keys(100);
  for (size_t i = 0; i < indexes.size(); ++i) {
    indexes[i] = i;
    keys[i] = "key" + std::to_string(100 + i);
  }
  const std::vector<api::Bytes> views = views_of(keys);
  const auto insert = [&](size_t count) {
    return run([&](api::Transaction txn) {
      return words_.insert_many(txn, views.data(), views.data(), count);
    });
  };
  const auto read = [&](size_t count) {
    return run([&](api::Transaction txn) {
      FoundRecords found(count);
      return found.get(words_, txn, {views.begin(), views.begin() + static_cast<long>(count)});
    });
  };
  EXPECT_EQ(insert(kEntries + 1), Got::transaction_too_large);
  EXPECT_EQ(insert(kEntries), Got::ok);
  EXPECT_EQ(run([&](api::Transaction txn) {
              return words_.insert_many(txn, &views[kEntries], &views[kEntries], kEntries);
            }),
            Got::ok);
  EXPECT_EQ(read(kEntries + 1), Got::transaction_too_large);
  EXPECT_EQ(read(kEntries), Got::ok);
  // The abort is also the outcome of the keys that were not read.
  for (const bool for_update : {false, true}) {
    FoundRecords found(views.size());
    EXPECT_EQ(run([&](api::Transaction txn) {
                if (for_update) return found.get(words_, txn, views);
                return words_.get_many(txn, views.data(), views.size(), found.bytes.data(),
                                       FoundRecords::kStride, found.results.data());
              }),
              Got::transaction_too_large);
    for (size_t i = 0; i < views.size(); ++i) {
      EXPECT_EQ(found.results[i], i < kEntries ? Got::ok : Got::transaction_too_large) << i;
    }
  }
  // Look-ups take no entry; reads and writes at their places do.
  const auto update = [&](size_t count) {
    return run([&](api::Transaction txn) {
      std::vector<api::Place> places(indexes.size());
      const Got found =
          numbers_.find_many_for_update(txn, indexes.data(), indexes.size(), places.data());
      if (found != Got::ok) return found;
      for (size_t i = 0; i < count; ++i) {
        const Got updated = numbers_.update(txn, places[i], int64_t{1});
        if (updated != Got::ok) return updated;
      }
      return Got::ok;
    });
  };
  EXPECT_EQ(update(kEntries + 1), Got::transaction_too_large);
  EXPECT_EQ(update(kEntries), Got::ok);
}

/// Runs `body(cold, storage)` with a storage whose records are in a snapshot only.
template <typename Storage, typename Body>
void with_cold_storage(SnapshotStage& stage, std::vector<GleanedLog> logs, Body&& body,
                       uint32_t frames = 16) {
  {
    ColdCluster before(stage, 1);
    for (GleanedLog& log : logs) log.vid = Vid::make(before.next_epoch(), 1);
    ASSERT_EQ(before.take(std::move(logs)), "");
  }
  ColdCluster cold(stage, 1, true, frames);
  body(cold, library_storage<Storage>(cold.cluster, "cold"));
}

constexpr uint64_t kColdRecords = 1000;

std::vector<GleanedLog> cold_numbers() {
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < kColdRecords; ++i) {
    logs.push_back({LogType::update, big_endian(i), 0,
                    std::string(reinterpret_cast<const char*>(&i), sizeof i), Vid()});
  }
  return logs;
}

std::vector<GleanedLog> cold_words() {
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < kColdRecords; ++i) {
    logs.push_back({LogType::insert, big_endian(i), 0, std::to_string(i), Vid()});
  }
  return logs;
}

/// Indexes of records on different pages, one twice.
constexpr std::array<uint64_t, 5> kColdIndexes = {3, 999, 500, 3, 250};

/// Looks up and reads the records of kColdIndexes, at their places.
Got read_cold_numbers(api::Transaction txn, const api::Array& numbers, bool for_update,
                      std::array<api::Place, 5>& places) {
  const Got found = for_update
                        ? numbers.find_many_for_update(txn, kColdIndexes.data(), 5, places.data())
                        : numbers.find_many(txn, kColdIndexes.data(), 5, places.data());
  for (size_t i = 0; found == Got::ok && i < 5; ++i) {
    uint64_t number = 0;
    const Got got = numbers.get(txn, places[i], number);
    if (got != Got::ok) return got;
    EXPECT_EQ(number, kColdIndexes[i]);
  }
  return found;
}

TEST(ManyColdRecords, PlacesOfAnArrayWorkInAllIsolations) {
  SnapshotStage stage(StorageType::array, kColdRecords, sizeof(uint64_t));
  with_cold_storage<api::Array>(stage, cold_numbers(), [](ColdCluster& cold, api::Array numbers) {
    TestWorker& worker = cold.cluster.worker(0);
    std::array<api::Place, 5> places;
    const auto read = [&](Isolation isolation, bool for_update) {
      return run_procedure(
          worker,
          [&](api::Transaction txn) { return read_cold_numbers(txn, numbers, for_update, places); },
          isolation);
    };
    EXPECT_EQ(read(Isolation::serializable, false), Got::ok);
    EXPECT_EQ(read(Isolation::snapshot_read_only, false), Got::ok);
    EXPECT_EQ(read(Isolation::snapshot_read_only, true), Got::read_only_transaction);
    EXPECT_EQ(read(Isolation::snapshot, true), Got::ok);
    EXPECT_EQ(run_procedure(
                  worker,
                  [&](api::Transaction txn) {
                    const Got got = read_cold_numbers(txn, numbers, false, places);
                    EXPECT_EQ(numbers.update(txn, places[1], uint64_t{7}), Got::invalid_argument)
                        << "it was found for reading, and is in no page of memory";
                    return got;
                  }),
              Got::ok);
    const auto change = [&](Isolation isolation, size_t i, uint64_t from, uint64_t to) {
      EXPECT_EQ(run_procedure(
                    worker,
                    [&](api::Transaction txn) {
                      uint64_t number = 0;
                      Got got = numbers.find_many_for_update(txn, &kColdIndexes[i], 1, &places[i]);
                      if (got == Got::ok) got = numbers.get(txn, places[i], number);
                      EXPECT_EQ(number, from);
                      if (got == Got::ok) got = numbers.update(txn, places[i], to);
                      if (got == Got::ok) got = numbers.get(txn, places[i], number);
                      EXPECT_EQ(number, to) << "an own write is seen at the place";
                      return got;
                    },
                    isolation),
                Got::ok);
    };
    change(Isolation::snapshot, 2, 500, 7);
    change(Isolation::serializable, 2, 7, 8);
    change(Isolation::serializable, 4, 250, 9);
  });
}

TEST(ManyColdRecords, RecordsOfATreeAreReadAndInsertedInAllIsolations) {
  SnapshotStage stage(StorageType::mastertree);
  with_cold_storage<api::Mastertree>(
      stage, cold_words(), [](ColdCluster& cold, api::Mastertree words) {
        TestWorker& worker = cold.cluster.worker(0);
        std::vector<std::string> keys;
        for (const uint64_t index : kColdIndexes) keys.push_back(big_endian(index));
        keys.push_back(big_endian(kColdRecords));
        const auto change = [&](Isolation isolation, const std::string& first) {
          return run_procedure(
              worker,
              [&](api::Transaction txn) {
                FoundRecords found(keys.size());
                const Got got = found.get(words, txn, views_of(keys));
                if (got != Got::ok) return got;
                EXPECT_EQ(found.payload(0), first);
                EXPECT_EQ(found.payload(1), "999");
                EXPECT_EQ(found.results[5], Got::not_found);
                return words.update_range(txn, found.places[0], keys[0], 0, "x");
              },
              isolation);
        };
        const auto insert = [&](Isolation isolation, const std::vector<std::string>& texts) {
          return run_procedure(
              worker,
              [&](api::Transaction txn) {
                return words.insert_many(txn, views_of(texts).data(), views_of(texts).data(),
                                         texts.size());
              },
              isolation);
        };
        EXPECT_EQ(change(Isolation::snapshot_read_only, "3"), Got::read_only_transaction);
        EXPECT_EQ(insert(Isolation::snapshot_read_only, {"a"}), Got::read_only_transaction);
        EXPECT_EQ(insert(Isolation::snapshot, {"a", keys[1]}), Got::already_exists);
        EXPECT_EQ(insert(Isolation::snapshot, {"a", "b"}), Got::ok);
        EXPECT_EQ(change(Isolation::snapshot, "3"), Got::ok);
        EXPECT_EQ(change(Isolation::snapshot, "3"), Got::snapshot_conflict);
        EXPECT_EQ(change(Isolation::serializable, "x"), Got::ok);
        EXPECT_EQ(insert(Isolation::serializable, {keys[1], "c"}), Got::already_exists);
      });
}

TEST(ManyColdRecords, APlaceOfACursorNamesARecordOfASnapshotToo) {
  SnapshotStage stage(StorageType::mastertree);
  with_cold_storage<api::Mastertree>(
      stage, cold_words(), [](ColdCluster& cold, api::Mastertree words) {
        const auto remove_range = [&](uint64_t low, uint64_t high, Isolation isolation) {
          return run_procedure(
              cold.cluster.worker(0),
              [&](api::Transaction txn) {
                api::Cursor cursor(words, txn);
                cursor.from(api::ordered_key(low)).until(api::ordered_key(high));
                for (uint64_t i = low;; ++i) {
                  const Got next = cursor.next();
                  if (next != Got::ok) {
                    EXPECT_EQ(i, high);
                    return next == Got::end_of_scan ? Got::ok : next;
                  }
                  EXPECT_EQ(cursor.payload().text(), std::to_string(i));
                  api::Place place;
                  EXPECT_EQ(cursor.get_place(place), Got::ok);
                  const Got removed = words.remove(txn, place, cursor.key());
                  if (removed != Got::ok) return removed;
                }
              },
              isolation);
        };
        EXPECT_EQ(remove_range(10, 30, Isolation::snapshot_read_only), Got::read_only_transaction);
        EXPECT_EQ(remove_range(10, 30, Isolation::snapshot), Got::ok);
        EXPECT_EQ(remove_range(30, 60, Isolation::serializable), Got::ok);
        EXPECT_EQ(remove_range(10, 30, Isolation::snapshot), Got::snapshot_conflict);
      });
}

/// One call reads the missing pages of all its storages. A prefetch function reads none.
TEST(ManyColdRecords, APrefetchReadsMissingPagesTogetherAndRegistersNothing) {
  constexpr uint64_t kRecords = 100'000;  // 600 pages of 168 records
  constexpr uint32_t kFrames = 64;
  SnapshotStage stage(StorageType::array, kRecords, sizeof(uint64_t));
  std::vector<GleanedLog> logs;
  for (uint64_t i = 0; i < kRecords; i += 100) {
    const std::string number(reinterpret_cast<const char*>(&i), sizeof i);
    logs.push_back({LogType::update, big_endian(i), 0, number, Vid()});
  }
  with_cold_storage<api::Array>(
      stage, std::move(logs),
      [](ColdCluster& cold, api::Array numbers) {
        TestWorker& worker = cold.cluster.worker(0);
        const auto misses = [&] { return cold.cache().statistics().misses; };
        constexpr std::array<uint64_t, 2> kFirst = {1'200, 20'000};
        constexpr std::array<uint64_t, 2> kSecond = {40'000, 1'300};
        const auto read = [&](api::Transaction txn, uint64_t index) {
          uint64_t number = ~index;
          EXPECT_EQ(numbers.get(txn, index, number), Got::ok);
          EXPECT_EQ(number, index);
        };
        const auto fill_cache = [&](api::Transaction txn) {
          for (uint64_t index = 60'000; index < kRecords; index += 500) read(txn, index);
          return Got::ok;
        };
        ASSERT_EQ(run_procedure(worker, fill_cache), Got::ok);  // now a miss reads one page
        EXPECT_EQ(worker.run([&](Transaction& transaction) {
          const PrefetchRun prefetch_run(transaction);
          const uint64_t before = misses();
          api::Prefetch prefetch(node_functions(), prefetch_run.number(), "");
          prefetch.records({numbers.wanted(kFirst.data(), 2), numbers.wanted(kSecond.data(), 2)});
          EXPECT_EQ(misses(), before) << "it must not delay the running transaction";
          EXPECT_EQ(transaction.pointer_set_size(), 0u);
          return Status::ok;
        }),
                  Status::ok);
        const Got status = run_procedure(worker, [&](api::Transaction txn) {
          read(txn, 10'000);  // the pages above the leaves are in the cache now
          const uint64_t before = misses();
          const Got got =
              txn.prefetch({numbers.wanted(kFirst.data(), 2), numbers.wanted(kSecond.data(), 2)});
          EXPECT_EQ(misses(), before + 3) << "two of the records are on one page";
          EXPECT_EQ(worker.transaction->pointer_set_size(), 1u);
          for (const uint64_t index : {1'200u, 1'300u, 20'000u, 40'000u}) read(txn, index);
          EXPECT_EQ(misses(), before + 3);
          return got;
        });
        EXPECT_EQ(status, Got::ok);
      },
      kFrames);
}

}  // namespace
}  // namespace atolldb::test
