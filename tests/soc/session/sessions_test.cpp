// Sessions with nodes that run as threads of the test: answers, limits, hostile clients, and ends.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "engine/array/array.h"
#include "ops/cluster/cluster.h"
#include "shared/sync/racy_copy.h"
#include "soc/procedure/procedure.h"
#include "tests/soc/session/session_cluster.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

using test::seed;

/// procedures.max_output of the default config.
constexpr size_t kMaxTestOutput = 64u << 20;

std::atomic<bool> gate_is_open{false};

Status echo(ProcedureContext& context) {
  context.set_output(context.input());
  return Status::ok;
}
Status fails(ProcedureContext&) { return Status::user_abort; }
Status long_output(ProcedureContext& context) {
  context.set_output(std::vector<std::byte>(kMaxTestOutput + 1));
  return Status::ok;
}
Status gated(ProcedureContext& context) {
  // Acquire pairs with the test's release.
  while (!gate_is_open.load(std::memory_order_acquire)) {
    if (context.transaction().check() != Status::ok) return context.transaction().check();
    std::this_thread::yield();
  }
  context.set_output(context.input());
  return Status::ok;
}
Status count_up(ProcedureContext& context) {
  StorageControl* storage = context.storage("counter", StorageType::array);
  if (storage == nullptr) return Status::storage_not_found;
  const Array array(*storage);
  uint64_t value = 0;
  Status status = array.get(context.transaction(), 0, &value);
  if (status != Status::ok) return status;
  ++value;
  context.set_output(std::as_bytes(std::span(&value, 1)));
  return array.update(context.transaction(), 0, 0, sizeof(value), &value);
}
/// Counts up, and has an output of several parts.
Status count_and_fill(ProcedureContext& context) {
  const Status status = count_up(context);
  context.set_output(std::vector<std::byte>(size_t{3} * kSessionPartBytes, std::byte{7}));
  return status;
}
/// Reads the counter, and ends with a user abort.
Status read_and_abort(ProcedureContext& context) {
  StorageControl* storage = context.storage("counter", StorageType::array);
  if (storage == nullptr) return Status::storage_not_found;
  uint64_t value = 0;
  const Status status = Array(*storage).get(context.transaction(), 0, &value);
  return status == Status::ok ? Status::user_abort : status;
}

ATOLL_REGISTER_PROCEDURE(kEchoEntry, "session.echo", echo);
ATOLL_REGISTER_PROCEDURE(kFailsEntry, "session.fails", fails);
ATOLL_REGISTER_PROCEDURE(kLongEntry, "session.long_output", long_output);
ATOLL_REGISTER_PROCEDURE(kGatedEntry, "session.gated", gated);
ATOLL_REGISTER_PROCEDURE(kCountUpEntry, "session.count_up", count_up);
ATOLL_REGISTER_PROCEDURE(kCountAndFillEntry, "session.count_and_fill", count_and_fill);
ATOLL_REGISTER_PROCEDURE(kAbortEntry, "session.read_and_abort", read_and_abort);

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text(const SessionReply& reply) {
  return {reinterpret_cast<const char*>(reply.output.data()), reply.output.size()};
}
uint64_t number(const SessionReply& reply) {
  uint64_t value = 0;
  if (reply.output.size() == sizeof(value)) std::memcpy(&value, reply.output.data(), sizeof(value));
  return value;
}

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gate_is_open.store(true, std::memory_order_release);
    cluster_ = test::launch_session_cluster();
    ASSERT_NE(cluster_, nullptr);
    ASSERT_TRUE(cluster_->create_storage("counter", StorageType::array, 8, 10));
  }
  void TearDown() override {
    gate_is_open.store(true, std::memory_order_release);
    release_durable();
  }

  std::unique_ptr<SessionClient> connect() {
    auto client = cluster_->connect_session(0);
    if (!client) ADD_FAILURE() << client.error().message;
    return client ? *std::move(client) : nullptr;
  }
  EpochBlock& epochs() { return cluster_->view()->control->epochs; }
  /// Keeps the current epoch and all later ones from closing, as if one of its commits never ended.
  void hold_durable() {
    NodeShared& shared = *cluster_->view()->shared[0];
    held_ = &shared.slot(shared.slot_count - 1).in_commit_epoch;
    held_->store(epochs().current.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
  }
  void release_durable() {
    if (held_ != nullptr) held_->store(0, std::memory_order_seq_cst);
    held_ = nullptr;
  }

  std::unique_ptr<Cluster> cluster_;
  std::atomic<uint64_t>* held_ = nullptr;
};

