// Transactions of a client over several requests: their own writes, conflicts, limits, random
// transactions against a model, and clients that transfer amounts at the same time.
#include "shared/client/kv_transaction.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ops/cluster/cluster.h"
#include "tests/soc/session/session_cluster.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

constexpr KvStorage kTree{"tree"};
constexpr KvStorage kArray{"array", true};
constexpr KvStorage kHeap{"heap"};

std::string text_of(KvBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::array<std::byte, 8> number(int64_t value) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

int64_t number_of(KvBytes bytes) {
  int64_t value = 0;
  EXPECT_EQ(bytes.size(), sizeof(value));
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(value)));
  return value;
}

class KvTransactionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster() = test::launch_session_cluster();
    ASSERT_NE(cluster(), nullptr);
    ASSERT_TRUE(cluster()->create_storage("tree", StorageType::mastertree, 100));
    ASSERT_TRUE(cluster()->create_storage("array", StorageType::array, 16, 100));
    ASSERT_TRUE(cluster()->create_storage("heap", StorageType::sequential));
  }
  static void TearDownTestSuite() { cluster().reset(); }
  void SetUp() override {
    client_ = connect();
    erase_all();
  }

  static std::unique_ptr<Cluster>& cluster() {
    static std::unique_ptr<Cluster> instance;
    return instance;
  }
  static std::unique_ptr<SessionClient> connect() {
    auto connected = cluster()->connect_session(0);
    EXPECT_TRUE(connected) << connected.error().message;
    return connected ? *std::move(connected) : nullptr;
  }

  void erase_all() {
    for (;;) {
      KvTransaction transaction(*client_);
      const auto found = transaction.scan(kTree, {.limit = 20, .keys_only = true});
      ASSERT_TRUE(found) << found.error().message;
      if (found->rows.empty()) return;
      for (const KvRecord& row : found->rows) ASSERT_TRUE(transaction.erase(kTree, row.key));
      ASSERT_TRUE(transaction.commit());
    }
  }
  /// Puts a record by a transaction of another client.
  void put_elsewhere(const std::string& key, const std::string& value) {
    const auto other = connect();
    KvTransaction transaction(*other);
    ASSERT_TRUE(transaction.put(kTree, kv_bytes(key), kv_bytes(value)));
    const auto done = transaction.commit();
    ASSERT_TRUE(done) << done.error().message;
  }
  static std::string get(KvTransaction& transaction, const std::string& key) {
    const auto record = transaction.get(kTree, kv_bytes(key));
    if (!record) return "failed: " + std::string(to_string(record.error().status));
    return *record ? text_of(**record) : "none";
  }
  static std::string scan(KvTransaction& transaction, const KvScan& range) {
    const auto found = transaction.scan(kTree, range);
    if (!found) return "failed: " + std::string(to_string(found.error().status));
    std::string all;
    for (const KvRecord& row : found->rows) all += text_of(row.key) + text_of(row.value) + " ";
    return all + (found->has_more ? "..." : "");
  }
  static Status status_of(const KvOutcome<void>& outcome) {
    return outcome ? Status::ok : outcome.error().status;
  }
  static Status status_of(const KvOutcome<KvCommit>& outcome) {
    return outcome ? Status::ok : outcome.error().status;
  }

  std::unique_ptr<SessionClient> client_;
};

TEST_F(KvTransactionTest, ErasesTheFirstRecordAgainAndAgain) {
  for (char c = 'a'; c < 'a' + 26; ++c) put_elsewhere(std::string(1, c), "1");
  for (const bool reverse : {false, true}) {
    KvTransaction transaction(*client_);
    for (int i = 0; i < 26; ++i) {
      const auto found = transaction.scan(kTree, {.limit = 1, .reverse = reverse});
      ASSERT_TRUE(found) << i << ": " << found.error().message;
      ASSERT_EQ(found->rows.size(), 1u);
      const int letter = reverse ? 'z' - i : 'a' + i;
      EXPECT_EQ(text_of(found->rows[0].key), std::string(1, static_cast<char>(letter)));
      EXPECT_EQ(found->has_more, i != 25);
      ASSERT_TRUE(transaction.erase(kTree, found->rows[0].key));
    }
    EXPECT_EQ(scan(transaction, {.limit = 1, .reverse = reverse}), "");
    if (reverse) {
      EXPECT_EQ(status_of(transaction.commit()), Status::ok);
    }
  }
  KvTransaction transaction(*client_);
  EXPECT_EQ(scan(transaction, {}), "");
}

