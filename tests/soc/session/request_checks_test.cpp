// Checks that the node makes of a client's session segment before it uses the content (R41), each
// at its limit and past it. Without a check its test fails, or the node reads memory outside of the
// client's segment.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "shared/client/session_client.h"
#include "shared/sync/racy_copy.h"
#include "soc/session/session_server.h"

namespace atolldb {
namespace {

/// A server that refuses every valid request with `recovering`. The tests write requests into the
/// segment directly, because the client library checks them, too.
class RequestChecks : public ::testing::Test {
 protected:
  /// The client library does not use this slot, because it makes no call here. One more slot
  /// follows it.
  static constexpr uint32_t kSlot = kSessionSlots - 2;

  RequestChecks()
      : logger_(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_))) {
    SessionServices services;
    services.metrics = &metrics_;
    const ProcedureEntry entry{"any", [](ProcedureContext&) { return Status::ok; }};
    EXPECT_TRUE(registry_.add_library({kProcedureApiVersion, 1, &entry}, "test"));
    services.procedures = &registry_;
    services.refusal = [](Isolation) { return Refusal{Status::recovering, "nothing runs here"}; };
    server_ = std::make_unique<SessionServer>(std::move(services), logger_);
    EXPECT_TRUE(server_->start());
    auto socket = server_->connect();
    EXPECT_TRUE(socket);
    auto client = SessionClient::over(*std::move(socket));
    EXPECT_TRUE(client);
    client_ = *std::move(client);
  }

  static SessionRequest sound() {
    SessionRequest request{};
    request.id = 77;
    request.worker = kAnyWorker;
    request.answer_at = AnswerAt::precommitted;
    request.name_bytes = 3;
    std::memcpy(request.name.data(), "any", 3);
    return request;
  }
  /// Puts a slot number into the ring and wakes the node.
  void put(uint32_t slot, uint32_t count = 1) {
    SlotRing& ring = client_->segment().requests;
    const uint32_t tail = ring.tail.load(std::memory_order_relaxed);
    ring.entries[tail % kSessionSlots].store(slot, std::memory_order_relaxed);
    ring.tail.store(tail + count, std::memory_order_release);
    client_->wake_node();
  }
  /// Returns the node's answer to the request, or cluster_failed if none comes.
  SessionAnswer ask(const SessionRequest& request) {
    SessionSegment& segment = client_->segment();
    const uint32_t before = segment.answers.tail.load(std::memory_order_acquire);
    racy_write(&segment.slots[kSlot].request, &request, sizeof(request));
    put(kSlot);
    SessionAnswer answer{};
    answer.status = Status::cluster_failed;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (segment.answers.tail.load(std::memory_order_acquire) == before) {
      if (std::chrono::steady_clock::now() >= give_up) return answer;
      std::this_thread::yield();
    }
    racy_read(&answer, &segment.slots[kSlot].answer, sizeof(answer));
    EXPECT_EQ(answer.id, request.id);
    return answer;
  }
  void expect_invalid(const SessionRequest& request, const std::string& says) {
    const SessionAnswer answer = ask(request);
    EXPECT_EQ(answer.status, Status::invalid_argument) << to_string(answer.status);
    const std::string message(answer.message.data(), answer.message_bytes);
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_EQ(ask(sound()).status, Status::recovering) << "the session goes on";
  }
  /// Returns true if the node ends the session.
  bool ends() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (client_->is_open() && std::chrono::steady_clock::now() < give_up) {
      client_->wake_node();
      std::this_thread::yield();
    }
    return !client_->is_open();
  }

  std::ostringstream log_;
  Logger logger_;
  SessionMetrics metrics_{};
  ProcedureRegistry registry_;
  std::unique_ptr<SessionServer> server_;
  std::unique_ptr<SessionClient> client_;
};

TEST_F(RequestChecks, ASoundRequestPasses) {
  EXPECT_EQ(ask(sound()).status, Status::recovering);
  SessionRequest other = sound();
  std::memcpy(other.name.data(), "few", 3);
  EXPECT_EQ(ask(other).status, Status::procedure_not_found);
}