TEST_F(SessionTest, ARequestIsAnsweredWithItsOutputOrWithWhyItFailed) {
  const auto client = connect();
  SessionReply reply = client->call("session.echo", bytes("hello"));
  EXPECT_EQ(reply.status, Status::ok);
  EXPECT_EQ(text(reply), "hello");
  EXPECT_EQ(reply.incarnation, 1u);
  EXPECT_EQ(reply.commit_version, 0u) << "it has written nothing";
  EXPECT_EQ(client->call("session.fails", {}).status, Status::user_abort);
  EXPECT_EQ(client->call("session.none", {}).status, Status::procedure_not_found);
  reply = client->call("session.echo", bytes("x"), {.worker = 2});
  EXPECT_EQ(reply.status, Status::invalid_argument);
  EXPECT_NE(reply.message.find("workers 0 to 1"), std::string::npos) << reply.message;
  EXPECT_EQ(text(client->call("session.echo", bytes("again"), {.affinity = 7})), "again");
}

TEST_F(SessionTest, InputOutputAndNameAreHeldToTheirLimits) {
  const auto client = connect();
  const std::string longest(kMaxTestOutput, 'i');
  EXPECT_TRUE(text(client->call("session.echo", bytes(longest))) == longest);
  EXPECT_EQ(client->call("session.echo", bytes(longest + "i")).status, Status::payload_too_long);
  const SessionReply reply = client->call("session.long_output", {});
  EXPECT_EQ(reply.status, Status::procedure_failed);
  EXPECT_NE(reply.message.find("longer than 67108864: raise procedures.max_output"),
            std::string::npos)
      << reply.message;
  EXPECT_EQ(client->call(std::string(60, 'n'), {}).status, Status::procedure_not_found);
  EXPECT_EQ(client->call(std::string(61, 'n'), {}).status, Status::invalid_argument);
  EXPECT_EQ(client->call("", {}).status, Status::invalid_argument);
}

TEST_F(SessionTest, NoPartOfALongOutputIsSentBeforeItsCommitIsDurable) {
  const auto client = connect();
  hold_durable();
  const auto durable = client->submit("session.count_and_fill", {});
  ASSERT_TRUE(durable);
  // Another worker's answers show that the request has run.
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(client->call("session.echo", {}, {.answer_at = AnswerAt::precommitted}).status,
              Status::ok);
  }
  EXPECT_FALSE(client->wait_for(*durable, std::chrono::milliseconds(50)));
  const SessionSegment& segment = client->segment();
  const SessionAnswer& answer = segment.slots[*durable % kSessionSlots].answer;
  EXPECT_NE(answer.id, *durable) << "the node has written nothing into the slot";
  release_durable();
  const SessionReply reply = client->wait(*durable);
  EXPECT_EQ(reply.status, Status::ok);
  EXPECT_EQ(reply.output.size(), size_t{3} * kSessionPartBytes);
}

TEST_F(SessionTest, ADurableAnswerWaitsForTheDurableEpochAndAPrecommittedOneDoesNot) {
  const auto client = connect();
  hold_durable();
  const auto durable = client->submit("session.count_up", {});
  ASSERT_TRUE(durable);
  const SessionReply early =
      client->call("session.count_up", {}, {.answer_at = AnswerAt::precommitted});
  EXPECT_EQ(early.status, Status::ok);
  EXPECT_EQ(early.answered_at, AnswerAt::precommitted);
  EXPECT_GT(early.commit_epoch, epochs().durable.load(std::memory_order_acquire));
  // The answer of a read-only transaction or a user abort depends on its reads (R19, R20).
  const auto aborted = client->submit("session.read_and_abort", {});
  ASSERT_TRUE(aborted);
  // Each worker gives two more answers. By then, the requests whose answers are held have been
  // executed.
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(client->call("session.echo", {}, {.worker = i % 2}).status, Status::ok);
  }
  const uint64_t current = epochs().current.load(std::memory_order_acquire);
  while (epochs().current.load(std::memory_order_acquire) < current + 3) std::this_thread::yield();
  EXPECT_FALSE(client->poll(*durable));
  EXPECT_FALSE(client->poll(*aborted));
  release_durable();
  const SessionReply late = client->wait(*durable);
  EXPECT_EQ(late.status, Status::ok);
  EXPECT_EQ(late.answered_at, AnswerAt::durable);
  EXPECT_NE(late.commit_version, 0u);
  EXPECT_LE(late.commit_epoch, epochs().durable.load(std::memory_order_acquire));
  EXPECT_EQ(client->wait(*aborted).status, Status::user_abort);
}

