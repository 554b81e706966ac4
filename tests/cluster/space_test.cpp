// Space of snapshot files while the content stays the same and all of it is updated again and again
// (R74).
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "ops/cli/running_cluster.h"
#include "ops/cli/snapshot_data.h"
#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ordered_bytes.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr const char* kChurn = "churn";
constexpr uint32_t kChurnNodes = 2;
constexpr uint64_t kChurnKeys = 8000;
constexpr uint64_t kUpdatesPerSnapshot = 20;
constexpr uint32_t kChurnValueBytes = 400;

class SpaceTest : public testing::Test {
 protected:
  void put(uint64_t first, uint64_t count, bool is_random) {
    KvRequest request;
    std::array<std::byte, kChurnValueBytes> value;
    value.fill(static_cast<std::byte>(random_()));
    for (uint64_t i = 0; i < count; ++i) {
      request.put(kChurn, ordered_bytes(is_random ? random_() % kChurnKeys : first + i), value);
    }
    const SessionReply reply = session_->call("kv.txn", request.bytes());
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
  }
  Json ask(ControlOperation operation) const {
    const auto answer =
        cli::RunningCluster(config_).coordinator(operation, {}, Cluster::kDefaultTimeout);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : Json::object();
  }

  SpaceTest() { config_.memory.volatile_pool = uint64_t{64} << 20; }

  TestFolder folder_;
  Config config_ = folder_.config("space", kChurnNodes);
  std::unique_ptr<SessionClient> session_;
  std::mt19937_64 random_{seed()};
};

TEST_F(SpaceTest, ConstantContentUnderUpdatesStaysWithinItsTarget) {
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    const auto created = cli::RunningCluster(config_).create_storage(
        kChurn, StorageType::mastertree, kChurnValueBytes);
    ASSERT_TRUE(created) << created.error().message;
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
    constexpr uint64_t kAtOnce = 50;
    for (uint64_t first = 0; first < kChurnKeys; first += kAtOnce) {
      ASSERT_NO_FATAL_FAILURE(put(first, kAtOnce, false));
    }
    const uint64_t count = rounds(150, 3000);
    for (uint64_t round = 0; round < count; ++round) {
      ASSERT_NO_FATAL_FAILURE(put(0, kUpdatesPerSnapshot, true));
      ask(ControlOperation::snapshot_take);
      const Json space = ask(ControlOperation::status).at("snapshots").at("space");
      ASSERT_GT(space.at("live_bytes"), kChurnKeys * kChurnValueBytes);
      // The pages that the latest snapshot replaced come on top of the target.
      ASSERT_LE(space.at("percent"), config_.gleaner.space_percent + 10) << "round " << round;
      ASSERT_FALSE(space.at("lacks_room"));
    }
    const Json space = ask(ControlOperation::status).at("snapshots").at("space");
    EXPECT_GT(space.at("rewritten_bytes"), 0) << space.dump();
    session_.reset();
    kill(launcher.pid(), SIGTERM);
    EXPECT_EQ(launcher.wait(), 0);
  }
  cli::SnapshotOptions options;
  options.data_dir = config_.cluster.data_dir;
  const auto verified = cli::verify_snapshots({}, options);
  EXPECT_TRUE(verified) << verified.error().message;
}

}  // namespace
}  // namespace atolldb::test
