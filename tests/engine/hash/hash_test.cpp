// Hash storages: keys with their hashes, operations, scans while they grow, and the directory.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/mastertree/inspect.h"
#include "tests/engine/hash/directory_rules.h"
#include "tests/engine/hash/pack_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(HashKeys, KeepTheirHashesForever) {
  // Log records and snapshots have these hashes (R87).
  EXPECT_EQ(hash_of_key(bytes_of("")), 0xd033724ff1ed13e3ull);
  EXPECT_EQ(hash_of_key(bytes_of("a")), 0xca20c9f8f51308dfull);
  EXPECT_EQ(hash_of_key(bytes_of("12345678")), 0x720bbacd1104f96eull);
  EXPECT_EQ(hash_of_key(bytes_of("123456789")), 0xfe4fb74e9c81712ull);
  EXPECT_EQ(hash_of_key(bytes_of(std::string(1016, 'x'))), 0xadfc35f61d5d35e6ull);
  EXPECT_EQ(hash_of_key(ordered_key(42)), 0xa9f8a1cbf8e1615bull);
}

TEST(HashKeys, HaveStoredFormsThatReturnThem) {
  std::mt19937_64 random(seed());
  std::map<std::string, std::string> key_of;  // by stored form
  for (uint32_t length = 0; length <= 40; ++length) {
    for (int tries = 0; tries < 200; ++tries) {
      std::string key(length, '\0');
      // Few different bytes, so that some keys are extensions of others.
      for (char& byte : key) byte = static_cast<char>(tries % 2 == 0 ? random() : random() % 2);
      const HashKey hashed(bytes_of(key));
      const OriginalKey original(hashed.stored());
      ASSERT_EQ(text_of(original), key);
      ASSERT_TRUE(is_stored_form(hashed.stored()));
      std::string stored = text_of(hashed.stored());
      const auto [known, is_new] = key_of.emplace(stored, key);
      ASSERT_EQ(known->second, key);
      if (length == 8) continue;  // each stored form of 8 bytes is that of a key
      stored[random() % 8] ^= 1;
      ASSERT_FALSE(is_stored_form(bytes_of(stored)));
    }
  }
  EXPECT_FALSE(is_stored_form(bytes_of("1234567")));
}

TEST(HashKeys, AreSpreadEvenlyAndRarelyEqual) {
  const uint64_t keys = rounds(1 << 20, 1 << 20, 1 << 16);
  constexpr uint32_t kBuckets = 4096;
  for (const uint64_t step : {uint64_t{1}, uint64_t{1} << 32, uint64_t{0x9e3779b97f4a7c15}}) {
    std::vector<uint32_t> counts(kBuckets);
    std::vector<uint64_t> hashes;
    for (uint64_t i = 0; i < keys; ++i) {
      hashes.push_back(hash_of_key(ordered_key(i * step)));
      ++counts[hashes.back() / (~uint64_t{0} / kBuckets + 1)];
    }
    // Chi-square with 4095 degrees of freedom: mean 4095, standard deviation 90.5.
    double square = 0;
    const double mean = static_cast<double>(keys) / kBuckets;
    for (const uint32_t count : counts) square += (count - mean) * (count - mean) / mean;
    EXPECT_LT(square, 4095 + 6 * 90.5) << step;
    EXPECT_GT(square, 4095 - 6 * 90.5) << step;
    std::ranges::sort(hashes);
    EXPECT_EQ(std::ranges::adjacent_find(hashes), hashes.end()) << step;
  }
}

TEST(HashKeys, OfEqualLengthDifferInHalfOfTheBits) {
  std::mt19937_64 random(seed());
  for (const size_t length : {1u, 8u, 13u, 40u}) {
    uint64_t changed = 0;
    constexpr uint64_t kTries = 2000;
    for (uint64_t i = 0; i < kTries; ++i) {
      std::string key(length, '\0');
      for (char& byte : key) byte = static_cast<char>(random());
      const uint64_t before = hash_of_key(bytes_of(key));
      key[random() % length] ^= static_cast<char>(1 << random() % 8);
      changed += static_cast<uint64_t>(std::popcount(before ^ hash_of_key(bytes_of(key))));
    }
    EXPECT_NEAR(static_cast<double>(changed) / kTries, 32.0, 1.0) << length;
  }
}

