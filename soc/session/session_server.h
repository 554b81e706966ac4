// All sessions of one node: one thread accepts clients, takes their requests out of the rings and
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

#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/metrics/worker_metrics.h"
#include "shared/process/unique_fd.h"
#include "soc/procedure/registry.h"
#include "soc/session/durable_answers.h"
#include "soc/session/session.h"
#include "soc/worker/worker.h"

namespace atolldb {

/// Why a request is not run.
struct Refusal {
  Status status = Status::unavailable;  // or recovering: trying again later is safe
  std::string why;
};

/// What the sessions use of their node; outlives them.
struct SessionServices {
  uint32_t node = 0;
  uint64_t incarnation = 0;
  const ProcedureRegistry* procedures = nullptr;
  std::vector<Worker*> workers;
  DurableAnswers* answers = nullptr;
  SessionMetrics* metrics = nullptr;
  /// Nothing: requests of this isolation run; else why they do not.
  std::function<std::optional<Refusal>(Isolation)> refusal;
  /// Epoch at which a procedure that begins now has taken too long.
  std::function<uint64_t()> deadline_epoch;
};

/// Life: start -> (listen) -> stop. `listen`, `connect` and `note_end` by any thread.
class SessionServer {
 public:
  /// Requests of sessions in one worker's queue; the rest of it is for others.
  static constexpr uint32_t kMaxQueuedPerWorker = Worker::kMaxQueuedTasks / 2;

  SessionServer(SessionServices services, Logger logger);
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;
  ~SessionServer() { stop(); }

  Result<void> start();
  /// Clients of other processes connect to this Unix socket from now on.
  Result<void> listen(const std::string& path);
  /// A client of this process: its end of the socket.
  Result<UniqueFd> connect();
  /// Ends all sessions. REQUIRES: the workers and the queue of answers have ended, so that no call
  /// is in flight.
  void stop();

  /// A call has ended: the thread may wait for that.
  void note_end();

 private:
  void run();
  bool serve_all();
  bool serve(Session& session);
  void dispatch(Session& session, uint32_t slot);
  /// False: its worker has too much to do.
  bool submit(Session& session, uint32_t slot);
  void execute(Session& session, uint32_t slot, WorkerEnvironment& environment);
  void refuse(Session& session, uint32_t slot, Status status, std::string why);
  bool may_sleep();
  void handle_events(int timeout_ms);
  int sleep_ms() const;
  void accept_all();
  /// No descriptor is left: who connects waits in the backlog. REQUIRES: mutex_ is held.
  void pause_accepting(int error);
  void resume_accepting();
  void open_session(UniqueFd socket);
  void end_session(size_t index, const char* why);
  void free_ended();
  bool watch(int fd, uint64_t what, uint32_t events) const;
  void wake() const;

  const SessionServices services_;
  Logger logger_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::thread thread_;
  std::atomic<bool> ends_{false};

  std::mutex mutex_;
  UniqueFd listener_;              // guarded by mutex_
  std::vector<UniqueFd> arrived_;  // sockets without a session yet; guarded by mutex_

  // Of the thread.
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<std::unique_ptr<Session>> ending_;  // without a client, until their calls have ended
  uint32_t next_number_ = 0;
  uint32_t next_worker_ = 0;
  bool accept_paused_ = false;
  bool accept_warned_ = false;  // of a pause, since the last client that was accepted
  std::chrono::steady_clock::time_point accept_again_;  // while paused

  std::vector<std::atomic<uint32_t>> queued_;  // calls given to each worker and not run yet
  /// The thread waits for the end of a call: of a session that ends, or of a busy worker.
  std::atomic<bool> waits_for_end_{false};
};

}  // namespace atolldb