TEST_F(KvTransactionTest, AScanContinuesAfterAKeyOfTheLargestSize) {
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {
    keys.push_back(std::string(kMaxKvKeyBytes - 2, 'k') + static_cast<char>('a' + i / 20) +
                   static_cast<char>(255 - 19 + i % 20));
    put_elsewhere(keys.back(), std::string(1000, 'v'));
  }
  put_elsewhere(std::string(kMaxKvKeyBytes, '\xff'), "the last key");
  KvTransaction transaction(*client_);
  std::vector<std::string> found;
  std::vector<std::byte> low;
  for (bool has_more = true; has_more;) {
    const auto page = transaction.scan(kTree, {.low = low, .has_low = true, .limit = 7});
    ASSERT_TRUE(page) << page.error().message;
    for (const KvRecord& row : page->rows) found.push_back(text_of(row.key));
    has_more = page->has_more;
    low = key_after(kv_bytes(found.back()));
  }
  ASSERT_EQ(found.size(), 41u);
  EXPECT_TRUE(std::equal(keys.begin(), keys.end(), found.begin()));
  EXPECT_TRUE(low.empty()) << "no key follows the last one";
}

TEST_F(KvTransactionTest, ASessionBelongsToTheProcessThatHasOpenedIt) {
  put_elsewhere("a", "1");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_refused =
        client_->call("kv.txn", KvRequest().bytes()).status == Status::unavailable &&
        !client_->is_open();
    client_.reset();  // must not end the session of the parent
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child has used the session";
  KvTransaction transaction(*client_);
  EXPECT_EQ(get(transaction, "a"), "1");
}

TEST_F(KvTransactionTest, SeesItsOwnWritesAndOthersSeeThemAfterTheCommit) {
  put_elsewhere("a", "1");
  KvTransaction transaction(*client_);
  EXPECT_EQ(get(transaction, "a"), "1");
  EXPECT_EQ(get(transaction, "b"), "none");
  EXPECT_EQ(status_of(transaction.put(kTree, kv_bytes("a"), kv_bytes("2"))), Status::ok);
  EXPECT_EQ(status_of(transaction.insert(kTree, kv_bytes("a"), kv_bytes("x"))),
            Status::already_exists);
  EXPECT_EQ(status_of(transaction.insert(kTree, kv_bytes("b"), kv_bytes("3"))), Status::ok);
  EXPECT_EQ(status_of(transaction.erase(kTree, kv_bytes("none"))), Status::not_found);
  EXPECT_EQ(get(transaction, "a"), "2");
  EXPECT_EQ(get(transaction, "b"), "3");
  EXPECT_EQ(status_of(transaction.put_at(kTree, kv_bytes("b"), 1, kv_bytes("x"))),
            Status::out_of_range);
  EXPECT_EQ(status_of(transaction.put_at(kTree, kv_bytes("b"), 0, kv_bytes("4"))), Status::ok);
  {
    const auto other = connect();
    KvTransaction before(*other);
    EXPECT_EQ(get(before, "a"), "1");
    EXPECT_EQ(get(before, "b"), "none");
  }
  const auto done = transaction.commit();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_NE(done->version, 0u);
  const auto other = connect();
  KvTransaction after(*other);
  EXPECT_EQ(get(after, "a"), "2");
  EXPECT_EQ(get(after, "b"), "4");
}

TEST_F(KvTransactionTest, AChangeOfWhatItHasReadPreventsTheCommit) {
  put_elsewhere("a", "1");
  for (const char* changed : {"a", "absent", "in range"}) {
    KvTransaction transaction(*client_);
    EXPECT_EQ(get(transaction, "a"), "1");
    EXPECT_EQ(get(transaction, "absent"), "none");
    EXPECT_EQ(scan(transaction, {.low = kv_bytes("i"), .has_low = true}), "");
    put_elsewhere(changed, "1");
    EXPECT_EQ(status_of(transaction.put(kTree, kv_bytes("z"), kv_bytes("lost"))), Status::ok);
    EXPECT_EQ(status_of(transaction.commit()), Status::user_abort) << changed;
    erase_all();
    put_elsewhere("a", "1");
  }
  KvTransaction calm(*client_);
  EXPECT_EQ(get(calm, "a"), "1");
  EXPECT_EQ(get(calm, "z"), "none");
  EXPECT_EQ(status_of(calm.commit()), Status::ok) << "a commit without writes is validated, too";
}

