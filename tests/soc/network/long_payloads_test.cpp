// Inputs and outputs that are longer than one part, through shared memory and over the network: at
// their limits and past them, many at once, and clients that stop or vanish in the middle.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <zmq.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/client/network_client.h"
#include "shared/client/session_client.h"
#include "soc/network/gateway.h"
#include "soc/session/session_server.h"
#include "tests/soc/worker_thread.h"
#include "tests/support/eventually.h"
#include "tests/support/test_cluster.h"

namespace atolldb {
namespace {

using PayloadBytes = std::vector<std::byte>;

constexpr uint32_t kMostPayload = 1u << 20;
constexpr uint64_t kPayloadMemory = 3u << 20;
constexpr uint32_t kMostHugePayload = 40u << 20;

std::atomic<uint32_t> payload_attempts{0};

/// Returns bytes whose parts differ.
PayloadBytes payload_of(size_t size) {
  PayloadBytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31) ^ (i >> 11));
  return bytes;
}
std::span<const std::byte> payload_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Status echo_payload(ProcedureContext& context) {
  context.set_output(context.input());
  return Status::ok;
}
/// Has an output of as many bytes as its input says.
Status fill_payload(ProcedureContext& context) {
  const std::string size(context.input_text());
  context.set_output(payload_of(std::strtoul(size.c_str(), nullptr, 10)));
  return Status::ok;
}
Status abort_payload(ProcedureContext& context) {
  context.set_output(payload_of(kMostPayload));
  return Status::user_abort;
}
/// Its first attempt meets a conflict after it has set a longer output.
Status retry_payload(ProcedureContext& context) {
  const bool is_first = payload_attempts.fetch_add(1, std::memory_order_relaxed) == 0;
  context.set_output(payload_of(is_first ? kMostPayload : 200'000));
  return is_first ? Status::read_conflict : Status::ok;
}

std::atomic<bool> payload_gate_is_closed{false};
std::atomic<uint32_t> payload_blocked{0};  // calls of `block` that have begun
/// While it exists, `block` waits. REQUIRES: the node outlives it.
struct ClosedPayloadGate {
  ClosedPayloadGate() { payload_gate_is_closed.store(true, std::memory_order_release); }
  ClosedPayloadGate(const ClosedPayloadGate&) = delete;
  ClosedPayloadGate& operator=(const ClosedPayloadGate&) = delete;
  ~ClosedPayloadGate() { payload_gate_is_closed.store(false, std::memory_order_release); }
};
Status block_payload(ProcedureContext&) {
  payload_blocked.fetch_add(1, std::memory_order_release);
  while (payload_gate_is_closed.load(std::memory_order_acquire)) std::this_thread::yield();
  return Status::ok;
}

/// A node with one worker, a session server and a network port without keys.
class PayloadNode {
 public:
  explicit PayloadNode(const PayloadLimits& limits)
      : logger_(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_))),
        cluster_(1, 1),
        answers_(*cluster_.view().control) {
    const ProcedureEntry entries[] = {{"echo", echo_payload},
                                      {"fill", fill_payload},
                                      {"abort", abort_payload},
                                      {"retry", retry_payload},
                                      {"block", block_payload}};
    EXPECT_TRUE(registry_.add_library({kProcedureApiVersion, 5, entries}, "test"));
    SessionServices services;
    services.incarnation = 5;
    services.procedures = &registry_;
    services.workers = {&worker_.get()};
    services.answers = &answers_;
    services.metrics = &session_metrics;
    services.refusal = [](Isolation) { return std::optional<Refusal>(); };
    services.deadline_epoch = [] { return kMaxEpoch; };
    services.payloads = limits;
    server_ = std::make_unique<SessionServer>(std::move(services), logger_);
    EXPECT_TRUE(server_->start());
    NetworkSettings network;
    network.address = "127.0.0.1";
    auto gateway =
        NetworkGateway::start(std::move(network), server_->sink(), network_metrics, logger_);
    EXPECT_TRUE(gateway) << gateway.error().message;
    gateway_ = *std::move(gateway);
  }
  ~PayloadNode() {
    worker_.get().stop();
    gateway_.reset();
    server_.reset();
  }

  std::unique_ptr<ClientTransport> connect(bool over_network) {
    if (over_network) {
      NetworkAddress address;
      address.host = "127.0.0.1";
      address.port = port();
      auto client = NetworkClient::connect(address);
      EXPECT_TRUE(client) << client.error().message;
      return *std::move(client);
    }
    auto socket = server_->connect();
    EXPECT_TRUE(socket);
    auto client = SessionClient::over(*std::move(socket));
    EXPECT_TRUE(client) << client.error().message;
    return *std::move(client);
  }
  const std::string& endpoint() const { return gateway_->endpoint(); }
  uint16_t port() const {
    return static_cast<uint16_t>(std::stoi(endpoint().substr(endpoint().rfind(':') + 1)));
  }
  uint64_t dropped() const { return network_metrics.dropped.load(std::memory_order_relaxed); }
  /// Returns the number of requests that the node has taken, from all clients.
  uint64_t requests() const {
    return session_metrics.requests.load(std::memory_order_relaxed) +
           network_metrics.requests.load(std::memory_order_relaxed);
  }
  /// Returns the number of open sessions. A session is open until its last call has ended.
  uint64_t open() const {
    return session_metrics.open.load(std::memory_order_relaxed) +
           network_metrics.open.load(std::memory_order_relaxed);
  }
  uint64_t unavailable() const {
    return session_metrics.unavailable.load(std::memory_order_relaxed);
  }
  uint64_t used() const { return server_->sink().payload_memory().used(); }
  /// Returns whether the inputs and outputs of all calls are freed soon.
  bool becomes_empty() const {
    return test::eventually([this] { return used() == 0; });
  }

  SessionMetrics session_metrics{};
  NetworkMetrics network_metrics;

 private:
  std::ostringstream log_;
  Logger logger_;
  test::TestCluster cluster_;
  ProcedureRegistry registry_;
  DurableAnswers answers_;
  test::WorkerThread worker_{cluster_, logger_};
  std::unique_ptr<SessionServer> server_;
  std::unique_ptr<NetworkGateway> gateway_;
};

