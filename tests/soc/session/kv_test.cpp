// kv.* procedures through a session: the effect of each operation, and refused requests.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ops/cluster/cluster.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/soc/session/session_cluster.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

class KvTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster() = test::launch_session_cluster();
    ASSERT_NE(cluster(), nullptr);
    ASSERT_TRUE(cluster()->create_storage("tree", StorageType::mastertree, 100));
    ASSERT_TRUE(cluster()->create_storage("array", StorageType::array, 16, 100));
    ASSERT_TRUE(cluster()->create_storage("heap", StorageType::sequential));
    ASSERT_TRUE(cluster()->create_storage("hash", StorageType::hash, 100));
  }
  static void TearDownTestSuite() { cluster().reset(); }
  void SetUp() override {
    auto connected = cluster()->connect_session(0);
    ASSERT_TRUE(connected) << connected.error().message;
    client_ = *std::move(connected);
    ASSERT_EQ(erase_all().status, Status::ok);
  }

  static std::unique_ptr<Cluster>& cluster() {
    static std::unique_ptr<Cluster> instance;
    return instance;
  }

  SessionReply call(const KvRequest& request, std::string_view procedure = "kv.txn") {
    reply_ = client_->call(procedure, request.bytes(), {.answer_at = AnswerAt::precommitted});
    results_.clear();
    if (reply_.status == Status::ok) {
      auto results = read_kv_reply(reply_.output, request.bytes());
      EXPECT_TRUE(results) << "no reply to the request";
      if (results) results_ = *std::move(results);
    }
    return reply_;
  }
  SessionReply erase_all() {
    for (;;) {
      call(KvRequest().scan("tree", {.keys_only = true}));
      if (reply_.status != Status::ok || results_.at(0).rows.empty()) return reply_;
      std::vector<std::string> keys;
      for (const KvRowView& row : results_[0].rows) keys.push_back(text(row.key));
      for (size_t i = 0; i < keys.size();) {
        KvRequest request;
        for (; i < keys.size() && request.count() < 100; ++i) {
          request.erase("tree", kv_bytes(keys[i]));
        }
        if (call(request).status != Status::ok) return reply_;
      }
    }
  }
  static std::string text(KvBytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::unique_ptr<SessionClient> client_;
  SessionReply reply_;
  std::vector<KvResultView> results_;
};

TEST_F(KvTest, SingleOperationsDoWhatTheirNamesSay) {
  const KvBytes key = kv_bytes("key");
  EXPECT_EQ(call(KvRequest().get("tree", key, true), "kv.get").status, Status::not_found);
  EXPECT_EQ(call(KvRequest().put("tree", key, kv_bytes("one")), "kv.put").status, Status::ok);
  EXPECT_EQ(call(KvRequest().insert("tree", key, kv_bytes("two")), "kv.insert").status,
            Status::already_exists);
  EXPECT_EQ(call(KvRequest().get("tree", key), "kv.get").status, Status::ok);
  EXPECT_EQ(text(results_.at(0).value), "one");
  EXPECT_EQ(call(KvRequest().compare("tree", key, kv_bytes("one")), "kv.compare").status,
            Status::ok);
  EXPECT_EQ(call(KvRequest().compare("tree", key, kv_bytes("two")), "kv.compare").status,
            Status::user_abort);
  EXPECT_EQ(call(KvRequest().erase("tree", key), "kv.delete").status, Status::ok);
  EXPECT_EQ(call(KvRequest().erase("tree", key), "kv.delete").status, Status::not_found);
  EXPECT_EQ(call(KvRequest().compare_absent("tree", key), "kv.compare").status, Status::ok);
  EXPECT_EQ(call(KvRequest().append("heap", kv_bytes("entry")), "kv.append").status, Status::ok);
  EXPECT_EQ(call(KvRequest().scan("tree", {}), "kv.scan").status, Status::ok);
  EXPECT_EQ(call(KvRequest().put("tree", key, key), "kv.get").status, Status::invalid_argument);
  EXPECT_NE(reply_.message.find("kv.get takes one operation of its own kind"), std::string::npos);
}