TEST_F(KvTransactionTest, AScanMergesItsOwnWrites) {
  for (const char* key : {"b", "d", "f"}) put_elsewhere(key, "0");
  KvTransaction transaction(*client_);
  EXPECT_EQ(status_of(transaction.put(kTree, kv_bytes("a"), kv_bytes("1"))), Status::ok);
  EXPECT_EQ(status_of(transaction.put(kTree, kv_bytes("d"), kv_bytes("1"))), Status::ok);
  EXPECT_EQ(status_of(transaction.insert(kTree, kv_bytes("e"), kv_bytes("1"))), Status::ok);
  EXPECT_EQ(status_of(transaction.erase(kTree, kv_bytes("f"))), Status::ok);
  EXPECT_EQ(scan(transaction, {}), "a1 b0 d1 e1 ");
  EXPECT_EQ(scan(transaction, {.reverse = true}), "e1 d1 b0 a1 ");
  EXPECT_EQ(scan(transaction, {.limit = 2}), "a1 b0 ...");
  EXPECT_EQ(scan(transaction, {.limit = 2, .reverse = true}), "e1 d1 ...");
  EXPECT_EQ(scan(transaction,
                 {.low = kv_bytes("b"), .has_low = true, .high = kv_bytes("e"), .has_high = true}),
            "b0 d1 ");
  EXPECT_EQ(scan(transaction, {.keys_only = true}), "a b d e ");
  EXPECT_EQ(status_of(transaction.commit()), Status::ok);
  KvTransaction after(*client_);
  EXPECT_EQ(scan(after, {}), "a1 b0 d1 e1 ");
}

TEST_F(KvTransactionTest, AScanPassesOverRowsThatItHasErased) {
  for (const char* key : {"a", "b", "c", "d"}) put_elsewhere(key, "0");
  KvTransaction transaction(*client_);
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(status_of(transaction.erase(kTree, kv_bytes(key))), Status::ok);
  }
  EXPECT_EQ(scan(transaction, {.limit = 1}), "d0 ");
  EXPECT_EQ(status_of(transaction.commit()), Status::ok);
}

TEST_F(KvTransactionTest, ACutOffScanIsValidatedUpToItsLastRow) {
  const std::string value(1000, 'v');
  for (int i = 0; i < 100; ++i) put_elsewhere(std::to_string(100 + i), value);
  for (const bool changes_read_part : {false, true}) {
    KvTransaction transaction(*client_);
    const auto found = transaction.scan(kTree, {});
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(found->has_more) << "100 KiB do not fit into a reply";
    ASSERT_LT(found->rows.size(), 40u);
    // Two such scans are longer than one reply. Their comparison has no such limit.
    ASSERT_TRUE(transaction.scan(kTree, {.reverse = true}));
    put_elsewhere(changes_read_part ? "110" : "150", value);
    EXPECT_EQ(status_of(transaction.put(kTree, kv_bytes("x"), kv_bytes("1"))), Status::ok);
    EXPECT_EQ(status_of(transaction.commit()), changes_read_part ? Status::user_abort : Status::ok);
    KvTransaction clean(*client_);
    if (get(clean, "x") != "none") {
      EXPECT_EQ(status_of(clean.erase(kTree, kv_bytes("x"))), Status::ok);
    }
    EXPECT_EQ(status_of(clean.commit()), Status::ok);
  }
}