TEST_F(SessionTest, ManyInFlightFromManyThreadsAndSessionsAllCount) {
  constexpr int kThreads = 3;
  constexpr int kEach = 400;
  const auto shared = connect();
  std::vector<std::thread> threads;
  std::atomic<int> ok{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto own = t == 0 ? connect() : nullptr;
      SessionClient& client = own ? *own : *shared;
      std::vector<SessionTicket> tickets;
      for (int i = 0; i < kEach; ++i) {
        if (tickets.size() == 50) {
          ok += client.wait(tickets.front()).status == Status::ok;
          tickets.erase(tickets.begin());
        }
        const auto ticket = client.submit("session.count_up", {});
        ASSERT_TRUE(ticket);
        tickets.push_back(*ticket);
      }
      for (const SessionTicket ticket : tickets) {
        ok += client.wait(ticket).status == Status::ok;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ok.load(std::memory_order_relaxed), kThreads * kEach);
  EXPECT_EQ(number(shared->call("session.count_up", {})), uint64_t{kThreads * kEach + 1});
}

TEST_F(SessionTest, CallbacksRunInDispatchAndMaySubmit) {
  const auto client = connect();
  int left = 300;
  SessionClient::Callback next = [&](SessionTicket, const SessionReply& reply) {
    EXPECT_EQ(reply.status, Status::ok);
    if (--left > 0) {
      ASSERT_TRUE(client->submit("session.count_up", {}, {}, next));
    }
  };
  ASSERT_TRUE(client->submit("session.count_up", {}, {}, next));
  while (client->dispatch(SessionClient::kForEver) != 0) {
  }
  EXPECT_EQ(left, 0);
  EXPECT_EQ(client->in_flight(), 0u);
}

TEST_F(SessionTest, AFullRingMakesTheClientWaitOrFailByItsChoice) {
  const auto client = connect();
  gate_is_open.store(false, std::memory_order_release);
  uint32_t replies = 0;
  for (uint32_t i = 0; i < kSessionSlots; ++i) {
    ASSERT_TRUE(client->submit("session.gated", {}, {},
                               [&](SessionTicket, const SessionReply& reply) {
                                 EXPECT_EQ(reply.status, Status::ok);
                                 ++replies;
                               }))
        << i;
  }
  const auto refused = client->submit("session.gated", {}, {.waits_for_room = false});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), Status::unavailable);
  EXPECT_EQ(replies, 0u);
  gate_is_open.store(true, std::memory_order_release);
  const auto ticket = client->submit("session.echo", bytes("room"));
  ASSERT_TRUE(ticket);
  EXPECT_EQ(text(client->wait(*ticket)), "room");
  EXPECT_EQ(client->wait(*ticket).status, Status::invalid_argument) << "fetched once";
  while (client->dispatch(SessionClient::kForEver) != 0) {
  }
  EXPECT_EQ(replies, kSessionSlots);
}

TEST_F(SessionTest, RepliesThatAreNotFetchedFillTheRingButDoNotBlockForEver) {
  const auto client = connect();
  std::vector<SessionTicket> tickets;
  for (uint32_t i = 0; i < kSessionSlots; ++i) {
    tickets.push_back(*client->submit("session.echo", {}));
  }
  const auto none = client->submit("session.echo", {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), Status::unavailable);
  EXPECT_EQ(client->wait(tickets.back()).status, Status::ok);
  EXPECT_TRUE(client->submit("session.echo", {}));
}

