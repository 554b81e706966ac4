// A node's part of installing a snapshot in the volatile pages of the running cluster. The
// installer serves the coordinator's requests snapshot.install and snapshot.align (soc/README.md)
// with a thread of its own. engine/install/install.h describes the changes of the pages.
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

#include "engine/install/install.h"
#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/message/pending_replies.h"
#include "soc/installer/drop_policy.h"
#include "soc/installer/page_visitor.h"

namespace atolldb {

/// The operations of an installer on a storage. Tests replace them.
struct InstallerActions {
  std::function<Status(WorkerContext&, StorageControl&, const InstallTask&, InstallReport&)>
      install;
  std::function<uint64_t(WorkerContext&, StorageControl&, uint64_t slice)> cut;

  /// Returns the operations of the engine.
  static InstallerActions of_engine();
};

class Installer {
 public:
  /// REQUIRES: `view` and `visitor` outlive the installer.
  Installer(const ClusterView& view, PageVisitor& visitor, Logger logger,
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
  };
  /// One pass of one snapshot, over this node's share of the storages.
  struct Pass {
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

  // The next functions are defined in installer_requests.cpp. Thread: any.
  static Result<Pass> pass_of(const ControlRequest& request);
  Result<void> queue_install(const ControlRequest& request, const ControlReply& reply);
  Result<void> queue_align(const ControlRequest& request, const ControlReply& reply);
  // Thread: that of the installer.
  void work();
  bool work_once(std::unique_lock<std::mutex>& lock);
  void align(Align task);
  void install(Pass& pass);
  Status install_one(Pass& pass, const Root& root, DropPolicy& policy);
  bool answer_due(const Pass& pass, const InstallReport& current);
  static void answer(const Pass& pass, const InstallReport& report,
                     const PendingReplies<>::Replies& replies);
  void answer_rest();

  const ClusterView& view_;
  PageVisitor& visitor_;
  Logger logger_;
  const InstallerActions actions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // The next members are guarded by mutex_.
  std::optional<Pass> pass_;  // the latest pass; the thread works on it without the lock
  PendingReplies<> waiting_;  // requests that wait for the end of pass_ or for their deadline
  std::deque<Align> aligns_;
  bool has_begun_pass_ = false;
  bool ends_ = false;

  std::thread thread_;
};

/// Converts a report to members of an answer. Omits `oldest_left` if it is kNoSnapshot.
Json to_json(const InstallReport& report);

}  // namespace atolldb
