// All sessions of one node. One thread accepts clients, takes their requests out of the rings and
// gives them to the workers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/logging/logger.h"
#include "shared/memory/worker_metrics.h"
#include "shared/message/control_message.h"
#include "shared/metrics/procedure_metrics.h"
#include "soc/procedure/registry.h"
#include "soc/session/control_queue.h"
#include "soc/session/request_sink.h"
#include "soc/session/session.h"
#include "soc/worker/worker.h"

namespace atolldb {

/// Order of the calls: start -> (listen) -> stop. Thread: any thread may call `listen`, `connect`,
/// `handle` and `signal_end`.
class SessionServer final : public IdleWork {
 public:
  SessionServer(SessionServices services, Logger logger);
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;
  ~SessionServer() override { stop(); }

  Result<void> start();
  /// Accepts clients of other processes on this Unix socket.
  Result<void> listen(const std::string& path);
  /// Returns the client's end of a new session within this process.
  Result<UniqueFd> connect();
  /// Ends all sessions. REQUIRES: the workers and the queue of answers have ended, so no call is in
  /// flight.
  void stop();

  /// Serves `session.list` and `session.kill` (soc/README.md). Never waits. The session thread
  /// answers soon, because it alone uses the sessions. It answers all waiting requests before
  /// `stop` returns. Before `start` and after `stop`, the answer is not_running. Thread: any.
  void handle(const ControlRequest& request, const ControlReply& reply);

  /// Takes requests out of the rings instead of the session thread, while that sleeps. So a request
  /// of a client that waits needs no other thread than the worker.
  bool help(uint32_t ordinal, const std::function<bool()>& is_wanted) override;

  /// Wakes the session thread if it waits for the end of a call. Thread: any.
  void signal_end();

  /// Runs the requests of these sessions, and of other kinds of sessions of this node.
  RequestSink& sink() { return sink_; }
  const PayloadLimits& payloads() const { return services_.payloads; }
  /// Wakes the session thread. Thread: any.
  void wake() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void run();
  bool serve_all();
  bool serve(Session& session);
  void dispatch(Session& session, uint32_t slot);
  /// Returns false if the queue of the call's worker is full.
  bool submit(Session& session, uint32_t slot);
  void refuse(Session& session, uint32_t slot, Refusal refusal);
  bool holds_any() const;
  bool sends_parts() const;
  /// Ends the sessions whose clients have not taken a part of a long output for too long.
  void end_stalled();
  bool may_sleep();
  /// Releases the lock while it waits.
  void handle_events(Lock& serving, int timeout_ms);
  int sleep_ms() const;
  void accept_all();
  /// Stops accepting clients, because no descriptor or memory is left. New clients wait in the
  /// backlog. REQUIRES: mutex_ is held.
  void pause_accepting(int error);
  void resume_accepting();
  void open_session(UniqueFd socket);
  void end_session(size_t index, const char* why);
  void free_ended();
  bool watch(int fd, uint64_t what, uint32_t events) const;

  // The next functions are defined in session_requests.cpp.
  /// Answers the waiting control requests.
  void serve_control();
  Result<Json> answer_to(const ControlRequest& request);
  Json list_sessions() const;
  Result<Json> kill_sessions(const ControlRequest& request);
  Result<size_t> index_of(uint64_t number) const;
  /// Ends a session. Returns its element of the answer.
  Json kill_session(size_t index);

  RequestSink sink_;
  const SessionServices& services_;  // those of sink_
  Logger logger_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::thread thread_;
  std::atomic<bool> ends_{false};
  ControlQueue controls_;

  std::mutex mutex_;
  UniqueFd listener_;              // guarded by mutex_
  std::vector<UniqueFd> arrived_;  // sockets without a session yet; guarded by mutex_

  /// Held by the thread that uses the sessions: the session thread, except while it sleeps, or a
  /// worker that helps. Taken before mutex_.
  std::mutex serving_;
  std::atomic<bool> wants_to_serve_{false};  // the session thread waits for serving_
  // The next members are guarded by serving_.
  std::vector<std::unique_ptr<Session>> sessions_;
  uint32_t idle_worker_ = kAnyWorker;  // the worker that helps, until it has got a call
  std::vector<std::unique_ptr<Session>>
      ending_;  // sessions without a client, freed when their calls have ended
  bool accept_paused_ = false;
  bool accept_warned_ = false;  // a pause was logged since the last accepted client
  std::chrono::steady_clock::time_point accept_again_;  // time of the retry, while paused

  /// True if the end of a call must wake the session thread, because a session is ending or a
  /// worker's queue is full.
  std::atomic<bool> waits_for_end_{false};
};

}  // namespace atolldb
