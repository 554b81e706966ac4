// Read-only transactions before the end of a recovery, with real processes. They read the newest
// and the pinned snapshots. All other requests are refused as retryable. After the recovery,
// transactions see everything committed.
#include <gtest/gtest.h>

#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"
#include "tests/cluster/metrics_http.h"

namespace atolldb::test {
namespace {

constexpr std::chrono::milliseconds kPatience{2'000};
constexpr SessionOptions kReads{.isolation = Isolation::snapshot_read_only};

/// One transaction reads both records, which are always written together.
KvRequest reads_pair() {
  KvRequest request;
  request.get("kept", kv_bytes("one")).get("kept", kv_bytes("two"));
  return request;
}

/// Returns the value of both records, 0 if they do not exist, or UINT64_MAX if they differ or the
/// request failed.
uint64_t pair_of(const SessionReply& reply) {
  const auto results = read_kv_reply(reply.output, reads_pair().bytes());
  if (reply.status != Status::ok || !results) return UINT64_MAX;
  uint64_t values[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const KvResultView& one = (*results)[i];
    if (one.status == Status::ok && one.value.size() == 8) {
      std::memcpy(&values[i], one.value.data(), 8);
    }
  }
  return values[0] == values[1] ? values[0] : UINT64_MAX;
}

class InstantRecoveryTest : public testing::Test {
 protected:
  InstantRecoveryTest() {
    config_.gleaner.interval = std::chrono::hours(1);      // only the test takes snapshots
    config_.cluster.hang_limit = std::chrono::minutes(2);  // a node is stopped for a while
    std::ofstream(file_) << to_toml(config_);
  }

  cli::RunningCluster cluster() const { return cli::RunningCluster(config_); }
  Json status() const {
    const auto answer = cluster().coordinator(ControlOperation::status, Json::object(), kPatience);
    return answer ? *answer : Json::object();
  }
  Ran atoll(std::vector<std::string> words) const {
    words.insert(words.end(), {"-c", file_});
    return runner_.atoll(words);
  }
  std::unique_ptr<SessionClient> connect(Isolation isolation) const {
    auto session = SessionClient::connect_within(config_.cluster.run_dir, 0,
                                                 std::chrono::seconds(30), {}, isolation);
    EXPECT_TRUE(session) << session.error().message;
    return session ? *std::move(session) : nullptr;
  }
  static SessionReply write_pair(SessionClient& session, uint64_t value,
                                 const SessionOptions& options = {}) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    KvRequest request;
    request.put("kept", kv_bytes("one"), bytes).put("kept", kv_bytes("two"), bytes);
    return session.call("kv.txn", request.bytes(), options);
  }
  static uint64_t read_pair(SessionClient& session, const SessionOptions& options) {
    return pair_of(session.call("kv.txn", reads_pair().bytes(), options));
  }
  uint32_t take() const {
    const auto taken =
        cluster().coordinator(ControlOperation::snapshot_take, {}, Cluster::kDefaultTimeout);
    EXPECT_TRUE(taken) << taken.error().message;
    return taken ? taken->value("id", 0u) : 0;
  }

  void kill_all(LauncherProcess& launcher) {
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }

  /// Writes 1 into a pinned snapshot, 2 into the newest one, and 3 into the log after it. Then
  /// kills everything.
  void live_and_crash() {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    for (const char* name : {"kept", "dropped"}) {
      ASSERT_TRUE(cluster().create_storage(name, StorageType::mastertree, 8));
    }
    const auto session = connect(Isolation::serializable);
    ASSERT_NE(session, nullptr);
    KvRequest lost;
    lost.put("dropped", kv_bytes("one"), kv_bytes("x"));
    ASSERT_EQ(session->call("kv.txn", lost.bytes()).status, Status::ok);
    ASSERT_EQ(write_pair(*session, 1).status, Status::ok);
    pinned_ = take();
    ASSERT_TRUE(
        cluster().coordinator(ControlOperation::snapshot_pin, {{"id", pinned_}}, kPatience));
    ASSERT_EQ(write_pair(*session, 2).status, Status::ok);
    newest_ = take();
    ASSERT_EQ(write_pair(*session, 3).status, Status::ok);
    ASSERT_TRUE(cluster().drop_storage("dropped"));
    ASSERT_TRUE(cluster().create_storage("late", StorageType::mastertree, 8));
    KvRequest late;
    late.put("late", kv_bytes("one"), kv_bytes("y"));
    ASSERT_EQ(session->call("kv.txn", late.bytes()).status, Status::ok);
    kill_all(launcher);
  }

  /// Waits until the recovery is visible, for which its log is long enough. Then stops a node, so
  /// that the recovery does not end. Returns the pid of the node.
  pid_t hold_recovery() const {
    EXPECT_TRUE(eventually([&] { return status().value("state", "") == "recovering"; }));
    const std::vector<pid_t> nodes = processes_of(config_.cluster.name, "node1");
    EXPECT_EQ(nodes.size(), 1u);
    if (nodes.size() != 1) return 0;
    EXPECT_EQ(kill(nodes.front(), SIGSTOP), 0);
    const Json held = status();
    EXPECT_EQ(held.value("state", ""), "recovering");
    const Json reads = held.value("recovery", Json::object()).value("reads", Json::object());
    EXPECT_EQ(reads.value("snapshot", 0u), newest_) << held.dump();
    EXPECT_EQ(reads.value("others", Json()), Json::array({pinned_})) << held.dump();
    return nodes.front();
  }
  Config slow() const {
    Config config = config_;
    config.durability.emulated_latency = std::chrono::milliseconds(100);
    return config;
  }

  void expect_reads_of_snapshots(SessionClient& session) const;
  void expect_all_else_refused(SessionClient& session) const;
  void expect_commands_know() const;

  TestFolder folder_;
  Config config_ = folder_.config("instant");
  std::string file_ = folder_.path() + "/instant.toml";
  CliRunner runner_{folder_};
  uint32_t pinned_ = 0;
  uint32_t newest_ = 0;
};

void InstantRecoveryTest::expect_reads_of_snapshots(SessionClient& session) const {
  EXPECT_EQ(read_pair(session, kReads), 2u);
  SessionOptions of_pinned = kReads;
  of_pinned.snapshot = pinned_;
  EXPECT_EQ(read_pair(session, of_pinned), 1u);
  of_pinned.snapshot = newest_ + 1;
  EXPECT_EQ(session.call("kv.txn", reads_pair().bytes(), of_pinned).status,
            Status::snapshot_not_found);
  // The storage is newer than the snapshot, but its name is found: names come from the catalog,
  // which is as new as the log.
  KvRequest late;
  late.get("late", kv_bytes("one"));
  const SessionReply reply = session.call("kv.txn", late.bytes(), kReads);
  EXPECT_EQ(reply.status, Status::ok) << reply.message;
  const auto results = read_kv_reply(reply.output, late.bytes());
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].status, Status::not_found);
  KvRequest dropped;
  dropped.get("dropped", kv_bytes("one"));
  EXPECT_EQ(session.call("kv.txn", dropped.bytes(), kReads).status, Status::storage_not_found);
}

