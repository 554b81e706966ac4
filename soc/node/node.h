// One node of a cluster: its segments, its threads, and its answers to control requests. It runs in
// a process of its own, or in one process with the other nodes (thread mode).
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
#include "shared/metrics/procedure_metrics.h"
#include "soc/checkpoint/checkpoint_service.h"
#include "soc/installer/installer.h"
#include "soc/installer/page_visitor.h"
#include "soc/logger/logger_thread.h"
#include "soc/network/gateway.h"
#include "soc/node/job_table.h"
#include "soc/node/pool_memory.h"
#include "soc/procedure/library_reloader.h"
#include "soc/procedure/registry.h"
#include "soc/session/durable_answers.h"
#include "soc/session/session_server.h"
#include "soc/snapshot/cache_warmer.h"
#include "soc/snapshot/lent_page_returner.h"
#include "soc/snapshot/scrubber.h"
#include "soc/snapshot/snapshot_store.h"
#include "soc/snapshot_job/snapshot_job_service.h"
#include "soc/worker/worker.h"

namespace atolldb {

/// A node. Order of the calls: prepare -> attach -> start -> (drain) -> stop. Thread: one thread
/// makes these calls; any thread may call `handle` and `beat`.
class Node {
 public:
  /// Called if the node cannot continue, because a log cannot be written or a device hangs (R58).
  /// May be called several times. Thread: any.
  using OnFailure = std::function<void(const Error&)>;

  /// REQUIRES: `space` outlives the node.
  Node(Config config, uint32_t node, SegmentSpace& space, OnFailure on_failure, Logger logger);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  /// Makes this node's segments: memory, layout, header. Loads the procedure libraries. Called
  /// once.
  Result<void> prepare();
  /// Maps the segments of the coordinator and of the other nodes. REQUIRES: the coordinator and all
  /// nodes are prepared.
  Result<void> attach();
  /// Starts the threads.
  Result<void> start();
  /// Refuses new work, tells the running jobs to end, and runs accepted work to its end. Nothing
  /// commits afterwards. Does nothing if the node has drained.
  void drain();
  /// Drains, makes everything durable and ends the threads. REQUIRES: all nodes have drained, and
  /// the epoch clock ticks; or the cluster has failed.
  void stop();

  /// Updates gauges and the heartbeat word, and reclaims pages that other nodes freed. Cheap;
  /// called every cluster.heartbeat.
  void beat();

  /// Serves a control request (soc/README.md lists them).
  void handle(const ControlRequest& request, const ControlReply& reply);

  /// Accepts sessions of clients in other processes on this Unix socket. REQUIRES: the node has
  /// started.
  Result<void> listen_for_sessions(const std::string& path) { return sessions_->listen(path); }
  /// Returns the client's end of a session within this process. REQUIRES: the node has started.
  Result<UniqueFd> connect_session() { return sessions_->connect(); }

  uint32_t id() const { return node_; }
  NodeState state() const;
  const ClusterView& view() const { return view_; }
  const MetricsSegment& metrics() const { return *metrics_; }
  /// REQUIRES: the node has started.
  const ProcedureMetrics& procedure_metrics() const { return *procedure_metrics_; }
  /// Returns null if the node has no network port. REQUIRES: the node has started.
  const NetworkMetrics* network_metrics() const {
    return network_ == nullptr ? nullptr : &network_metrics_;
  }
  /// Returns the endpoint of the network port, and its public key as text, as JSON. Null without a
  /// network port. REQUIRES: the node has started.
  Json network_endpoint() const;

 private:
  /// Raises the state.
  void set_state(NodeState state);
  /// `bases`: base addresses of the segments shared, pool, local and metrics, then of exchange if
  /// there is one.
  void format_segments(const std::vector<std::byte*>& bases);
  /// Runs `task` on the housekeeper's thread, with its page slot.
  void give_to_housekeeper(std::function<void(WorkerContext&)> task);
  void housekeep();
  /// Answers requests whose deadline has passed, and recycles retired pages. Returns the time at
  /// which the next of these tasks is due, or nothing if none is left.
  std::optional<JobTable::Clock::time_point> housekeep_once(WorkerContext& context);
  void start_pool_memory();
  void publish_unallocated();
  Result<void> start_workers();
  Result<void> start_sessions();
  Result<void> start_network();
  uint64_t procedure_deadline() const;
  /// Returns an upper bound for the epochs of all commits before the call (R59).
  uint64_t latest_commit_epoch() const;
  /// Reports a device that hangs, and ends the cluster if the config says so (R58).
  void watch_device();
  void tell_warmer();

  // The next functions are defined in node_loggers.cpp.
  void open_log_files();
  Result<void> start_loggers();
  /// Makes all writers or none.
  Result<std::vector<LogWriter>> make_log_writers(uint32_t count);
  void remove_first_files(uint32_t count);
  LogWriterSettings log_settings(uint32_t ordinal) const;
  std::vector<EpochLogger::Source> logs_of(uint32_t logger, uint32_t logger_count) const;

