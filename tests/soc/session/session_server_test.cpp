// Tests of the thread that serves sessions: clients that misuse shared objects, a process without
// free descriptors, and sessions that end without a message, which clients must notice.
#include "soc/session/session_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spdlog/sinks/ostream_sink.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "shared/client/session_client.h"

namespace atolldb {
namespace {

constexpr int kWelcomeMs = 20'000;

/// A server that refuses all requests. Its answers show that its thread is alive.
class SessionServerTest : public ::testing::Test {
 protected:
  SessionServerTest()
      : logger_(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_))) {
    SessionServices services;
    services.metrics = &metrics_;
    const ProcedureEntry entry{"any", [](ProcedureContext&) { return Status::ok; }};
    EXPECT_TRUE(registry_.add_library({kProcedureApiVersion, 1, &entry}, "test"));
    services.procedures = &registry_;
    services.refusal = [](Isolation isolation) {
      const bool reads = isolation == Isolation::snapshot_read_only;
      return Refusal{reads ? Status::unavailable : Status::recovering, "nothing runs here"};
    };
    server_ = std::make_unique<SessionServer>(std::move(services), logger_);
    EXPECT_TRUE(server_->start());
  }
  std::unique_ptr<SessionClient> connect() {
    auto socket = server_->connect();
    if (!socket) return nullptr;
    auto client = SessionClient::over(*std::move(socket));
    return client ? *std::move(client) : nullptr;
  }
  template <typename Word>
  static bool becomes(const std::atomic<Word>& word, std::type_identity_t<Word> value) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (word.load(std::memory_order_acquire) != value) {
      if (std::chrono::steady_clock::now() >= give_up) return false;
      std::this_thread::yield();
    }
    return true;
  }

  std::ostringstream log_;  // read only after stop()
  Logger logger_;
  SessionMetrics metrics_{};
  ProcedureRegistry registry_;
  std::unique_ptr<SessionServer> server_;
};

