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
/// Several parts per thread, because parts take different times, and threads may start later.
constexpr uint32_t kPartsPerThread = 4;
/// Fewest volatile pages of a part. A walk over them takes some microseconds.
constexpr uint32_t kMinPagesOfPart = 16;

}  // namespace

InstallerActions InstallerActions::of_engine() {
  return {.install = install_snapshot,
          .cut = cut_at_or_before,
          .divide =
              [](WorkerContext& context, StorageControl& storage, uint32_t parts) {
                return divide_storage(context, storage, parts, kMinPagesOfPart);
              },
          .install_seams = atolldb::install_seams,
          .drain = drain_delta};
}

Json to_json(const InstallReport& report) {
  Json json = {{"longest_hold_ns", report.longest_hold_ns}};
  for (const InstallCounter& each : kInstallCounters) json[each.name] = report.*each.value;
  if (report.oldest_left != InstallReport::kNoSnapshot) json["oldest_left"] = report.oldest_left;
  return json;
}

Installer::Installer(InstallerSettings settings, Logger logger, InstallerActions actions)
    : settings_(std::move(settings)),
      view_(*settings_.view),
      visitors_(settings_.visitors),
      logger_(std::move(logger)),
      actions_(std::move(actions)) {
  CHECK(!visitors_.empty() && visitors_.size() <= kMaxInstallers);
  CHECK(actions_.install && actions_.cut && actions_.divide && actions_.install_seams &&
        actions_.drain);
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
      is_clean = true;
      for (PageVisitor* visitor : visitors_) is_clean = visitor->recycle() && is_clean;
      if (settings_.composers != nullptr) is_clean = settings_.composers->recycle() && is_clean;
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
    Pass& pass = *pass_;  // no thread replaces the pass before it has ended
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
  visitors_[0]->visit([&](WorkerContext& context) {
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
  CHECK(!pass.failure && pass.report.installed == 0 && threads_.empty());
  for (auto& count : dropped_.count) count.store(0, std::memory_order_relaxed);
  divide(pass);
  install_parts(pass, 0);
  wait_for_threads(pass);
  for (Root& root : pass.roots) {
    if (!root.bounds.empty() && !pass.failure) install_seams_of(pass, root);
  }
  if (pass.drains) {
    logger_->info("snapshot {}: {} records drained from delta trees, {} pages freed, {} busy",
                  pass.snapshot, pass.report.drained, pass.report.reclaimed, pass.report.busy);
    return;
  }
  logger_->info(
      "snapshot {}: {} pointers installed, {} pages dropped, {} kept ({} hot), {} busy, {} "
      "unmatched, {} reclaimed, {} divided, {} parts",
      pass.snapshot, pass.report.installed, pass.report.dropped, pass.report.kept,
      pass.report.kept_hot, pass.report.busy, pass.report.unmatched, pass.report.reclaimed,
      pass.report.divided, pass.parts.size());
}

/// Divides the storages into parts, if there may be several threads.
void Installer::divide(Pass& pass) {
  const auto most = static_cast<uint32_t>(visitors_.size());
  std::vector<Part> parts;
  for (Root& root : pass.roots) {
    StorageControl& storage = view_.control->storage(root.storage);
    if (most > 1 && !pass.drains) {
      visitors_[0]->visit([&](WorkerContext& context) {
        if (!is_storage_ready(storage, root.storage)) return;
        root.bounds = actions_.divide(context, storage, most * kPartsPerThread);
      });
    }
    SliceRange range;
    for (const uint64_t bound : root.bounds) {
      CHECK(bound > range.low);
      parts.push_back({&root, {range.low, bound, false}});
      range.low = bound;
    }
    parts.push_back({&root, range});
  }
  const std::lock_guard guard(mutex_);
  pass.parts = std::move(parts);
  pass.threads_running = 1;
}

/// Starts further threads if the coordinator permits them and enough parts are left.
void Installer::start_threads(Pass& pass) {
  const std::lock_guard guard(mutex_);
  while (pass.threads_running < threads_wanted_ && !pass.failure && !ends_ &&
         pass.next_part < pass.parts.size() && threads_.size() + 1 < visitors_.size()) {
    const auto thread = static_cast<uint32_t>(threads_.size()) + 1;
    ++pass.threads_running;
    threads_.emplace_back([this, &pass, thread] {
      name_thread("install" + std::to_string(thread));
      const auto pinned = pin_thread(settings_.cpus, "gleaner_cpus");
      if (!pinned) logger_->warn("snapshot {}: {}", pass.snapshot, pinned.error().message);
      install_parts(pass, thread);
    });
  }
}

/// Waits until the other threads of the pass have ended, and answers requests meanwhile.
void Installer::wait_for_threads(Pass& pass) {
  std::unique_lock lock(mutex_);
  while (pass.threads_running != 0) {
    const auto next = waiting_.next_deadline().value_or(Clock::now() + std::chrono::seconds(1));
    changed_.wait_until(lock, next, [&] { return pass.threads_running == 0; });
    lock.unlock();
    static_cast<void>(answer_due(pass, {}));
    lock.lock();
  }
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

/// Installs parts until none is left, or until this thread is not wanted any more.
void Installer::install_parts(Pass& pass, uint32_t thread) {
  DropPolicy policy(view_, pass.limits, dropped_);
  WorkClock clock(settings_.times);
  clock.begin();
  while (const auto part = take_part(pass, thread)) {
    if (thread == 0) start_threads(pass);
    const Status status = install_part(pass, *part, thread, policy);
    clock.charge(SnapshotWork::install);
    if (status != Status::ok) fail(pass, *part->root, status);
  }
}

/// Returns the next part, or nothing if this thread shall end.
std::optional<Installer::Part> Installer::take_part(Pass& pass, uint32_t thread) {
  const std::lock_guard guard(mutex_);
  const bool is_wanted = thread == 0 || pass.threads_running <= threads_wanted_;
  if (is_wanted && !pass.failure && pass.next_part < pass.parts.size()) {
    return pass.parts[pass.next_part++];
  }
  CHECK(pass.threads_running != 0);
  --pass.threads_running;
  changed_.notify_one();
  return std::nullopt;
}

InstallTask Installer::task_of(const Pass& pass, const Root& root) const {
  InstallTask task;
  task.root = root.page;
  task.snapshot = pass.snapshot;
  task.epoch = pass.epoch;
  task.base_epoch = pass.base_epoch;
  task.next_bounds = root.next_bounds;
  return task;
}

Status Installer::install_part(Pass& pass, const Part& part, uint32_t thread, DropPolicy& policy) {
  Status status = Status::ok;
  Root& root = *part.root;
  visitors_[thread]->visit([&](WorkerContext& context) {
    StorageControl& storage = view_.control->storage(root.storage);
    // Skips a storage that was dropped after the snapshot was made, or during the install. Its
    // pages are released anyway.
    if (!is_storage_ready(storage, root.storage)) return;
    InstallReport report;
    InstallTask task = task_of(pass, root);
    task.part = part.range;
    {
      const std::lock_guard guard(mutex_);
      task.waited_ms = pass.report.waited_ms;
    }
    task.drop_policy = [&](PageHeader& page) {
      return policy.judge(page, context.pages().retired_count());
    };
    task.cancelled = [&] {
      if (thread == 0) start_threads(pass);
      const bool goes_on = thread == 0 ? answer_due(pass, report) : may_continue(pass);
      return !goes_on || !is_storage_ready(storage, root.storage);
    };
    status = pass.drains ? actions_.drain(context, storage, task, report)
                         : actions_.install(context, storage, task, report);
    if (is_storage_ready(storage, root.storage)) {
      const std::lock_guard guard(mutex_);
      root.report.add(report);
      pass.report.add(report);
    } else if (status == Status::unavailable) {
      status = Status::ok;
    }
  });
  return status;
}

/// Drops the pages that lie in several parts. REQUIRES: no other thread of the pass runs.
void Installer::install_seams_of(Pass& pass, Root& root) {
  Status status = Status::ok;
  DropPolicy policy(view_, pass.limits, dropped_);
  WorkClock clock(settings_.times);
  clock.begin();
  visitors_[0]->visit([&](WorkerContext& context) {
    StorageControl& storage = view_.control->storage(root.storage);
    if (!is_storage_ready(storage, root.storage)) return;
    InstallReport report;
    InstallTask task = task_of(pass, root);
    task.drop_policy = [&](PageHeader& page) {
      return policy.judge(page, context.pages().retired_count());
    };
    task.cancelled = [&] {
      return !answer_due(pass, report) || !is_storage_ready(storage, root.storage);
    };
    status = actions_.install_seams(context, storage, task, root.bounds, root.report, report);
    const std::lock_guard guard(mutex_);
    if (is_storage_ready(storage, root.storage)) {
      pass.report.add(report);
    } else if (status == Status::unavailable) {
      status = Status::ok;
    }
  });
  clock.charge(SnapshotWork::install);
  if (status != Status::ok) fail(pass, root, status);
}

/// Records the failure of a pass. The first one counts.
void Installer::fail(Pass& pass, const Root& root, Status status) {
  CHECK(status != Status::ok);
  const std::lock_guard guard(mutex_);
  if (pass.failure) return;
  pass.failure = Error{ExitCode::failed,
                       fmt::format("snapshot {}: not all pages of storage {} refer to it: {}",
                                   pass.snapshot, root.storage, to_string(status))};
  logger_->warn("{}", pass.failure->message);
}

/// Answers the requests whose deadline has passed. Returns whether the installation continues.
/// Called every few pages. `current`: report of the part that thread 0 installs.
bool Installer::answer_due(Pass& pass, const InstallReport& current) {
  std::unique_lock lock(mutex_);
  const bool goes_on = !ends_ && !pass.failure;
  const auto due = waiting_.take_due(Clock::now());
  if (due.empty()) return goes_on;
  InstallReport sum = pass.report;
  lock.unlock();
  sum.add(current);
  // If another thread fails meanwhile, the answers to later requests report it.
  Json json = to_json(sum);
  json["done"] = false;
  PendingReplies<>::answer(due, json);
  return goes_on;
}

bool Installer::may_continue(const Pass& pass) {
  const std::lock_guard guard(mutex_);
  return !ends_ && !pass.failure;
}

/// REQUIRES: the lock is not held, and the pass has ended.
void Installer::answer(const Pass& pass, const InstallReport& report,
                       const PendingReplies<>::Replies& replies) const {
  CHECK(pass.has_ended);
  if (pass.failure) return PendingReplies<>::answer(replies, std::unexpected(*pass.failure));
  Json json = to_json(report);
  json["done"] = true;
  json["drainable"] = Json::array();
  json["incomplete"] = Json::array();
  json["changed"] = Json::array();
  for (const Root& root : pass.roots) {
    if (root.report.changed_bytes != 0) {
      json["changed"].push_back(Json::array({root.storage, root.report.changed_bytes}));
    }
    const StorageControl& storage = view_.control->storage(root.storage);
    const bool has_delta = !storage.delta_root.load_acquire().is_null();
    if (has_delta) {
      json[is_complete(root.report) ? "drainable" : "incomplete"].push_back(root.storage);
    }
  }
  PendingReplies<>::answer(replies, json);
}

}  // namespace atolldb
