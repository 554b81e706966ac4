// Tests of idle workers, which take requests out of the sessions before they sleep.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/cluster/cluster.h"
#include "shared/client/session_client.h"
#include "shared/sync/wait_word.h"
#include "soc/procedure/procedure.h"
#include "tests/soc/session/session_cluster.h"
#include "tests/support/eventually.h"

namespace atolldb {
namespace {

std::atomic<uint32_t> long_call_may_end{1};
std::atomic<uint32_t> long_calls_run{0};

Status short_call(ProcedureContext& context) {
  context.set_output(context.input());
  return Status::ok;
}
Status long_call(ProcedureContext&) {
  long_calls_run.fetch_add(1, std::memory_order_release);
  while (long_call_may_end.load(std::memory_order_acquire) == 0) {
    wait_on(long_call_may_end, 0, kMaxSleep);
  }
  return Status::ok;
}
ATOLL_REGISTER_PROCEDURE(kShortCall, "idle.short", short_call);
ATOLL_REGISTER_PROCEDURE(kLongCall, "idle.long", long_call);

class IdleWorkersTest : public ::testing::Test {
 protected:
  IdleWorkersTest() : cluster_(test::launch_session_cluster()) {}
  void SetUp() override { ASSERT_NE(cluster_, nullptr); }
  std::unique_ptr<SessionClient> connect() {
    auto socket = cluster_->connect_session(0);
    EXPECT_TRUE(socket) << socket.error().message;
    return *std::move(socket);
  }
  static bool node_sleeps(SessionClient& client) {
    return test::eventually(
        [&] { return client.segment().node_sleeps.load(std::memory_order_seq_cst) == 1; });
  }
  static void end_long_calls() {
    long_call_may_end.store(1, std::memory_order_release);
    wake(long_call_may_end, kWakeAll);
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(IdleWorkersTest, ACallWakesANodeThatSleeps) {
  const auto client = connect();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(node_sleeps(*client));
    ASSERT_EQ(client->call("idle.short", {}).status, Status::ok) << i;
  }
}

TEST_F(IdleWorkersTest, AWaitWithoutTimeWakesANodeThatSleeps) {
  const auto client = connect();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(node_sleeps(*client));
    const auto ticket = client->submit("idle.short", {}, {.waits_at_once = true});
    ASSERT_TRUE(ticket);
    std::optional<SessionReply> reply;
    ASSERT_TRUE(test::eventually([&] {
      reply = client->poll(*ticket);
      return reply.has_value();
    })) << i;
    EXPECT_EQ(reply->status, Status::ok);
  }
}

TEST_F(IdleWorkersTest, OtherClientsAreServedWhileAWorkerThatHelpedRunsALongCall) {
  const auto caller = connect();
  const auto other = connect();
  for (uint32_t round = 0; round < 50; ++round) {
    long_call_may_end.store(0, std::memory_order_release);
    const uint32_t before = long_calls_run.load(std::memory_order_acquire);
    // After this call the worker looks for further requests.
    ASSERT_EQ(caller->call("idle.short", {}, {.worker = 0}).status, Status::ok);
    const auto ticket = caller->submit("idle.long", {}, {.worker = 0});
    ASSERT_TRUE(ticket);
    ASSERT_TRUE(test::eventually(
        [&] { return long_calls_run.load(std::memory_order_acquire) == before + 1; }));
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(other->call("idle.short", {}, {.worker = 1}).status, Status::ok) << round;
    }
    end_long_calls();
    EXPECT_EQ(caller->wait(*ticket).status, Status::ok);
  }
}

TEST_F(IdleWorkersTest, ClientsThatWaitAndClientsThatDoNotGetTheirAnswers) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 1500;
  std::atomic<int> answered{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        const auto client = connect();
        const std::string text = "thread " + std::to_string(thread);
        const auto input = std::as_bytes(std::span(text));
        for (int i = 0; i < kCalls; ++i) {
          if (thread % 2 == 0) {
            const SessionReply reply = client->call("idle.short", input);
            const bool is_right = reply.status == Status::ok && reply.output.size() == text.size();
            answered.fetch_add(is_right ? 1 : 0, std::memory_order_relaxed);
          } else {
            ASSERT_TRUE(client->submit(
                "idle.short", input, {}, [&](SessionTicket, const SessionReply& reply) {
                  answered.fetch_add(reply.status == Status::ok ? 1 : 0, std::memory_order_relaxed);
                }));
          }
        }
        while (client->in_flight() != 0) client->dispatch(SessionClient::kForEver);
      });
    }
  }
  EXPECT_EQ(answered.load(std::memory_order_relaxed), kThreads * kCalls);
}

TEST_F(IdleWorkersTest, SessionsThatComeAndGoWhileWorkersHelpAreServed) {
  const auto stays = connect();
  for (int i = 0; i < 100; ++i) {
    const auto goes = connect();
    ASSERT_EQ(goes->call("idle.short", {}).status, Status::ok);
    ASSERT_EQ(stays->call("idle.short", {}).status, Status::ok);
    if (i % 2 == 0) {
      ASSERT_TRUE(goes->submit("idle.short", {}));  // its answer is not read
    }
  }
  EXPECT_EQ(stays->call("idle.short", {}).status, Status::ok);
}

}  // namespace
}  // namespace atolldb