TEST_F(KvTransactionTest, AdditionsReadNothingAndDoNotConflict) {
  put_elsewhere("n", text_of(number(40)));
  KvTransaction transaction(*client_);
  EXPECT_EQ(status_of(transaction.add(kTree, kv_bytes("n"), KvNumber::i64, number(1), 0)),
            Status::ok);
  EXPECT_EQ(transaction.operations(), 1u) << "it has read nothing";
  {
    const auto other = connect();
    KvTransaction meanwhile(*other);
    EXPECT_EQ(status_of(meanwhile.add(kTree, kv_bytes("n"), KvNumber::i64, number(1), 0)),
              Status::ok);
    EXPECT_EQ(status_of(meanwhile.commit()), Status::ok);
  }
  const auto sum = transaction.get(kTree, kv_bytes("n"));
  ASSERT_TRUE(sum && *sum);
  EXPECT_EQ(number_of(**sum), 42);
  EXPECT_EQ(status_of(transaction.add(kArray, ordered_index_key(7), KvNumber::i64, number(5), 8)),
            Status::ok);
  EXPECT_EQ(status_of(transaction.put(kArray, ordered_index_key(7), kv_bytes("ab"))), Status::ok);
  const auto record = transaction.get(kArray, ordered_index_key(7));
  ASSERT_TRUE(record && *record);
  EXPECT_EQ(text_of(KvBytes(**record).first(2)), "ab");
  EXPECT_EQ(number_of(KvBytes(**record).subspan(8)), 5);
  EXPECT_EQ(status_of(transaction.append(kHeap, kv_bytes("entry"))), Status::ok);
  EXPECT_EQ(status_of(transaction.commit()), Status::ok);
  KvTransaction none(*client_);
  EXPECT_EQ(status_of(none.add(kTree, kv_bytes("none"), KvNumber::i64, number(1), 0)), Status::ok);
  EXPECT_EQ(status_of(none.commit()), Status::not_found);
  KvTransaction wrong(*client_);
  EXPECT_EQ(status_of(wrong.add(kTree, kv_bytes("n"), KvNumber::i32, number(1), 0)),
            Status::invalid_argument);
}

TEST_F(KvTransactionTest, LimitsHoldAtTheirValueAndFailPastIt) {
  KvTransaction most(*client_);
  for (uint32_t i = 0; i < kMaxKvOperations; ++i) {
    ASSERT_EQ(status_of(most.put(kTree, kv_bytes(std::to_string(i)), kv_bytes("v"))), Status::ok);
  }
  EXPECT_EQ(status_of(most.put(kTree, kv_bytes("more"), kv_bytes("v"))),
            Status::transaction_too_large);
  EXPECT_EQ(get(most, "0"), "v") << "its own writes need no further operation";
  EXPECT_EQ(get(most, "more"), "failed: transaction_too_large");
  EXPECT_EQ(scan(most, {}), "failed: transaction_too_large");
  EXPECT_EQ(status_of(most.commit()), Status::ok);
  KvTransaction sizes(*client_);
  const std::string key(kMaxKvKeyBytes, 'k');
  const std::string value(kMaxKvValueBytes, 'v');
  EXPECT_EQ(status_of(sizes.put(kTree, kv_bytes(key), kv_bytes(value))), Status::ok);
  EXPECT_EQ(status_of(sizes.put(kTree, kv_bytes(key + "k"), kv_bytes(value))),
            Status::key_too_long);
  EXPECT_EQ(status_of(sizes.put(kTree, kv_bytes(key), kv_bytes(value + "v"))),
            Status::payload_too_long);
  EXPECT_EQ(status_of(sizes.put({""}, kv_bytes(key), kv_bytes(value))), Status::invalid_argument);
  EXPECT_EQ(status_of(sizes.commit()), Status::ok);
  KvTransaction long_one(*client_);
  for (int i = 0; i < 33; ++i) {
    ASSERT_EQ(status_of(long_one.put(kTree, kv_bytes("k"), kv_bytes(value))), Status::ok);
  }
  const auto refused = long_one.commit();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, Status::payload_too_long);
  EXPECT_NE(refused.error().message.find("the limit is 65536"), std::string::npos);
}

