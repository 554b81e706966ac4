// Serves the coordinator's requests for runs of the gleaner, glean.* (soc/README.md lists them).
#pragma once

#include <memory>
#include <mutex>

#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "soc/snapshot_job/node_snapshot_job.h"

namespace atolldb {

/// Runs the node's part of one run at a time. Thread: any, for all functions.
class GleanService {
 public:
  GleanService(GleanPlaces places, Logger logger)
      : places_(std::move(places)), logger_(std::move(logger)) {}
  GleanService(const GleanService&) = delete;
  GleanService& operator=(const GleanService&) = delete;
  ~GleanService() { stop(); }

  /// Returns whether this class serves the request.
  static bool serves(const ControlRequest& request) { return request.op.starts_with("glean."); }
  void handle(const ControlRequest& request, ControlReply reply);
  /// Gives up the run under way. Refuses later runs.
  void stop();

  /// Returns the progress of all runs so far, including the one under way. It never falls.
  SnapshotJobProgress total() const;
  GleanPhase phase() const;

 private:
  void prepare(const ControlRequest& request, ControlReply reply);
  void wait(const ControlRequest& request, ControlReply reply);
  void end(const ControlRequest& request, ControlReply reply);
  /// Takes the run out and adds its progress to before_. REQUIRES: mutex_ is held.
  std::shared_ptr<NodeSnapshotJob> take_run();
  /// Returns the run that the request names.
  Result<std::shared_ptr<NodeSnapshotJob>> run_of(const ControlRequest& request) const;

  const GleanPlaces places_;
  Logger logger_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::shared_ptr<NodeSnapshotJob>
      run_;                     // shared: a request may hold it longer than this member does
  SnapshotJobProgress before_;  // progress of the runs before run_
  bool is_stopped_ = false;
};

}  // namespace atolldb
