// The thread that limits how fast transactions take pages, by the flow control of each pool.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "coordinator/snapshots/page_flow.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Grants pages to the workers of a node: adds to its page budget. `limit`: pages per second;
/// nothing: no limit. `elapsed_s`: seconds since the last grant. `credit`: the part of a page that
/// was not granted yet.
void grant_pages(NodeShared& node, std::optional<double> limit, double elapsed_s, double& credit);

/// Thread-safe.
class PageRegulator {
 public:
  explicit PageRegulator(const std::vector<NodeShared*>& nodes)
      : nodes_(nodes), pools_(nodes.size()) {}
  PageRegulator(const PageRegulator&) = delete;
  PageRegulator& operator=(const PageRegulator&) = delete;
  ~PageRegulator() { stop(); }

  void start();
  /// Ends the thread and lifts all limits.
  void stop();

  // As for PageFlow.
  void begin_job();
  void begin_install(bool has_paused);
  void end_job();

  /// Returns whether a job must begin now, because a pool would be empty before a later job could
  /// free pages.
  bool is_short() const;

 private:
  struct Pool {
    PageFlow flow;
    double credit = 0;  // the part of a page that was not granted yet
  };

  void run();
  void tell_all(const std::function<void(PageFlow&, const PoolReadings&)>& event);

  const std::vector<NodeShared*>& nodes_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Pool> pools_;  // by node; guarded by mutex_
  bool ends_ = false;        // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