TEST_F(KvTest, ATransactionSeesItsOwnOperationsAndIsAllOrNothing) {
  const KvBytes a = kv_bytes("a");
  const KvBytes b = kv_bytes("b");
  KvRequest first;
  first.insert("tree", a, kv_bytes("1")).get("tree", a).get("tree", b).insert("tree", b, a);
  EXPECT_EQ(call(first).status, Status::ok);
  ASSERT_EQ(results_.size(), 4u);
  EXPECT_EQ(text(results_[1].value), "1");
  EXPECT_EQ(results_[2].status, Status::not_found);
  KvRequest second;
  second.put("tree", a, kv_bytes("2")).erase("tree", b).compare("tree", a, kv_bytes("3"));
  EXPECT_EQ(call(second).status, Status::user_abort);
  EXPECT_NE(reply_.message.find("operation 2 (compare of \"tree\"): user_abort"), std::string::npos)
      << reply_.message;
  EXPECT_EQ(call(KvRequest().get("tree", a).get("tree", b)).status, Status::ok);
  EXPECT_EQ(text(results_.at(0).value), "1");
  EXPECT_EQ(results_.at(1).status, Status::ok);
  // An operation that is not required only reports its result, and the request still commits.
  KvRequest third;
  third.insert("tree", a, kv_bytes("x"), false).erase("tree", kv_bytes("none"), false);
  third.put("tree", b, kv_bytes("done"));
  EXPECT_EQ(call(third).status, Status::ok);
  EXPECT_EQ(results_.at(0).status, Status::already_exists);
  EXPECT_EQ(results_.at(1).status, Status::not_found);
  EXPECT_EQ(results_.at(2).status, Status::ok);
}

TEST_F(KvTest, NumbersAreAddedToAndReturnedOnRequest) {
  const int64_t start = 40;
  const KvBytes key = kv_bytes("number");
  EXPECT_EQ(call(KvRequest().put("tree", key, std::as_bytes(std::span(&start, 1)))).status,
            Status::ok);
  KvRequest request;
  request.add_i64("tree", key, 1).add_i64("tree", key, 1, 0, true);
  EXPECT_EQ(call(request).status, Status::ok);
  EXPECT_TRUE(results_.at(0).value.empty());
  int64_t value = 0;
  ASSERT_EQ(results_.at(1).value.size(), sizeof(value));
  std::memcpy(&value, results_.at(1).value.data(), sizeof(value));
  EXPECT_EQ(value, 42);
  EXPECT_EQ(call(KvRequest().add_i64("tree", kv_bytes("none"), 1)).status, Status::not_found);
  EXPECT_EQ(call(KvRequest().add_i64("tree", key, 1, 1)).status, Status::out_of_range);
  const auto index = ordered_index_key(99);
  EXPECT_EQ(call(KvRequest().add_i64("array", index, 5, 8, true), "kv.add").status, Status::ok);
  std::memcpy(&value, results_.at(0).value.data(), sizeof(value));
  EXPECT_EQ(value, 5);
  EXPECT_EQ(call(KvRequest().get("array", ordered_index_key(100))).status, Status::out_of_range);
  EXPECT_EQ(call(KvRequest().get("array", key)).status, Status::invalid_argument);
  EXPECT_EQ(call(KvRequest().scan("array", {})).status, Status::invalid_argument)
      << "an array's key has 8 bytes";
  EXPECT_EQ(call(KvRequest().erase("array", index)).status, Status::operation_not_supported);
  EXPECT_EQ(call(KvRequest().append("tree", key)).status, Status::operation_not_supported);
  EXPECT_EQ(call(KvRequest().get("none", key)).status, Status::storage_not_found);
}

