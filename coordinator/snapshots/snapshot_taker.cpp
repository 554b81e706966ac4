#include "coordinator/snapshots/snapshot_taker.h"

#include <algorithm>

#include "coordinator/snapshots/snapshot_pace.h"
#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Pause between two checks of the reasons for a snapshot.
constexpr std::chrono::milliseconds kCheckPause{100};
/// Shortest and longest pause between snapshots for a low pool. The taker pauses after a snapshot
/// that freed almost no pages because all were in use.
constexpr std::chrono::milliseconds kMinPagePause{200};
constexpr std::chrono::seconds kMaxPagePause{10};
/// Longest pause while transactions wait for pages. They give up after two unproductive snapshots
/// (PageWait), so the pause limits their wait.
constexpr std::chrono::seconds kMaxStarvedPause{1};
/// Maximum number of snapshots of an idle cluster that free too few pages. After them the taker
/// waits for the next commit. The first one may free nothing itself, but make pages that later ones
/// can drop (R71).
constexpr uint32_t kMaxIdleFailures = 4;
constexpr const char* kPoolIsLow = "volatile pool";
constexpr const char* kPagesRunShort = "the free pages last no longer than a snapshot takes";
/// Shortest pause between snapshots that are due because a logger has no room for its next file.
constexpr std::chrono::seconds kFilePause{1};
constexpr const char* kNextHasBegun = "it began before the end of the last install";
constexpr const char* kLacksFiles = "a logger has no room for its next file";

}  // namespace

void SnapshotTaker::start() {
  CHECK(!thread_.joinable());
  CHECK(hooks_.take && hooks_.has_new_commits && hooks_.log_bytes);
  CHECK(!hooks_.has_begun_next || hooks_.take_next);
  last_at_ = last_begun_ = Clock::now();
  last_log_bytes_ = hooks_.log_bytes();
  thread_ = std::thread([this] { run(); });
}

void SnapshotTaker::stop() {
  CHECK(std::this_thread::get_id() != thread_.get_id());  // the thread would wait for itself
  queue_.end();
  if (thread_.joinable()) thread_.join();
  queue_.reject();
}

bool SnapshotTaker::needs_pages() const {
  if (!hooks_.pool_is_low) return false;
  const bool is_urgent = pool_is_starved() && idle_failures_ < kMaxIdleFailures;
  const Clock::duration pause =
      is_urgent ? std::min<Clock::duration>(page_pause_, kMaxStarvedPause) : page_pause_;
  return Clock::now() - last_at_ >= pause && hooks_.pool_is_low();
}

/// Another snapshot may help although nothing was committed since the newest one. The tree has
/// changed: pages without living records were reclaimed, and their neighbours merged. The merged
/// pages can be dropped only after a snapshot whose pages have the new ranges (R44).
///
/// An almost empty pool may be the reason why nothing is committed. So in this case the taker never
/// gives up, and takes snapshots with the longest pause between them.
std::string SnapshotTaker::idle_reason() const {
  if (!hooks_.take_again || !needs_pages()) return {};
  return idle_failures_ < kMaxIdleFailures || pool_is_starved() ? kPoolIsLow : "";
}

bool SnapshotTaker::pool_is_starved() const {
  return hooks_.pool_is_starved && hooks_.pool_is_starved();
}

std::string SnapshotTaker::reason() const {
  if (hooks_.is_first_awaited && hooks_.is_first_awaited()) {
    return "a transaction waits for the first one";
  }
  // The interval is measured between the begins of two jobs, so a paced job does not lengthen it.
  // After a long job, the taker still waits for (1 - kPacedPart) of the interval.
  const auto now = Clock::now();
  if (now - last_begun_ >= config_.interval &&
      now - last_at_ >= (1 - kPacedPart) * config_.interval.get()) {
    return "gleaner.interval has passed";
  }
  if (hooks_.log_bytes() - last_log_bytes_ >= config_.log_volume) {
    return "a node has written gleaner.log_volume";
  }
  const bool may_free_files = hooks_.lacks_log_files && Clock::now() - last_at_ >= file_pause_;
  if (may_free_files && hooks_.lacks_log_files()) return kLacksFiles;
  if (hooks_.pages_run_short && Clock::now() - last_at_ >= page_pause_ &&
      hooks_.pages_run_short()) {
    return kPagesRunShort;
  }
  return needs_pages() ? kPoolIsLow : "";
}

/// Sets the pauses after a snapshot for the reason `why`. The page pause doubles after each
/// snapshot for a low pool that frees too few pages.
void SnapshotTaker::set_pauses(const std::string& why) {
  file_pause_ = why == kLacksFiles ? kFilePause : Clock::duration{};
  if (hooks_.has_freed_pages && hooks_.has_freed_pages()) {
    page_pause_ = {};
  } else if (why == kPoolIsLow || why == kPagesRunShort || why == kNextHasBegun) {
    page_pause_ = std::clamp<Clock::duration>(2 * page_pause_, kMinPagePause, kMaxPagePause);
  }
}

Result<uint32_t> SnapshotTaker::take(const std::string& why,
                                     const std::function<Result<uint32_t>()>& how) {
  const auto begun = last_begun_ = Clock::now();
  last_log_bytes_ = hooks_.log_bytes();
  Result<uint32_t> taken = how();
  last_at_ = Clock::now();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(last_at_ - begun);
  if (taken) {
    logger_->info("snapshot {}: {}; it took {} ms", *taken, why, took.count());
  } else {
    logger_->error("no snapshot was taken (reason: {}): {}; the previous one remains the newest",
                   why, taken.error().message);
  }
  set_pauses(why);
  return taken;
}

void SnapshotTaker::run() {
  name_thread("snapshots");
  if (hooks_.on_start) hooks_.on_start();
  while (!queue_.has_ended()) {
    // A job that has begun is completed first. Tasks wait because it is under way. Requests wait
    // because they need commits after its epoch.
    if (has_begun_next()) {
      queue_.begin_unrequested();
      static_cast<void>(take(kNextHasBegun, hooks_.take_next));
      continue;
    }
    const auto batch = queue_.wait(std::min<Clock::duration>(kCheckPause, config_.interval.get()));
    if (!batch) return;
    for (const TakerQueue::Task& task : batch->tasks) task(true);
    const bool is_idle = !hooks_.has_new_commits();
    if (!is_idle) idle_failures_ = 0;
    const bool is_requested = !batch->replies.empty();
    const std::string why = is_requested ? "requested" : is_idle ? idle_reason() : reason();
    const bool is_again = is_idle && why == kPoolIsLow;
    if (!why.empty()) {
      const Result<uint32_t> taken = take(why, is_again ? hooks_.take_again : hooks_.take);
      if (is_again && (!hooks_.has_freed_pages || !hooks_.has_freed_pages())) ++idle_failures_;
      for (const TakerQueue::Reply& reply : batch->replies) reply(taken);
    }
  }
}

}  // namespace atolldb
