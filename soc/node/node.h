// One node of a cluster: its segments, its threads, and its answers to control requests. It runs in
// a process of its own, or as one of several in a process (thread mode).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/transaction/worker_context.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/config/machine.h"
#include "shared/file/file_system.h"
#include "shared/logging/logger.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/page_pool.h"
#include "shared/memory/segment_space.h"
#include "shared/message/control_message.h"
#include "shared/metrics/device_watch.h"
#include "soc/installer/installer.h"
#include "soc/installer/page_visitor.h"
#include "soc/logger/logger_thread.h"
#include "soc/node/job_table.h"
#include "soc/procedure/registry.h"
#include "soc/session/durable_answers.h"
#include "soc/session/session_server.h"
#include "soc/snapshot/node_snapshots.h"
#include "soc/snapshot/scrubber.h"
#include "soc/snapshot_job/snapshot_job_service.h"
#include "soc/worker/worker.h"

namespace atolldb {

/// Order of the calls: prepare -> attach -> start -> (drain) -> stop. Thread: one thread makes
/// these calls; any thread may call `handle` and `beat`.
class Node {
 public:
  /// Called once if the node cannot continue, because its log cannot be written. Thread: any.
  using OnFailure = std::function<void(const Error&)>;

  /// REQUIRES: `space` outlives the node.
  Node(Config config, uint32_t node, SegmentSpace& space, OnFailure on_failure, Logger logger);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  /// Makes this node's segments: memory, layout, header. Loads the procedure libraries.
  Result<void> prepare();
  /// Maps the segments of the coordinator and of the other nodes. REQUIRES: all are prepared.
  Result<void> attach();
  /// Starts the threads.
  Result<void> start();
  /// Refuses new work, tells the running jobs to end, and runs accepted work to its end. Nothing
  /// commits afterwards.
  void drain();
  /// Makes everything durable and ends the threads. REQUIRES: all nodes have drained, and the epoch
  /// clock ticks; or the cluster has failed.
  void stop();

  /// Updates gauges and the heartbeat word, and reclaims pages that other nodes freed. Cheap;
  /// called every cluster.heartbeat.
  void beat();

  /// Serves a control request (soc/README.md lists them).
  void handle(const ControlRequest& request, ControlReply reply);

  /// Accepts sessions of clients in other processes on this Unix socket. REQUIRES: the node has
  /// started.
  Result<void> listen_for_sessions(const std::string& path) { return sessions_->listen(path); }
  /// Returns the client's end of a session within this process. REQUIRES: the node has started.
  Result<UniqueFd> connect_session() { return sessions_->connect(); }

  uint32_t id() const { return node_; }
  NodeState state() const;
  const ClusterView& view() const { return view_; }
  const MetricsSegment& metrics() const { return *metrics_; }

 private:
  void set_state(NodeState state);
  void open_log_files();
  Result<void> start_loggers();
  Result<std::vector<LogWriter>> make_log_writers(uint32_t count);
  void begin_logs(const ControlRequest& request, const ControlReply& reply);
  Result<void> start_snapshots();
  Result<void> start_gleaning();
  void publish_gleaner();
  /// Reports a device that hangs, and ends the cluster if the config says so (R58).
  void watch_device();
  LogWriterSettings log_settings(uint32_t ordinal) const;
  std::vector<EpochLogger::Source> logs_of(uint32_t logger, uint32_t logger_count) const;
  void housekeep();
  Result<void> start_sessions();
  /// Returns why a request of this isolation cannot run now, or nothing if it can. A job counts as
  /// serializable.
  std::optional<Refusal> refuse(Isolation isolation) const;
  /// Runs `task` on the housekeeper's thread, with its page slot.
  void give_to_housekeeper(std::function<void(WorkerContext&)> task);
  uint64_t procedure_deadline() const;
  /// Returns an epoch that is not below the commit epoch of any commit that precedes the call
  /// (R59).
  uint64_t latest_commit_epoch() const;

  void start_job(const ControlRequest& request, const ControlReply& reply);
  void wait_for_job(const ControlRequest& request, ControlReply reply);
  void stop_job(const ControlRequest& request, const ControlReply& reply);
  void call_procedure(const ControlRequest& request, ControlReply reply);
  void list_procedures(const ControlReply& reply) const;
  void release_pages(const ControlRequest& request, ControlReply reply);
  void describe(const ControlReply& reply) const;
  void open_snapshots(const ControlRequest& request, const ControlReply& reply);
  void start_scrub(const ClusterUuid& cluster_uuid);
  void publish_snapshot(const ControlRequest& request, const ControlReply& reply);
  void withdraw_snapshots(const ControlRequest& request, const ControlReply& reply);
  Result<std::vector<uint32_t>> chosen_workers(const ControlRequest& request) const;

  const Config config_;
  const uint32_t node_;
  SegmentSpace& space_;
  OnFailure on_failure_;
  Logger logger_;
  Machine machine_;
  ClusterView view_;
  MetricsSegment* metrics_ = nullptr;
  std::byte* local_ = nullptr;
  std::vector<std::byte*> exchange_;  // exchange segments of all nodes; empty without a log
  std::unique_ptr<PagePool> pool_;
  std::atomic<bool> attached_{false};  // pool_ and view_ are complete
  ProcedureRegistry registry_;
  IoWatch io_watch_;                         // watches the files of files_
  std::optional<DeviceWatch> device_watch_;  // used by the heartbeat's thread, once attached
  std::unique_ptr<FileSystem> files_;
  // All five are null without a log; each one uses those before it.
  std::unique_ptr<NodeSnapshots> snapshots_;
  std::unique_ptr<PageVisitor> visitor_;
  std::unique_ptr<Installer> installer_;
  std::unique_ptr<Scrubber> scrubber_;
  std::unique_ptr<GleanService> gleaner_;
  std::mutex loggers_mutex_;
  std::vector<std::unique_ptr<LoggerThread>> loggers_;  // guarded by loggers_mutex_
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<uint32_t> next_worker_{0};
  JobTable jobs_{[this](uint64_t epoch, DurableAnswers::Deliver deliver) {
    answers_->add(epoch, std::move(deliver));
  }};
  std::unique_ptr<DurableAnswers> answers_;
  std::unique_ptr<SessionServer> sessions_;  // destroyed before the members that its calls use

  std::mutex mutex_;
  std::condition_variable housekeeper_wake_;
  std::deque<std::function<void(WorkerContext&)>> housekeeper_tasks_;  // guarded by mutex_
  bool deadlines_changed_ = false;                                     // guarded by mutex_
  bool housekeeper_ends_ = false;                                      // guarded by mutex_
  std::thread housekeeper_;
};

}  // namespace atolldb
