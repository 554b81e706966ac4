// A node's part of installing a snapshot in the volatile pages of the running cluster. The
// installer serves the coordinator's requests snapshot.install and snapshot.align (soc/README.md)
// with a thread of its own. During a pass it starts further threads, as many as the coordinator
// permits. engine/install/install.h describes the changes of the pages.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "engine/install/install.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/message/pending_replies.h"
#include "shared/process/work_clock.h"
#include "soc/installer/drop_policy.h"
#include "soc/installer/page_visitor.h"

namespace atolldb {

/// The operations of an installer on a storage. Tests replace them.
struct InstallerActions {
  std::function<Status(WorkerContext&, StorageControl&, const InstallTask&, InstallReport&)>
      install;
  std::function<uint64_t(WorkerContext&, StorageControl&, uint64_t slice)> cut;
  std::function<std::vector<uint64_t>(WorkerContext&, StorageControl&, uint32_t parts)> divide;
  std::function<Status(WorkerContext&, StorageControl&, const InstallTask&,
                       std::span<const uint64_t> bounds, const InstallReport& parts,
                       InstallReport&)>
      install_seams;
  std::function<Status(WorkerContext&, StorageControl&, const InstallTask&, InstallReport&)> drain;

  /// Returns the operations of the engine.
  static InstallerActions of_engine();
};

/// REQUIRES: the objects that the settings point to outlive the installer.
struct InstallerSettings {
  const ClusterView* view = nullptr;
  std::vector<PageVisitor*> visitors;  // one for each of its threads, 1 to kMaxInstallers
  /// The visitor of the composers, or null. The installer frees the pages that it has retired.
  PageVisitor* composers = nullptr;
  std::vector<int32_t> cpus;           // CPUs of the threads that a pass starts; empty: any
  SnapshotWorkTimes* times = nullptr;  // counts the processor time of all its threads; may be null
};

class Installer {
 public:
  Installer(InstallerSettings settings, Logger logger,
            InstallerActions actions = InstallerActions::of_engine());
  Installer(const Installer&) = delete;
  Installer& operator=(const Installer&) = delete;
  ~Installer() { stop(); }

  void start();
  /// Serves snapshot.install and snapshot.align. Thread: any. Any thread may call the reply.
  void handle(const ControlRequest& request, const ControlReply& reply);
  /// Cancels the current pass, refuses later passes, and ends the thread.
  void stop();

 private:
  using Clock = PendingReplies<>::Clock;

  struct Root {
    uint32_t storage = 0;
    SnapshotPointer page;
    std::vector<uint64_t> bounds;       // begins of the parts, apart from the first one
    std::vector<uint64_t> next_bounds;  // InstallTask::next_bounds
    InstallReport report;               // sum over the parts that are installed; guarded by mutex_
  };
  /// A part of a storage.
  struct Part {
    Root* root = nullptr;
    SliceRange range;
  };
  /// One pass of one snapshot, over this node's share of the storages. Or, if `drains`, over the
  /// node's pages of the delta trees of these storages.
  struct Pass {
    uint32_t snapshot = 0;
    bool drains = false;
    uint64_t epoch = 0;
    uint64_t base_epoch = 0;
    DropLimits limits;
    std::vector<Root> roots;
    bool has_ended = false;
    // Guarded by mutex_ while the pass runs:
    std::vector<Part> parts;
    size_t next_part = 0;
    uint32_t threads_running = 0;
    InstallReport report;
    std::optional<Error> failure;
  };

  struct Align {
    uint32_t storage = 0;
    std::vector<uint64_t> keys;
    ControlReply reply;
  };

  // The next functions are defined in installer_requests.cpp. Thread: any.
  static Result<Pass> pass_of(const ControlRequest& request);
  Result<void> queue_install(const ControlRequest& request, const ControlReply& reply);
  Result<void> queue_align(const ControlRequest& request, const ControlReply& reply);
  // Thread: the installer's.
  void work();
  bool work_once(std::unique_lock<std::mutex>& lock);
  void align(Align task);
  void install(Pass& pass);
  void divide(Pass& pass);
  void start_threads(Pass& pass);
  void wait_for_threads(Pass& pass);
  void install_seams_of(Pass& pass, Root& root);
  void answer(const Pass& pass, const InstallReport& report,
              const PendingReplies<>::Replies& replies) const;
  void answer_rest();
  // Thread: the installer's (number 0), or another thread of the pass.
  void install_parts(Pass& pass, uint32_t thread);
  std::optional<Part> take_part(Pass& pass, uint32_t thread);
  Status install_part(Pass& pass, const Part& part, uint32_t thread, DropPolicy& policy);
  InstallTask task_of(const Pass& pass, const Root& root) const;
  void fail(Pass& pass, const Root& root, Status status);
  bool answer_due(Pass& pass, const InstallReport& current);
  bool may_continue(const Pass& pass);

  const InstallerSettings settings_;
  const ClusterView& view_;
  const std::vector<PageVisitor*>& visitors_;
  Logger logger_;
  const InstallerActions actions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // The next members are guarded by mutex_.
  std::optional<Pass> pass_;     // the latest; its threads use some members without the lock
  uint32_t threads_wanted_ = 1;  // number of threads that pass_ should have
  PendingReplies<> waiting_;     // requests that wait for the end of pass_ or for their deadline
  std::deque<Align> aligns_;
  bool has_begun_pass_ = false;
  bool ends_ = false;

  DropsOnTheirWay dropped_;           // pages that pass_ has dropped
  std::vector<std::thread> threads_;  // of pass_, apart from thread_; used by thread_
  std::thread thread_;
};

/// Converts a report to members of an answer. Omits `oldest_left` if it is kNoSnapshot.
Json to_json(const InstallReport& report);

}  // namespace atolldb
