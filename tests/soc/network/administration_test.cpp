// Tests of control requests of network clients: rights, limits, deadlines, and hostile input.
#include "soc/network/administration.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/message/control_server.h"
#include "tests/soc/network/gateway_fixture.h"
#include "tests/support/eventually.h"

namespace atolldb {
namespace {

class NetworkAdministrationTest : public NetworkGatewayTest {};

TEST_F(NetworkAdministrationTest, ControlRequestsNeedTheirRightAndAreAnsweredByTheirProcess) {
  allow(to_hex(alice_) + " alice read,write,procedures\n" + to_hex(bob_) +
        " bob procedures,administration\n");
  endpoints_ = {"ipc://" + folder_ + "/coordinator", "ipc://" + folder_ + "/node"};
  const auto answer_as = [](const char* process) {
    return [process](const ControlRequest& request, const ControlReply& reply) {
      if (request.body.value("name", "") == "bad") {
        return reply(make_error(ExitCode::usage, std::string(500, 'x')));
      }
      reply(Json{{"process", process}, {"op", request.op}});
    };
  };
  auto coordinator = ControlServer::start(endpoints_.coordinator, answer_as("coordinator"));
  auto node = ControlServer::start(endpoints_.node, answer_as("node"));
  ASSERT_TRUE(coordinator && node && start());
  auto reader = NetworkClient::connect(address());
  auto administrator = NetworkClient::connect(address("bob"));
  ASSERT_TRUE(reader && administrator);
  const auto ask = [](NetworkClient& client, const std::string& op, const std::string& input) {
    return client.call("atoll." + op, std::as_bytes(std::span(input)));
  };
  const auto json_of = [](const SessionReply& reply) { return parse_json(reply.output); };
  for (const char* op : {"storage.create", "storage.drop", "session.list", "session.kill",
                         "job.start", "job.stop"}) {
    const SessionReply denied = ask(**reader, op, "{}");
    EXPECT_EQ(denied.status, Status::permission_denied) << op;
    EXPECT_NE(denied.message.find("lacks the right administration"), std::string::npos)
        << denied.message;
    const SessionReply done = ask(**administrator, op, R"({"name": "ycsb.load"})");
    EXPECT_EQ(done.status, Status::ok) << op << done.message;
    if (std::string(op) == "session.list") {
      EXPECT_EQ(json_of(done), Json({{"sessions", Json::array()}, {"more", false}}));
      continue;
    }
    const bool is_of_node = !std::string(op).starts_with("storage");
    EXPECT_EQ(json_of(done)["process"], is_of_node ? "node" : "coordinator") << op;
  }
  const SessionReply undescribed = ask(**administrator, "storage.describe", "{}");
  EXPECT_EQ(undescribed.status, Status::permission_denied);
  EXPECT_NE(undescribed.message.find("lacks the right read"), std::string::npos);
  EXPECT_EQ(ask(**reader, "storage.describe", "{}").status, Status::ok);
  EXPECT_EQ(json_of(ask(**reader, "storage.list", ""))["more"], false);
  // No other control request is served, for any client.
  EXPECT_EQ(ask(**reader, "down", "{}").status, Status::permission_denied);
  EXPECT_EQ(ask(**administrator, "down", "{}").status, Status::procedure_not_found);
  for (const char* wrong : {"[]", "{", "1", R"({"after": 1})", "\xff"}) {
    EXPECT_EQ(ask(**reader, "storage.list", wrong).status, Status::invalid_argument) << wrong;
  }
  // Members that control messages use, and members that nest deeply, do not reach the process.
  const std::string deep =
      "{\"name\": " + std::string(30'000, '[') + std::string(30'000, ']') + "}";
  const std::string deep_after =
      "{\"after\": " + std::string(30'000, '[') + std::string(30'000, ']') + "}";
  EXPECT_EQ(ask(**reader, "storage.list", deep_after).status, Status::invalid_argument);
  EXPECT_EQ(ask(**administrator, "session.list", deep_after).status, Status::invalid_argument);
  EXPECT_EQ(ask(**administrator, "session.list", R"({"after": "1"})").status,
            Status::invalid_argument);
  for (const std::string& hostile :
       {std::string(R"({"binary": "name", "op": "down", "v": 9, "name": "t"})"), deep}) {
    const SessionReply reply = ask(**reader, "storage.describe", hostile);
    EXPECT_EQ(reply.status, Status::ok) << reply.message;
    EXPECT_EQ(json_of(reply)["op"], "storage.describe");
  }
  const SessionReply failed = ask(**administrator, "storage.create", R"({"name": "bad"})");
  EXPECT_EQ(failed.status, Status::invalid_argument);
  EXPECT_EQ(json_of(failed)["code"], static_cast<int>(ExitCode::usage));
  EXPECT_EQ(json_of(failed)["message"], std::string(500, 'x'));
}

TEST_F(NetworkAdministrationTest, ClientsStartOnlyTheJobsOfARemoteBenchmark) {
  allow(to_hex(alice_) + " alice procedures,administration\n" + to_hex(bob_) +
        " bob administration\n");
  endpoints_.node = "ipc://" + folder_ + "/node";
  std::atomic<int> started{0};
  auto node = ControlServer::start(
      endpoints_.node, [&](const ControlRequest& /*request*/, const ControlReply& reply) {
        ++started;
        reply(Json{{"job", 1}});
      });
  ASSERT_TRUE(node && start());
  auto client = NetworkClient::connect(address());
  auto without_data = NetworkClient::connect(address("bob"));
  ASSERT_TRUE(client && without_data);
  const auto start_job = [](NetworkClient& from, const std::string& input) {
    return from.call("atoll.job.start", std::as_bytes(std::span(input)));
  };
  for (const char* refused :
       {R"({"name": "tpcc.run"})", R"({"name": "ycsb.run"})", R"({"name": "ycsb.load\u0000"})",
        R"({"name": "mine.job"})", R"({"name": ["ycsb.load"]})", R"({"name": 1})", "{}"}) {
    const SessionReply reply = start_job(**client, refused);
    EXPECT_EQ(reply.status, Status::permission_denied) << refused;
    EXPECT_NE(reply.message.find("network clients may start only these jobs: tpcc.load"),
              std::string::npos)
        << reply.message;
  }
  EXPECT_EQ(started, 0);
  int expected = 0;
  for (const char* name :
       {"tpcc.load", "tpcc.verify", "tpcc.survey", "ycsb.load", "ycsb.verify", "ycsb.survey"}) {
    const std::string input = Json{{"name", name}}.dump();
    EXPECT_EQ(start_job(**client, input).status, Status::ok) << name;
    EXPECT_EQ(started, ++expected);
    const SessionReply denied = start_job(**without_data, input);
    EXPECT_EQ(denied.status, Status::permission_denied) << name;
    EXPECT_NE(denied.message.find("lacks the right procedures"), std::string::npos)
        << denied.message;
  }
  EXPECT_EQ(started, expected);
}

TEST_F(NetworkAdministrationTest, AJobEndsWithTheSessionThatHasStartedIt) {
  allow(to_hex(alice_) + " alice procedures,administration\n");
  endpoints_.node = "ipc://" + folder_ + "/node";
  std::mutex mutex;
  uint64_t started = 0;
  std::vector<uint64_t> stopped;
  ControlReply held;  // of the third start
  auto node = ControlServer::start(endpoints_.node,
                                   [&](const ControlRequest& request, const ControlReply& reply) {
                                     const std::lock_guard guard(mutex);
                                     if (request.op == "job.stop") {
                                       stopped.push_back(request.body.value("job", uint64_t{0}));
                                       return reply(Json::object());
                                     }
                                     if (++started == 3) {
                                       held = reply;
                                     } else {
                                       reply(Json{{"job", started}});
                                     }
                                   });
  ASSERT_TRUE(node && start());
  const auto is_stopped = [&](uint64_t job) {
    const std::lock_guard guard(mutex);
    return std::ranges::count(stopped, job) == 1;
  };
  const std::string input = R"({"name": "ycsb.load"})";
  auto first = NetworkClient::connect(address());
  auto second = NetworkClient::connect(address());
  ASSERT_TRUE(first && second);
  for (NetworkClient* client : {first->get(), second->get()}) {
    ASSERT_EQ(client->call("atoll.job.start", std::as_bytes(std::span(input))).status, Status::ok);
  }
  first->reset();
  EXPECT_TRUE(test::eventually([&] { return is_stopped(1); }));
  EXPECT_FALSE(is_stopped(2)) << "its session is open";
  // A session that ends before the node has answered the start.
  ASSERT_TRUE((*second)->submit("atoll.job.start", std::as_bytes(std::span(input))));
  ASSERT_TRUE(test::eventually([&] {
    const std::lock_guard guard(mutex);
    return held != nullptr;
  }));
  second->reset();
  auto other = NetworkClient::connect(address());
  ASSERT_TRUE(other);
  // The node has most probably served the end of the other session before this answer.
  EXPECT_EQ((*other)->call("kv.none", {}).status, Status::permission_denied);
  {
    const std::lock_guard guard(mutex);
    held(Json{{"job", 3}});
  }
  EXPECT_TRUE(test::eventually([&] { return is_stopped(2) && is_stopped(3); }));
}

TEST_F(NetworkAdministrationTest, OutputsOfAJobArriveInPartsAndTheQuestionDoesNotWait) {
  allow(to_hex(alice_) + " alice administration\n" + to_hex(bob_) + " bob read\n");
  endpoints_.node = "ipc://" + folder_ + "/node";
  auto node = ControlServer::start(
      endpoints_.node, [](const ControlRequest& request, const ControlReply& reply) {
        if (request.body.contains("timeout_ms")) {
          return reply(make_error(ExitCode::failed, "the request would wait"));
        }
        Json outputs = Json::array();
        for (const uint32_t worker : {2u, 0u, 1u}) {
          outputs.push_back({{"worker", worker}, {"output", std::string(20'000, 'x')}});
        }
        reply(Json{{"done", true}, {"outputs", outputs}, {"job", request.body["job"]}});
      });
  ASSERT_TRUE(node && start());
  auto client = NetworkClient::connect(address());
  auto reader = NetworkClient::connect(address("bob"));
  ASSERT_TRUE(client && reader);
  const auto ask = [](NetworkClient& from, const std::string& input) {
    return from.call("atoll.job.wait", std::as_bytes(std::span(input)));
  };
  EXPECT_EQ(ask(**reader, R"({"job": 1})").status, Status::permission_denied);
  EXPECT_EQ(ask(**client, R"({"job": 1, "after": "0"})").status, Status::invalid_argument);
  std::string input = R"({"job": 1, "timeout_ms": 60000})";
  for (uint32_t worker = 0; worker < 3; ++worker) {
    const SessionReply reply = ask(**client, input);
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
    const Json state = parse_json(reply.output);
    EXPECT_EQ(state["done"], true);
    EXPECT_EQ(state["more"], worker != 2);
    ASSERT_EQ(state["outputs"].size(), 1u) << "two do not fit into one answer";
    EXPECT_EQ(state["outputs"][0]["worker"], worker);
    input = R"({"job": 1, "after": )" + std::to_string(worker) + "}";
  }
}

TEST_F(NetworkAdministrationTest, AnOutputThatDoesNotFitIsAnErrorOfItsWorker) {
  allow(to_hex(alice_) + " alice administration\n");
  endpoints_.node = "ipc://" + folder_ + "/node";
  auto node = ControlServer::start(
      endpoints_.node, [](const ControlRequest& /*request*/, const ControlReply& reply) {
        const auto output = [](uint32_t worker, size_t bytes) {
          return Json{{"worker", worker}, {"ok", true}, {"output", std::string(bytes, 'x')}};
        };
        reply(Json{{"done", true},
                   {"status", "outcome_unknown"},
                   {"outputs", Json::array({output(0, 64'400), output(1, 64'600),
                                            output(2, size_t{1} << 20), output(3, 5)})}});
      });
  ASSERT_TRUE(node && start());
  auto client = NetworkClient::connect(address());
  ASSERT_TRUE(client);
  Json outputs = Json::array();
  Json input = {{"job", 1}};
  for (bool more = true; more;) {
    const std::string text = input.dump();
    const SessionReply reply = (*client)->call("atoll.job.wait", std::as_bytes(std::span(text)));
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
    const Json state = parse_json(reply.output);
    EXPECT_EQ(state["done"], true);
    ASSERT_FALSE(state["outputs"].empty());
    for (const Json& each : state["outputs"]) outputs.push_back(each);
    input["after"] = outputs.back()["worker"];
    more = state["more"];
  }
  ASSERT_EQ(outputs.size(), 4u);
  for (size_t worker = 0; worker < 4; ++worker) {
    const bool fits = worker == 0 || worker == 3;
    EXPECT_EQ(outputs[worker]["worker"], worker);
    EXPECT_EQ(outputs[worker]["ok"], fits) << worker;
    EXPECT_EQ(outputs[worker].contains("output"), fits) << worker;
    if (fits) continue;
    EXPECT_EQ(outputs[worker]["code"], static_cast<int>(ExitCode::failed));
    EXPECT_NE(outputs[worker].value("message", "").find("bytes as JSON"), std::string::npos);
  }
}

TEST_F(NetworkAdministrationTest, ClientsSeeThePartOfTheStatusThatBenchmarksNeed) {
  allow(to_hex(alice_) + " alice read\n");
  endpoints_.coordinator = "ipc://" + folder_ + "/coordinator";
  const Json seen = {
      {"name", "c"},
      {"uuid", "u"},
      {"state", "running"},
      {"durability", "durable"},
      {"snapshots", {{"newest", 3}}},
      {"epochs", {{"current", 9}}},
      {"nodes",
       Json::array({{{"node", 0}, {"workers", 2}, {"pool", {{"unallocated_bytes", 0}}}}})}};
  Json whole = seen;
  whole["processes"] = Json::array({{{"role", "node0"}, {"pid", 7}}});
  whole["epochs"]["durable"] = 8;
  whole["nodes"][0]["pid"] = 7;
  auto coordinator = ControlServer::start(
      endpoints_.coordinator,
      [&](const ControlRequest& /*request*/, const ControlReply& reply) { reply(whole); });
  ASSERT_TRUE(coordinator && start());
  auto client = NetworkClient::connect(address());
  ASSERT_TRUE(client);
  const SessionReply reply = (*client)->call("atoll.status", {});
  ASSERT_EQ(reply.status, Status::ok) << reply.message;
  EXPECT_EQ(parse_json(reply.output), seen);
}

/// Control requests of one client, and how many have each status.
class ControlCalls {
 public:
  explicit ControlCalls(const NetworkAddress& address) {
    auto client = NetworkClient::connect(address);
    CHECK(client);
    client_ = *std::move(client);
  }
  void submit(const std::string& procedure, uint32_t start_within_ms = 0) {
    SessionOptions options;
    options.start_within_ms = start_within_ms;
    EXPECT_TRUE(client_->submit(
        procedure, {}, options,
        [this](SessionTicket, const SessionReply& reply) { ++statuses_[reply.status]; }));
  }
  /// Waits until the number of answers with this status is at least `count`.
  bool has(Status status, size_t count) {
    return test::eventually([&] {
      client_->dispatch(std::chrono::milliseconds(10));
      return statuses_[status] >= count;
    });
  }
  size_t answered(Status status) { return statuses_[status]; }
  NetworkClient& client() { return *client_; }

 private:
  std::unique_ptr<NetworkClient> client_;
  std::map<Status, size_t> statuses_;
};

/// A process that answers control requests only when the test says so.
class HeldProcess {
 public:
  explicit HeldProcess(const std::string& endpoint) {
    auto server = ControlServer::start(
        endpoint, [this](const ControlRequest& request, const ControlReply& reply) {
          const std::lock_guard guard(mutex_);
          held_.emplace_back(request.op, reply);
          if (!holds_) reply(Json::object());
        });
    CHECK(server);
    server_ = *std::move(server);
  }
  /// Returns how many requests of this name have arrived.
  size_t arrived(const std::string& op) {
    const std::lock_guard guard(mutex_);
    return static_cast<size_t>(
        std::ranges::count(held_, op, [](const auto& each) { return each.first; }));
  }
  /// Answers those that have arrived, and all later ones.
  void answer_all() {
    const std::lock_guard guard(mutex_);
    holds_ = false;
    for (const auto& [op, reply] : held_) reply(Json::object());
  }

 private:
  std::mutex mutex_;
  bool holds_ = true;                                       // guarded by mutex_
  std::vector<std::pair<std::string, ControlReply>> held_;  // guarded by mutex_
  std::unique_ptr<ControlServer> server_;
};

TEST_F(NetworkAdministrationTest,
       ControlRequestsPastTheirLimitAreRefusedAndTheOthersEndWithTheNode) {
  allow(to_hex(alice_) + " alice read\n");
  endpoints_.coordinator = "ipc://" + folder_ + "/coordinator";
  HeldProcess coordinator(endpoints_.coordinator);
  ASSERT_TRUE(start());
  constexpr size_t kEach = NetworkAdministration::kMaxWaitingOfSession;
  constexpr size_t kClients = NetworkAdministration::kMaxWaiting / kEach;
  static_assert(kClients * kEach == NetworkAdministration::kMaxWaiting);
  ControlCalls first(address());
  first.submit("atoll.status");
  // This one runs, so it does not wait.
  ASSERT_TRUE(test::eventually([&] { return coordinator.arrived("status") == 1; }));
  for (size_t i = 0; i < kEach; ++i) first.submit("atoll.status");
  first.submit("atoll.status");
  EXPECT_TRUE(first.has(Status::unavailable, 1)) << "past the limit of a session";
  EXPECT_EQ(first.client().in_flight(), kEach + 1);
  std::vector<std::unique_ptr<ControlCalls>> others;
  for (size_t i = 1; i < kClients; ++i) {
    others.push_back(std::make_unique<ControlCalls>(address()));
    for (size_t j = 0; j < kEach; ++j) others.back()->submit("atoll.status");
    // An answer of a worker's request shows that the node has the requests before it.
    EXPECT_EQ(others.back()->client().call("any", {}).status, Status::permission_denied);
    EXPECT_EQ(others.back()->client().in_flight(), kEach);
  }
  ControlCalls last(address());
  last.submit("atoll.status");
  EXPECT_TRUE(last.has(Status::unavailable, 1)) << "past the limit of the queue";
  gateway_->stop();
  EXPECT_TRUE(first.has(Status::outcome_unknown, 1));
  EXPECT_TRUE(first.has(Status::unavailable, kEach + 1));
  for (const auto& other : others) EXPECT_TRUE(other->has(Status::unavailable, kEach));
  EXPECT_EQ(get(metrics_.open), 0u);
}

TEST_F(NetworkAdministrationTest, ALongDropDelaysNoShortControlRequest) {
  allow(to_hex(alice_) + " alice read,administration\n");
  endpoints_ = {"ipc://" + folder_ + "/coordinator", "ipc://" + folder_ + "/node"};
  HeldProcess coordinator(endpoints_.coordinator);
  HeldProcess node(endpoints_.node);
  node.answer_all();
  ASSERT_TRUE(start());
  ControlCalls calls(address());
  calls.submit("atoll.storage.drop");
  ASSERT_TRUE(test::eventually([&] { return coordinator.arrived("storage.drop") == 1; }));
  calls.submit("atoll.storage.create");  // waits for the drop
  calls.submit("atoll.session.list");
  EXPECT_TRUE(calls.has(Status::ok, 1));
  calls.submit("atoll.storage.describe");
  EXPECT_TRUE(test::eventually([&] { return coordinator.arrived("storage.describe") == 1; }));
  EXPECT_EQ(coordinator.arrived("storage.create"), 0u);
  EXPECT_EQ(calls.client().in_flight(), 3u);
  coordinator.answer_all();
  EXPECT_TRUE(calls.has(Status::ok, 4));
}

TEST_F(NetworkAdministrationTest, AControlRequestThatWaitsTooLongDoesNotBegin) {
  allow(to_hex(alice_) + " alice administration\n");
  endpoints_.coordinator = "ipc://" + folder_ + "/coordinator";
  HeldProcess coordinator(endpoints_.coordinator);
  ASSERT_TRUE(start());
  ControlCalls calls(address());
  calls.submit("atoll.storage.drop", 60'000);
  ASSERT_TRUE(test::eventually([&] { return coordinator.arrived("storage.drop") == 1; }));
  calls.submit("atoll.storage.create", 1);
  calls.submit("atoll.storage.create", 60'000);
  EXPECT_EQ(calls.client().call("any", {}).status, Status::permission_denied) << "all have arrived";
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  coordinator.answer_all();
  EXPECT_TRUE(calls.has(Status::deadline_exceeded, 1));
  EXPECT_TRUE(calls.has(Status::ok, 2));
  EXPECT_EQ(coordinator.arrived("storage.create"), 1u);
}

TEST_F(NetworkAdministrationTest, WaitingControlRequestsOfARevokedKeyDoNotRun) {
  allow(to_hex(alice_) + " alice administration\n" + to_hex(bob_) + " bob administration\n");
  endpoints_.coordinator = "ipc://" + folder_ + "/coordinator";
  HeldProcess coordinator(endpoints_.coordinator);
  ASSERT_TRUE(start());
  ControlCalls revoked(address());
  ControlCalls other(address("bob"));
  other.submit("atoll.storage.create");
  ASSERT_TRUE(test::eventually([&] { return coordinator.arrived("storage.create") == 1; }));
  for (size_t i = 0; i < NetworkAdministration::kMaxWaitingOfSession; ++i) {
    revoked.submit("atoll.storage.drop");
  }
  EXPECT_EQ(revoked.client().call("any", {}).status, Status::permission_denied);
  other.submit("atoll.storage.create");
  allow(to_hex(bob_) + " bob administration\n");
  // The session is freed while the first request still runs, so its calls have ended.
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 1; }));
  coordinator.answer_all();
  EXPECT_TRUE(other.has(Status::ok, 2));
  EXPECT_EQ(coordinator.arrived("storage.drop"), 0u);
}

TEST_F(NetworkAdministrationTest, ALongListOfSessionsHasSeveralParts) {
  allow(to_hex(alice_) + " alice administration\n");
  endpoints_.node = "ipc://" + folder_ + "/node";
  constexpr uint64_t kSessions = NetworkGateway::kMaxSessions + kMaxSessionsPerNode;
  auto node = ControlServer::start(
      endpoints_.node, [](const ControlRequest& request, const ControlReply& reply) {
        EXPECT_FALSE(request.body.contains("after"));
        Json sessions = Json::array();
        for (uint64_t i = kSessions; i-- > 0;) {
          sessions.push_back({{"session", i}, {"program", std::string(300, 'p')}});
        }
        reply(Json{{"sessions", sessions}});
      });
  ASSERT_TRUE(node && start());
  auto client = NetworkClient::connect(address());
  ASSERT_TRUE(client);
  std::vector<uint64_t> numbers;
  size_t parts = 0;
  Json input = Json::object();
  for (bool more = true; more; ++parts) {
    const std::string text = input.dump();
    const SessionReply reply =
        (*client)->call("atoll.session.list", std::as_bytes(std::span(text)));
    ASSERT_EQ(reply.status, Status::ok) << reply.message;
    const Json answer = parse_json(reply.output);
    ASSERT_FALSE(answer["sessions"].empty());
    for (const Json& each : answer["sessions"]) numbers.push_back(each["session"]);
    input["after"] = numbers.back();
    more = answer["more"];
  }
  EXPECT_GT(parts, 2u);
  ASSERT_EQ(numbers.size(), kSessions);
  for (uint64_t i = 0; i < kSessions; ++i) EXPECT_EQ(numbers[i], i);
}

}  // namespace
}  // namespace atolldb