TEST_F(KvTest, BlindAdditionsCreateWhatIsMissing) {
  const KvBytes key = kv_bytes("number");
  const int64_t seven = 7;
  const KvBytes delta = std::as_bytes(std::span(&seven, 1));
  const auto add = [&](std::string_view storage, KvBytes to, uint32_t offset) {
    KvRequest request;
    request.add(storage, to, KvNumber::i64, delta, offset, true, true);
    const Status status = call(request, "kv.add").status;
    int64_t value = 0;
    if (status == Status::ok) {
      EXPECT_EQ(results_.at(0).value.size(), sizeof value);
      std::memcpy(&value, results_.at(0).value.data(), sizeof value);
    }
    return status == Status::ok ? value : -1;
  };
  EXPECT_EQ(add("tree", key, 0), 7) << "there was no record";
  EXPECT_EQ(add("tree", key, 0), 14);
  EXPECT_EQ(add("tree", key, 12), 7) << "the record was too short";
  EXPECT_EQ(call(KvRequest().get("tree", key)).status, Status::ok);
  EXPECT_EQ(results_.at(0).value.size(), 20u);
  EXPECT_EQ(add("array", ordered_index_key(98), 8), 7) << "a record of an array always exists";
}

TEST_F(KvTest, ScansHaveBoundsDirectionsAndLimits) {
  KvRequest fill;
  for (char c = 'a'; c <= 'j'; ++c) {
    const std::string key(1, c);
    fill.insert("tree", kv_bytes(key), kv_bytes(key + key));
  }
  ASSERT_EQ(call(fill).status, Status::ok);
  const auto keys = [&](const KvScan& scan) {
    EXPECT_EQ(call(KvRequest().scan("tree", scan)).status, Status::ok) << reply_.message;
    std::string all;
    for (const KvRowView& row : results_.at(0).rows) all += text(row.key);
    return all;
  };
  EXPECT_EQ(keys({}), "abcdefghij");
  EXPECT_FALSE(results_.at(0).has_more);
  EXPECT_EQ(text(results_.at(0).rows.at(2).value), "cc");
  const KvScan middle{
      .low = kv_bytes("c"), .has_low = true, .high = kv_bytes("f"), .has_high = true};
  EXPECT_EQ(keys(middle), "cde");
  EXPECT_EQ(keys({.limit = 3, .reverse = true}), "jih");
  EXPECT_TRUE(results_.at(0).has_more);
  EXPECT_EQ(keys({.limit = 10, .keys_only = true}), "abcdefghij");
  EXPECT_FALSE(results_.at(0).has_more);
  EXPECT_TRUE(results_.at(0).rows.at(0).value.empty());
  // A reply is bounded. The next scan returns the rest.
  const std::string big(2048, 'v');
  for (int i = 0; i < 3; ++i) {
    KvRequest more;
    for (int n = 0; n < 8; ++n) {
      more.insert("tree", kv_bytes("x" + std::to_string(i) + std::to_string(n)), kv_bytes(big));
    }
    ASSERT_EQ(call(more).status, Status::ok);
  }
  keys({.low = kv_bytes("x"), .has_low = true});
  EXPECT_TRUE(results_.at(0).has_more);
  EXPECT_EQ(results_.at(0).rows.size(), 16u);
}

