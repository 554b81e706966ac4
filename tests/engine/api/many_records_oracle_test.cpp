// Calls of the public API for many records, compared with a model: random batches of records that
// exist, are missing or occur twice, writes at their places, and roll-backs.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/api/library_stage.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Got = api::Status;

constexpr uint64_t kNumbers = 300;  // records of the array: several pages
constexpr uint32_t kNumberAt = 8;   // offset of a record's number
constexpr size_t kMostOfBatch = 40;

class ManyRecordsOracle {
 public:
  explicit ManyRecordsOracle(uint64_t seed) : random_(seed), cluster_(1, 1) {
    cluster_.create("numbers", StorageType::array, 16, kNumbers);
    cluster_.create("words", StorageType::mastertree);
    cluster_.create("names", StorageType::hash);
    numbers_ = library_storage<api::Array>(cluster_, "numbers");
    words_ = library_storage<api::Mastertree>(cluster_, "words");
    names_ = library_storage<api::Hash>(cluster_, "names");
  }

  /// Runs one transaction, which ends with a roll-back in one of five cases.
  void run_one() {
    const uint64_t seed = random_();
    const bool rolls_back = random_() % 5 == 0;
    Model after;
    const Got status = run_procedure(cluster_.worker(0), [&](api::Transaction txn) {
      after = committed_;
      std::mt19937_64 random(seed);
      for (uint64_t left = 1 + random() % 4; left > 0; --left) {
        const Got one = operate(txn, random, after);
        if (one != Got::ok) return one;
      }
      return rolls_back ? Got::user_abort : Got::ok;
    });
    ASSERT_TRUE(status == Got::ok || status == Got::user_abort) << api::to_string(status);
    if (status == Got::ok) committed_ = std::move(after);
  }

  /// Compares all records with the model.
  void expect_same() {
    const Got status = run_procedure(cluster_.worker(0), [&](api::Transaction txn) {
      std::vector<uint64_t> all(kNumbers);
      for (uint64_t i = 0; i < kNumbers; ++i) all[i] = i;
      std::vector<uint64_t> rows(kNumbers * 2);
      const Got got = numbers_.get_many(txn, all.data(), kNumbers, rows.data(), kNumbers * 16);
      if (got != Got::ok) return got;
      for (uint64_t i = 0; i < kNumbers; ++i) {
        EXPECT_EQ(rows[2 * i], 0u);
        EXPECT_EQ(rows[2 * i + 1], committed_.numbers[i]) << i;
      }
      EXPECT_EQ(content(words_, txn), committed_.words);
      EXPECT_EQ(content(names_, txn), committed_.names);
      return Got::ok;
    });
    ASSERT_EQ(status, Got::ok);
  }

 private:
  using Texts = std::map<std::string, std::string>;
  struct Model {
    std::vector<uint64_t> numbers = std::vector<uint64_t>(kNumbers);
    Texts words;
    Texts names;
  };
  using Random = std::mt19937_64;

  static Texts content(const api::Mastertree& tree, api::Transaction txn) {
    Texts found;
    api::Cursor cursor(tree, txn);
    while (cursor.next() == Got::ok) {
      const bool is_new = found.emplace(cursor.key().text(), cursor.payload().text()).second;
      EXPECT_TRUE(is_new);
    }
    return found;
  }

  /// Keys of 8 bytes, and longer ones that share their first bytes.
  static std::string some_key(Random& random) {
    std::string key = "key " + std::to_string(1000 + random() % 200);
    if (random() % 4 == 0) key += " and more";
    return key;
  }
  static std::vector<std::string> some_keys(Random& random) {
    std::vector<std::string> keys(random() % kMostOfBatch);
    for (std::string& key : keys) key = some_key(random);
    return keys;
  }
  static std::string some_text(Random& random, uint64_t most) {
    return std::string(random() % most, static_cast<char>('a' + random() % 26));
  }

  Got operate(api::Transaction txn, Random& random, Model& model) {
    const bool is_hash = random() % 2 == 0;
    const api::Mastertree& tree = is_hash ? names_ : words_;
    Texts& texts = is_hash ? model.names : model.words;
    switch (random() % 6) {
      case 0:
        return find_numbers(txn, random, model.numbers, false);
      case 1:
        return find_numbers(txn, random, model.numbers, true);
      case 2:
        return update_at_places(txn, random, tree, texts);
      case 3:
        return insert_many(txn, random, tree, texts);
      case 4:
        return change_scanned(txn, random, tree, texts);
      default:
        return prefetch(txn, random);
    }
  }

  Got find_numbers(api::Transaction txn, Random& random, std::vector<uint64_t>& numbers,
                   bool for_update) {
    std::vector<uint64_t> indexes(random() % kMostOfBatch);
    for (uint64_t& index : indexes) index = random() % (kNumbers + 5);
    std::vector<api::Place> places(indexes.size());
    const Got found = for_update
                          ? numbers_.find_many_for_update(txn, indexes.data(), indexes.size(),
                                                          places.data(), kNumberAt, 8)
                          : numbers_.find_many(txn, indexes.data(), indexes.size(), places.data());
    if (found != Got::ok) return found;
    for (size_t i = 0; i < indexes.size(); ++i) {
      uint64_t number = ~uint64_t{0};
      const Got got = numbers_.get(txn, places[i], number, kNumberAt);
      if (indexes[i] >= kNumbers) {
        EXPECT_EQ(got, Got::out_of_range);
        EXPECT_EQ(numbers_.update(txn, places[i], number, kNumberAt), Got::out_of_range);
        continue;
      }
      if (got != Got::ok) return got;
      EXPECT_EQ(number, numbers[indexes[i]]) << "record " << indexes[i];
      if (!for_update || random() % 2 == 0) continue;
      const uint64_t changed = random();
      const Got updated = numbers_.update(txn, places[i], changed, kNumberAt);
      if (updated != Got::ok) return updated;
      numbers[indexes[i]] = changed;
    }
    return Got::ok;
  }

