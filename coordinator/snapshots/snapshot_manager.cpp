#include "coordinator/snapshots/snapshot_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/epoch/durable_epoch.h"
#include "coordinator/snapshots/gleaner_cpus.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/config/machine.h"
#include "shared/memory/node_layout.h"
#include "shared/process/start_up.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Records one attempt to make a snapshot in the metrics. The destructor records a failure if
/// `succeed` was not called.
class Attempt {
 public:
  /// `begun`: begin of the job.
  Attempt(SnapshotMetrics& metrics, std::chrono::steady_clock::time_point begun)
      : metrics_(metrics), begun_(begun) {
    // Relaxed, here and below, because these words are metrics.
    metrics_.is_taking.store(true, std::memory_order_relaxed);
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() {
    if (!is_open_) return;
    metrics_.is_taking.store(false, std::memory_order_relaxed);
    metrics_.failed.add();
  }

  void succeed() {
    using std::chrono::duration_cast;
    CHECK(is_open_);
    is_open_ = false;
    metrics_.is_taking.store(false, std::memory_order_relaxed);
    metrics_.taken.add();
    const auto took = duration_cast<std::chrono::microseconds>(Clock::now() - begun_);
    metrics_.duration_us.store(static_cast<uint64_t>(took.count()), std::memory_order_relaxed);
    const auto now =
        duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
    metrics_.taken_at_s.store(static_cast<uint64_t>(now.count()), std::memory_order_relaxed);
  }

 private:
  using Clock = std::chrono::steady_clock;

  SnapshotMetrics& metrics_;
  const Clock::time_point begun_;
  bool is_open_ = true;
};

}  // namespace

SnapshotManager::SnapshotManager(const SchemeContext& context, Logger logger)
    : config_(context.config),
      control_(context.control),
      nodes_(context.nodes),
      metrics_(context.metrics),
      loggers_(nodes_, metrics_),
      clock_(context.clock),
      catalog_(context.catalog),
      durable_(context.durable),
      call_node_(context.call_node),
      logger_(std::move(logger)),
      job_(durable_ == nullptr
               ? nullptr
               : std::make_unique<SnapshotJob>(config_, durable_->files(), call_node_, logger_)),
      rewrites_(config_.gleaner, snapshot_metrics_, logger_,
                [this] { return room_beside_reserve(config_); }),
      idle_cpus_(watched_cpus(config_, Machine::detect())) {
  CHECK(nodes_.size() == config_.nodes.size() && metrics_.size() == nodes_.size());
}

/// Makes a snapshot, up to its savepoint. README.md explains the order of the steps. An error ends
/// the job and removes its files, and the previous snapshot remains the newest. REQUIRES: no
/// install is under way, and no other job than this one.
Result<void> SnapshotManager::make_snapshot(Job& job) {
  CHECK(is_own_thread());
  Attempt attempt(snapshot_metrics_, job.begun);
  if (job.task.overlaps_install) {
    job.starter.join();
    ATOLL_TRY(job.started);
  } else {
    ATOLL_TRY(plan_job(job));
    ATOLL_TRY(start_mappers(job));
  }
  ATOLL_ASSIGN(std::vector<NodePart> parts, job_->reduce_and_compose(job.task, job.plan));
  ATOLL_ASSIGN(const SnapshotMetadata snapshot,
               job_->combine(job.task, job.plan, std::move(parts)));
  ATOLL_TRY(job_->write_metadata(snapshot));
  ATOLL_TRY(store_savepoint(job.task, snapshot));  // from here on the snapshot exists
  attempt.succeed();
  return {};
}

/// The steps before anything of the job runs on a node.
Result<void> SnapshotManager::plan_job(Job& job) {
  CHECK(is_own_thread());
  ATOLL_TRY(take_id(job.task));
  ATOLL_ASSIGN(job.plan, job_->plan(job.task));
  return job_->align(job.task, job.plan);
}

/// The steps up to the start of the mappers. From then on the nodes work by themselves.
Result<void> SnapshotManager::start_mappers(const Job& job) {
  ATOLL_TRY(job_->prepare(job.task, job.plan));
  ATOLL_ASSIGN(const std::vector<CapturedRange> captured, job_->capture(job.task, job.plan));
  return job_->map(job.task, job.plan, captured);
}