void InstantRecoveryTest::expect_all_else_refused(SessionClient& session) const {
  for (const Isolation isolation : {Isolation::serializable, Isolation::snapshot}) {
    const SessionReply reply = write_pair(session, 9, {.isolation = isolation});
    EXPECT_EQ(reply.status, Status::recovering) << to_string(reply.status);
    EXPECT_NE(reply.message.find("on snapshot " + std::to_string(newest_)), std::string::npos)
        << reply.message;
    EXPECT_NE(reply.message.find(" % of the log is read"), std::string::npos) << reply.message;
  }
  EXPECT_EQ(session.call("kv.txn", reads_pair().bytes()).status, Status::recovering);
  EXPECT_EQ(write_pair(session, 9, kReads).status, Status::read_only_transaction);
  const auto job = cluster().call(0, ControlOperation::job_start, {{"name", "any"}}, kPatience);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ExitCode::recovering) << job.error().message;
  for (const ControlOperation operation :
       {ControlOperation::storage_create, ControlOperation::storage_drop,
        ControlOperation::snapshot_take, ControlOperation::snapshot_pin,
        ControlOperation::snapshot_remove}) {
    const auto done = cluster().coordinator(operation, Json::object(), kPatience);
    ASSERT_FALSE(done) << to_string(operation);
    EXPECT_EQ(done.error().code, ExitCode::recovering) << done.error().message;
  }
}

