// Serves the coordinator's requests for snapshot jobs, glean.* (soc/README.md lists them).
#pragma once

#include <memory>
#include <mutex>

#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "soc/snapshot_job/node_snapshot_job.h"

namespace atolldb {

/// Runs the node's part of one job at a time. Thread: any, for all functions.
class SnapshotJobService {
 public:
  SnapshotJobService(SnapshotJobResources resources, Logger logger)
      : resources_(std::move(resources)), logger_(std::move(logger)) {}
  SnapshotJobService(const SnapshotJobService&) = delete;
  SnapshotJobService& operator=(const SnapshotJobService&) = delete;
  ~SnapshotJobService() { stop(); }

  /// Serves glean.*.
  void handle(const ControlRequest& request, const ControlReply& reply);
  /// Cancels the current job, and refuses later jobs.
  void stop();

  /// Returns the progress of all jobs so far, including the current one. The counters never
  /// decrease.
  SnapshotJobProgress total() const;
  SnapshotJobPhase phase() const;

 private:
  // The next six functions answer now or later, or return an error instead.
  Result<void> serve(const ControlRequest& request, const ControlReply& reply);
  Result<void> prepare(const ControlRequest& request, const ControlReply& reply);
  Result<void> capture(const ControlRequest& request, const ControlReply& reply);
  Result<void> map(const ControlRequest& request, const ControlReply& reply);
  Result<void> wait(const ControlRequest& request, const ControlReply& reply);
  Result<void> end(const ControlRequest& request, const ControlReply& reply);
  /// Adds the progress of job_ to before_, sets job_ to null, and returns the job. REQUIRES: mutex_
  /// is held.
  std::shared_ptr<NodeSnapshotJob> take_job();
  /// Returns the job that the request names.
  Result<std::shared_ptr<NodeSnapshotJob>> job_of(const ControlRequest& request) const;

  const SnapshotJobResources resources_;
  Logger logger_;
  mutable std::mutex mutex_;
  // The next members are guarded by mutex_.
  std::shared_ptr<NodeSnapshotJob> job_;  // shared: a request may use a job that was replaced
  SnapshotJobProgress before_;            // progress of the jobs before job_
  uint32_t largest_ = 0;                  // number of the latest job; numbers grow (R37)
  bool is_stopped_ = false;
};

}  // namespace atolldb
