// Isolation levels that clients request, on a durable cluster that takes snapshots while sessions
// run.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "ops/cluster/cluster.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "soc/procedure/procedure.h"

namespace atolldb {
namespace {

/// Counts the records of the tree. Its registration selects the latest snapshot, whatever the
/// client requests.
Status count_records(ProcedureContext& context) {
  StorageControl* storage = context.storage("tree", StorageType::mastertree);
  if (storage == nullptr) return Status::storage_not_found;
  MasterTreeCursor cursor(MasterTree(*storage), context.transaction(), {}, true);
  uint64_t count = 0;
  Status status = cursor.next();
  for (; status == Status::ok; status = cursor.next()) ++count;
  context.set_output(std::to_string(count));
  return status == Status::end_of_scan ? Status::ok : status;
}
const ProcedureRegistration kCountEntry({"test.count_in_snapshot", count_records, nullptr,
                                         Isolation::snapshot_read_only});

class SessionIsolation : public ::testing::Test {
 protected:
  SessionIsolation() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    launch();
    EXPECT_TRUE(cluster_->create_storage("tree", StorageType::mastertree, 8));
    EXPECT_TRUE(cluster_->create_storage("array", StorageType::array, 8, 100));
  }
  ~SessionIsolation() override {
    stop();
    std::filesystem::remove_all(folder_);
  }
  void stop() {
    client_.reset();
    cluster_.reset();
  }

  void launch() {
    Config config = default_config();
    config.durability.mode = DurabilityMode::durable;
    config.cluster.data_dir = folder_;
    config.cluster.epoch = std::chrono::milliseconds(2);
    config.gleaner.interval = std::chrono::hours(1);  // snapshots on request only
    config.nodes.assign(1, NodeConfig{});
    config.nodes[0].workers = 2;
    config.memory.volatile_pool = uint64_t{16} << 20;
    config.memory.log_buffer = uint64_t{2} << 20;
    config.memory.exchange = uint64_t{2} << 20;
    auto launched = Cluster::launch(config, LaunchMode::thread);
    ASSERT_TRUE(launched) << launched.error().message;
    cluster_ = *std::move(launched);
    auto connected = cluster_->connect_session(0);
    ASSERT_TRUE(connected) << connected.error().message;
    client_ = *std::move(connected);
  }
  uint64_t take_snapshot() {
    const auto taken = cluster_->coordinator(ControlOperation::snapshot_take, Json::object());
    EXPECT_TRUE(taken) << taken.error().message;
    return taken ? (*taken)["id"].get<uint64_t>() : 0;
  }

  Status put(const std::string& value, SessionOptions options = {}) {
    KvRequest request;
    request.put("tree", kv_bytes("key"), kv_bytes(value));
    return client_->call("kv.put", request.bytes(), options).status;
  }
  /// Returns the value, or the reason why there is none.
  std::string get(SessionOptions options = {}) {
    KvRequest request;
    request.get("tree", kv_bytes("key"));
    const SessionReply reply = client_->call("kv.get", request.bytes(), options);
    if (reply.status != Status::ok) return std::string(to_string(reply.status));
    const auto results = read_kv_reply(reply.output, request.bytes());
    if (!results || results->size() != 1) return "no reply to the request";
    if (results->front().status != Status::ok) {
      return std::string(to_string(results->front().status));
    }
    const KvBytes value = results->front().value;
    return {reinterpret_cast<const char*>(value.data()), value.size()};
  }

  static SessionOptions with(Isolation isolation, uint64_t snapshot = 0) {
    SessionOptions options;
    options.isolation = isolation;
    options.snapshot = static_cast<uint32_t>(snapshot);
    return options;
  }

  std::string folder_ = "/tmp/atoll-isolation-XXXXXX";
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<SessionClient> client_;
};

TEST_F(SessionIsolation, ARequestReadsTheSnapshotThatItAsksFor) {
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "not_found") << "nothing was committed yet";
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, 1)), "snapshot_not_found");
  ASSERT_EQ(put("old"), Status::ok);
  const uint64_t first = take_snapshot();
  ASSERT_EQ(put("new"), Status::ok);
  EXPECT_EQ(get(), "new");
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "old");
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, first)), "old");
  EXPECT_EQ(get(with(Isolation::snapshot)), "old");
  const uint64_t second = take_snapshot();
  ASSERT_GT(second, first);
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "new");
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, first)), "snapshot_not_found")
      << "it is neither the newest one nor pinned";
  stop();
  launch();
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "new") << "after a restart";
}

TEST_F(SessionIsolation, TheFirstSnapshotIsTakenForTheTransactionThatAsksForIt) {
  ASSERT_EQ(put("old"), Status::ok);
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "old");
  ASSERT_EQ(put("new"), Status::ok);
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "old") << "no other one is taken for it";
}

TEST_F(SessionIsolation, AnEmptySnapshotTakesWrites) {
  KvRequest request;
  request.put("tree", kv_bytes("other"), kv_bytes("1"));
  EXPECT_EQ(client_->call("kv.put", request.bytes(), with(Isolation::snapshot)).status, Status::ok);
  EXPECT_EQ(put("old"), Status::ok);
}