TEST(HashStorage, TakesKeysUpToItsLimit) {
  TestCluster cluster(1, 1);
  const Hash hash(cluster.create("h", StorageType::hash));
  const std::string longest(Hash::kMaxKeyBytes, 'k');
  const std::string too_long(Hash::kMaxKeyBytes + 1, 'k');
  const std::string value = "value";
  EXPECT_EQ(cluster.worker(0).run([&](Transaction& txn) {
    EXPECT_EQ(hash.insert(txn, bytes_of(too_long), bytes_of(value)), Status::key_too_long);
    EXPECT_EQ(hash.insert(txn, bytes_of(longest + "kkk"), bytes_of(value)), Status::key_too_long);
    EXPECT_EQ(hash.insert(txn, bytes_of(""), bytes_of(value)), Status::ok);
    return hash.insert(txn, bytes_of(longest), bytes_of(value));
  }),
            Status::ok);
  EXPECT_EQ(cluster.worker(0).run([&](Transaction& txn) {
    char buffer[8];
    uint32_t bytes = 0;
    EXPECT_EQ(hash.get(txn, bytes_of(too_long), buffer, 8, bytes), Status::key_too_long);
    EXPECT_EQ(hash.get(txn, bytes_of(""), buffer, 8, bytes), Status::ok);
    EXPECT_EQ(bytes, value.size());
    return hash.get(txn, bytes_of(longest), buffer, 8, bytes);
  }),
            Status::ok);
}

TEST(HashStorage, DoesEveryOperation) {
  TestCluster cluster(1, 1);
  const Hash hash(cluster.create("h", StorageType::hash));
  const std::string key_text = "key";
  const std::string none = "none";
  const std::string other = "other";
  const Bytes key = bytes_of(key_text);
  // An insert into an empty storage aborts if the transaction has read there before (R5).
  ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
    return hash.insert(txn, bytes_of(std::string("first")), key);
  }),
            Status::ok);
  EXPECT_EQ(cluster.worker(0).run([&](Transaction& txn) {
    uint64_t value = 5;
    uint32_t bytes = 0;
    RecordRef ref;
    const auto of_value = std::as_bytes(std::span(&value, 1));
    EXPECT_EQ(hash.get(txn, key, &value, 8, bytes), Status::not_found);
    EXPECT_EQ(hash.update(txn, key, of_value), Status::not_found);
    EXPECT_EQ(hash.erase(txn, key), Status::not_found);
    EXPECT_EQ(hash.insert(txn, key, of_value), Status::ok);
    EXPECT_EQ(hash.insert(txn, key, of_value), Status::already_exists);
    EXPECT_EQ(hash.increment(txn, key, 0, IncrementType::u64, &value), Status::ok);
    EXPECT_EQ(hash.get_range(txn, key, 0, 8, &value), Status::ok);
    EXPECT_EQ(value, 10u);
    EXPECT_EQ(hash.get_for_update(txn, key, &value, 8, bytes, ref), Status::ok);
    value = 7;
    EXPECT_EQ(hash.update_range(txn, ref, key, 0, of_value), Status::ok);
    EXPECT_EQ(hash.upsert(txn, bytes_of(other), of_value), Status::ok);
    const Bytes keys[] = {key, bytes_of(none), bytes_of(other)};
    uint64_t values[3] = {};
    Status found[3];
    EXPECT_EQ(hash.get_many(txn, keys, values, 8, found), Status::ok);
    EXPECT_EQ(found[0], Status::ok);
    EXPECT_EQ(found[1], Status::not_found);
    EXPECT_EQ(found[2], Status::ok);
    EXPECT_EQ(values[0], 7u);
    EXPECT_EQ(hash.erase(txn, key), Status::ok);
    return Status::ok;
  }),
            Status::ok);
}