TEST_F(SessionTest, MoreRequestsThanAWorkersQueueTakesWaitForTheirTurn) {
  gate_is_open.store(false, std::memory_order_release);
  std::vector<std::unique_ptr<SessionClient>> clients;
  std::vector<std::vector<SessionTicket>> tickets(4);
  for (size_t i = 0; i < tickets.size(); ++i) {
    clients.push_back(connect());
    for (uint32_t n = 0; n < kSessionSlots; ++n) {
      const auto ticket = clients[i]->submit("session.gated", {}, {.worker = 0});
      ASSERT_TRUE(ticket);
      tickets[i].push_back(*ticket);
    }
  }
  // The other worker is not held up and serves a client with free slots.
  const auto other = connect();
  EXPECT_EQ(text(other->call("session.echo", bytes("free"), {.worker = 1})), "free");
  gate_is_open.store(true, std::memory_order_release);
  for (size_t i = 0; i < tickets.size(); ++i) {
    for (const SessionTicket ticket : tickets[i]) {
      EXPECT_EQ(clients[i]->wait(ticket).status, Status::ok);
    }
  }
}

TEST_F(SessionTest, SessionsPastTheLimitAreRefusedUntilOneEnds) {
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (uint32_t i = 0; i < kMaxSessionsPerNode; ++i) clients.push_back(connect());
  const auto refused = cluster_->connect_session(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::resources);
  EXPECT_NE(refused.error().message.find("64 sessions already"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(clients.back()->call("session.echo", {}).status, Status::ok);
  clients.erase(clients.begin());
  // The node soon detects that the socket was closed.
  auto again = cluster_->connect_session(0);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!again && std::chrono::steady_clock::now() < give_up) again = cluster_->connect_session(0);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->call("session.echo", {}).status, Status::ok);
}

TEST_F(SessionTest, AClientThatGoesWithRequestsInFlightLeavesTheNodeWell) {
  for (int round = 0; round < 20; ++round) {
    auto client = connect();
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(client->submit("session.count_up", {}));
    }
    client.reset();
  }
  const auto client = connect();
  EXPECT_EQ(client->call("session.count_up", {}).status, Status::ok);
  hold_durable();
  auto gone = connect();
  ASSERT_TRUE(gone->submit("session.count_up", {}));
  gone.reset();  // the client ends while its answer is held
  release_durable();
  EXPECT_EQ(client->call("session.count_up", {}).status, Status::ok);
}

TEST_F(SessionTest, RequestsInFlightWhenTheClusterEndsWithoutBecomingDurableAreUnknown) {
  const auto client = connect();
  hold_durable();
  const auto durable = client->submit("session.count_up", {});
  ASSERT_TRUE(durable);
  EXPECT_EQ(client->call("session.echo", {}).status, Status::ok);
  // Simulates a failure of the cluster, after which nothing becomes durable any more.
  cluster_->view()->control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                         std::memory_order_release);
  const SessionReply reply = client->wait(*durable);
  EXPECT_EQ(reply.status, Status::outcome_unknown);
  EXPECT_EQ(client->call("session.echo", {}).status, Status::unavailable);
  release_durable();
  // The coordinator has not really stopped. The test resets the state, and stops the coordinator
  // now.
  cluster_->view()->control->state.store(static_cast<uint32_t>(ClusterState::running),
                                         std::memory_order_release);
  EXPECT_TRUE(cluster_->shutdown());
  EXPECT_FALSE(client->is_open());
  const SessionReply late = client->call("session.echo", {});
  EXPECT_TRUE(late.status == Status::outcome_unknown || late.status == Status::unavailable);
}

TEST_F(SessionTest, AnOrderlyStopAnswersWhatIsInFlightAndTellsTheRest) {
  const auto client = connect();
  std::vector<SessionTicket> tickets;
  for (int i = 0; i < 200; ++i) tickets.push_back(*client->submit("session.count_up", {}));
  EXPECT_TRUE(cluster_->shutdown());
  for (const SessionTicket ticket : tickets) {
    const Status status = client->wait(ticket).status;
    EXPECT_TRUE(status == Status::ok || status == Status::unavailable ||
                status == Status::outcome_unknown)
        << to_string(status);
  }
  EXPECT_FALSE(client->submit("session.echo", {}));
}

TEST_F(SessionTest, CallsDoNotWaitForALongCallWhileAnotherWorkerIsFree) {
  gate_is_open.store(false, std::memory_order_release);
  const auto slow = connect();
  const auto gated = slow->submit("session.gated", {});
  ASSERT_TRUE(gated);
  const auto client = connect();
  for (int i = 0; i < 20; ++i) {
    // With round robin alone, half of these calls would wait for the gate.
    EXPECT_EQ(client->call("session.echo", {}).status, Status::ok) << i;
  }
  gate_is_open.store(true, std::memory_order_release);
  EXPECT_EQ(slow->wait(*gated).status, Status::ok);
}