PayloadLimits usual_limits() {
  return {.max_input_bytes = kMostPayload,
          .max_output_bytes = kMostPayload,
          .memory_bytes = kPayloadMemory};
}

constexpr SessionOptions kVisible{.answer_at = AnswerAt::precommitted};

/// The memory of ended calls is freed, and another client gets it.
void expect_freed_memory(const PayloadNode& node, ClientTransport& other) {
  EXPECT_TRUE(node.becomes_empty());
  EXPECT_EQ(other.call("fill", payload_text("500000"), kVisible).status, Status::ok);
}

/// The parameter: over the network, or through shared memory.
class LongPayloadTest : public ::testing::TestWithParam<bool> {};

TEST_P(LongPayloadTest, InputsAndOutputsOfAllLengthsArriveWhole) {
  PayloadNode node(usual_limits());
  const auto client = node.connect(GetParam());
  ASSERT_EQ(client->max_input_bytes(), kMostPayload);
  constexpr uint32_t kPart = kSessionPartBytes;
  const uint32_t frame = kMaxWirePartBytes;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{kPart} - 1, size_t{kPart}, size_t{kPart} + 1,
        size_t{kPart} * 2, size_t{kPart} * 2 + 1, size_t{frame}, size_t{frame} + 1,
        size_t{kMostPayload} - 1, size_t{kMostPayload}}) {
    const PayloadBytes input = payload_of(size);
    const SessionReply reply = client->call("echo", input, kVisible);
    ASSERT_EQ(reply.status, Status::ok) << size << ": " << reply.message;
    ASSERT_TRUE(reply.output == input) << size;
  }
  EXPECT_TRUE(node.becomes_empty());
}

TEST_P(LongPayloadTest, PastTheLimitTheErrorNamesItAndItsKey) {
  PayloadNode node(usual_limits());
  const auto client = node.connect(GetParam());
  const PayloadBytes input(kMostPayload + 1);
  EXPECT_EQ(client->call("echo", input, kVisible).status, Status::payload_too_long);
  const SessionReply reply =
      client->call("fill", payload_text(std::to_string(kMostPayload + 1)), kVisible);
  EXPECT_EQ(reply.status, Status::procedure_failed);
  EXPECT_TRUE(reply.output.empty());
  for (const char* part : {"1048577", "1048576", "procedures.max_output"}) {
    EXPECT_NE(reply.message.find(part), std::string::npos) << reply.message;
  }
  const SessionReply last =
      client->call("fill", payload_text(std::to_string(kMostPayload)), kVisible);
  EXPECT_TRUE(last.output == payload_of(kMostPayload));
  EXPECT_TRUE(node.becomes_empty());
}

