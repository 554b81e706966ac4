// First message of a session to a client whose process receives signals.
#include "shared/session/session_socket.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/time.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "shared/session/session_layout.h"

namespace atolldb {
namespace {

std::atomic<uint64_t> interruptions{0};

TEST(SessionSocket, AWelcomeArrivesHoweverManySignalsInterruptTheWaitForIt) {
  struct sigaction handler{};
  handler.sa_handler = [](int) { interruptions.fetch_add(1, std::memory_order_relaxed); };
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGUSR1, &handler, &before), 0);
  auto ends = session_socket_pair();
  ASSERT_TRUE(ends);
  const pthread_t waiting = pthread_self();
  std::thread node([&] {
    // Sends signals until 100 of them were handled. Each handled signal has interrupted the waiting
    // client.
    while (interruptions.load(std::memory_order_relaxed) < 100) {
      pthread_kill(waiting, SIGUSR1);
      std::this_thread::yield();
    }
    SessionWelcome welcome{};
    welcome.magic = kSessionMagic;
    welcome.layout_version = kSessionLayoutVersion;
    welcome.refused = 1;
    std::snprintf(welcome.message, sizeof(welcome.message), "no room");
    send_welcome(ends->first.get(), welcome, nullptr);
  });
  const auto given = receive_welcome(ends->second.get(), 60'000);
  node.join();
  sigaction(SIGUSR1, &before, nullptr);
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().message, "no room") << "the wait was taken for over";
}

TEST(SessionSocket, AWaitForAWelcomeEndsInTime) {
  auto ends = session_socket_pair();
  ASSERT_TRUE(ends);
  const auto given = receive_welcome(ends->second.get(), 1);
  ASSERT_FALSE(given);
  EXPECT_TRUE(given.error().message.contains("does not answer within 1 ms"))
      << given.error().message;
}

TEST(SessionSocket, AClientInTheSameProcessHasNoPeer) {
  auto ends = session_socket_pair();
  ASSERT_TRUE(ends);
  const SessionPeer peer = session_peer(ends->first.get());
  EXPECT_EQ(peer.pid, 0);
  EXPECT_EQ(peer.program, "");
}

}  // namespace
}  // namespace atolldb
