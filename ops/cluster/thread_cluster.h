// A cluster that runs as threads of this process. All nodes share one mapping, because
// ThreadSanitizer detects races only within one mapping.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "coordinator/coordinator.h"
#include "ops/cluster/cluster.h"
#include "ops/launcher/data_lock.h"
#include "ops/launcher/segment_set.h"
#include "shared/memory/segment_space.h"
#include "soc/node/node.h"

namespace atolldb {

class ThreadCluster final : public Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> launch(const Config& config);
  ~ThreadCluster() override;

  Result<Json> call(uint32_t node, ControlOperation operation, const Json& body,
                    std::chrono::milliseconds timeout) override;
  Result<Json> coordinator(ControlOperation operation, const Json& body,
                           std::chrono::milliseconds timeout) override;
  const ClusterView* view() const override { return &nodes_.front()->view(); }
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) override;
  Result<void> shutdown() override;

 private:
  ThreadCluster(const Config& config, SegmentSet segments);
  Result<void> start();
  void beat();
  void note_failure(const Error& error);

  std::optional<DataLock> data_lock_;  // outlives every user of the data
  SegmentSet segments_;
  SegmentSpace space_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;             // guarded by mutex_
  std::optional<Error> failure_;  // the first failure; guarded by mutex_
  std::thread heart_;
};

}  // namespace atolldb
