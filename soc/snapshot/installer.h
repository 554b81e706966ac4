// A node's part of installing a snapshot in the volatile pages of the running cluster: serves the
// coordinator's requests snapshot.install and snapshot.align with a thread of its own
// (soc/README.md lists them; engine/snapshot/install.h says what is done to pages).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/snapshot/install.h"
#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "soc/snapshot/drop_policy.h"
#include "soc/snapshot/page_visitor.h"

namespace atolldb {

/// What an installer does to a storage; tests give others.
struct InstallerActions {
  std::function<Status(WorkerContext&, StorageControl&, const InstallTask&, InstallReport&)>
      install;
  std::function<uint64_t(WorkerContext&, StorageControl&, uint64_t slice)> cut;

  /// Those of the engine.
  static InstallerActions of_engine();
};

class Installer {
 public:
  /// `view` and `visitor` outlive it.
  Installer(const ClusterView& view, PageVisitor& visitor, Logger logger,
            InstallerActions actions = InstallerActions::of_engine());
  Installer(const Installer&) = delete;
  Installer& operator=(const Installer&) = delete;
  ~Installer() { stop(); }

  static bool serves(const ControlRequest& request) {
    return request.op == "snapshot.install" || request.op == "snapshot.align";
  }
  void start();
  /// Any thread. Answers come from any thread.
  void handle(const ControlRequest& request, const ControlReply& reply);
  /// Gives up what is under way, refuses the rest, ends the thread.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  struct Root {
    uint32_t storage = 0;
    SnapshotPointer page;
  };
  struct Waiter {
    Clock::time_point deadline;
    ControlReply reply;
  };
  /// One pass of one snapshot, over the storages that are this node's share.
  struct Run {
    uint32_t snapshot = 0;
    uint64_t epoch = 0;
    DropLimits limits;
    std::vector<Root> roots;
    InstallReport report;
    std::optional<Error> failure;
    bool has_ended = false;
  };

  struct Align {
    uint32_t storage = 0;
    std::vector<uint64_t> keys;
    ControlReply reply;
  };

  // installer_requests.cpp: of any thread.
  static Result<Run> run_of(const ControlRequest& request);
  void install_request(const ControlRequest& request, const ControlReply& reply);
  void align_request(const ControlRequest& request, const ControlReply& reply);
  // The thread's.
  void work();
  bool work_once(std::unique_lock<std::mutex>& lock);
  void align(Align task);
  void install(Run& run);
  Status install_one(Run& run, const Root& root, DropPolicy& policy);
  bool goes_on(const Run& run, const InstallReport& current);
  void answer(const Run& run, const InstallReport& report, std::vector<Waiter> waiters) const;
  std::vector<Waiter> take_due();

  const ClusterView& view_;
  PageVisitor& visitor_;
  Logger logger_;
  const InstallerActions actions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  std::optional<Run> run_;  // the latest; the thread's, without the lock, until it has ended
  std::vector<Waiter> waiters_;
  std::deque<Align> aligns_;
  bool has_begun_run_ = false;
  bool ends_ = false;

  std::thread thread_;
};

/// Members of an answer; `oldest_left` only if there is one.
Json to_json(const InstallReport& report);

}  // namespace atolldb