TEST_F(KvTest, AHashStorageHasPointOperationsAndScansOfAllRecords) {
  const KvBytes key = kv_bytes("key");
  EXPECT_EQ(call(KvRequest().get("hash", key, true), "kv.get").status, Status::not_found);
  EXPECT_EQ(call(KvRequest().put("hash", key, kv_bytes("one")), "kv.put").status, Status::ok);
  EXPECT_EQ(call(KvRequest().insert("hash", key, kv_bytes("two")), "kv.insert").status,
            Status::already_exists);
  EXPECT_EQ(call(KvRequest().get("hash", key), "kv.get").status, Status::ok);
  EXPECT_EQ(text(results_.at(0).value), "one");
  EXPECT_EQ(call(KvRequest().compare("hash", key, kv_bytes("one"))).status, Status::ok);
  EXPECT_EQ(call(KvRequest().append("hash", key)).status, Status::operation_not_supported);
  EXPECT_EQ(call(KvRequest().put("hash", kv_bytes(std::string(1016, 'k')), key)).status,
            Status::ok);
  EXPECT_EQ(call(KvRequest().put("hash", kv_bytes(std::string(1017, 'k')), key)).status,
            Status::key_too_long);
  EXPECT_EQ(call(KvRequest().add_i64("hash", kv_bytes("sum"), 1)).status, Status::not_found);
  std::multiset<std::string> wanted = {"key", std::string(1016, 'k')};
  for (uint64_t number = 0; number < 900; ++number) {
    const auto counted = ordered_index_key(number);
    ASSERT_EQ(call(KvRequest().put("hash", counted, kv_bytes(std::string(80, 'v')))).status,
              Status::ok);
    wanted.insert(text(counted));
  }
  // A reply is bounded, so the scan takes several.
  std::multiset<std::string> found;
  KvScan rest{.unordered = true};
  std::vector<std::byte> low;
  int replies = 0;
  do {
    ASSERT_EQ(call(KvRequest().scan("hash", rest), "kv.scan").status, Status::ok);
    for (const KvRowView& row : results_[0].rows) found.insert(text(row.key));
    low = key_after(results_[0].rows.back().key);
    rest.low = low;
    rest.has_low = true;
    ++replies;
  } while (results_[0].has_more);
  EXPECT_GT(replies, 2);
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(call(KvRequest().erase("hash", key)).status, Status::ok);
  EXPECT_EQ(call(KvRequest().get("hash", key, true)).status, Status::not_found);
}

TEST_F(KvTest, RangesOfAHashStorageAreRefused) {
  const KvBytes a = kv_bytes("a");
  const KvScan refused[] = {{.low = a, .has_low = true},
                            {.high = a, .has_high = true},
                            {.reverse = true},
                            {},
                            {.high = a, .has_high = true, .unordered = true},
                            {.reverse = true, .unordered = true}};
  for (const KvScan& scan : refused) {
    EXPECT_EQ(call(KvRequest().scan("hash", scan)).status, Status::operation_not_supported);
    EXPECT_NE(reply_.message.find("have no order"), std::string::npos) << reply_.message;
  }
  const KvScan no_row{.low = a, .has_low = true, .unordered = true};
  EXPECT_EQ(call(KvRequest().scan("hash", no_row)).status, Status::invalid_argument);
  EXPECT_EQ(call(KvRequest().compare_scan("hash", {.unordered = true}, 0)).status,
            Status::operation_not_supported);
}

TEST_F(KvTest, LimitsHoldAtTheirValueAndFailPastIt) {
  const std::string key(kMaxKvKeyBytes, 'k');
  const std::string value(kMaxKvValueBytes, 'v');
  EXPECT_EQ(call(KvRequest().put("tree", kv_bytes(key), kv_bytes(value))).status, Status::ok);
  EXPECT_EQ(call(KvRequest().put("tree", kv_bytes(key + "k"), kv_bytes(value))).status,
            Status::invalid_argument);
  EXPECT_NE(reply_.message.find("1025 bytes is longer than 1024"), std::string::npos);
  EXPECT_EQ(call(KvRequest().put("tree", kv_bytes(key), kv_bytes(value + "v"))).status,
            Status::invalid_argument);
  KvRequest most;
  for (uint32_t i = 0; i < kMaxKvOperations; ++i) most.get("tree", kv_bytes("none"));
  EXPECT_EQ(call(most).status, Status::ok);
  EXPECT_EQ(call(most.get("tree", kv_bytes("none"))).status, Status::invalid_argument);
  EXPECT_NE(reply_.message.find("257 operations"), std::string::npos) << reply_.message;
  KvRequest long_reply;
  for (int i = 0; i < 33; ++i) long_reply.get("tree", kv_bytes(key));
  EXPECT_EQ(call(long_reply).status, Status::payload_too_long) << reply_.message;
  KvRequest long_request;
  for (int i = 0; i < 33; ++i) long_request.put("tree", kv_bytes("k"), kv_bytes(value));
  EXPECT_EQ(call(long_request).status, Status::invalid_argument);
  EXPECT_NE(reply_.message.find("is longer than 65536"), std::string::npos) << reply_.message;
  EXPECT_EQ(call(KvRequest()).status, Status::invalid_argument);
  EXPECT_EQ(call(KvRequest().scan("tree", {.limit = kMaxKvScanRows})).status, Status::ok);
  EXPECT_EQ(call(KvRequest().scan("tree", {.limit = kMaxKvScanRows + 1})).status,
            Status::invalid_argument);
  const std::string name(63, 's');
  EXPECT_EQ(call(KvRequest().get(name, kv_bytes("k"))).status, Status::storage_not_found);
  EXPECT_EQ(call(KvRequest().get(name + "s", kv_bytes("k"))).status, Status::invalid_argument);
  KvRequest appends;
  for (uint32_t i = 0; i < 32; ++i) appends.append("heap", kv_bytes("e"));
  EXPECT_EQ(call(appends).status, Status::ok);
  EXPECT_EQ(call(appends.append("heap", kv_bytes("e"))).status, Status::transaction_too_large);
}

