// Epochs end early for a client that waits for its durable answer, and only while no worker has a
// task. The regular epochs of this test are so long that the others decide.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "ops/cluster/cluster.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/soc/session/session_cluster.h"
#include "tests/support/eventually.h"

namespace atolldb {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kEpoch{1000};

class EarlyEpochsInSessionsTest : public ::testing::Test {
 protected:
  EarlyEpochsInSessionsTest() { std::printf("seed: none, nothing here is random\n"); }
  void launch(milliseconds shortest) {
    Config config = test::session_config();
    config.cluster.epoch = kEpoch;
    config.cluster.epoch_min = shortest;
    auto launched = Cluster::launch(config, LaunchMode::thread);
    ASSERT_TRUE(launched) << launched.error().message;
    cluster_ = *std::move(launched);
    ASSERT_TRUE(cluster_->create_storage("tree", StorageType::mastertree, 8));
    auto session = cluster_->connect_session(0);
    ASSERT_TRUE(session) << session.error().message;
    client_ = *std::move(session);
  }
  EpochBlock& epochs() { return cluster_->view()->control->epochs; }
  uint64_t early_ends() { return epochs().early_ends.load(std::memory_order_relaxed); }
  void put() {
    KvRequest request;
    request.put("tree", kv_bytes("key"), kv_bytes("value"));
    EXPECT_EQ(client_->call("kv.txn", request.bytes()).status, Status::ok);
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<SessionClient> client_;
};

TEST_F(EarlyEpochsInSessionsTest, ALoneClientDoesNotWaitForRegularEpochs) {
  constexpr uint64_t kPuts = 50;
  launch(milliseconds(1));
  const uint64_t before = early_ends();
  for (uint64_t i = 0; i < kPuts; ++i) put();
  // A regular end may come in between, and a put that it interrupts needs no early one.
  EXPECT_GE(early_ends() - before, kPuts / 2);
}

TEST_F(EarlyEpochsInSessionsTest, WithLongShortestEpochsAllEndsAreRegular) {
  launch(kEpoch);
  for (int i = 0; i < 3; ++i) put();
  EXPECT_EQ(early_ends(), 0u);
}

TEST_F(EarlyEpochsInSessionsTest, AnIdleClusterHasRegularEpochsOnly) {
  launch(milliseconds(1));
  put();
  const uint64_t before = early_ends();
  const uint64_t epoch = epochs().current.load(std::memory_order_acquire);
  ASSERT_TRUE(test::eventually(
      [&] { return epochs().current.load(std::memory_order_acquire) >= epoch + 2; }));
  EXPECT_EQ(early_ends(), before);
}

}  // namespace
}  // namespace atolldb
