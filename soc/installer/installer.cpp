#include "soc/installer/installer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/mastertree/fence_map.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Pause between two attempts to recycle retired pages: about one epoch, after which their grace
/// may be over.
constexpr std::chrono::milliseconds kInstallerPause{10};

}  // namespace

InstallerActions InstallerActions::of_engine() {
  return {.install = install_snapshot, .cut = cut_at_or_before};
}

Json to_json(const InstallReport& report) {
  Json json = {{"longest_hold_ns", report.longest_hold_ns}};
  for (const InstallCounter& each : kInstallCounters) json[each.name] = report.*each.value;
  if (report.oldest_left != InstallReport::kNoSnapshot) json["oldest_left"] = report.oldest_left;
  return json;
}

Installer::Installer(const ClusterView& view, PageVisitor& visitor, Logger logger,
                     InstallerActions actions)
    : view_(view), visitor_(visitor), logger_(std::move(logger)), actions_(std::move(actions)) {
  CHECK(actions_.install && actions_.cut);
}

void Installer::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { work(); });
}

void Installer::stop() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Installer::work() {
  name_thread("install");
  std::unique_lock lock(mutex_);
  bool is_clean = true;  // all pages that this thread has retired are free again
  while (!ends_) {
    if (work_once(lock)) {
      is_clean = false;
      continue;
    }
    const auto is_woken = [this] {
      return ends_ || !aligns_.empty() || !waiting_.is_empty() || (pass_ && !has_begun_pass_);
    };
    if (is_clean) {
      changed_.wait(lock, is_woken);
    } else if (!changed_.wait_for(lock, kInstallerPause, is_woken)) {
      lock.unlock();
      is_clean = visitor_.recycle();
      lock.lock();
    }
  }
  lock.unlock();
  answer_rest();
}

/// Answers the requests that are left when the thread ends. REQUIRES: ends_ is set, so no request
/// is added later.
void Installer::answer_rest() {
  std::unique_lock lock(mutex_);
  CHECK(ends_);
  const auto replies = waiting_.take_all();
  const std::deque<Align> aligns = std::exchange(aligns_, {});
  lock.unlock();
  const Error stops{ExitCode::not_running, "snapshot.install: the node stops"};
  PendingReplies<>::answer(replies, std::unexpected(stops));
  for (const Align& task : aligns) task.reply(std::unexpected(stops));
}

/// Does one task. Returns false if there is none. Releases the lock while it works.
bool Installer::work_once(std::unique_lock<std::mutex>& lock) {
  CHECK(lock.owns_lock());
  if (!aligns_.empty()) {
    Align task = std::move(aligns_.front());
    aligns_.pop_front();
    lock.unlock();
    align(std::move(task));
    lock.lock();
    return true;
  }
  if (pass_ && !std::exchange(has_begun_pass_, true)) {
    Pass& pass = *pass_;  // no other thread uses the pass before it has ended
    lock.unlock();
    install(pass);
    lock.lock();
    CHECK(!pass.has_ended);
    pass.has_ended = true;
    return true;
  }
  if (waiting_.is_empty()) return false;
  CHECK(pass_ && pass_->has_ended);  // the waiting requests are for the ended pass
  const Pass pass = *pass_;
  const auto replies = waiting_.take_all();
  lock.unlock();
  answer(pass, pass.report, replies);
  lock.lock();
  return true;
}

void Installer::align(Align task) {
  visitor_.visit([&](WorkerContext& context) {
    StorageControl& storage = view_.control->storage(task.storage);
    for (uint64_t& key : task.keys) {
      context.enter();
      // Stops if the storage is being dropped, because its pages need no alignment.
      if (!is_storage_ready(storage, task.storage)) break;
      key = actions_.cut(context, storage, key);
    }
  });
  task.reply(Json{{"keys", task.keys}});
}

void Installer::install(Pass& pass) {
  CHECK(!pass.failure && pass.report.installed == 0);
  DropPolicy policy(view_, pass.limits);
  for (const Root& root : pass.roots) {
    const Status status = install_one(pass, root, policy);
    if (status == Status::ok) continue;
    pass.failure = Error{ExitCode::failed,
                         fmt::format("snapshot {}: not all pages of storage {} refer to it: {}",
                                     pass.snapshot, root.storage, to_string(status))};
    logger_->warn("{}", pass.failure->message);
    break;
  }
  logger_->info(
      "snapshot {}: {} pointers installed, {} pages dropped, {} kept ({} hot), {} busy, {} "
      "unmatched, {} reclaimed",
      pass.snapshot, pass.report.installed, pass.report.dropped, pass.report.kept,
      pass.report.kept_hot, pass.report.busy, pass.report.unmatched, pass.report.reclaimed);
}

Status Installer::install_one(Pass& pass, const Root& root, DropPolicy& policy) {
  Status status = Status::ok;
  visitor_.visit([&](WorkerContext& context) {
    StorageControl& storage = view_.control->storage(root.storage);
    // The storage was dropped after the snapshot was made, or during the install. Its pages are
    // released anyway.
    if (!is_storage_ready(storage, root.storage)) return;
    InstallReport report;
    InstallTask task;
    task.root = root.page;
    task.snapshot = pass.snapshot;
    task.epoch = pass.epoch;
    task.drop_policy = [&](PageHeader& page) {
      return policy.judge(page, context.pages().retired_count());
    };
    task.cancelled = [&] {
      return !answer_due(pass, report) || !is_storage_ready(storage, root.storage);
    };
    status = actions_.install(context, storage, task, report);
    if (is_storage_ready(storage, root.storage)) {
      pass.report.add(report);
    } else if (status == Status::unavailable) {
      status = Status::ok;
    }
  });
  return status;
}

/// Answers the requests whose deadline has passed. Returns whether the installation continues.
/// Called every few pages.
bool Installer::answer_due(const Pass& pass, const InstallReport& current) {
  std::unique_lock lock(mutex_);
  const bool ends = ends_;
  const auto due = waiting_.take_due(Clock::now());
  lock.unlock();
  if (!due.empty()) {
    InstallReport sum = pass.report;
    sum.add(current);
    answer(pass, sum, due);
  }
  return !ends;
}

/// REQUIRES: the lock is not held.
void Installer::answer(const Pass& pass, const InstallReport& report,
                       const PendingReplies<>::Replies& replies) {
  if (pass.failure) return PendingReplies<>::answer(replies, std::unexpected(*pass.failure));
  Json json = to_json(report);
  json["done"] = pass.has_ended;
  PendingReplies<>::answer(replies, json);
}

}  // namespace atolldb
