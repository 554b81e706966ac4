// A hash storage of real processes that are killed: every promised write is there after the next
// start, snapshots or checkpoints hold them, and a drop removes them.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/cli/running_cluster.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr const char* kStorage = "map";

class HashStorageTest : public testing::TestWithParam<DurabilityScheme> {
 protected:
  using Model = std::map<std::string, std::string>;

  HashStorageTest() {
    config_.durability.mode = DurabilityMode::durable;
    config_.cluster.restart = RestartPolicy::never;
    config_.durability.scheme = GetParam();
    // Only the tests take snapshots or checkpoints.
    config_.gleaner.interval = std::chrono::hours(1);
    config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
    file_ = folder_.path() + "/hash.toml";
    std::ofstream(file_) << to_toml(config_);
  }

  Ran atoll(std::vector<std::string> words) const {
    words.insert(words.end(), {"-c", file_});
    return runner_.atoll(words);
  }

  /// Returns the command for what the scheme takes.
  static std::string copies() {
    return GetParam() == DurabilityScheme::silor ? "checkpoint" : "snapshot";
  }
  static std::string text(KvBytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Keys of 8 bytes and of other lengths, because their stored forms differ.
  std::string any_key() {
    const uint64_t number = random_() % 2000;
    std::string key = text(ordered_index_key(number));
    return number % 2 == 0 ? key : key.substr(number % 8) + std::string(number % 40, 'k');
  }

  /// Writes and erases random records, each in a durable transaction, and records them in `model`.
  void write(SessionClient& session, uint64_t count) {
    while (count-- != 0) {
      const std::string key = any_key();
      KvRequest request;
      const bool erases = random_() % 4 == 0;
      std::string value(random_() % 200, static_cast<char>('a' + random_() % 26));
      if (erases) {
        request.erase(kStorage, kv_bytes(key), false);
      } else {
        request.put(kStorage, kv_bytes(key), kv_bytes(value));
      }
      const SessionReply reply = session.call("kv.txn", request.bytes());
      ASSERT_EQ(reply.status, Status::ok) << reply.message;
      if (erases) {
        model_.erase(key);
      } else {
        model_[key] = std::move(value);
      }
    }
  }

  /// Returns all records by scans, each with its number of occurrences checked.
  Model scan(SessionClient& session) {
    Model found;
    KvScan rest{.unordered = true};
    std::vector<std::byte> low;
    for (;;) {
      KvRequest request;
      request.scan(kStorage, rest);
      const SessionReply reply = session.call("kv.scan", request.bytes());
      EXPECT_EQ(reply.status, Status::ok) << reply.message;
      const auto results = read_kv_reply(reply.output, request.bytes());
      if (reply.status != Status::ok || !results) return found;
      for (const KvRowView& row : results->front().rows) {
        EXPECT_TRUE(found.emplace(text(row.key), text(row.value)).second) << "twice";
      }
      if (!results->front().has_more) return found;
      low = key_after(results->front().rows.back().key);
      rest.low = low;
      rest.has_low = true;
    }
  }

  void expect_content(SessionClient& session) {
    EXPECT_EQ(scan(session), model_);
    for (int i = 0; i < 300; ++i) {
      const std::string key = any_key();
      KvRequest request;
      request.get(kStorage, kv_bytes(key));
      const SessionReply reply = session.call("kv.get", request.bytes());
      const auto results = read_kv_reply(reply.output, request.bytes());
      ASSERT_TRUE(reply.status == Status::ok && results) << reply.message;
      const auto wanted = model_.find(key);
      ASSERT_EQ(results->front().status, wanted == model_.end() ? Status::not_found : Status::ok);
      if (wanted == model_.end()) continue;
      ASSERT_EQ(text(results->front().value), wanted->second);
    }
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
  Config config_ = folder_.config("hash-storage");
  std::string file_;
  std::mt19937_64 random_{seed()};
  Model model_;
};

INSTANTIATE_TEST_SUITE_P(Schemes, HashStorageTest,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(HashStorageTest, KeepsEveryPromiseOverKillsSnapshotsAndStarts) {
  const uint64_t lives = rounds(4, 20);
  for (uint64_t life = 0; life < lives; ++life) {
    SCOPED_TRACE("life " + std::to_string(life));
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    if (life == 0) {
      const auto created =
          cli::RunningCluster(config_).create_storage(kStorage, StorageType::hash, 100);
      ASSERT_TRUE(created) << created.error().message;
    }
    auto session = SessionClient::connect(config_.cluster.run_dir, life % 2);
    ASSERT_TRUE(session) << session.error().message;
    expect_content(**session);
    ASSERT_NO_FATAL_FAILURE(write(**session, 300));
    if (random_() % 3 != 0) {
      const Ran taken = atoll({copies(), "take"});
      ASSERT_EQ(taken.code, 0) << taken.error;
      ASSERT_NO_FATAL_FAILURE(write(**session, 200));
    }
    expect_content(**session);
    if (life + 1 == lives) {
      session->reset();
      kill(launcher.pid(), SIGTERM);
      EXPECT_EQ(launcher.wait(), 0);
      break;
    }
    const auto nodes = processes_of(config_.cluster.name, random_() % 2 == 0 ? "node0" : "node1");
    kill(random_() % 2 == 0 ? nodes.at(0) : launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  const Ran verified = atoll({copies(), "verify"});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
}

TEST_P(HashStorageTest, IsDroppedWithItsRecordsAndCreatedAgainEmpty) {
  LauncherProcess launcher(config_);
  ASSERT_EQ(launcher.next_line(), "running");
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(atoll({"storage", "create", kStorage, "--type", "hash"}).code, 0);
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    model_.clear();
    expect_content(**session);
    ASSERT_NO_FATAL_FAILURE(write(**session, 300));
    expect_content(**session);
    ASSERT_EQ(atoll({"storage", "drop", kStorage}).code, 0);
  }
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