  // The next functions are defined in node_snapshots.cpp.
  Result<void> start_snapshots();
  void start_installer();
  void start_scrub(const ClusterUuid& cluster_uuid);
  Result<void> start_snapshot_jobs();
  void start_warming(const ClusterUuid& cluster_uuid);
  void publish_snapshot_metrics();

  void start_checkpoints();  // in node_checkpoints.cpp

  // The next functions are defined in node_control.cpp, node_snapshot_requests.cpp,
  // node_checkpoints.cpp and node_loggers.cpp. Those without `reply` return the answer. The others
  // answer now or later, or return an error instead.
  Result<void> serve(const ControlRequest& request, const ControlReply& reply);
  Result<void> serve_snapshots(const ControlRequest& request, const ControlReply& reply);
  Result<void> serve_checkpoints(const ControlRequest& request, const ControlReply& reply);
  /// Serves requests that need a running node, also during a recovery: sessions and libraries.
  Result<void> serve_running(const ControlRequest& request, const ControlReply& reply);
  /// Returns the reason why a request of this isolation cannot run now, or nothing if it can. A job
  /// counts as serializable.
  std::optional<Refusal> refuse(Isolation isolation) const;
  /// Returns the reason of `refuse` as an error.
  Result<void> admit(const ControlRequest& request, Isolation isolation) const;
  Result<std::vector<uint32_t>> chosen_workers(const ControlRequest& request) const;
  Json describe() const;
  Result<Json> reload_config(const ControlRequest& request);
  Result<Json> list_procedures(const ControlRequest& request) const;
  Result<Json> start_job(const ControlRequest& request);
  Result<void> wait_for_job(const ControlRequest& request, const ControlReply& reply);
  Result<Json> stop_job(const ControlRequest& request);
  Result<void> release_pages(const ControlRequest& request, const ControlReply& reply);
  Result<Json> begin_logs(const ControlRequest& request);
  Result<Json> open_snapshots(const ControlRequest& request);
  Result<Json> publish_snapshot(const ControlRequest& request);
  Result<Json> withdraw_snapshots(const ControlRequest& request);
  Json take_recent_reads();

  Config config_;  // only values of type Live change (reload_config)
  const uint32_t node_;
  SegmentSpace& space_;
  OnFailure on_failure_;
  Logger logger_;
  Machine machine_;
  ClusterView view_;
  MetricsSegment* metrics_ = nullptr;
  std::byte* local_ = nullptr;
  /// Exchange segments of all nodes. Empty without a log, and with scheme `silor`.
  std::vector<std::byte*> exchange_;
  std::unique_ptr<PoolMemory> pool_memory_;
  std::unique_ptr<PagePool> pool_;
  std::atomic<bool> attached_{false};  // true once pool_ and view_ are complete
  ProcedureRegistry registry_;
  std::unique_ptr<LibraryReloader> reloader_;  // null until the start
  IoWatch io_watch_;                           // watches the files of files_
  std::optional<DeviceWatch> device_watch_;    // used by the heartbeat's thread, once attached
  std::unique_ptr<FileSystem> files_;
  // The next members up to warmer_ are null without a log. Each of them uses the members before it.
  // With scheme `silor` only scrubber_ is not null.
  std::unique_ptr<SnapshotStore> snapshots_;
  std::unique_ptr<LentPageReturner> lent_pages_;        // null if memory.lend_pool is off
  std::vector<std::unique_ptr<PageVisitor>> visitors_;  // composers use the last one
  std::unique_ptr<Installer> installer_;
  std::unique_ptr<Scrubber> scrubber_;
  std::unique_ptr<SnapshotJobService> snapshot_jobs_;
  std::unique_ptr<CacheWarmer> warmer_;  // null without a savepoint, or if warm_cache is off
  std::mutex reload_mutex_;
  std::mutex loggers_mutex_;
  std::vector<std::unique_ptr<LoggerThread>> loggers_;   // guarded by loggers_mutex_
  std::unique_ptr<ProcedureMetrics> procedure_metrics_;  // used by workers and answers
  PageDirectory directory_;
  std::unique_ptr<RunGate> gate_;  // null: all workers may run at the same time
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<CheckpointService> checkpoints_;  // null unless the scheme is `silor`
  JobTable jobs_{[this](uint64_t epoch, DurableAnswers::Deliver deliver) {
    answers_->add(epoch, std::move(deliver));
  }};
  std::unique_ptr<DurableAnswers> answers_;
  std::unique_ptr<SessionServer> sessions_;  // destroyed before the members that its calls use
  NetworkMetrics network_metrics_;
  std::unique_ptr<NetworkGateway> network_;  // null if network.enabled is off; uses sessions_

  std::mutex mutex_;
  std::condition_variable housekeeper_wake_;
  std::deque<std::function<void(WorkerContext&)>> housekeeper_tasks_;  // guarded by mutex_
  bool deadlines_changed_ = false;                                     // guarded by mutex_
  bool housekeeper_ends_ = false;                                      // guarded by mutex_
  std::thread housekeeper_;
};

}  // namespace atolldb