/// A serializable transaction that has seen a key as absent does not commit after its insert.
TEST(HashStorage, AbsentKeysArePhantomsOfNoTransaction) {
  TestCluster cluster(1, 2, {.clock = false});
  const Hash hash(cluster.create("h", StorageType::hash));
  const std::string value = "value";
  const auto insert = [&](TestWorker& worker, const std::string& key) {
    return worker.run(
        [&](Transaction& txn) { return hash.insert(txn, bytes_of(key), bytes_of(value)); });
  };
  ASSERT_EQ(insert(cluster.worker(1), "first"), Status::ok);
  Transaction& reader = *cluster.worker(0).transaction;
  for (const std::string key : {"absent", "another"}) {
    ASSERT_EQ(reader.begin(), Status::ok);
    char buffer[8];
    uint32_t bytes = 0;
    ASSERT_EQ(hash.get(reader, bytes_of(key), buffer, 8, bytes), Status::not_found);
    ASSERT_EQ(insert(cluster.worker(1), key), Status::ok);
    // The write may already find that the page has changed.
    const Status wrote = hash.upsert(reader, bytes_of("mine"), bytes_of(value));
    if (is_abort(wrote)) {
      reader.rollback(wrote);
    } else {
      EXPECT_TRUE(is_abort(reader.commit())) << key;
    }
  }
}

struct Scanned {
  Status status = Status::ok;
  std::multiset<std::string> keys;
};

Scanned scan_all(Transaction& txn, const Hash& hash) {
  Scanned scanned;
  HashCursor cursor(hash, txn);
  for (scanned.status = cursor.next(); scanned.status == Status::ok;
       scanned.status = cursor.next()) {
    scanned.keys.insert(text_of(cursor.key()));
  }
  return scanned;
}

/// Scans run while another thread inserts. Each scan that reaches the end has each record that was
/// there before it exactly once, and no record twice, whether it can commit or not.
TEST(HashScan, ReturnsEachRecordOnceWhileTheStorageGrows) {
  TestCluster cluster(1, 2);
  const Hash hash(cluster.create("h", StorageType::hash));
  const uint64_t count = rounds(6000, 60'000);
  const std::string value(60, 'v');
  std::mt19937_64 random(seed());
  std::vector<uint64_t> numbers(count);
  for (uint64_t& number : numbers) number = random();
  std::atomic<uint64_t> inserted{0};
  std::atomic<uint64_t> scans{0};
  std::string problem;
  cluster.run_threads([&](uint32_t index, TestWorker& worker) {
    if (index == 0) {
      for (const uint64_t number : numbers) {
        // The second half waits for a scan, because one that begins now sees the storage grow.
        while (inserted.load(std::memory_order_relaxed) == count / 2 &&
               scans.load(std::memory_order_relaxed) == 0) {
          sched_yield();
        }
        const Status status = worker.run([&](Transaction& txn) {
          return hash.insert(txn, ordered_key(number), bytes_of(value));
        });
        if (status != Status::ok) problem = "an insert failed";
        inserted.fetch_add(1, std::memory_order_release);
      }
      return;
    }
    while (inserted.load(std::memory_order_acquire) < count && problem.empty()) {
      const uint64_t before = inserted.load(std::memory_order_acquire);
      if (worker.transaction->begin() != Status::ok) continue;
      const Scanned scanned = scan_all(*worker.transaction, hash);
      worker.transaction->rollback(Status::user_abort);
      if (scanned.status != Status::end_of_scan) continue;
      scans.fetch_add(1, std::memory_order_relaxed);
      for (const std::string& key : scanned.keys) {
        if (scanned.keys.count(key) != 1) problem = "a record was returned twice";
      }
      for (uint64_t i = 0; i < before; ++i) {
        if (!scanned.keys.contains(text_of(ordered_key(numbers[i])))) problem = "one is missing";
      }
    }
  });
  EXPECT_EQ(problem, "");
  EXPECT_GT(scans.load(std::memory_order_relaxed), 0u);
  EXPECT_EQ(cluster.worker(1).run([&](Transaction& txn) {
    const Scanned scanned = scan_all(txn, hash);
    EXPECT_EQ(scanned.keys.size(), count);
    return scanned.status == Status::end_of_scan ? Status::ok : scanned.status;
  }),
            Status::ok);
}

/// Bytes of all pages of a storage and of its directory.
uint64_t memory_of(TestCluster& cluster, StorageControl& storage) {
  TreeStatistics statistics;
  EXPECT_EQ(check_tree(cluster.view(), storage, statistics), "");
  const uint32_t depth = cluster.directory().depth_of(storage.id);
  return statistics.pages() * kPageBytes + (uint64_t{1} << depth) * sizeof(uint64_t);
}

struct RecordSize {
  uint32_t key_bytes;
  uint32_t payload_bytes;
  double most;  // bytes of memory for each byte of keys and payloads
};

/// Inserts records of this size, and compares the memory with the limit again and again while the
/// storage grows. One worker inserts always the same keys, so the test has always the same result.
void expect_memory(const RecordSize& size) {
  TestCluster cluster(1, 1, {.pool_bytes = uint64_t{64} << 20});
  StorageControl& storage = cluster.create("h", StorageType::hash, size.payload_bytes);
  const Hash hash(storage);
  const std::string value(size.payload_bytes, 'v');
  const uint64_t record_bytes = size.key_bytes + size.payload_bytes;
  for (uint64_t number = 1; number <= 60'000; ++number) {
    std::string key(size.key_bytes, 'k');
    std::memcpy(key.data(), &number, sizeof(number));
    ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
      return hash.insert(txn, bytes_of(key), bytes_of(value));
    }),
              Status::ok);
    if (number < 10'000 || number % 2'000 != 0) continue;
    const auto memory = static_cast<double>(memory_of(cluster, storage));
    EXPECT_LE(memory / static_cast<double>(number * record_bytes), size.most) << number;
  }
}

