// Ledger client against a cluster: its records agree with the data.
#include "ops/ledger/ledger_client.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

#include "ops/cluster/cluster.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

class LedgerClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Config config = default_config();
    config.durability.mode = DurabilityMode::off;
    config.nodes.assign(2, NodeConfig{});
    config.memory.volatile_pool = uint64_t{16} << 20;
    config.memory.log_buffer = uint64_t{2} << 20;
    config.memory.exchange = uint64_t{2} << 20;
    config.cluster.epoch = std::chrono::milliseconds(2);
    auto launched = Cluster::launch(config, LaunchMode::thread);
    ASSERT_TRUE(launched) << launched.error().message;
    cluster_ = *std::move(launched);
    ASSERT_TRUE(cluster_->create_storage(kLedgerStorage, StorageType::mastertree, 8));
    for (int i = 0; i < 2; ++i) {
      paths_.push_back(::testing::TempDir() + "/ledger_client_test_" + std::to_string(i));
      std::remove(paths_.back().c_str());
    }
  }
  void TearDown() override {
    for (const std::string& path : paths_) std::remove(path.c_str());
  }
  LedgerClientCounts run(size_t index, uint64_t seed, uint64_t transactions) {
    auto session = cluster_->connect_session(static_cast<uint32_t>(index));
    LedgerClientOptions options;
    options.path = paths_[index];
    options.client = index;
    options.keys = 50;
    options.precommitted_percent = 20;
    options.seed = seed + index;
    auto client = LedgerClient::open(options);
    EXPECT_TRUE(client) << client.error().message;
    const auto counts = (*client)->run(**session, [] { return false; }, transactions);
    EXPECT_TRUE(counts) << counts.error().message;
    return counts.value_or(LedgerClientCounts{});
  }
  Ledger ledger() {
    Ledger all;
    for (const std::string& path : paths_) {
      auto one = read_ledger(path);
      EXPECT_TRUE(one) << one.error().message;
      all.merge(*one);
    }
    return all;
  }

  std::unique_ptr<Cluster> cluster_;
  std::vector<std::string> paths_;
};

TEST_F(LedgerClientTest, TwoClientsOnTwoNodesAgreeWithTheDatabaseAlsoAfterARestart) {
  const uint64_t seed = test::seed();
  for (int round = 0; round < 2; ++round) {
    std::thread other([&] { EXPECT_EQ(run(1, seed + 10, 1000).submitted, 1000u); });
    const LedgerClientCounts counts = run(0, seed, 1000);
    other.join();
    EXPECT_EQ(counts.submitted, 1000u);
    EXPECT_EQ(counts.ok, 1000u);
  }
  const Ledger all = ledger();
  EXPECT_EQ(all.size(), 4000u);
  auto session = cluster_->connect_session(0);
  const auto state = read_ledger_state(**session);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->size(), 50u);
  for (const LedgerViolation& one : check_ledger(all, *state)) ADD_FAILURE() << one.text;

  // The checker works on real histories, too: it finds a lost update and a torn transaction.
  size_t found = 0;
  for (const auto& [key, value] : *state) {
    LedgerState damaged = *state;
    damaged.erase(key);
    found += !check_ledger(all, damaged).empty();
  }
  EXPECT_EQ(found, state->size());
}

TEST_F(LedgerClientTest, AClusterThatEndsLeavesNothingClaimedThatIsNotSo) {
  std::thread ending([&] {
    auto session = cluster_->connect_session(0);
    while (read_ledger_state(**session)->size() < 20) std::this_thread::yield();
    EXPECT_TRUE(cluster_->shutdown());
  });
  const LedgerClientCounts counts = run(1, test::seed(), 0);
  ending.join();
  EXPECT_GT(counts.ok, 0u);
  EXPECT_EQ(counts.ok + counts.failed + counts.unknown, counts.submitted);
  uint64_t noted = 0;
  const auto written = read_ledger(paths_[1]);
  ASSERT_TRUE(written) << written.error().message;
  for (const auto& [token, transaction] : *written) {
    noted += transaction.outcome.has_value();
  }
  EXPECT_EQ(noted, counts.submitted);
}

}  // namespace
}  // namespace atolldb
