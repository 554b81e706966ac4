// Creates, drops and lists the storages of a running cluster. It owns the catalog, the thread that
// changes it (the DDL thread), the DDL log's records, and the thread that finishes drops (R34).
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
  /// Ends the cluster, because the DDL log cannot be written any more.
  using OnFailure = std::function<void(const Error&)>;

  /// `durable`: null if nothing is durable. `nodes`: complete from `start` on. REQUIRES: all
  /// references outlive it.
  CatalogManager(ControlSegment& control, DurableState* durable,
                 const std::vector<NodeShared*>& nodes, const NodeCall& call_node,
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
  /// them, and the cluster runs.
  void change(const ControlRequest& request, ControlReply reply);
  void describe(const ControlRequest& request, const ControlReply& reply) const;
  Json list() const;

  /// Returns all storages that are not dropped. A storage counts until its drop is durable. Blocks
  /// until the DDL thread, the only writer of the catalog, has answered.
  std::vector<StorageEntry> entries();
  /// Lets the savepoint record that this epoch is durable, although nothing commits (R51).
  void record_idle_epoch(uint64_t durable_epoch);

 private:
  // Thread: the DDL thread.
  void create_storage(const ControlRequest& request, const ControlReply& reply);
  void drop_storage(const ControlRequest& request, const ControlReply& reply);
  Result<void> log_ddl(DdlOperation operation, const StorageControl& storage);
  /// Returns an error if a storage of this name is being dropped: a crash would restore it (R34).
  Result<void> check_no_drop(const std::string& name) const;

  std::unique_ptr<StorageDropper> make_dropper();
  /// Runs the task on the DDL thread and waits for its end. Thread: any other one.
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
