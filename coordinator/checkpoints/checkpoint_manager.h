// The checkpoints of a cluster with durability.scheme = "silor": takes them, recovers from them,
// and deletes what they supersede (R88 to R98). `make_checkpoint` holds the sequence of a
// checkpoint, and `recover` that of a recovery.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "coordinator/checkpoints/checkpoint_job.h"
#include "coordinator/checkpoints/checkpoint_recovery.h"
#include "coordinator/checkpoints/checkpoint_taker.h"
#include "coordinator/durability/logger_watch.h"
#include "coordinator/durability/scheme_manager.h"
#include "coordinator/task_thread.h"
#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/checkpoint_plan.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/metrics/cluster_metrics.h"

namespace atolldb {

/// Two threads work on checkpoints, one after the other. Until `start` it is the thread that opens
/// the cluster, afterwards the taker's thread. Functions without a `Thread:` line are called only
/// by the thread that works on checkpoints at the time.
class CheckpointManager : public SchemeManager {
 public:
  CheckpointManager(const SchemeContext& context, Logger logger);
  ~CheckpointManager() override { end(); }

  /// Replays the newest checkpoint and the log after it. Transactions can read nothing meanwhile.
  Result<void> recover(const OnRecovering& on_recovering) override;
  void start() override;
  /// Checkpoints free no pages, so workers never wait for them.
  void end_page_supply() override {}
  void stop() override { end(); }

  /// Serves checkpoint.take and snapshot.damage. Of snapshot.pin and .unpin it serves those of
  /// backups, and refuses all other requests for snapshots.
  void handle(const ControlRequest& request, const ControlReply& reply) override;
  /// Adds the member "checkpoints".
  void add_status(Json& status) const override;
  Json recovery_status() const override;
  std::string recovery_progress() const override;
  void record_recovery_progress() override;
  const CheckpointMetrics* checkpoint_metrics() const override { return &checkpoint_metrics_; }

 private:
  void end();
  bool is_own_thread() const { return std::this_thread::get_id() == thread_; }

  // Checkpoints of the running cluster.
  Result<uint32_t> take();
  Result<CheckpointMetadata> make_checkpoint();
  CheckpointInput next_task(uint32_t id);
  Result<CheckpointMetadata> copy_and_install(const CheckpointInput& task, bool& may_be_named);
  Result<void> await_logged_drops();
  /// Waits until the epoch is durable, and returns the durable epoch. Makes it durable even if
  /// nothing is committed.
  Result<uint64_t> await_durable(uint64_t epoch);
  /// Returns code disk_full if a checkpoint of the size of the last one would use the disk reserve.
  Result<void> check_room() const;
  Result<void> give_up_backup_pins();
  void delete_unneeded();
  bool has_new_commits() const;
  std::string why_log_is_long() const;
  std::unique_ptr<CheckpointTaker> make_taker();
  void record_newest(const CheckpointMetadata& checkpoint);
  void record_attempt(const Result<CheckpointMetadata>& made, std::chrono::nanoseconds took);

  // Recovery, in manager_recovery.cpp.
  ReplayPlan replay_plan() const;
  void record_recovery();
  Result<void> report_salvage();

  // Requests, in manager_requests.cpp.
  /// Returns why the request is refused, or "" if it is not.
  std::string refusal_of(const ControlRequest& request) const;
  void request_checkpoint(const ControlReply& reply);
  void list_damage(const ControlReply& reply);
  Result<Json> change(const ControlRequest& request);
  void record_backup_pins();

  const SchemeContext context_;
  const Config& config_;
  ControlSegment& control_;
  DurableState* const durable_;
  const LoggerWatch loggers_;
  Logger logger_;
  CheckpointJob job_;
  CheckpointRecovery recovery_;

  // The next members are used only by the thread that works on checkpoints.
  std::thread::id thread_;     // id of that thread
  bool has_replayed_ = false;  // this incarnation has replayed log that no checkpoint has

  // The next members are used by any thread.
  CheckpointMetrics checkpoint_metrics_;
  mutable std::mutex mutex_;
  std::string error_;                              // of the last attempt; guarded by mutex_
  Json backup_pins_ = Json::array();               // guarded by mutex_
  std::chrono::nanoseconds recovery_reported_{0};  // guarded by mutex_

  /// Waits for the nodes' answers to snapshot.damage. A slow node then delays no other request.
  TaskThread damage_thread_{"damage"};
  std::unique_ptr<CheckpointTaker> taker_;  // null before start
};

}  // namespace atolldb