/// Random transactions of one client against a map, while another client changes records now and
/// then. A commit succeeds if and only if nothing has changed that was read.
TEST_F(KvTransactionTest, RandomTransactionsMatchAModel) {
  std::mt19937_64 random(test::seed());
  const auto other = connect();
  std::map<std::string, std::string> model;
  int conflicts = 0;
  for (uint64_t round = 0; round < test::rounds(300, 10'000); ++round) {
    KvTransaction transaction(*client_);
    std::map<std::string, std::string> own = model;
    const auto key = [&] {
      return std::string(1 + random() % 2, static_cast<char>('a' + random() % 4));
    };
    for (uint64_t i = random() % 12; i > 0; --i) {
      const std::string at = key();
      const std::string value = std::to_string(random() % 1000);
      switch (random() % 6) {
        case 0:
          ASSERT_EQ(get(transaction, at), own.contains(at) ? own[at] : "none");
          break;
        case 1:
          ASSERT_EQ(status_of(transaction.put(kTree, kv_bytes(at), kv_bytes(value))), Status::ok);
          own[at] = value;
          break;
        case 2:
          ASSERT_EQ(status_of(transaction.insert(kTree, kv_bytes(at), kv_bytes(value))),
                    own.contains(at) ? Status::already_exists : Status::ok);
          own.emplace(at, value);
          break;
        case 3:
          ASSERT_EQ(status_of(transaction.erase(kTree, kv_bytes(at))),
                    own.contains(at) ? Status::ok : Status::not_found);
          own.erase(at);
          break;
        default: {
          const std::string end = key();
          const bool reverse = random() % 2 == 0;
          std::vector<std::string> rows;
          for (const auto& [each, bytes] : own) {
            if (each >= at && each < end) rows.push_back(each + bytes + " ");
          }
          if (reverse) std::ranges::reverse(rows);
          std::string expected;
          for (const std::string& row : rows) expected += row;
          ASSERT_EQ(scan(transaction, {.low = kv_bytes(at),
                                       .has_low = true,
                                       .high = kv_bytes(end),
                                       .has_high = true,
                                       .reverse = reverse}),
                    expected);
        }
      }
    }
    bool disturbed = false;
    if (random() % 3 == 0) {
      const std::string at = key();
      KvTransaction change(*other);
      ASSERT_EQ(status_of(change.put(kTree, kv_bytes(at), kv_bytes("other"))), Status::ok);
      ASSERT_EQ(status_of(change.commit()), Status::ok);
      model[at] = "other";
      disturbed = true;
      // The transaction's writes of this key win if it commits.
    }
    const Status status = status_of(transaction.commit());
    if (status == Status::user_abort && disturbed) {
      ++conflicts;
    } else {
      ASSERT_EQ(status, Status::ok);
      // What the transaction has not written has the value of the model.
      std::map<std::string, std::string> merged = model;
      for (const auto& [at, value] : own) {
        if (transaction.has_written(kTree, kv_bytes(at))) merged[at] = value;
      }
      std::erase_if(merged, [&](const auto& entry) {
        return transaction.has_written(kTree, kv_bytes(entry.first)) && !own.contains(entry.first);
      });
      model = std::move(merged);
    }
    KvTransaction check(*client_);
    std::string expected;
    for (const auto& [at, value] : model) expected += at + value + " ";
    ASSERT_EQ(scan(check, {}), expected) << "round " << round;
  }
  EXPECT_GT(conflicts, 0);
}

TEST_F(KvTransactionTest, ConcurrentTransfersKeepTheSum) {
  constexpr int kAccounts = 4;
  constexpr int64_t kSum = 4000;
  for (int i = 0; i < kAccounts; ++i) {
    put_elsewhere(std::to_string(i), std::to_string(kSum / kAccounts));
  }
  const uint64_t seed = test::seed();
  std::atomic<int> commits{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(seed + thread);
      const auto client = connect();
      for (int round = 0; round < 150; ++round) {
        KvTransaction transaction(*client);
        if (thread == 0) {
          const auto rows = transaction.scan(kTree, {});
          ASSERT_TRUE(rows);
          int64_t sum = 0;
          for (const KvRecord& row : rows->rows) sum += std::stoll(text_of(row.value));
          if (transaction.commit()) {
            EXPECT_EQ(sum, kSum);
          }
          continue;
        }
        const std::string from = std::to_string(random() % kAccounts);
        const std::string to = std::to_string(random() % kAccounts);
        if (from == to) continue;
        const int64_t amount = static_cast<int64_t>(random() % 10);
        const std::string have = get(transaction, from);
        const std::string had = get(transaction, to);
        ASSERT_TRUE(transaction.put(kTree, kv_bytes(from),
                                    kv_bytes(std::to_string(std::stoll(have) - amount))));
        ASSERT_TRUE(transaction.put(kTree, kv_bytes(to),
                                    kv_bytes(std::to_string(std::stoll(had) + amount))));
        if (transaction.commit()) commits.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(commits.load(std::memory_order_relaxed), 0);
  KvTransaction end(*client_);
  const auto rows = end.scan(kTree, {});
  ASSERT_TRUE(rows);
  int64_t sum = 0;
  for (const KvRecord& row : rows->rows) sum += std::stoll(text_of(row.value));
  EXPECT_EQ(sum, kSum);
}

}  // namespace
}  // namespace atolldb