TEST_F(SessionTest, IndexesOutOfBoundsEndTheSessionAndNothingElse) {
  const auto well = connect();
  const auto breaks = [&](const char* what, auto damage) {
    SCOPED_TRACE(what);
    const auto client = connect();
    EXPECT_EQ(client->call("session.echo", {}).status, Status::ok);
    damage(client->segment());
    // The node must end the session, although the client continues to wake it.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (client->is_open() && std::chrono::steady_clock::now() < give_up) {
      client->wake_node();
      std::this_thread::yield();
    }
    EXPECT_FALSE(client->is_open());
    EXPECT_EQ(well->call("session.echo", {}).status, Status::ok);
  };
  breaks("a tail far ahead", [](SessionSegment& segment) {
    segment.requests.tail.fetch_add(kSessionSlots + 1, std::memory_order_release);
  });
  breaks("a tail after the end", [](SessionSegment& segment) {
    segment.requests.tail.fetch_sub(1, std::memory_order_release);
  });
  breaks("a slot that does not exist", [](SessionSegment& segment) {
    for (auto& entry : segment.requests.entries)
      entry.store(kSessionSlots, std::memory_order_relaxed);
    segment.requests.tail.fetch_add(1, std::memory_order_release);
  });
  gate_is_open.store(false, std::memory_order_release);
  breaks("a slot that is in flight", [](SessionSegment& segment) {
    SessionRequest request{};
    request.name_bytes = 13;
    std::memcpy(request.name.data(), "session.gated", 13);
    racy_write(&segment.slots[9].request, &request, sizeof(request));
    const uint32_t tail = segment.requests.tail.load(std::memory_order_relaxed);
    segment.requests.put(tail, 9);
    segment.requests.put(tail + 1, 9);
  });
}

TEST_F(SessionTest, RandomBytesInTheSegmentHarmOnlyTheirWriter) {
  std::mt19937_64 random(seed());
  const auto well = connect();
  uint64_t counted = 0;
  for (int round = 0; round < 60; ++round) {
    const auto hostile = connect();
    SessionSegment& segment = hostile->segment();
    auto* words = reinterpret_cast<std::atomic<uint32_t>*>(&segment);
    const size_t head_words = offsetof(SessionSegment, slots) / 4;
    for (int burst = 0; burst < 20; ++burst) {
      // Writes garbage into requests, sometimes with nearly valid lengths, then into the shared
      // words.
      for (int i = 0; i < 20; ++i) {
        SessionRequest request{};
        auto* raw = reinterpret_cast<unsigned char*>(&request);
        for (size_t at = 0; at < sizeof(request); ++at)
          raw[at] = static_cast<unsigned char>(random());
        if (random() % 2 == 0) request.input_bytes = static_cast<uint32_t>(random() % 70'000);
        if (random() % 2 == 0) request.name_bytes = static_cast<uint32_t>(random() % 64);
        if (random() % 2 == 0) request.answer_at = static_cast<AnswerAt>(random() % 3);
        if (random() % 4 == 0) {
          request.name_bytes = 12;
          std::memcpy(request.name.data(), "session.echo", 12);
          request.worker = static_cast<uint32_t>(random() % 4);
        }
        racy_write(&segment.slots[random() % kSessionSlots].request, &request, sizeof(request));
      }
      for (int i = 0; i < 4; ++i) {
        const uint32_t tail = segment.requests.tail.load(std::memory_order_relaxed);
        segment.requests.put(tail, static_cast<uint32_t>(random() % (kSessionSlots + 2)));
      }
      if (random() % 8 == 0) {
        words[random() % head_words].store(static_cast<uint32_t>(random()),
                                           std::memory_order_release);
      }
      if (random() % 2 == 0) segment.node_sleeps.store(1, std::memory_order_relaxed);
      hostile->wake_node();
      if (!hostile->is_open()) break;
    }
    EXPECT_EQ(number(well->call("session.count_up", {})), ++counted);
  }
}

}  // namespace
}  // namespace atolldb