TEST_F(RequestChecks, TheNameHasOneToSixtyBytes) {
  SessionRequest request = sound();
  request.name_bytes = kMaxSessionProcedureName;
  EXPECT_EQ(ask(request).status, Status::procedure_not_found);
  request.name_bytes = 0;
  expect_invalid(request, "has 0 bytes");
  request.name_bytes = kMaxSessionProcedureName + 1;
  expect_invalid(request, "has 61 bytes");
  // A name that ends past the request, and one that ends past the segment.
  for (const uint32_t bytes : {4096u, ~0u}) {
    request.name_bytes = bytes;
    expect_invalid(request, std::to_string(bytes) + " bytes");
  }
}

TEST_F(RequestChecks, TheInputEndsWithItsSlot) {
  SessionRequest request = sound();
  request.input_bytes = kSessionPartBytes;
  EXPECT_EQ(ask(request).status, Status::recovering);
  const uint32_t most = PayloadLimits().max_input_bytes;
  for (const uint32_t bytes : {most + 1, most * 4, ~0u}) {
    request.input_bytes = bytes;
    expect_invalid(request, std::to_string(bytes) + " bytes");
  }
}

TEST_F(RequestChecks, ALongInputHasAllItsPartsInTheRing) {
  EXPECT_EQ(ask(sound()).status, Status::recovering);
  SessionRequest request = sound();
  request.input_bytes = kSessionPartBytes + 1;
  racy_write(&client_->segment().slots[kSlot].request, &request, sizeof(request));
  put(kSlot);
  EXPECT_TRUE(ends());
  EXPECT_EQ(metrics_.broken.load(std::memory_order_relaxed), 1u);
}

TEST_F(RequestChecks, TheSlotOfAPartIsOneThatThereIs) {
  SessionRequest request = sound();
  request.input_bytes = 2 * kSessionPartBytes;
  racy_write(&client_->segment().slots[kSlot].request, &request, sizeof(request));
  SlotRing& ring = client_->segment().requests;
  const uint32_t slots[] = {kSlot, kSessionSlots};
  ring.put_all(ring.tail.load(std::memory_order_relaxed), slots);
  client_->wake_node();
  EXPECT_TRUE(ends());
  EXPECT_EQ(metrics_.broken.load(std::memory_order_relaxed), 1u);
}

TEST_F(RequestChecks, AnAnswerComesDurableOrPrecommitted) {
  SessionRequest request = sound();
  request.answer_at = AnswerAt::durable;
  EXPECT_EQ(ask(request).status, Status::recovering);
  for (const uint32_t value : {2u, ~0u}) {
    request.answer_at = static_cast<AnswerAt>(value);
    expect_invalid(request, "answer_at " + std::to_string(value));
    EXPECT_EQ(ask(request).answered_at, AnswerAt::durable);
  }
}

TEST_F(RequestChecks, TheIsolationIsOneThatThereIs) {
  SessionRequest request = sound();
  const auto count = static_cast<uint8_t>(Isolation::count_);
  for (uint8_t value = 0; value <= count; ++value) {
    request.isolation = value;
    EXPECT_EQ(ask(request).status, Status::recovering) << int{value};
  }
  for (const int value : {count + 1, 255}) {
    request.isolation = static_cast<uint8_t>(value);
    expect_invalid(request, "isolation");
  }
  request.isolation = 1 + static_cast<uint8_t>(Isolation::serializable);
  request.snapshot = 5;
  expect_invalid(request, "snapshot");
}

TEST_F(RequestChecks, ARingHasNoMoreEntriesThanSlots) {
  EXPECT_EQ(ask(sound()).status, Status::recovering);
  put(kSlot, kSessionSlots + 1);
  EXPECT_TRUE(ends());
  EXPECT_EQ(metrics_.broken.load(std::memory_order_relaxed), 1u);
}

TEST_F(RequestChecks, ASlotIsOneThatThereIs) {
  EXPECT_EQ(ask(sound()).status, Status::recovering);
  put(kSessionSlots);
  EXPECT_TRUE(ends());
  EXPECT_EQ(metrics_.broken.load(std::memory_order_relaxed), 1u);
}

TEST_F(RequestChecks, ASlotFarFromAllOthersIsNone) {
  put(~0u);
  EXPECT_TRUE(ends());
  EXPECT_EQ(metrics_.broken.load(std::memory_order_relaxed), 1u);
}

}  // namespace
}  // namespace atolldb