TEST_P(LongPayloadTest, OutputsOfAttemptsThatDoNotCommitAreDiscarded) {
  payload_attempts.store(0, std::memory_order_relaxed);
  PayloadNode node(usual_limits());
  const auto client = node.connect(GetParam());
  const SessionReply aborted = client->call("abort", {}, kVisible);
  EXPECT_EQ(aborted.status, Status::user_abort);
  EXPECT_TRUE(aborted.output.empty());
  const SessionReply retried = client->call("retry", {}, kVisible);
  EXPECT_EQ(retried.status, Status::ok) << retried.message;
  EXPECT_TRUE(retried.output == payload_of(200'000));
  EXPECT_EQ(payload_attempts.load(std::memory_order_relaxed), 2u);
  EXPECT_TRUE(node.becomes_empty());
}

TEST_P(LongPayloadTest, ManyAtOnceShareTheMemoryAndSmallOnesNeedNone) {
  PayloadNode node(usual_limits());
  const auto client = node.connect(GetParam());
  const PayloadBytes input = payload_of(100'000);
  const PayloadBytes small = payload_of(100);
  uint32_t refused = 0;
  uint32_t done = 0;
  for (int round = 0; round < 20 || done == 0; ++round) {
    std::vector<SessionTicket> tickets;
    // In the first round all inputs wait at once, which is more than the memory.
    std::optional<ClosedPayloadGate> gate;
    if (round == 0) {
      gate.emplace();
      ASSERT_TRUE(client->submit("block", {}, kVisible, [](SessionTicket, SessionReply) {}));
    }
    for (int i = 0; i < 40; ++i) {
      const auto ticket = client->submit("echo", input, kVisible);
      ASSERT_TRUE(ticket) << to_string(ticket.error());
      tickets.push_back(*ticket);
      const auto other = client->submit("echo", small, kVisible);
      ASSERT_TRUE(other);
      tickets.push_back(*other);
    }
    if (gate) {
      EXPECT_TRUE(test::eventually([&] { return node.unavailable() != 0; }));
      EXPECT_GT(node.session_metrics.payloads.used_bytes.load(std::memory_order_relaxed), 0u);
      gate.reset();
    }
    for (size_t i = 0; i < tickets.size(); ++i) {
      const SessionReply reply = client->wait(tickets[i]);
      if (i % 2 == 1) {
        ASSERT_EQ(reply.status, Status::ok) << reply.message;
        ASSERT_TRUE(reply.output == small);
      } else if (reply.status == Status::ok) {
        ASSERT_TRUE(reply.output == input);
        ++done;
      } else {
        ASSERT_EQ(reply.status, Status::unavailable);
        ASSERT_NE(reply.message.find("procedures.payload_memory"), std::string::npos)
            << reply.message;
        ++refused;
      }
    }
  }
  EXPECT_GT(done, 0u) << refused;
  EXPECT_GT(refused, 0u) << done;
  EXPECT_TRUE(node.becomes_empty());
  const PayloadMetrics& metrics = node.session_metrics.payloads;
  EXPECT_EQ(metrics.refused.load(std::memory_order_relaxed), refused);
  EXPECT_EQ(metrics.limit_bytes.load(std::memory_order_relaxed), kPayloadMemory);
  EXPECT_TRUE(
      test::eventually([&] { return metrics.used_bytes.load(std::memory_order_relaxed) == 0; }));
}

TEST_P(LongPayloadTest, AClientThatVanishesInTheMiddleLeavesNoMemoryBehind) {
  PayloadNode node(usual_limits());
  const auto other = node.connect(GetParam());
  const PayloadBytes input = payload_of(kMostPayload);
  for (int i = 0; i < 20; ++i) {
    // With all of the memory, the node accepts both requests. Those of the client before, which may
    // still be in its ring, are not counted.
    if (i % 2 == 0) {
      ASSERT_TRUE(test::eventually([&] { return node.open() == 1; }));
      ASSERT_TRUE(node.becomes_empty());
    }
    const uint64_t before = node.requests();
    const auto client = node.connect(GetParam());
    ASSERT_TRUE(client->submit("echo", input, kVisible));
    ASSERT_TRUE(client->submit("fill", payload_text(std::to_string(kMostPayload)), kVisible));
    if (i % 2 == 0) {
      ASSERT_TRUE(test::eventually([&] { return node.requests() == before + 2; }));
    }
    // The client ends at any step of its requests.
  }
  EXPECT_EQ(node.session_metrics.broken.load(std::memory_order_relaxed), 0u);
  EXPECT_TRUE(node.becomes_empty());
  EXPECT_EQ(other->call("echo", payload_text("x"), kVisible).status, Status::ok);
}

INSTANTIATE_TEST_SUITE_P(Transports, LongPayloadTest, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Network" : "SharedMemory"; });

TEST(StalledPayloadTest, ALocalClientThatTakesNoPartLosesItsSessionAndOthersContinue) {
  PayloadLimits limits = usual_limits();
  limits.transfer_timeout = std::chrono::milliseconds(300);
  PayloadNode node(limits);
  const auto stalled = node.connect(false);
  const auto other = node.connect(false);
  // Without a wait, the client takes only what `submit` meets.
  ASSERT_TRUE(stalled->submit("fill", payload_text(std::to_string(kMostPayload)), kVisible));
  EXPECT_TRUE(test::eventually([&] { return node.used() == kMostPayload; }));
  EXPECT_EQ(other->call("fill", payload_text("500000"), kVisible).status, Status::ok);
  EXPECT_TRUE(test::eventually([&] { return !stalled->is_open(); }));
  expect_freed_memory(node, *other);
}

TEST(StalledPayloadTest, AClientThatHasAskedKeepsItsSessionWhileItsRequestsWaitForAWorker) {
  PayloadLimits limits = usual_limits();
  limits.transfer_timeout = std::chrono::milliseconds(3000);
  PayloadNode node(limits);
  const auto client = node.connect(false);
  const auto stalled = node.connect(false);
  const std::vector<std::unique_ptr<ClientTransport>> others = [&] {
    std::vector<std::unique_ptr<ClientTransport>> clients;
    for (uint32_t i = 0; i * kSessionSlots < RequestSink::kMaxQueuedPerWorker; ++i) {
      clients.push_back(node.connect(false));
    }
    return clients;
  }();
  const std::string size = std::to_string(kMostPayload);
  const auto output = client->submit("fill", payload_text(size), kVisible);
  ASSERT_TRUE(output && stalled->submit("fill", payload_text(size), kVisible));
  ASSERT_TRUE(test::eventually([&] { return node.used() == 2 * uint64_t{kMostPayload}; }));
  std::optional<ClosedPayloadGate> gate(std::in_place);
  const uint32_t blocked_before = payload_blocked.load(std::memory_order_acquire);
  const SessionOptions no_wait{.answer_at = AnswerAt::precommitted, .waits_for_room = false};
  for (uint32_t i = 0; i < RequestSink::kMaxQueuedPerWorker; ++i) {
    const char* const procedure = i == 0 ? "block" : "echo";
    ASSERT_TRUE(others[i / kSessionSlots]->submit(procedure, {}, no_wait));
    if (i != 0) continue;
    // From now on the worker runs nothing else, and both clients have their first parts.
    ASSERT_TRUE(test::eventually(
        [&] { return payload_blocked.load(std::memory_order_acquire) > blocked_before; }));
  }
  const uint64_t queued = 2 + RequestSink::kMaxQueuedPerWorker;
  ASSERT_TRUE(test::eventually([&] { return node.requests() == queued; }));
  // The queue of the worker is full, so the session holds this request and takes no other.
  const auto held = client->submit("echo", payload_text("x"), kVisible);
  ASSERT_TRUE(held);
  ASSERT_TRUE(test::eventually([&] { return node.requests() == queued + 1; }));
  // Takes the first part, and asks for the second.
  ASSERT_FALSE(client->wait_for(*output, std::chrono::milliseconds(1)));
  // The other client got its first part not before this one.
  EXPECT_TRUE(test::eventually([&] { return !stalled->is_open(); }));
  EXPECT_TRUE(client->is_open());
  gate.reset();
  EXPECT_TRUE(client->wait(*output).output == payload_of(kMostPayload));
  EXPECT_EQ(client->wait(*held).status, Status::ok);
  EXPECT_TRUE(node.becomes_empty());
}

TEST(StalledPayloadTest, ALongInputIsFreedBeforeItsLongOutputIsTaken) {
  PayloadNode node(usual_limits());
  const auto client = node.connect(false);
  std::string input = std::to_string(kMostPayload);
  input.resize(500'000, ' ');
  const auto ticket = client->submit("fill", payload_text(input), kVisible);
  ASSERT_TRUE(ticket);
  EXPECT_TRUE(test::eventually([&] { return node.used() == kMostPayload; }));
  EXPECT_TRUE(client->wait(*ticket).output == payload_of(kMostPayload));
  EXPECT_TRUE(node.becomes_empty());
}

/// A client of the network port that reads only what a test asks for.
class SlowPayloadClient {
 public:
  explicit SlowPayloadClient(const PayloadNode& node, bool takes_parts = true) {
    const int no_wait = 0;
    const int one_frame = 1;
    const int few_bytes = 4096;
    zmq_setsockopt(dealer_, ZMQ_LINGER, &no_wait, sizeof(no_wait));
    zmq_setsockopt(dealer_, ZMQ_RCVHWM, &one_frame, sizeof(one_frame));
    zmq_setsockopt(dealer_, ZMQ_RCVBUF, &few_bytes, sizeof(few_bytes));
    EXPECT_EQ(zmq_connect(dealer_, ("tcp://" + node.endpoint()).c_str()), 0);
    send(writer.hello("slow", takes_parts));
    EXPECT_EQ(next().kind, WireFrame::Kind::welcome);
  }
  SlowPayloadClient(const SlowPayloadClient&) = delete;
  SlowPayloadClient& operator=(const SlowPayloadClient&) = delete;
  ~SlowPayloadClient() {
    zmq_close(dealer_);
    zmq_ctx_term(context_);
  }

  void send(std::span<const std::byte> frame) {
    EXPECT_GE(zmq_send(dealer_, frame.data(), frame.size(), 0), 0);
  }
  void send(const WireRequest& request) {
    writer.add(request);
    send(writer.finish_requests());
  }
  /// Waits for the next frame. Its views are valid until the next call.
  const WireFrame& next() {
    const int got = zmq_recv(dealer_, buffer_.data(), buffer_.size(), 0);
    const auto bytes = std::as_bytes(std::span(buffer_.data(), static_cast<size_t>(got)));
    EXPECT_TRUE(got > 0 && read_wire_frame(bytes, frame_));
    return frame_;
  }

  WireWriter writer;

 private:
  void* context_ = zmq_ctx_new();
  void* dealer_ = zmq_socket(context_, ZMQ_DEALER);
  std::vector<char> buffer_ = std::vector<char>(kMaxWireFrameBytes);
  WireFrame frame_;
};

TEST(StalledPayloadTest, ANetworkClientThatReadsNoPartIsDroppedAndOthersContinue) {
  PayloadNode node({.max_output_bytes = kMostHugePayload,
                    .memory_bytes = 2 * uint64_t{kMostHugePayload},
                    .transfer_timeout = std::chrono::milliseconds(500)});
  SlowPayloadClient stalled(node);
  const auto other = node.connect(true);
  std::string size = std::to_string(kMostHugePayload);
  size.resize(100'000, ' ');
  stalled.send(WireRequest{
      .id = 1, .procedure = "fill", .answer_at = AnswerAt::precommitted, .input_bytes = 100'000});
  stalled.send(stalled.writer.part({1, 100'000, payload_text(size)}));
  // The input is freed before the output is taken.
  EXPECT_TRUE(test::eventually([&] { return node.used() == kMostHugePayload; }));
  EXPECT_EQ(other->call("fill", payload_text("500000"), kVisible).status, Status::ok);
  EXPECT_TRUE(test::eventually([&] { return node.dropped() == 1; }));
  expect_freed_memory(node, *other);
}

TEST(StalledPayloadTest, AnInputThatDoesNotArriveInFullEndsItsSession) {
  PayloadLimits limits = usual_limits();
  limits.transfer_timeout = std::chrono::milliseconds(300);
  PayloadNode node(limits);
  SlowPayloadClient client(node);
  client.send(WireRequest{.id = 1, .procedure = "echo", .input_bytes = 500'000});
  const PayloadBytes part(kMaxWirePartBytes);
  client.send(client.writer.part({1, 500'000, part}));
  EXPECT_TRUE(test::eventually([&] { return node.used() == kMaxWirePartBytes; }));
  EXPECT_TRUE(test::eventually([&] { return node.dropped() == 1; }));
  EXPECT_TRUE(node.becomes_empty());
}

TEST(PartsOfPayloadsTest, TheNodeChecksTheInputsThatComeInParts) {
  PayloadNode node(usual_limits());
  SlowPayloadClient client(node);
  const auto refused = [&](const WireRequest& request, Status status, const std::string& says) {
    client.send(request);
    const WireFrame& frame = client.next();
    ASSERT_EQ(frame.kind, WireFrame::Kind::answers);
    EXPECT_EQ(frame.answers[0].status, status);
    EXPECT_NE(frame.answers[0].message.find(says), std::string_view::npos)
        << frame.answers[0].message;
  };
  refused({.id = 1, .procedure = "echo", .input_bytes = kMostPayload + 1}, Status::invalid_argument,
          "procedures.max_input");
  refused({.id = 2, .procedure = "kv.txn", .input_bytes = 100'000}, Status::invalid_argument,
          "the limit of kv.txn");
  refused({.id = 3, .procedure = "atoll.status", .input_bytes = 100'000}, Status::invalid_argument,
          "the limit of atoll.status");
  const PayloadBytes part(kMaxWirePartBytes);
  constexpr uint32_t kWhole = 300'000;
  const auto send_part = [&](uint64_t id, size_t bytes) {
    client.send(client.writer.part({id, kWhole, std::span(part).first(bytes)}));
  };
  const auto rejects = [&](uint64_t id, size_t bytes, const std::string& says) {
    send_part(id, bytes);
    const WireFrame& frame = client.next();
    ASSERT_EQ(frame.kind, WireFrame::Kind::refusal);
    EXPECT_NE(frame.refusal.message.find(says), std::string_view::npos) << frame.refusal.message;
  };
  send_part(2, 60'000);  // the parts of a request that was refused are skipped
  for (const uint64_t id : {4u, 5u}) {
    client.send(WireRequest{
        .id = id, .procedure = "echo", .answer_at = AnswerAt::precommitted, .input_bytes = kWhole});
  }
  rejects(4, 60'000, "must be of request 4 and have 262144 bytes");  // not a full part
  rejects(5, part.size(), "must be of request 4");                   // not the oldest input
  EXPECT_EQ(node.used(), 0u) << "inputs take memory when their parts arrive";
  send_part(4, part.size());
  rejects(4, 60'000, "have 37856 bytes");  // 22,144 bytes too many
  send_part(4, kWhole - part.size());
  size_t arrived = 0;
  for (;;) {
    const WireFrame& frame = client.next();
    if (frame.kind != WireFrame::Kind::part) {
      ASSERT_EQ(frame.kind, WireFrame::Kind::answers);
      EXPECT_EQ(frame.answers[0].status, Status::ok);
      EXPECT_EQ(frame.answers[0].output_bytes, kWhole);
      break;
    }
    EXPECT_EQ(frame.part.id, 4u);
    EXPECT_EQ(frame.part.total_bytes, kWhole);
    arrived += frame.part.bytes.size();
  }
  EXPECT_EQ(arrived, kWhole);
}

TEST(PartsOfPayloadsTest, AClientThatTakesNoPartsGetsShortOutputsAndAClearError) {
  PayloadNode node(usual_limits());
  SlowPayloadClient old(node, /*takes_parts=*/false);
  const auto ask = [&](const std::string& size) -> const WireAnswer& {
    old.send(WireRequest{.id = 1,
                         .procedure = "fill",
                         .input = payload_text(size),
                         .answer_at = AnswerAt::precommitted});
    return old.next().answers[0];
  };
  EXPECT_EQ(ask("65536").status, Status::ok);
  const WireAnswer& answer = ask("65537");
  EXPECT_EQ(answer.status, Status::procedure_failed);
  EXPECT_NE(answer.message.find("takes no parts"), std::string_view::npos) << answer.message;
}

}  // namespace
}  // namespace atolldb
