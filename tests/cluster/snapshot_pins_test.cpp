// Pins of snapshots on running clusters, across restarts and rewrites (R38).
#include <gtest/gtest.h>

#include "ops/cli/snapshot_data.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

class SnapshotPinsTest : public testing::Test {
 protected:
  SnapshotPinsTest() {
    config_.gleaner.interval = std::chrono::hours(1);  // only the test takes snapshots
    std::ofstream(file_) << to_toml(config_);
  }
  Ran snapshot(std::vector<std::string> words) const {
    words.insert(words.begin(), "snapshot");
    words.insert(words.end(), {"-c", file_});
    return runner_.atoll(words);
  }
  Json listed() const {
    const Ran ran = snapshot({"ls", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    return Json::parse(ran.out).at("snapshots");
  }
  /// Returns {"state", "pins", ...} of a snapshot, or null if it does not exist.
  Json state_of(uint32_t id) const {
    for (const Json& one : listed()) {
      if (one.at("id") == id) return one;
    }
    return {};
  }
  /// Commits a change, and takes a snapshot of it. Returns its id.
  uint32_t take() {
    auto session = SessionClient::connect(config_.cluster.run_dir, 0);
    if (!session) {
      ADD_FAILURE() << session.error().message;
      return 0;
    }
    const uint64_t key = ++commits_;
    KvRequest request;
    request.put(kLedgerStorage, ordered_index_key(key), std::as_bytes(std::span(&key, 1)));
    const SessionReply reply = (*session)->call("kv.txn", request.bytes());
    EXPECT_EQ(reply.status, Status::ok) << reply.message;
    const Ran ran = snapshot({"take", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    return Json::parse(ran.out).at("id").get<uint32_t>();
  }
  void expect_intact() const {
    const Ran ran = snapshot({"verify"});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.error;
  }

  TestFolder folder_;
  Config config_ = folder_.config("pins");
  std::string file_ = folder_.path() + "/pins.toml";
  CliRunner runner_{folder_};
  uint64_t commits_ = 0;
};

TEST_F(SnapshotPinsTest, APinnedSnapshotStaysOverRewritesAndRestartsUntilItIsUnpinned) {
  uint32_t pinned = 0;
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    ASSERT_TRUE(create_ledger(config_));
    const uint32_t first = take();
    const Ran late = snapshot({"pin", std::to_string(first + 1)});
    EXPECT_EQ(late.code, 1);
    EXPECT_NE(late.error.find("is neither the newest one"), std::string::npos) << late.error;
    pinned = take();
    const Ran ran = snapshot({"pin", std::to_string(pinned), "--name", "before the move"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(state_of(pinned).at("pins"), Json::array({"before the move"}));
    EXPECT_EQ(snapshot({"rm", std::to_string(pinned)}).code, 1);
    // Takes more snapshots than may be in use before all pages are rewritten.
    uint32_t newest = 0;
    for (int i = 0; i < 36; ++i) newest = take();
    EXPECT_EQ(state_of(pinned).at("state"), "pinned");
    const Ran rm = snapshot({"rm", std::to_string(newest)});
    EXPECT_EQ(rm.code, 1);
    EXPECT_NE(rm.error.find("is the newest one"), std::string::npos) << rm.error;
    expect_intact();
    // The cluster is killed without a stop.
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  // The command also works on the files of a dead cluster.
  EXPECT_EQ(snapshot({"rm", std::to_string(pinned)}).code, 1);
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    take();
    EXPECT_EQ(state_of(pinned).at("state"), "pinned");
    expect_intact();
    const Ran ran = snapshot({"unpin", "before the move", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    EXPECT_EQ(Json::parse(ran.out).at("id"), pinned);
    const Json after = state_of(pinned);
    EXPECT_TRUE(after.is_null() || after.at("state") == "in use") << after;
    expect_intact();
    EXPECT_EQ(snapshot({"unpin", "before the move"}).code, 1);
    kill(launcher.pid(), SIGTERM);
    EXPECT_EQ(launcher.wait(), 0);
  }
}

}  // namespace
}  // namespace atolldb::test