TEST(HashMemory, IsAtMostOneAndAHalfTimesKeysAndPayloads) { expect_memory({8, 100, 1.5}); }

TEST(HashMemory, OfSmallRecordsIsBounded) {
  expect_memory({16, 32, 2.15});
  expect_memory({8, 8, 3.3});
}

TEST(HashPacks, MoveNoRecordThatACommitMayWrite) {
  EXPECT_EQ(a_pack_leaves_locked_records(), "");
  EXPECT_EQ(a_commit_finds_packed_records(), "");
}

TEST(HashSpreads, KeepTheAbsenceOfKeys) {
  EXPECT_EQ(a_spread_keeps_the_absence_of_keys(false), "");
  EXPECT_EQ(a_spread_keeps_the_absence_of_keys(true), "");
}

TEST(HashSpreads, KeepNullWordsThatWereRead) {
  EXPECT_EQ(a_spread_keeps_null_words_that_were_read(), "");
}

TEST(HashSpreads, LeavePagesWithRoom) { EXPECT_EQ(a_spread_leaves_pages_with_room(), ""); }

/// A page has room for three records of 1000 bytes. A spread either makes room for the new record,
/// or leaves the page to a division.
TEST(HashSpreads, MakeRoomForLargeRecords) {
  TestCluster cluster(1, 1, {.clock = false});
  const Hash hash(cluster.create("h", StorageType::hash));
  const WorkerMetrics& metrics = cluster.metrics(0, 0);
  Transaction& txn = *cluster.worker(0).transaction;
  uint64_t spread = 0;
  constexpr uint64_t kRecords = 240;  // on so few pages that one parent suffices
  for (uint64_t number = 0; number < kRecords; ++number) {
    // The last third has larger records: a page has room for two of the others beside one of them.
    const std::string value(number < kRecords * 2 / 3 ? 1000 : 1500, 'v');
    const uint64_t spreads_before = metrics.compactions.get() + metrics.merges.get();
    const uint64_t splits_before = metrics.splits.get();
    // Does not use `run`, which would pack pages.
    ASSERT_EQ(txn.begin(), Status::ok);
    ASSERT_EQ(hash.insert(txn, ordered_key(number), bytes_of(value)), Status::ok);
    ASSERT_EQ(txn.commit(), Status::ok);
    const uint64_t spreads = metrics.compactions.get() + metrics.merges.get() - spreads_before;
    ASSERT_LE(spreads, 1u);
    if (spreads != 0) {
      EXPECT_EQ(metrics.splits.get(), splits_before) << "a page was spread and divided";
    }
    spread += spreads;
  }
  EXPECT_GT(spread, kRecords / 50);
}

