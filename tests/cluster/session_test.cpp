// Sessions with real processes: a node is killed, and its clients handle that.
#include <gtest/gtest.h>

#include "ops/cluster/cluster.h"
#include "ops/ledger/ledger_client.h"
#include "shared/kv/kv_request.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

std::unique_ptr<Cluster> launch(const Config& config) {
  auto launched = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  if (!launched) ADD_FAILURE() << launched.error().message;
  return launched ? *std::move(launched) : nullptr;
}

TEST(SessionProcessTest, ALedgerAgreesWithTheDatabaseAndASocketWithoutANodeIsRefused) {
  TestFolder folder;
  const Config config = folder.config("session");
  EXPECT_FALSE(SessionClient::connect(config.cluster.run_dir, 0));
  const auto cluster = launch(config);
  ASSERT_NE(cluster, nullptr);
  ASSERT_TRUE(cluster->create_storage(kLedgerStorage, StorageType::mastertree, 8));
  auto session = cluster->connect_session(1);
  ASSERT_TRUE(session) << session.error().message;
  LedgerClientOptions options;
  options.path = folder.path() + "/ledger";
  options.keys = 40;
  options.seed = seed();
  auto client = LedgerClient::open(options);
  ASSERT_TRUE(client) << client.error().message;
  const auto counts = (*client)->run(**session, [] { return false; }, 500);
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->ok, 500u);
  auto other = SessionClient::connect(config.cluster.run_dir, 0);
  ASSERT_TRUE(other) << other.error().message;
  const auto state = read_ledger_state(**other);
  ASSERT_TRUE(state) << state.error().message;
  for (const LedgerViolation& one : check_ledger(*read_ledger(options.path), *state)) {
    ADD_FAILURE() << one.text;
  }
  EXPECT_TRUE(cluster->shutdown());
  EXPECT_FALSE((*session)->is_open());
  EXPECT_FALSE(std::filesystem::exists(session_socket_path(config.cluster.run_dir, 0)));
}

TEST(SessionProcessTest, RequestsInFlightWhenTheNodeIsKilledAreUnknownAndTheClientSurvives) {
  TestFolder folder;
  for (int round = 0; round < 3; ++round) {
    // Each round has a cluster with its own directories.
    const Config config = folder.config("sessionkill" + std::to_string(round));
    auto cluster = launch(config);
    ASSERT_NE(cluster, nullptr);
    ASSERT_TRUE(cluster->create_storage(kLedgerStorage, StorageType::mastertree, 8));
    auto session = cluster->connect_session(0);
    ASSERT_TRUE(session) << session.error().message;
    LedgerClientOptions options;
    options.path = folder.path() + "/ledger";
    options.keys = 40;
    options.in_flight = 100;
    options.seed = seed();
    auto client = LedgerClient::open(options);
    ASSERT_TRUE(client) << client.error().message;
    std::thread killer([&] {
      auto watch = SessionClient::connect(config.cluster.run_dir, 1);
      ASSERT_TRUE(watch) << watch.error().message;
      while (read_ledger_state(**watch)->size() < 30) std::this_thread::yield();
      for (const pid_t pid : processes_of(config.cluster.name, "node0")) kill(pid, SIGKILL);
    });
    // The client always has a hundred requests in flight, so some are in flight when the node dies.
    const auto counts = (*client)->run(**session, [] { return false; });
    killer.join();
    ASSERT_TRUE(counts) << counts.error().message;
    EXPECT_GT(counts->ok, 0u);
    EXPECT_GT(counts->unknown, 0u);
    EXPECT_EQ(counts->ok + counts->failed + counts->unknown, counts->submitted);
    EXPECT_FALSE((*session)->is_open());
    EXPECT_FALSE((*session)->submit("kv.txn", {}));
    EXPECT_FALSE(cluster->shutdown()) << "it tells who has died";
    // The client keeps the session's segment until it destroys the session.
    session->reset();
    EXPECT_EQ(open_segments(), 0u);
  }
}

TEST(SessionProcessTest, ALoneClientWaitsForSyncsAndNotForRegularEpochs) {
  constexpr int kPuts = 20;
  TestFolder folder;
  Config config = folder.config("lone");
  config.cluster.epoch = std::chrono::seconds(1);
  const auto cluster = launch(config);
  ASSERT_NE(cluster, nullptr);
  ASSERT_TRUE(cluster->create_storage("tree", StorageType::mastertree, 8));
  auto session = cluster->connect_session(1);
  ASSERT_TRUE(session) << session.error().message;
  KvRequest request;
  request.put("tree", kv_bytes("key"), kv_bytes("value"));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kPuts; ++i) {
    ASSERT_EQ((*session)->call("kv.txn", request.bytes()).status, Status::ok);
  }
  // With regular epochs each put but the first would take a second.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(kPuts / 2));
  EXPECT_TRUE(cluster->shutdown());
}

}  // namespace
}  // namespace atolldb::test
