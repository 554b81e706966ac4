// Creates, drops and lists the storages of a running cluster (R34). It owns the catalog, the DDL
// thread, which changes the catalog and writes the DDL log, and the thread that finishes drops.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/catalog/catalog.h"
#include "coordinator/catalog/storage_dropper.h"
#include "coordinator/durability/durable_state.h"
#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/node_calls.h"
#include "coordinator/task_thread.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/memory/control_layout.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Order of the calls: restore -> start -> stop_drops -> stop. Thread: one thread makes these
/// calls. After `start`, any thread may make the others.
class CatalogManager {
 public:
  /// Called when the DDL log cannot be written any more. Ends the cluster.
  using OnFailure = std::function<void(const Error&)>;

  /// `durable`: null if nothing is durable. REQUIRES: all references outlive this object; `nodes`
  /// and `metrics` are complete before `start`.
  CatalogManager(ControlSegment& control, DurableState* durable,
                 const std::vector<NodeShared*>& nodes,
                 const std::vector<const MetricsSegment*>& metrics, const NodeCall& call_node,
                 OnFailure on_failure, Logger logger);
  CatalogManager(const CatalogManager&) = delete;
  CatalogManager& operator=(const CatalogManager&) = delete;
  ~CatalogManager() { stop(); }

  /// Restores the storages that earlier incarnations created and did not drop. They are empty until
  /// recovery has set their roots.
  Result<void> restore();
  /// Starts the DDL thread and the dropper. REQUIRES: `clock` ticks, and outlives stop_drops.
  void start(EpochClock& clock);
  /// Ends the drops under way. REQUIRES: the clock still ticks.
  void stop_drops();
  /// Runs the tasks that the DDL thread already has, then ends it.
  void stop();

  /// Serves storage.create and storage.drop on the DDL thread. REQUIRES: the request is one of
  /// them, and the cluster runs. After `stop`, answers with the code not_running.
  void change(const ControlRequest& request, const ControlReply& reply);
  /// Returns the storage that storage.describe asks for.
  Result<Json> describe(const ControlRequest& request) const;
  Json list() const;

  /// Returns all storages that are not dropped. A storage that is being dropped is included until
  /// its slot is free. Blocks until the DDL thread, the only writer of the catalog, has answered.
  /// REQUIRES: `stop` has not been called.
  std::vector<StorageEntry> entries();
  /// Returns whether a storage is hidden, but its drop is not logged (R34). Blocks like `entries`.
  Result<bool> has_unlogged_drop();
  /// Lets the savepoint record that this epoch of the idle cluster is durable (R51).
  void record_idle_epoch(uint64_t durable_epoch);

 private:
  // Thread: the DDL thread.
  void create_storage(const ControlRequest& request, const ControlReply& reply);
  void drop_storage(const ControlRequest& request, const ControlReply& reply);
  Result<void> log_ddl(DdlOperation operation, const StorageControl& storage);
  /// Returns an error if a storage of this name is hidden and its drop is not logged yet. A
  /// start-up after a crash would restore that storage (R34).
  Result<void> check_no_drop(const std::string& name) const;

  std::unique_ptr<StorageDropper> make_dropper();
  /// Runs the task on the DDL thread and waits for its end. Thread: any except the DDL thread.
  Result<void> on_ddl_thread(const std::function<Result<void>()>& task);

  ControlSegment& control_;
  DurableState* const durable_;
  const std::vector<NodeShared*>& nodes_;
  const NodeCall& call_node_;
  const OnFailure on_failure_;
  Logger logger_;
  EpochClock* clock_ = nullptr;  // set by start
  Catalog catalog_;
  TaskThread ddl_thread_{"ddl"};
  std::unique_ptr<StorageDropper> dropper_;  // null before start
};

}  // namespace atolldb