/// The cost of inserts: each replaced page was copied. A storage whose full pages are divided
/// retires 0.05 pages for each insert. One that packs eight pages after each split retires 0.7.
TEST(HashSpreads, ReplaceFewPages) {
  TestCluster cluster(1, 1, {.pool_bytes = uint64_t{64} << 20});
  const Hash hash(cluster.create("h", StorageType::hash, 100));
  const std::string value(100, 'v');
  constexpr uint64_t kRecords = 60'000;
  for (uint64_t number = 0; number < kRecords; ++number) {
    ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
      return hash.insert(txn, ordered_key(number), bytes_of(value));
    }),
              Status::ok);
  }
  const WorkerMetrics& metrics = cluster.metrics(0, 0);
  EXPECT_LT(metrics.pages_retired.get(), kRecords * 45 / 100);
  // Most spreads need no further page, and nearly no page is divided without a spread: a page has
  // 26 records on average.
  EXPECT_GT(metrics.compactions.get(), metrics.splits.get() / 4);
  EXPECT_LT(metrics.splits.get(), kRecords / 20);
}

/// Replaced pages do not become free, because no epoch ends. Spreads and packs stop before they use
/// up the pool.
TEST(HashPacks, StopWhileReplacedPagesDoNotBecomeFree) {
  TestCluster cluster(1, 1, {.pool_bytes = uint64_t{8} << 20, .clock = false});
  const Hash hash(cluster.create("h", StorageType::hash));
  const std::string value(100, 'v');
  for (uint64_t number = 0; number < 10'000; ++number) {
    ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
      return hash.insert(txn, ordered_key(number), bytes_of(value));
    }),
              Status::ok);
  }
  EXPECT_GT(cluster.metrics(0, 0).pages_retired.get(), 100u);
  EXPECT_LT(cluster.metrics(0, 0).pages_retired.get(), 1200u);
}

TEST(PageDirectory, GrowsWithItsStorageAndFindsMostPages) {
  TestCluster cluster(1, 1, {.pool_bytes = uint64_t{64} << 20});
  StorageControl& storage = cluster.create("h", StorageType::hash);
  const Hash hash(storage);
  const std::string value(100, 'v');
  constexpr uint64_t kRecords = 60'000;
  EXPECT_EQ(cluster.directory().depth_of(storage.id), 0u);
  for (uint64_t number = 0; number < kRecords; ++number) {
    ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
      return hash.insert(txn, ordered_key(number), bytes_of(value));
    }),
              Status::ok);
  }
  TreeStatistics statistics;
  ASSERT_EQ(check_tree(cluster.view(), storage, statistics), "");
  uint64_t found = 0;
  for (int pass = 0; pass < 2; ++pass) {
    found = 0;
    for (uint64_t number = 0; number < kRecords; ++number) {
      PageVersion version;
      const uint64_t slice = hash_of_key(ordered_key(number));
      const BorderPage* page = cluster.directory().find(cluster.view(), storage.id, slice, version);
      found += page != nullptr ? 1 : 0;
      ASSERT_EQ(cluster.worker(0).run([&](Transaction& txn) {
        uint32_t bytes = 0;
        char buffer[100];
        return hash.get(txn, ordered_key(number), buffer, sizeof buffer, bytes);
      }),
                Status::ok);
    }
  }
  EXPECT_GT(found, kRecords * 98 / 100);
  const uint64_t entries = uint64_t{1} << cluster.directory().depth_of(storage.id);
  EXPECT_GT(2 * entries, statistics.border_pages);
  EXPECT_LT(entries, 8 * statistics.border_pages);
}

TEST(PageDirectory, ForgetsTheStorageThatHadItsSlotBefore) {
  HintedHash test;
  ASSERT_EQ(test.insert(0), Status::ok);
  ASSERT_NE(test.keep_hint(0), nullptr);
  EXPECT_EQ(test.hints.depth_of(test.storage.id), PageDirectory::kMinDepth);
  BorderPage* const page = test.follow_hint(0);
  page->header.storage_id += kMaxStorages;
  test.hints.remember(test.cluster.view(), page->header.storage_id, test.hash_of(0), page);
  EXPECT_EQ(test.hints.depth_of(test.storage.id), 0u);
  EXPECT_EQ(test.follow_hint(0), nullptr);
  EXPECT_EQ(test.hints.depth_of(page->header.storage_id), PageDirectory::kMinDepth);
  page->header.storage_id -= kMaxStorages;
}

TEST(PageDirectory, FollowsNoHintToAPageThatIsNotTheOne) {
  EXPECT_EQ(a_hint_to_a_replaced_page_is_not_followed(), "");
  EXPECT_EQ(a_hint_to_a_page_of_another_use_is_not_followed(), "");
}

}  // namespace
}  // namespace atolldb::test
