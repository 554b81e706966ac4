// The control requests that list and kill sessions. The nodes run as threads of the test.
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ops/cluster/cluster.h"
#include "soc/procedure/procedure.h"
#include "soc/session/session_server.h"
#include "tests/soc/session/session_cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

using test::eventually;

constexpr const char* kHeld = "session_requests.held";
constexpr const char* kQuick = "session_requests.quick";

std::atomic<bool> held_calls_may_end{true};

Status run_until_released(ProcedureContext& context) {
  // Acquire pairs with the test's release.
  while (!held_calls_may_end.load(std::memory_order_acquire)) {
    if (context.transaction().check() != Status::ok) return context.transaction().check();
    std::this_thread::yield();
  }
  return Status::ok;
}
Status end_at_once(ProcedureContext&) { return Status::ok; }

ATOLL_REGISTER_PROCEDURE(kHeldCallEntry, kHeld, run_until_released);
ATOLL_REGISTER_PROCEDURE(kQuickCallEntry, kQuick, end_at_once);

class SessionRequestsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    held_calls_may_end.store(true, std::memory_order_release);
    cluster_ = test::launch_session_cluster();
    ASSERT_NE(cluster_, nullptr);
  }
  void TearDown() override { release_calls(); }

  static void hold_calls() { held_calls_may_end.store(false, std::memory_order_release); }
  static void release_calls() { held_calls_may_end.store(true, std::memory_order_release); }

  std::unique_ptr<SessionClient> connect() {
    auto client = cluster_->connect_session(0);
    if (!client) ADD_FAILURE() << client.error().message;
    return client ? *std::move(client) : nullptr;
  }
  Json list() {
    const auto answer = cluster_->call(0, ControlOperation::session_list, Json::object());
    if (!answer) ADD_FAILURE() << answer.error().message;
    return answer ? answer->at("sessions") : Json::array();
  }
  /// Returns the element of the list for the client's session, or an empty object.
  Json find(SessionClient& client) {
    for (const Json& session : list()) {
      if (session.at("session") == client.segment().session) return session;
    }
    return Json::object();
  }
  Result<Json> kill(const Json& body) {
    return cluster_->call(0, ControlOperation::session_kill, body);
  }
  Result<Json> kill(SessionClient& client) {
    return kill(Json{{"session", uint32_t{client.segment().session}}});
  }
  void expect_error(const Json& body, ExitCode code, const std::string& part) {
    const auto answer = kill(body);
    ASSERT_FALSE(answer) << body;
    EXPECT_EQ(answer.error().code, code) << body;
    EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(SessionRequestsTest, TheListShowsTheOldestRequestInFlightAndCountsAnswers) {
  const auto busy = connect();
  const auto idle = connect();
  hold_calls();
  const auto held = busy->submit(kHeld, {}, {.worker = 0});
  ASSERT_TRUE(held);
  ASSERT_TRUE(eventually([&] { return find(*busy).value("in_flight", 0u) == 1; }));
  EXPECT_EQ(busy->call(kQuick, {}, {.worker = 1}).status, Status::ok);

  Json session = find(*busy);
  EXPECT_EQ(session.at("state"), "open");
  EXPECT_EQ(session.at("in_flight"), 1u);
  EXPECT_EQ(session.at("oldest_procedure"), kHeld);
  EXPECT_EQ(session.at("answered"), 1u);
  EXPECT_GE(session.at("age_s").get<double>(), 0.0);
  EXPECT_GE(session.at("last_request_s").get<double>(), 0.0);
  EXPECT_GE(session.at("oldest_s").get<double>(), session.at("last_request_s").get<double>());
  EXPECT_LT(session.at("oldest_s").get<double>(), 3600.0);
  EXPECT_FALSE(session.contains("pid")) << "the client is in the process of the node";
  const double oldest = session.at("oldest_s").get<double>();
  EXPECT_TRUE(eventually([&] { return find(*busy).value("oldest_s", 0.0) > oldest; }));

  session = find(*idle);
  EXPECT_EQ(session.at("in_flight"), 0u);
  EXPECT_EQ(session.at("answered"), 0u);
  EXPECT_FALSE(session.contains("oldest_procedure"));
  EXPECT_FALSE(session.contains("last_request_s"));

  release_calls();
  EXPECT_EQ(busy->wait(*held).status, Status::ok);
  session = find(*busy);
  EXPECT_EQ(session.at("in_flight"), 0u);
  EXPECT_EQ(session.at("answered"), 2u);
  EXPECT_FALSE(session.contains("oldest_s"));
}

TEST_F(SessionRequestsTest, AKilledSessionLosesItsRequestsAndEndsWhenItsCallsHaveEnded) {
  const auto victim = connect();
  const auto other = connect();
  hold_calls();
  std::vector<SessionTicket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(*victim->submit(kHeld, {}, {.worker = 0}));
  ASSERT_TRUE(eventually([&] { return find(*victim).value("in_flight", 0u) == 3; }));

  const auto killed = kill(*victim);
  ASSERT_TRUE(killed) << killed.error().message;
  ASSERT_EQ(killed->at("sessions").size(), 1u);
  EXPECT_EQ(killed->at("sessions")[0].at("session"), victim->segment().session);
  EXPECT_EQ(killed->at("sessions")[0].at("in_flight"), 3u);
  EXPECT_FALSE(victim->is_open());
  for (const SessionTicket ticket : tickets) {
    EXPECT_EQ(victim->wait(ticket).status, Status::outcome_unknown);
  }
  EXPECT_FALSE(victim->submit(kQuick, {}));

  EXPECT_EQ(find(*victim).at("state"), "ending");
  expect_error({{"session", victim->segment().session}}, ExitCode::failed, "has ended already");
  EXPECT_EQ(other->call(kQuick, {}, {.worker = 1}).status, Status::ok);
  release_calls();
  EXPECT_TRUE(eventually([&] { return list().size() == 1; })) << "its memory is freed";
  expect_error({{"session", victim->segment().session}}, ExitCode::failed, "does not exist");
  EXPECT_EQ(other->call(kQuick, {}).status, Status::ok);
}

TEST_F(SessionRequestsTest, SessionsWhoseRequestsWaitForRoomInAQueueCanBeKilled) {
  hold_calls();
  std::vector<std::unique_ptr<SessionClient>> clients;
  std::vector<std::vector<SessionTicket>> tickets(3);
  // These are more requests than the queue of a worker takes.
  static_assert(3 * kSessionSlots > RequestSink::kMaxQueuedPerWorker);
  for (size_t i = 0; i < tickets.size(); ++i) {
    clients.push_back(connect());
    for (uint32_t n = 0; n < kSessionSlots; ++n) {
      tickets[i].push_back(*clients[i]->submit(kHeld, {}, {.worker = 0}));
    }
  }
  ASSERT_TRUE(eventually([&] {
    uint32_t in_flight = 0;
    for (const Json& session : list()) in_flight += session.at("in_flight").get<uint32_t>();
    return in_flight > RequestSink::kMaxQueuedPerWorker;
  }));
  for (const auto& client : clients) EXPECT_TRUE(kill(*client));
  for (size_t i = 0; i < clients.size(); ++i) {
    for (const SessionTicket ticket : tickets[i]) {
      // A request that waited for room gets an answer, if the client reads the ring late enough.
      const Status status = clients[i]->wait(ticket).status;
      EXPECT_TRUE(status == Status::outcome_unknown || status == Status::unavailable)
          << to_string(status);
    }
  }
  release_calls();
  EXPECT_TRUE(eventually([&] { return list().empty(); }));
  EXPECT_EQ(connect()->call(kQuick, {}, {.worker = 0}).status, Status::ok);
}

TEST_F(SessionRequestsTest, AllSessionsCanBeKilledAtOnceAndNumbersAreNotUsedAgain) {
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(connect());
  const auto killed = kill(Json{{"all", true}});
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(killed->at("sessions").size(), 3u);
  for (const auto& client : clients) EXPECT_FALSE(client->is_open());
  EXPECT_TRUE(list().empty());
  const auto next = connect();
  EXPECT_GT(uint32_t{next->segment().session}, uint32_t{clients.back()->segment().session});
  EXPECT_EQ(next->call(kQuick, {}).status, Status::ok);
  EXPECT_EQ(kill(Json{{"all", true}})->at("sessions").size(), 1u);
  EXPECT_TRUE(kill(Json{{"all", true}})->at("sessions").empty());
}

TEST_F(SessionRequestsTest, WrongRequestsAreNamedAndEndNothing) {
  const auto client = connect();
  expect_error({{"session", 4711}}, ExitCode::failed,
               "session 0/4711: does not exist: see `atoll session ls`");
  expect_error({{"session", uint64_t{1} << 32}}, ExitCode::failed, "does not exist");
  expect_error({{"session", -1}}, ExitCode::usage, "member \"session\"");
  expect_error({{"session", "0"}}, ExitCode::usage, "member \"session\"");
  expect_error(Json::object(), ExitCode::usage, "member \"session\"");
  expect_error({{"all", false}}, ExitCode::usage, "member \"session\"");
  expect_error({{"all", 1}}, ExitCode::usage, "member \"all\"");
  expect_error({{"all", true}, {"session", 0}}, ExitCode::usage, "exclude each other");
  EXPECT_EQ(client->call(kQuick, {}).status, Status::ok);
}

TEST_F(SessionRequestsTest, UnderLoadListsAreAnsweredAndKilledClientsNoticeTheEnd) {
  constexpr size_t kClients = 3;
  constexpr size_t kInFlight = 50;
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (size_t i = 0; i < kClients; ++i) clients.push_back(connect());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&client = *clients[i]] {
      std::vector<SessionTicket> tickets;
      const auto wait_for_oldest = [&] {
        const Status status = client.wait(tickets.front()).status;
        EXPECT_TRUE(status == Status::ok || status == Status::outcome_unknown ||
                    status == Status::unavailable)
            << to_string(status);
        tickets.erase(tickets.begin());
      };
      // Submits until the session has ended.
      for (;;) {
        if (tickets.size() == kInFlight) wait_for_oldest();
        const auto ticket = client.submit(kQuick, {});
        if (!ticket) break;
        tickets.push_back(*ticket);
      }
      while (!tickets.empty()) wait_for_oldest();
      EXPECT_FALSE(client.is_open());
    });
  }
  std::map<uint32_t, uint64_t> answered;
  for (int round = 0; round < 100; ++round) {
    const Json sessions = list();
    EXPECT_EQ(sessions.size(), kClients);
    for (const Json& session : sessions) {
      EXPECT_LE(session.at("in_flight").get<uint64_t>(), kInFlight);
      uint64_t& before = answered[session.at("session").get<uint32_t>()];
      EXPECT_GE(session.at("answered").get<uint64_t>(), before);
      before = session.at("answered").get<uint64_t>();
    }
  }
  // The first session is killed alone, and the others continue.
  EXPECT_TRUE(kill(*clients[0]));
  threads[0].join();
  const uint64_t so_far = find(*clients[1]).at("answered").get<uint64_t>();
  EXPECT_TRUE(eventually([&] { return find(*clients[1]).at("answered") > so_far; }));
  EXPECT_TRUE(kill(Json{{"all", true}}));
  for (size_t i = 1; i < kClients; ++i) threads[i].join();
  EXPECT_TRUE(eventually([&] { return list().empty(); }));
}