/// The steps after the savepoint. They change volatile memory or delete obsolete files. Their
/// errors are only logged, because everything stays readable, and the next snapshot tries again.
/// Begins the next job if its snapshot is needed soon after the install (R84).
void SnapshotManager::install_and_publish(const Job& job, const SnapshotMetadata& snapshot) {
  CHECK(is_own_thread() && snapshot.id == job.task.snapshot);
  if (must_begin_next()) begin_next(snapshot.id);
  if (open_for_install(snapshot)) {
    page_regulator_.begin_install(paused_us() != job.paused_before);
    install(job, snapshot);
  }
  if (!has_freed_pages_ && pool_is_low()) record_unproductive_snapshot();
  [[maybe_unused]] const Result<void> published = publish_and_delete();  // it logs its error
}

/// Takes the id durably (R37), and fills in the members that all tasks have in common.
Result<void> SnapshotManager::take_id(SnapshotTask& task) {
  ATOLL_ASSIGN(task.snapshot, durable_->take_snapshot_id());
  CHECK(task.snapshot > newest_.load(std::memory_order_relaxed));
  task.cluster_uuid = durable_->data_uuid();
  task.base = durable_->snapshot();
  return {};
}

/// Durably records the snapshot as the newest one. The snapshot's files are kept even after an
/// error. The savepoint may have reached the disk in spite of the error, and then it names the
/// snapshot.
Result<void> SnapshotManager::store_savepoint(const SnapshotTask& task,
                                              const SnapshotMetadata& snapshot) {
  CHECK(snapshot.id == task.snapshot && snapshot.epoch == task.epoch);
  Result<void> stored;
  if (task.salvages) {
    // Reports the omitted data first. Once the snapshot is stored, a repeated salvage would find no
    // damage.
    const auto reported = durable_->report_salvage(salvaged());
    if (!reported) stored = std::unexpected(reported.error());
  }
  if (stored) stored = durable_->store_snapshot(snapshot);
  job_->keep(snapshot.id);
  if (stored) record_newest(snapshot);
  return stored;
}

void SnapshotManager::record_newest(const SnapshotMetadata& snapshot) {
  // Epochs of snapshots do not decrease (R36). They are equal if a recovery records its snapshot a
  // second time, or if a salvage finds no commits after its base. Relaxed: other threads only
  // display newest_ and newest_epoch_, or use newest_ for the pace of the current job.
  CHECK(snapshot.id >= newest_.load(std::memory_order_relaxed));
  CHECK(snapshot.epoch >= newest_epoch_.load(std::memory_order_relaxed));
  newest_epoch_.store(snapshot.epoch, std::memory_order_relaxed);
  newest_.store(snapshot.id, std::memory_order_relaxed);
  uint64_t pages_stored = 0;
  uint64_t pages_written = 0;
  for (const SnapshotFilePlace& file : snapshot.files) {
    pages_stored += file.page_count;
    if (file.snapshot == snapshot.id) pages_written += file.page_count;
  }
  SnapshotMetrics& metrics = snapshot_metrics_;
  metrics.id.store(snapshot.id, std::memory_order_relaxed);
  metrics.epoch.store(snapshot.epoch, std::memory_order_relaxed);
  metrics.pages_written.store(pages_written, std::memory_order_relaxed);
  metrics.files.store(snapshot.files.size(), std::memory_order_relaxed);
  metrics.pages_stored.store(pages_stored, std::memory_order_relaxed);
  rewrites_.record_space(snapshot);
}

void SnapshotManager::start() {
  CHECK(is_own_thread() && taker_ == nullptr);
  durable_->keep_ballast(logger_);
  // Relaxed: the release of the state `running` publishes this word.
  control_.began_empty.store(durable_->snapshot() ? 0 : 1, std::memory_order_relaxed);
  // Relaxed: workers use the word only to decide whether to wait.
  control_.snapshots_free_pages.store(1, std::memory_order_relaxed);
  damage_thread_.start();
  taker_ = make_taker();
  page_regulator_.start();
  taker_->start();
}

