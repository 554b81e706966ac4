// Requests of network sessions that are control requests: on the catalog and on sessions. Their
// procedure is "atoll." and the name of the operation; input and output are JSON.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "shared/message/control_message.h"
#include "soc/network/network_session.h"
#include "soc/session/request_sink.h"

namespace atolldb {

/// Sends the requests to the process that serves them. Requests that change the catalog have a
/// queue and a thread of their own, because a drop may take minutes. Each thread runs its requests
/// one after another. When a session ends, the jobs that it has started are stopped. Thread: any.
class NetworkAdministration {
 public:
  /// Limit of requests that wait in one queue.
  static constexpr size_t kMaxWaiting = 64;
  /// Limit of requests of one session that wait, in both queues together. One client cannot fill a
  /// queue.
  static constexpr size_t kMaxWaitingOfSession = 8;
  /// Limit of a session's jobs that are remembered, the latest ones. A node has no more jobs.
  static constexpr size_t kMaxJobsOfSession = 256;

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

  static bool serves(std::string_view procedure);
  /// Returns the rights that a request needs and `rights` lacks: bits of NetworkRight. REQUIRES:
  /// the name begins with kAdministrationPrefix.
  static uint32_t missing_rights(std::string_view procedure, uint32_t rights);

  /// Takes over a call, and gives it to `on_done` later. Returns a reason if it does not.
  std::optional<Refusal> submit(NetworkCall& call);
  /// Gives the requests of a session that wait to `on_done`, as `unavailable`. A request that runs
  /// continues. Stops the jobs of the session.
  void cancel(const NetworkSession& session);
  /// Ends the requests that run and those that wait. Later ones are refused.
  void stop();

 private:
  /// A queue and its thread.
  struct Lane {
    std::condition_variable changed;
    std::deque<NetworkCall*> waiting;  // guarded by mutex_
    NetworkCall* running = nullptr;    // guarded by mutex_
    bool is_cancelled = false;         // the session of `running` has ended; guarded by mutex_
    std::thread thread;
  };

  Lane& lane_of(const NetworkCall& call);
  size_t waiting_of(const NetworkSession& session) const;  // REQUIRES: mutex_ is held
  void run(Lane& lane, const char* name);
  void answer(NetworkCall& call);
  /// Remembers the job of a running request.
  void keep_job(const NetworkCall& call, uint64_t job);
  /// Stops a job that its session has left. A job that is done stays as it is.
  void stop_job(uint64_t job) const;
  /// Sends the request to its process. REQUIRES: clients may send it.
  Result<Json> ask(ControlOperation operation, const Json& request) const;

  const Endpoints endpoints_;
  const OnDone on_done_;
  std::atomic<bool> ends_{false};

  std::mutex mutex_;
  bool is_stopped_ = false;  // guarded by mutex_
  /// Jobs of the open sessions: their numbers at this node. Guarded by mutex_.
  std::map<const NetworkSession*, std::deque<uint64_t>> jobs_;
  std::deque<uint64_t> left_jobs_;  // jobs to stop; guarded by mutex_
  Lane short_;                      // requests that are answered soon
  Lane catalog_;                    // requests that change the catalog
  const std::array<Lane*, 2> lanes_ = {&short_, &catalog_};
};

}  // namespace atolldb