void InstantRecoveryTest::expect_commands_know() const {
  const std::string input = folder_.path() + "/request";
  const KvRequest request = reads_pair();
  std::ofstream(input, std::ios::binary)
      .write(reinterpret_cast<const char*>(request.bytes().data()),
             static_cast<std::streamsize>(request.bytes().size()));
  const std::vector<std::string> call = {"procedure", "call", "kv.txn", "--input-file", input};
  std::vector<std::string> reads = call;
  reads.insert(reads.end(), {"--isolation", "snapshot_read_only"});
  const Ran read = atoll(reads);
  EXPECT_EQ(read.code, 0) << read.error;
  SessionReply reply;
  reply.status = Status::ok;
  const auto bytes = kv_bytes(read.out);
  reply.output.assign(bytes.begin(), bytes.end());
  // The command appends a newline to output that is text.
  if (!read_kv_reply(reply.output, request.bytes())) reply.output.pop_back();
  EXPECT_EQ(pair_of(reply), 2u);
  const Ran refused = atoll(call);
  EXPECT_EQ(refused.code, static_cast<int>(ExitCode::recovering)) << refused.error;
  EXPECT_NE(refused.error.find("the cluster recovers"), std::string::npos) << refused.error;
  const Ran text = atoll({"status"});
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_NE(text.out.find("the cluster recovers: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("on snapshot " + std::to_string(newest_)), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("down"), std::string::npos) << text.out;
  // The status has the launcher's note beside the coordinator's answer.
  Json told;
  EXPECT_TRUE(eventually([&] {
    told = Json::parse(atoll({"status", "--json"}).out);
    return told.contains("start") && told.at("start").at("state") == "recovering";
  })) << told.dump();
  for (const char* member : {"step", "percent", "done_bytes", "total_bytes", "bytes_per_second",
                             "eta_seconds", "elapsed_seconds"}) {
    EXPECT_TRUE(told.at("start").contains(member)) << member;
  }
  const std::string metrics = told.at("processes").at(0).at("metrics");
  const std::string scraped = http_get(port_of(metrics), "/metrics");
  for (const char* line : {"\natoll_cluster_recovering 1\n", "\natoll_cluster_running 0\n"}) {
    EXPECT_TRUE(scraped.contains(line)) << line << scraped;
  }
}

/// Reads without a pause until it is stopped or the cluster has ended. It must read 2 for some
/// time, then 3.
class Reader {
 public:
  explicit Reader(std::unique_ptr<SessionClient> session)
      : session_(std::move(session)), thread_([this] { run(); }) {}
  ~Reader() { stop_.store(true, std::memory_order_relaxed); }

  uint64_t seen(uint64_t value) const { return seen_[value].load(std::memory_order_relaxed); }

 private:
  void run() {
    uint64_t last = 2;
    while (!stop_.load(std::memory_order_relaxed)) {
      const SessionReply reply = session_->call("kv.txn", reads_pair().bytes(), kReads);
      if (reply.status == Status::outcome_unknown || reply.status == Status::unavailable) return;
      const uint64_t value = pair_of(reply);
      if (value != 2 && value != 3) {
        ADD_FAILURE() << to_string(reply.status) << " " << reply.message << " " << value;
        return;
      }
      EXPECT_GE(value, last);
      last = value;
      seen_[value].fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::unique_ptr<SessionClient> session_;
  std::atomic<bool> stop_{false};
  std::array<std::atomic<uint64_t>, 4> seen_{};
  std::jthread thread_;
};

TEST_F(InstantRecoveryTest, SnapshotsAreReadBeforeTheStartIsCompleteAndAllElseIsRefusedForNow) {
  ASSERT_NO_FATAL_FAILURE(live_and_crash());
  const Config config = slow();
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE("killed while it recovers, " + std::to_string(round));
    LauncherProcess launcher(config);
    ASSERT_NE(hold_recovery(), 0);
    Reader reader(connect(Isolation::snapshot_read_only));
    EXPECT_TRUE(eventually([&] { return reader.seen(2) > 100; }));
    kill_all(launcher);
  }
  LauncherProcess launcher(config);
  const pid_t held = hold_recovery();
  ASSERT_NE(held, 0);
  const auto session = connect(Isolation::snapshot_read_only);
  ASSERT_NE(session, nullptr);
  expect_reads_of_snapshots(*session);
  expect_all_else_refused(*session);
  expect_commands_know();
  Reader reader(connect(Isolation::snapshot_read_only));
  EXPECT_TRUE(eventually([&] { return reader.seen(2) > 100; }));
  EXPECT_EQ(reader.seen(3), 0u);
  kill(held, SIGCONT);
  ASSERT_EQ(launcher.next_line(), "running");
  EXPECT_TRUE(eventually([&] { return reader.seen(3) > 100; }));

  EXPECT_EQ(read_pair(*session, {}), 3u) << "the session goes on";
  EXPECT_EQ(read_pair(*session, kReads), 3u);
  EXPECT_EQ(write_pair(*session, 3).status, Status::ok);
  SessionOptions of_pinned = kReads;
  of_pinned.snapshot = pinned_;
  EXPECT_EQ(read_pair(*session, of_pinned), 1u);
  EXPECT_EQ(status().at("state"), "running");
  EXPECT_EQ(status().at("recovery"), Json());
  EXPECT_GT(status().at("snapshots").at("newest"), newest_);
}

TEST_F(InstantRecoveryTest, AStartThatFailsAfterItCouldBeReadIsTriedAgainIfTheConfigSaysSo) {
  ASSERT_NO_FATAL_FAILURE(live_and_crash());
  Config config = slow();
  config.cluster.restart = RestartPolicy::recover;
  std::ofstream(file_) << to_toml(config);
  const Ran up = atoll({"up", "--until-readable"});
  EXPECT_EQ(up.code, 0) << up.error;
  const pid_t held = hold_recovery();
  ASSERT_NE(held, 0);
  kill(held, SIGKILL);
  const auto session = connect(Isolation::serializable);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(read_pair(*session, {}), 3u);
  EXPECT_EQ(atoll({"down"}).code, 0);
}

TEST_F(InstantRecoveryTest, UpReturnsWhenSnapshotsCanBeReadIfItIsToldSo) {
  ASSERT_NO_FATAL_FAILURE(live_and_crash());
  std::ofstream(file_) << to_toml(slow());
  const Ran up = atoll({"up", "--until-readable"});
  EXPECT_EQ(up.code, 0) << up.error;
  const std::string readable = "on snapshot " + std::to_string(newest_) + " of epoch";
  EXPECT_NE(up.out.find(readable), std::string::npos) << up.out;
  const auto session = connect(Isolation::snapshot_read_only);
  ASSERT_NE(session, nullptr);
  const uint64_t read = read_pair(*session, kReads);
  EXPECT_TRUE(read == 2 || read == 3) << read;  // 3: the recovery has already ended
  // The recovery continues although no client waits.
  const auto writer = connect(Isolation::serializable);
  ASSERT_NE(writer, nullptr);
  EXPECT_EQ(read_pair(*writer, {}), 3u);
  EXPECT_EQ(atoll({"down"}).code, 0);
  const Ran again = atoll({"up", "--until-readable", "--json"});
  EXPECT_EQ(again.code, 0) << again.error;
  const auto json = nlohmann::json::parse(again.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << again.out;
  // The recovery may have ended before the snapshots could be read.
  const bool is_recovering = json.value("state", "") == "recovering";
  EXPECT_EQ(json.value("state", ""), is_recovering ? "recovering" : "running");
  EXPECT_EQ(json.contains("readable"), is_recovering) << again.out;
  EXPECT_EQ(atoll({"down"}).code, 0);
}

}  // namespace
}  // namespace atolldb::test