void SnapshotManager::end_page_supply() {
  // Relaxed: workers use the word only to decide whether to wait.
  control_.snapshots_free_pages.store(0, std::memory_order_relaxed);
}

void SnapshotManager::end() {
  if (taker_ != nullptr) {
    job_->cancel();
    taker_->stop();
  }
  give_up_next();
  page_regulator_.stop();
  damage_thread_.stop();
}

std::unique_ptr<SnapshotTaker> SnapshotManager::make_taker() {
  SnapshotTakerHooks hooks;
  hooks.on_start = [this] { thread_ = std::this_thread::get_id(); };
  hooks.take = [this] { return take_snapshot(false); };
  hooks.take_again = [this] { return take_snapshot(true); };
  hooks.has_begun_next = [this] { return next_ != nullptr; };
  hooks.take_next = [this] { return take_next(); };
  hooks.has_new_commits = [this] { return has_new_commits(); };
  hooks.log_bytes = [this] { return loggers_.most_bytes(); };
  hooks.lacks_log_files = [this] { return loggers_.lacks_files(); };
  hooks.pool_is_low = [this] { return pool_is_low(); };
  hooks.pages_run_short = [this] { return page_regulator_.is_short(); };
  hooks.pool_is_starved = [this] { return pool_is_starved(); };
  hooks.has_freed_pages = [this] { return has_freed_pages_; };
  hooks.is_first_awaited = [this] { return is_first_snapshot_awaited(); };
  return std::make_unique<SnapshotTaker>(config_.gleaner, std::move(hooks), logger_);
}