  /// Changes or removes the record of a place. `found`: its entry in the model.
  static Got change(api::Transaction txn, Random& random, const api::Mastertree& tree,
                    const api::Place& place, Texts& texts, Texts::iterator found) {
    if (random() % 3 == 0) {
      const Got removed = tree.remove(txn, place, found->first);
      texts.erase(found);
      return removed;
    }
    const auto offset = static_cast<uint32_t>(random() % (found->second.size() + 1));
    const std::string bytes = some_text(random, found->second.size() - offset + 1);
    found->second.replace(offset, bytes.size(), bytes);
    return tree.update_range(txn, place, found->first, offset, bytes);
  }

  static Got update_at_places(api::Transaction txn, Random& random, const api::Mastertree& tree,
                              Texts& texts) {
    const std::vector<std::string> keys = some_keys(random);
    FoundRecords records(keys.size());
    const Got got = records.get(tree, txn, views_of(keys));
    if (got != Got::ok) return got;
    std::set<std::string> changed;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (changed.contains(keys[i])) continue;
      const auto found = texts.find(keys[i]);
      EXPECT_EQ(records.results[i], found == texts.end() ? Got::not_found : Got::ok) << keys[i];
      if (found == texts.end()) {
        EXPECT_EQ(tree.remove(txn, records.places[i], keys[i]), Got::invalid_argument);
        continue;
      }
      EXPECT_EQ(records.lengths[i], found->second.size());
      EXPECT_EQ(records.payload(i), found->second.substr(0, FoundRecords::kStride));
      if (random() % 2 == 0) continue;
      changed.insert(keys[i]);
      const Got one = change(txn, random, tree, records.places[i], texts, found);
      if (one != Got::ok) return one;
    }
    return Got::ok;
  }

  static Got insert_many(api::Transaction txn, Random& random, const api::Mastertree& tree,
                         Texts& texts) {
    std::vector<std::string> keys = some_keys(random);
    std::vector<std::string> payloads(keys.size());
    for (std::string& payload : payloads) payload = some_text(random, 60);
    if (random() % 2 == 0) std::ranges::sort(keys);
    const bool takes_new_keys = random() % 4 != 0;
    if (takes_new_keys) {
      std::set<std::string> taken;
      std::erase_if(keys, [&](const std::string& key) {
        return texts.contains(key) || !taken.insert(key).second;
      });
    }
    bool all_are_new = true;
    for (size_t i = 0; i < keys.size(); ++i) {
      all_are_new = texts.emplace(keys[i], payloads[i]).second && all_are_new;
    }
    const Got got =
        tree.insert_many(txn, views_of(keys).data(), views_of(payloads).data(), keys.size());
    if (is_abort(got)) return got;
    EXPECT_EQ(got, all_are_new ? Got::ok : Got::already_exists);
    return got == Got::ok ? Got::ok : Got::user_abort;
  }

  static Got change_scanned(api::Transaction txn, Random& random, const api::Mastertree& tree,
                            Texts& texts) {
    const Texts before = texts;
    size_t seen = 0;
    api::Cursor cursor(tree, txn);
    api::Place place;
    EXPECT_EQ(cursor.get_place(place), Got::invalid_argument);
    for (;; ++seen) {
      const Got next = cursor.next();
      if (next == Got::end_of_scan) break;
      if (next != Got::ok) return next;
      const auto found = texts.find(std::string(cursor.key().text()));
      if (found == texts.end()) {
        ADD_FAILURE() << cursor.key().text();
        return Got::user_abort;
      }
      EXPECT_EQ(cursor.payload().text(), found->second);
      if (random() % 3 != 0) continue;
      const Got placed = cursor.get_place(place);
      if (placed != Got::ok) return placed;
      const Got one = change(txn, random, tree, place, texts, found);
      if (one != Got::ok) return one;
    }
    EXPECT_EQ(seen, before.size());
    EXPECT_EQ(cursor.get_place(place), Got::invalid_argument);
    return Got::ok;
  }

  Got prefetch(api::Transaction txn, Random& random) {
    std::vector<uint64_t> indexes(random() % kMostOfBatch);
    for (uint64_t& index : indexes) index = random() % (kNumbers + 5);
    const std::vector<std::string> keys = some_keys(random);
    const std::vector<api::Bytes> views = views_of(keys);
    return txn.prefetch({numbers_.wanted(indexes.data(), indexes.size(), kNumberAt, 8),
                         words_.wanted(views.data(), views.size(), 0),
                         names_.wanted(views.data(), views.size()),
                         words_.wanted(views.data(), views.size(), 10)});
  }

  Random random_;
  TestCluster cluster_;
  api::Array numbers_;
  api::Mastertree words_;
  api::Hash names_;
  Model committed_;
};

TEST(ManyRecordsOracle, BatchesHaveTheEffectsOfSingleCalls) {
  ManyRecordsOracle oracle(seed());
  for (uint64_t round = 0; round < rounds(40, 1000, 10); ++round) {
    for (int i = 0; i < 50; ++i) ASSERT_NO_FATAL_FAILURE(oracle.run_one());
    ASSERT_NO_FATAL_FAILURE(oracle.expect_same());
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace atolldb::test