TEST_F(SessionRequestsTest, AStoppedNodeAnswersWithAnError) {
  const auto client = connect();
  EXPECT_EQ(list().size(), 1u);
  EXPECT_TRUE(cluster_->shutdown());
  const auto answer = cluster_->call(0, ControlOperation::session_list, Json::object());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::not_running);
  EXPECT_FALSE(client->is_open());
}

/// Servers that refuse all requests of clients.
class SessionServerRequestsTest : public ::testing::Test {
 protected:
  SessionServerRequestsTest()
      : logger_(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::null_sink_mt>())) {}
  std::unique_ptr<SessionServer> make_server() {
    SessionServices services;
    services.metrics = &metrics_;
    services.procedures = &registry_;
    services.refusal = [](Isolation) { return Refusal{Status::unavailable, "nothing runs here"}; };
    return std::make_unique<SessionServer>(std::move(services), logger_);
  }

  Logger logger_;
  SessionMetrics metrics_{};
  ProcedureRegistry registry_;
};

TEST_F(SessionServerRequestsTest, EveryRequestIsAnsweredOnceWhileTheServerStops) {
  for (int round = 0; round < 20; ++round) {
    const auto server = make_server();
    ASSERT_TRUE(server->start());
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < 5; ++i) {
      auto socket = server->connect();
      ASSERT_TRUE(socket);
      sockets.push_back(*std::move(socket));
    }
    std::atomic<uint32_t> answers{0};
    std::atomic<uint32_t> refusals{0};
    uint32_t asked = 0;
    std::thread asks([&] {
      const ControlReply reply = [&](const Result<Json>& answer) {
        if (!answer && answer.error().code == ExitCode::not_running) {
          refusals.fetch_add(1, std::memory_order_relaxed);
        }
        answers.fetch_add(1, std::memory_order_relaxed);
      };
      while (refusals.load(std::memory_order_relaxed) == 0) {
        server->handle({ControlOperation::session_list, Json::object()}, reply);
        server->handle({ControlOperation::session_kill, {{"session", asked}}}, reply);
        asked += 2;
      }
    });
    while (answers.load(std::memory_order_relaxed) < 20) std::this_thread::yield();
    server->stop();
    asks.join();
    EXPECT_EQ(answers.load(std::memory_order_relaxed), asked);
  }
}