TEST_F(SessionServerTest, TheEventfdOfAClientIsNeverReadSoThatItCannotBlockTheThread) {
  auto socket = server_->connect();
  ASSERT_TRUE(socket);
  auto given = receive_welcome(socket->get(), kWelcomeMs);
  ASSERT_TRUE(given) << given.error().message;
  void* base = mmap(nullptr, kSessionSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    given->segment.get(), 0);
  ASSERT_NE(base, MAP_FAILED);
  auto& segment = *static_cast<SessionSegment*>(base);
  const int wake = given->wake.get();
  // Makes the descriptor blocking. This changes the node's descriptor, too, because both refer to
  // one open file description.
  ASSERT_EQ(fcntl(wake, F_SETFL, 0), 0);
  for (uint64_t wakes = 1; wakes <= 5; ++wakes) {
    // The thread wakes up for each write, and sleeps again.
    ASSERT_TRUE(becomes(segment.node_sleeps, 1)) << wakes;
    segment.node_sleeps.store(0, std::memory_order_seq_cst);
    const uint64_t one = 1;
    ASSERT_EQ(write(wake, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  ASSERT_TRUE(becomes(segment.node_sleeps, 1));
  // The node must not read the counter. A read empties it, and at 0 the next read blocks.
  pollfd readable{wake, POLLIN, 0};
  ASSERT_EQ(poll(&readable, 1, 0), 1) << "the node has read it";
  uint64_t count = 0;
  ASSERT_EQ(read(wake, &count, sizeof(count)), static_cast<ssize_t>(sizeof(count)));
  EXPECT_EQ(count, 5u);
  const auto other = connect();
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->call("any", {}, {.isolation = Isolation::snapshot_read_only}).status,
            Status::unavailable);
  munmap(base, kSessionSegmentBytes);
}

TEST_F(SessionServerTest, ARequestIsRefusedByItsIsolationAndCountsAsUnavailable) {
  const auto client = connect();
  ASSERT_NE(client, nullptr);
  const SessionReply usual = client->call("any", {});
  EXPECT_EQ(usual.status, Status::recovering);
  EXPECT_EQ(usual.message, "nothing runs here");
  EXPECT_EQ(client->call("any", {}, {.isolation = Isolation::snapshot}).status, Status::recovering);
  EXPECT_EQ(client->call("any", {}, {.isolation = Isolation::snapshot_read_only}).status,
            Status::unavailable);
  EXPECT_EQ(metrics_.unavailable.load(std::memory_order_relaxed), 3u);
  EXPECT_EQ(client->call("other", {}).status, Status::procedure_not_found);
}

TEST_F(SessionServerTest, AClientThatOnlyPollsLearnsThatItsNodeHasDied) {
  auto ends = session_socket_pair();
  ASSERT_TRUE(ends);
  // Opens a session that no thread serves, and that ends without a message.
  auto session = Session::open(*server_, std::move(ends->first), 0, 0, 1);
  ASSERT_TRUE(session) << session.error().message;
  auto client = SessionClient::over(std::move(ends->second));
  ASSERT_TRUE(client) << client.error().message;
  const auto ticket = (*client)->submit("any", {});
  int told = 0;
  const auto other =
      (*client)->submit("any", {}, {}, [&](SessionTicket, const SessionReply& reply) {
        EXPECT_EQ(reply.status, Status::outcome_unknown);
        ++told;
      });
  ASSERT_TRUE(ticket);
  ASSERT_TRUE(other);
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE((*client)->poll(*ticket)) << "it lives";
  session->reset();
  std::optional<SessionReply> reply;
  for (int i = 0; i < 1000 && !reply; ++i) reply = (*client)->poll(*ticket);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, Status::outcome_unknown);
  EXPECT_EQ(told, 1);
  EXPECT_EQ((*client)->poll(*ticket)->status, Status::invalid_argument) << "fetched once";
}

TEST_F(SessionServerTest, ACallbackOfALostRequestCountsThoughNoThreadWaits) {
  auto ends = session_socket_pair();
  ASSERT_TRUE(ends);
  auto session = Session::open(*server_, std::move(ends->first), 0, 0, 1);
  ASSERT_TRUE(session) << session.error().message;
  auto client = SessionClient::over(std::move(ends->second));
  ASSERT_TRUE(client) << client.error().message;
  Status status = Status::ok;
  ASSERT_TRUE((*client)->submit(
      "any", {}, {}, [&](SessionTicket, const SessionReply& reply) { status = reply.status; }));
  session->reset();
  size_t count = 0;
  for (int i = 0; i < 1000 && count == 0; ++i) {
    count = (*client)->dispatch(std::chrono::nanoseconds(0));
  }
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(status, Status::outcome_unknown);
}

TEST_F(SessionServerTest, WithoutDescriptorsNewClientsWaitForTheEndOfASessionAndTheThreadSleeps) {
  char folder[] = "/tmp/atoll_sessions_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/socket";
  ASSERT_TRUE(server_->listen(path));
  auto first = connect();
  ASSERT_NE(first, nullptr);
  // The client gets its welcome just before the thread has closed its temporary descriptors.
  ASSERT_TRUE(becomes(metrics_.opened, 1));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  auto lowered = before;
  lowered.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
  std::vector<UniqueFd> fillers;
  for (UniqueFd one(dup(0)); one.is_open(); one = UniqueFd(dup(0))) {
    fillers.push_back(std::move(one));
  }
  ASSERT_GT(fillers.size(), 10u);
  fillers.pop_back();  // frees a descriptor for the client's socket
  auto waiting = connect_to_sessions(path);
  ASSERT_TRUE(waiting) << waiting.error().message;
  timespec cpu_before{};
  timespec cpu_after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_before);
  pollfd readable{waiting->get(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 300), 0) << "there is no descriptor for it";
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_after);
  const double spent = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) +
                       static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec) * 1e-9;
  EXPECT_LT(spent, 0.03) << "it spins";
  // A session needs descriptors at both ends: the node's, and those that its client receives.
  fillers.resize(fillers.size() - 6);
  first.reset();
  const auto given = receive_welcome(waiting->get(), kWelcomeMs);
  EXPECT_TRUE(given) << given.error().message;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  server_->stop();
  const std::string log = log_.str();
  const size_t warned = log.find("new clients wait until a session ends");
  EXPECT_NE(warned, std::string::npos) << log;
  EXPECT_EQ(log.find("new clients wait", warned + 1), std::string::npos) << log;
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace atolldb
