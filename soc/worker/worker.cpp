#include "soc/worker/worker.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Pause of an idle worker between two checks whether the grace of its retired pages is over. It is
/// about one epoch.
constexpr std::chrono::milliseconds kGracePause{10};
/// Maximum number of successive rounds of hints that reclaim nothing. After them an idle worker
/// sleeps, although hints are left. Without the limit it might never sleep: a hint is queued again
/// and again while an old transaction needs its tombstones.
constexpr uint32_t kMaxIdleHintRounds = 100;
/// Maximum number of times that an idle worker takes requests of other workers before it recycles
/// its pages and sleeps.
constexpr uint32_t kMaxHelpRounds = 256;

/// Returns a number that grows with each page that a hint has reclaimed.
uint64_t reclaim_count(WorkerContext& context) {
  return context.metrics().compactions.get() + context.metrics().merges.get();
}

}  // namespace

Worker::Worker(WorkerSettings settings, Logger logger)
    : settings_(std::move(settings)), logger_(std::move(logger)) {
  CHECK(settings_.view != nullptr && settings_.pool != nullptr);
  CHECK(settings_.metrics != nullptr && settings_.local != nullptr);
}

void Worker::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

Result<void> Worker::submit(WorkerTask task) {
  DCHECK(task != nullptr);
  const auto name = [this] {
    return "worker " + std::to_string(settings_.node) + "/" + std::to_string(settings_.ordinal);
  };
  {
    const std::lock_guard guard(mutex_);
    if (closed_) {
      return make_error(ExitCode::not_running, name() + ": has ended: the cluster stops");
    }
    if (tasks_.size() >= kMaxQueuedTasks) {
      return make_error(ExitCode::resources, name() + ": " + std::to_string(kMaxQueuedTasks) +
                                                 " tasks wait already: try again later");
    }
    tasks_.push_back(std::move(task));
    if (idle_ != nullptr) {
      idle_->record_task();
      idle_ = nullptr;  // further tasks write nothing to the worker's slot
    }
  }
  changed_.notify_one();
  return {};
}

void Worker::close() {
  {
    const std::lock_guard guard(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

void Worker::stop() {
  close();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  name_thread("worker" + std::to_string(settings_.ordinal));
  if (const auto pinned = pin_thread(settings_.cpus, "cpus"); !pinned) {
    logger_->warn("{}", pinned.error().message);
  }
  // The worker's thread creates these objects, so that their memory comes from its NUMA node.
  WorkerContext context(*settings_.view, *settings_.pool, settings_.node, settings_.ordinal,
                        *settings_.metrics, settings_.limits.write_set);
  std::optional<SnapshotReader> snapshots;
  if (settings_.snapshots != nullptr) {
    context.use_snapshots(snapshots.emplace(*settings_.snapshots, settings_.ordinal,
                                            &settings_.view->control->state));
  }
  context.use_gate(settings_.gate);
  context.use_directory(settings_.directory);
  context.use_whole_versions(settings_.whole_version_bytes);
  if (settings_.published != nullptr) context.use_published(*settings_.published);
  Transaction transaction(context, settings_.limits, settings_.local);
  Backoff backoff(uint64_t{context.id()} + 1);
  WorkerEnvironment environment{transaction, backoff, settings_.ordinal};
  for (WorkerTask task = next(transaction); task; task = next(transaction)) {
    task(environment);
    // A task must not leave a transaction open. An open transaction is rolled back as failed.
    if (transaction.is_active()) transaction.rollback(Status::procedure_failed);
  }
  context.leave();
}

WorkerTask Worker::next(Transaction& transaction) {
  DCHECK(!transaction.is_active());
  std::unique_lock lock(mutex_);
  if (tasks_.empty() && !closed_) sleep_until_task(transaction, lock);
  if (tasks_.empty()) return {};
  WorkerTask task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

bool Worker::is_wanted() {
  const std::lock_guard guard(mutex_);
  return !tasks_.empty() || closed_;
}

void Worker::help() {
  IdleWork* const work = idle_work_.load(std::memory_order_acquire);
  // With a gate there are more workers than CPUs, so a worker that spins delays another.
  if (work == nullptr || settings_.gate != nullptr) return;
  for (uint32_t round = 0; round < kMaxHelpRounds && !is_wanted(); ++round) {
    if (!work->help(settings_.ordinal, is_wanted_)) return;
  }
}

void Worker::sleep_until_task(Transaction& transaction, std::unique_lock<std::mutex>& lock) {
  DCHECK(lock.owns_lock() && tasks_.empty());
  WorkerContext& context = transaction.worker();
  context.leave();
  lock.unlock();
  help();
  lock.lock();
  if (!tasks_.empty() || closed_) return;
  // Under the lock, so that the thread that gives the next task sees this object.
  const IdleWorker idle(context.slot());
  idle_ = &idle;
  lock.unlock();
  request_epoch_end(*settings_.view);
  lock.lock();
  await_task(context, lock);
  DCHECK(lock.owns_lock());
  idle_ = nullptr;
}

void Worker::await_task(WorkerContext& context, std::unique_lock<std::mutex>& lock) {
  const auto is_woken = [this] { return !tasks_.empty() || closed_; };
  uint32_t hint_rounds = 0;
  while (!is_woken()) {
    const bool has_hints = !context.hints().empty() && hint_rounds < kMaxIdleHintRounds;
    if (context.pages().retired_count() == 0 && !has_hints) {
      lock.unlock();
      context.pages().flush();  // returns the cached pages, so that other workers can use them
      lock.lock();
      changed_.wait(lock, is_woken);
      return;
    }
    if (changed_.wait_for(lock, kGracePause, is_woken)) return;
    lock.unlock();
    if (has_hints) {
      const uint64_t before = reclaim_count(context);
      while (context.hints().is_due(context.current_epoch()) && !is_wanted()) run_hints(context);
      hint_rounds = reclaim_count(context) == before ? hint_rounds + 1 : 0;
    }
    context.pages().recycle();
    context.leave();
    lock.lock();
  }
}

}  // namespace atolldb