TEST_F(SessionServerRequestsTest, AServerThatDoesNotRunAnswersWithAnError) {
  const auto server = make_server();
  std::string message;
  const ControlReply reply = [&](const Result<Json>& answer) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ExitCode::not_running);
    message = answer.error().message;
  };
  server->handle({ControlOperation::session_list, Json::object()}, reply);
  EXPECT_NE(message.find("session.list: node 0: does not serve sessions"), std::string::npos)
      << message;
  message.clear();
  ASSERT_TRUE(server->start());
  server->stop();
  server->handle({ControlOperation::session_kill, {{"all", true}}}, reply);
  EXPECT_NE(message, "");
}

TEST_F(SessionRequestsTest, TheListOfProceduresHasTheCallsIfTheyAreAskedFor) {
  const auto client = connect();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(client->call(kQuick, {}).status, Status::ok);
  const auto plain = cluster_->call(0, ControlOperation::procedure_list, Json::object());
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->contains("calls"));
  const auto counted = cluster_->call(0, ControlOperation::procedure_list, {{"counts", true}});
  ASSERT_TRUE(counted) << counted.error().message;
  const Json& calls = counted->at("calls");
  ASSERT_EQ(calls.at("procedures").size(), 1u) << "only those that were called";
  const Json& quick = calls.at("procedures").at(0);
  EXPECT_EQ(quick.at("name"), kQuick);
  EXPECT_EQ(quick.at("results"), Json({{"ok", 3}}));
  EXPECT_EQ(quick.at("execution").at("counts").size(), calls.at("bounds_ns").size() + 1);
  const auto wrong = cluster_->call(0, ControlOperation::procedure_list, {{"counts", 1}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ExitCode::usage);
}

}  // namespace
}  // namespace atolldb