/// Takes a snapshot if anything was committed since the newest one, or if `even_if_idle`. Returns
/// the id of the newest snapshot afterwards.
Result<uint32_t> SnapshotManager::take_snapshot(bool even_if_idle) {
  CHECK(is_own_thread());
  has_freed_pages_ = false;
  if (!is_cluster_running(control_)) return make_error(ExitCode::not_running, "the cluster stops");
  const bool has_none = newest_.load(std::memory_order_relaxed) == 0;
  if (has_none) {
    // Waits until everything that is committed now is durable. Without this wait, a request right
    // after the first commits could fail with "nothing has been committed yet", because
    // has_new_commits() considers only durable epochs. A transaction that waits for the first
    // snapshot has the same need: the snapshot must have the commits that its client knows of
    // (R62). Later snapshots do not wait: without new durable commits, a request returns the newest
    // snapshot.
    constexpr std::chrono::milliseconds kPatience{5'000};
    wait_until_durable(control_, latest_dirty_epoch(nodes_), kPatience);
  }
  if (even_if_idle) {
    const Result<void> closed = close_current_epoch();
    if (!closed) {
      if (pool_is_low()) record_unproductive_snapshot();
      return std::unexpected(closed.error());
    }
  }
  if (even_if_idle || has_new_commits()) {
    const uint32_t requests = control_.snapshot_requests.load(std::memory_order_relaxed);
    const auto taken = take_new_snapshot();
    // Release: a thread that sees that the attempt is over also sees what it has published.
    control_.snapshot_answered.store(requests, std::memory_order_release);
    wake(control_.snapshot_answered, kWakeAll);
    ATOLL_TRY(taken);
  } else if (has_none) {
    return make_error(ExitCode::failed,
                      "snapshot.take: nothing has been committed yet: there is nothing to take a "
                      "snapshot of: transactions that read a snapshot read the empty database "
                      "until then: commit something first");
  }
  return newest_.load(std::memory_order_relaxed);
}

/// Makes the current epoch durable, even if nothing is committed in it. Without this request, an
/// idle cluster closes no further epoch after its closing marker (R51), and none between a start-up
/// and its first commit.
///
/// A snapshot of an idle cluster needs the current epoch for two reasons. A mapper treats a log
/// without a marker of the snapshot's epoch as damaged. A snapshot of the last commit's epoch would
/// not cover removed tombstones of inserts that were aborted later. So the pages that had these
/// tombstones could not be dropped (R8, R43).
Result<void> SnapshotManager::close_current_epoch() {
  constexpr std::chrono::milliseconds kPatience{5'000};
  constexpr std::chrono::milliseconds kStateCheckPause{100};
  // Acquire: all commits before this load are of this epoch or of earlier ones.
  const uint64_t epoch = control_.epochs.current.load(std::memory_order_acquire);
  clock_.close_up_to(epoch);
  for (auto left = kPatience; left.count() > 0; left -= kStateCheckPause) {
    if (wait_until_durable(control_, epoch, kStateCheckPause)) return {};
    // In a cluster that stops, a logger may have ended before it has closed the epoch. The epoch
    // then never becomes durable.
    if (!is_cluster_running(control_))
      return make_error(ExitCode::not_running, "the cluster stops");
  }
  return make_error(ExitCode::failed,
                    fmt::format("epoch {} of the idle cluster is not durable after {} ms: a logger "
                                "is slow, or a commit takes long",
                                epoch, kPatience.count()));
}

/// Takes the snapshot whose job has begun during the last install. Returns its id.
Result<uint32_t> SnapshotManager::take_next() {
  CHECK(is_own_thread() && next_ != nullptr);
  has_freed_pages_ = false;
  ATOLL_TRY(take_new_snapshot());
  return newest_.load(std::memory_order_relaxed);
}

/// Takes a snapshot with the job that has begun already, or with a new one.
Result<void> SnapshotManager::take_new_snapshot() {
  const std::unique_ptr<Job> job = next_ != nullptr ? std::move(next_) : new_job();
  page_regulator_.begin_job(job->log_bytes());
  const Result<void> made = make_snapshot(*job);
  record_job(*job, made.has_value());
  if (made) install_and_publish(*job, *durable_->snapshot());
  page_regulator_.end_job();
  if (!made && pool_is_low()) record_unproductive_snapshot();
  if (made && !loggers_.lacks_files()) durable_->keep_ballast(logger_);
  return made;
}

std::unique_ptr<SnapshotManager::Job> SnapshotManager::new_job() {
  auto job = std::make_unique<Job>();
  job->task = next_task();
  job->spare_at_begin = spare_pages();
  job->written = loggers_.bytes_by_node();
  job->task.log_bytes = new_log_bytes(job->written);
  if (is_paced()) set_pace(job->task);
  // R36: epochs of snapshots do not decrease. If nothing was committed since the newest snapshot,
  // only the key ranges of pages differ (R71).
  CHECK(job->task.epoch >= newest_epoch_.load(std::memory_order_relaxed));
  job->paused_before = paused_us();
  return job;
}

/// Records the end of a job, for later decisions.
void SnapshotManager::record_job(const Job& job, bool is_made) {
  rewrites_.record(job.task.victims, is_made ? &*durable_->snapshot() : nullptr);
  has_failed_ = !is_made;
  record_capture(job.task.captures_pages, is_made);
  if (is_made) snapshot_log_bytes_ = job.written;
}

/// Returns whether the next job begins before the newest snapshot is installed (R84). No job begins
/// early while a request or a task waits, because both need the time between two jobs.
bool SnapshotManager::must_begin_next() {
  /// With fewer idle processors, the job would only take time from the workers, and from the
  /// install, which frees pages.
  constexpr double kOverlapCpus = 0.5;
  if (!page_regulator_.will_be_short() || !is_cluster_running(control_) || !has_new_commits())
    return false;
  if (taker_->is_awaited() || loggers_.lacks_files() || !job_->unreadable().empty()) return false;
  return has_dedicated_gleaner_cpus(config_) || idle_cpus() >= kOverlapCpus;
}

/// Begins the job of the next snapshot: plans it, and starts a thread that lets the nodes capture
/// and map. They compose only when `make_snapshot` asks them to (R84). `installed`: the snapshot
/// that will be installed meanwhile. After an error the next job begins later, as usual.
void SnapshotManager::begin_next(uint32_t installed) {
  CHECK(is_own_thread() && next_ == nullptr);
  // Obsolete files are deleted now, while no job is under way (R38).
  const Result<void> deleted = delete_obsolete_files();
  if (!deleted) {
    logger_->warn("obsolete files remain until the next snapshot: {}", deleted.error().message);
    return;
  }
  auto job = new_job();
  job->task.overlaps_install = true;
  const Result<void> planned = plan_job(*job);
  if (!planned) {
    logger_->error("the next snapshot does not begin during the install of snapshot {}: {}",
                   installed, planned.error().message);
    snapshot_metrics_.failed.add();
    record_job(*job, false);
    return;
  }
  page_regulator_.begin_next(job->log_bytes());
  overlapped_.fetch_add(1, std::memory_order_relaxed);  // for display
  logger_->info("snapshot {}: begins before the install of snapshot {}", job->task.snapshot,
                installed);
  next_ = std::move(job);
  next_->starter = std::thread([this, &next = *next_] {
    name_thread("glean-next");
    next.started = start_mappers(next);
  });
}

/// Ends a job that nothing will complete. REQUIRES: the taker has ended.
void SnapshotManager::give_up_next() {
  if (next_ == nullptr) return;
  next_->starter.join();
  if (next_->started) job_->give_up();
  next_.reset();
}

/// Decides for how many jobs no pages are captured. The number doubles with each failed job that
/// captured pages, because the reason may last.
void SnapshotManager::record_capture(bool captures, bool is_made) {
  constexpr uint32_t kMostWithout = 64;
  if (!captures) {
    jobs_without_captures_ -= jobs_without_captures_ != 0 ? 1 : 0;
  } else if (is_made) {
    next_without_captures_ = 1;
  } else {
    jobs_without_captures_ = next_without_captures_;
    next_without_captures_ = std::min(kMostWithout, 2 * next_without_captures_);
  }
}

SnapshotTask SnapshotManager::next_task() {
  // The epoch is loaded before the list of storages, so the list has every storage with commits up
  // to this epoch. The epoch is durable, because a crash can undo commits of later epochs (R36).
  const EpochBlock& epochs = control_.epochs;
  SnapshotTask task;
  task.epoch = fault::snapshot_epoch_from_current ? epochs.current.load(std::memory_order_acquire)
                                                  : epochs.durable.load(std::memory_order_acquire);
  // If a logger has no room for its next file, the snapshot reserves no room, as in a recovery.
  // Only a snapshot allows the deletion of log files.
  const bool is_last_resort = loggers_.lacks_files();
  if (durable_->snapshot()) {
    task.victims = rewrites_.choose(*durable_->snapshot(), {.lacks_log_files = is_last_resort,
                                                            .pool_is_low = pages_are_short()});
  }
  task.merges_runs = !is_last_resort;
  task.streams = durable_->live_streams(task.epoch);
  task.storages = catalog_.entries();
  task.keeps_reserve = !is_last_resort;
  task.has_volatile_pages = true;
  // A job fails if it has to read a page of the base below a captured page, and cannot (R75). So no
  // pages are captured for some jobs after a failed attempt, or if the last job found pages that it
  // could not read.
  task.captures_pages = config_.gleaner.capture_pages && !has_failed_ &&
                        jobs_without_captures_ == 0 && job_->unreadable().empty();
  return task;
}

/// Returns whether a commit after the newest snapshot's epoch is durable.
bool SnapshotManager::has_new_commits() const {
  const uint64_t newest = newest_epoch_.load(std::memory_order_relaxed);
  // Acquire pairs with the release in raise_durable. `durable` alone is not enough, because a
  // closing marker also makes epochs without commits durable (R51).
  return control_.epochs.durable.load(std::memory_order_acquire) > newest &&
         dirty_epoch(nodes_) > newest;
}

bool SnapshotManager::is_first_snapshot_awaited() const {
  // Relaxed: the snapshot taker polls these words, so it sees a change at the next poll.
  return newest_.load(std::memory_order_relaxed) == 0 &&
         control_.snapshot_requests.load(std::memory_order_relaxed) !=
             control_.snapshot_answered.load(std::memory_order_relaxed);
}

}  // namespace atolldb
