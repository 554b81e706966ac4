// Requests of network sessions that are control requests: on the catalog and on sessions. Their
// procedure is "atoll." and the name of the operation; input and output are JSON.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "shared/message/control_message.h"
#include "soc/network/network_session.h"
#include "soc/session/request_sink.h"

namespace atolldb {

/// Sends the requests to the process that serves them. One thread runs them one after another, so a
/// long drop delays the others. Thread: any.
class NetworkAdministration {
 public:
  /// Limit of requests that wait.
  static constexpr size_t kMaxWaiting = 64;

  struct Endpoints {
    std::string coordinator;
    std::string node;  // of this node
  };
  /// Takes over a call whose outcome may be sent.
  using OnDone = std::function<void(NetworkCall&)>;

  NetworkAdministration(Endpoints endpoints, OnDone on_done);
  NetworkAdministration(const NetworkAdministration&) = delete;
  NetworkAdministration& operator=(const NetworkAdministration&) = delete;
  ~NetworkAdministration() { stop(); }

  /// Returns the right that a request needs: a bit of NetworkRight, or nothing if it is no request
  /// of this class.
  static std::optional<uint32_t> needed_right(std::string_view procedure);

  /// Takes over a call, and gives it to `on_done` later. Returns a reason if it does not.
  std::optional<Refusal> submit(NetworkCall& call);
  /// Ends the requests that run and those that wait. Later ones are refused.
  void stop();

 private:
  void run();
  void answer(NetworkCall& call) const;
  Result<Json> ask(const NetworkCall& call) const;

  const Endpoints endpoints_;
  const OnDone on_done_;
  std::thread thread_;
  std::atomic<bool> ends_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;           // guarded by mutex_
  std::deque<NetworkCall*> waiting_;  // guarded by mutex_
};

}  // namespace atolldb