TEST_F(KvTest, ACommitValidatesVersionsAbsencesAndRanges) {
  const uint64_t incarnation = client_->incarnation();
  const KvBytes a = kv_bytes("a");
  ASSERT_EQ(call(KvRequest().put("tree", a, kv_bytes("1"))).status, Status::ok);
  EXPECT_NE(reply_.commit_version, 0u);
  const uint64_t written = reply_.commit_version;
  const KvScan all{.limit = 100};
  ASSERT_EQ(call(KvRequest().get("tree", a).scan("tree", all)).status, Status::ok);
  const uint64_t version = results_.at(0).version;
  const uint64_t digest = results_.at(1).version;
  EXPECT_EQ(version, written);
  const auto commit = [&](uint64_t of_incarnation) {
    KvRequest request(of_incarnation);
    request.compare_version("tree", a, version).compare_version("tree", kv_bytes("b"), 0);
    request.compare_scan("tree", all, digest).put("tree", a, kv_bytes("2"));
    return call(request, "kv.commit").status;
  };
  EXPECT_EQ(commit(0), Status::invalid_argument);
  EXPECT_EQ(commit(incarnation + 1), Status::user_abort);
  EXPECT_NE(reply_.message.find("incarnation"), std::string::npos) << reply_.message;
  ASSERT_EQ(call(KvRequest().put("tree", kv_bytes("z"), a)).status, Status::ok);
  EXPECT_EQ(commit(incarnation), Status::user_abort) << "a phantom in the range";
  EXPECT_NE(reply_.message.find("the range has changed"), std::string::npos) << reply_.message;
  ASSERT_EQ(call(KvRequest().erase("tree", kv_bytes("z"))).status, Status::ok);
  EXPECT_EQ(commit(incarnation), Status::ok) << reply_.message;
  EXPECT_EQ(commit(incarnation), Status::user_abort) << "its own write has changed the version";
  ASSERT_EQ(call(KvRequest().get("tree", a)).status, Status::ok);
  EXPECT_EQ(text(results_.at(0).value), "2");
}

TEST_F(KvTest, DamagedRequestsAreRefusedAndHarmNothing) {
  std::mt19937_64 random(test::seed());
  KvRequest whole;
  whole.put("tree", kv_bytes("key"), kv_bytes("value")).get("tree", kv_bytes("key"));
  whole.scan("tree", {.low = kv_bytes("a"), .has_low = true});
  const std::vector<std::byte> good(whole.bytes().begin(), whole.bytes().end());
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    const auto cut =
        client_->call("kv.txn", KvBytes(good).first(bytes), {.answer_at = AnswerAt::precommitted});
    ASSERT_EQ(cut.status, Status::invalid_argument) << "cut at " << bytes;
  }
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bad = good;
    for (uint64_t i = random() % 3; i < 3; ++i) {
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    }
    if (random() % 8 == 0) bad.push_back(std::byte{0});
    const auto reply = client_->call("kv.txn", bad, {.answer_at = AnswerAt::precommitted});
    refused += reply.status != Status::ok;
    EXPECT_NE(reply.status, Status::procedure_failed) << reply.message;
  }
  EXPECT_GT(refused, 500);
  EXPECT_EQ(call(whole).status, Status::ok);
}

}  // namespace
}  // namespace atolldb
