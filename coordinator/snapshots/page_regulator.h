// The thread that limits how fast transactions take pages, by the flow control of each pool.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/snapshots/job_progress.h"
#include "coordinator/snapshots/page_flow.h"
#include "shared/base/check.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Grants pages to the workers of a node: adds to its page budget. `limit`: pages per second;
/// nothing: no limit. `elapsed_s`: seconds since the last grant. `credit`: the part of a page that
/// was not granted yet.
void grant_pages(NodeShared& node, std::optional<double> limit, double elapsed_s, double& credit);

/// Returns how many pages the next job writes on an average node because of records in delta trees:
/// at most one for each record, and at most `live_pages`, the pages of the newest snapshot.
uint64_t cold_pages(const std::vector<const MetricsSegment*>& metrics, uint64_t live_pages);

/// Thread-safe.
class PageRegulator {
 public:
  /// Returns PoolReadings::cold of an average node (cold_pages). Called every 0.2 s; also revises
  /// the choice of cold writes (SnapshotManager::revise_cold_writes). Thread: page-flow.
  using ColdPages = std::function<uint64_t()>;

  /// `metrics`: of all nodes. REQUIRES: both vectors outlive this object.
  PageRegulator(const std::vector<NodeShared*>& nodes,
                const std::vector<const MetricsSegment*>& metrics, ColdPages cold_pages)
      : nodes_(nodes),
        cold_pages_(std::move(cold_pages)),
        pools_(nodes.size()),
        progress_(metrics) {
    CHECK(cold_pages_ != nullptr);
  }
  PageRegulator(const PageRegulator&) = delete;
  PageRegulator& operator=(const PageRegulator&) = delete;
  ~PageRegulator() { stop(); }

  void start();
  /// Ends the thread and lifts all limits.
  void stop();

  // As for PageFlow. `log_bytes`: bytes of log that the mappers of all nodes read together.
  void begin_job(uint64_t log_bytes);
  void begin_next(uint64_t log_bytes);
  void begin_install(bool has_paused);
  void end_job();

  /// Returns whether a job must begin now, because a pool would be empty before a later job could
  /// free pages.
  bool is_short() const;
  /// Returns whether the next job must begin before the install of the current one.
  bool will_be_short() const;

 private:
  struct Pool {
    PageFlow flow;
    double credit = 0;  // the part of a page that was not granted yet
  };

  void run();
  PoolReadings readings_of(const NodeShared& node) const;
  void tell_all(const std::function<void(PageFlow&, const PoolReadings&)>& event);

  const std::vector<NodeShared*>& nodes_;
  const ColdPages cold_pages_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Pool> pools_;  // by node; guarded by mutex_
  JobProgress progress_;     // guarded by mutex_
  double done_ = 0;          // latest result of progress_.done(); guarded by mutex_
  bool has_next_ = false;    // a job overlaps the install; guarded by mutex_
  uint64_t cold_ = 0;        // latest result of cold_pages_; guarded by mutex_
  bool ends_ = false;        // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