TEST_F(SessionIsolation, ADamagedPinIsRefusedAndToldAndHoldsNothingElseUp) {
  const auto damage = [&](const std::string& file) {
    std::fstream stream(folder_ + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(20);
    stream.put('?');
    ASSERT_TRUE(stream.good()) << file;
  };
  const auto pin = [&](const char* name) {
    EXPECT_TRUE(cluster_->coordinator(ControlOperation::snapshot_pin, {{"name", name}}));
  };
  const auto unreadable_pins = [&] {
    const auto status = cluster_->coordinator(ControlOperation::status, Json::object());
    EXPECT_TRUE(status);
    return (*status)["snapshots"]["unreadable_pins"];
  };
  ASSERT_EQ(put("first"), Status::ok);
  const uint64_t first = take_snapshot();
  pin("metadata");
  ASSERT_EQ(put("second"), Status::ok);
  const uint64_t second = take_snapshot();
  pin("pages");
  // Takes many more snapshots. The newest one refers to no file of the two pinned snapshots.
  uint64_t newest = 0;
  for (int i = 0; i < 36; ++i) {
    ASSERT_EQ(put("third"), Status::ok);
    newest = take_snapshot();
  }
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, first)), "first");
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, second)), "second");
  EXPECT_EQ(unreadable_pins(), Json::array());
  stop();
  damage("coordinator/snapshot_" + std::to_string(first) + ".meta");
  damage("node0/snapshot_" + std::to_string(second) + ".atsnap");
  launch();
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, first)), "snapshot_not_found");
  EXPECT_EQ(get(with(Isolation::snapshot_read_only, second)), "snapshot_not_found");
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "third") << "the newest one can be read";
  const Json unreadable = unreadable_pins();
  ASSERT_EQ(unreadable.size(), 2u) << unreadable;
  for (size_t i = 0; i < 2; ++i) {
    const std::string file = "snapshot_" + std::to_string(i == 0 ? first : second) + ".";
    EXPECT_EQ(unreadable[i]["id"], i == 0 ? first : second);
    EXPECT_TRUE(unreadable[i]["reason"].get<std::string>().contains(file)) << unreadable;
  }
  // New snapshots are still published and installed.
  ASSERT_EQ(put("fourth"), Status::ok);
  ASSERT_GT(take_snapshot(), newest);
  EXPECT_EQ(get(with(Isolation::snapshot_read_only)), "fourth");
  const auto status = cluster_->coordinator(ControlOperation::status, Json::object());
  ASSERT_TRUE(status);
  EXPECT_FALSE((*status)["snapshots"]["install"].contains("error")) << (*status)["snapshots"];
  // Without the pins, the status reports no problem.
  for (const char* name : {"metadata", "pages"}) {
    EXPECT_TRUE(cluster_->coordinator(ControlOperation::snapshot_unpin, {{"pin", name}}));
  }
  EXPECT_EQ(unreadable_pins(), Json::array());
}

TEST_F(SessionIsolation, WritesAreRefusedOrCheckedAsTheIsolationSays) {
  ASSERT_EQ(put("old"), Status::ok);
  take_snapshot();
  EXPECT_EQ(put("no", with(Isolation::snapshot_read_only)), Status::read_only_transaction);
  EXPECT_EQ(put("yes", with(Isolation::snapshot)), Status::ok);
  EXPECT_EQ(put("again", with(Isolation::snapshot)), Status::snapshot_conflict)
      << "it has changed since the snapshot";
  EXPECT_EQ(get(), "yes");
  take_snapshot();
  EXPECT_EQ(put("again", with(Isolation::snapshot)), Status::ok);
  EXPECT_EQ(put("named", with(Isolation::snapshot, 1)), Status::invalid_argument);
  KvRequest request(client_->incarnation());
  request.compare_absent("tree", kv_bytes("nothing"));
  EXPECT_EQ(client_->call("kv.commit", request.bytes(), with(Isolation::snapshot)).status,
            Status::invalid_argument);
}

TEST_F(SessionIsolation, AProcedureRunsAsItsEntrySaysUnlessTheRequestSaysOtherwise) {
  const auto count = [&](SessionOptions options) {
    const SessionReply reply = client_->call("test.count_in_snapshot", {}, options);
    EXPECT_EQ(reply.status, Status::ok) << reply.message;
    return std::string(reinterpret_cast<const char*>(reply.output.data()), reply.output.size());
  };
  // A commit to another storage lets the cluster take a snapshot, in which the tree is still empty.
  const uint64_t index = 0;
  KvRequest request;
  request.put("array", ordered_index_key(index), kv_bytes("12345678"));
  ASSERT_EQ(client_->call("kv.put", request.bytes()).status, Status::ok);
  take_snapshot();
  ASSERT_EQ(put("value"), Status::ok);
  EXPECT_EQ(count({}), "0");
  EXPECT_EQ(count(with(Isolation::serializable)), "1");
}

}  // namespace
}  // namespace atolldb
