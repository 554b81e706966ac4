// The part of the coordinator that depends on durability.scheme. `SnapshotManager` implements the
// scheme "gleaned", `CheckpointManager` the scheme "silor". make_scheme_manager is the only place
// that chooses between them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/catalog/catalog_manager.h"
#include "coordinator/durability/durable_state.h"
#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/node_calls.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"
#include "shared/message/control_message.h"
#include "shared/metrics/cluster_metrics.h"

namespace atolldb {

/// Pause between two reports of the progress of a recovery in the process log.
inline constexpr std::chrono::seconds kRecoveryReportPause{10};

/// The parts of the coordinator that a scheme uses. All of them outlive the scheme manager.
struct SchemeContext {
  const Config& config;
  ControlSegment& control;
  const std::vector<NodeShared*>& nodes;
  const std::vector<const MetricsSegment*>& metrics;
  EpochClock& clock;
  CatalogManager& catalog;
  DurableState* durable;  // null: nothing is durable
  const NodeCall& call_node;
};

/// Order of the calls: recover -> start -> end_page_supply -> stop. Without durable data, only the
/// functions with `Thread: any` are called, and `stop`.
class SchemeManager {
 public:
  SchemeManager() = default;
  SchemeManager(const SchemeManager&) = delete;
  SchemeManager& operator=(const SchemeManager&) = delete;
  virtual ~SchemeManager() = default;

  /// Called when a recovery begins that takes time. `readable` names what transactions can read
  /// meanwhile, for example "snapshot 3 of epoch 120"; it is empty if they can read nothing.
  using OnRecovering = std::function<void(const std::string& readable)>;
  /// Restores the commits of earlier incarnations on all nodes. REQUIRES: SchemeContext::durable is
  /// not null, and the nodes run. Thread: the one that opens the cluster.
  virtual Result<void> recover(const OnRecovering& on_recovering) = 0;
  /// Begins the work of the running cluster. REQUIRES: DurableState::begin was called. Thread: the
  /// one that opens the cluster.
  virtual void start() = 0;
  /// Tells workers that no work of this manager will free pages any more. Thread: any.
  virtual void end_page_supply() = 0;
  /// Cancels the work in progress and ends the threads. Thread: the one that stops the cluster.
  virtual void stop() = 0;

  /// Serves snapshot.* and checkpoint.take. REQUIRES: the cluster runs. Thread: any.
  virtual void handle(const ControlRequest& request, const ControlReply& reply) = 0;
  /// Adds the member of this scheme to the cluster's status. Thread: any.
  virtual void add_status(Json& status) const = 0;
  /// Returns the member "recovery" of the status of a recovering cluster. Thread: any.
  virtual Json recovery_status() const = 0;
  /// Returns the progress of the recovery, in the form of Coordinator::progress. Thread: any.
  virtual std::string recovery_progress() const = 0;
  /// Stores the progress of the recovery in the control segment, for display, and reports it in the
  /// process log every kRecoveryReportPause. Thread: any.
  virtual void record_recovery_progress() = 0;

  /// Returns null unless the scheme is "gleaned". Thread: any.
  virtual const SnapshotMetrics* snapshot_metrics() const { return nullptr; }
  /// Returns null unless the scheme is "silor". Thread: any.
  virtual const CheckpointMetrics* checkpoint_metrics() const { return nullptr; }
};

/// Thread: any.
bool is_cluster_running(const ControlSegment& control);

/// Returns the pin as answers and the status show it.
Json describe_pin(const PinnedSnapshot& pin);
/// Returns the pins of backups as the status shows them.
Json describe_backup_pins(DurableState& durable);

/// Makes the manager of the scheme that the config names.
std::unique_ptr<SchemeManager> make_scheme_manager(const SchemeContext& context, Logger logger);

}  // namespace atolldb
