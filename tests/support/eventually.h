// A wait for what other threads or processes cause.
#pragma once

#include <chrono>
#include <thread>

namespace atolldb::test {

/// Waits until the condition holds. Returns false after 60 s.
template <typename Condition>
bool eventually(Condition condition) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace atolldb::test
