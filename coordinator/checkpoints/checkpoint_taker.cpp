#include "coordinator/checkpoints/checkpoint_taker.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Pause between two checks of the reasons for a checkpoint.
constexpr std::chrono::milliseconds kReasonPause{100};
/// Shortest pause before a checkpoint that makes the log shorter. The last one may have failed, or
/// freed too little.
constexpr std::chrono::seconds kLongLogPause{1};

}  // namespace

void CheckpointTaker::start() {
  CHECK(!thread_.joinable());
  CHECK(hooks_.take && hooks_.newest && hooks_.has_new_commits && hooks_.log_bytes);
  last_at_ = Clock::now();
  last_log_bytes_ = hooks_.log_bytes();
  thread_ = std::thread([this] { run(); });
}

void CheckpointTaker::stop() {
  CHECK(std::this_thread::get_id() != thread_.get_id());  // the thread would wait for itself
  queue_.end();
  if (thread_.joinable()) thread_.join();
  queue_.reject();
}

std::string CheckpointTaker::reason() const {
  const auto pause = Clock::now() - last_at_;
  if (hooks_.why_log_is_long && pause >= kLongLogPause) {
    const std::string why = hooks_.why_log_is_long();
    if (!why.empty()) return why;
  }
  const std::chrono::milliseconds interval = config_.checkpoint_interval;
  const uint64_t volume = config_.checkpoint_volume;
  const bool is_due = interval.count() != 0 && pause >= interval;
  const bool is_full = volume != 0 && hooks_.log_bytes() - last_log_bytes_ >= volume;
  if (!is_due && !is_full) return {};
  if (!hooks_.has_new_commits()) return {};
  return is_due ? "durability.checkpoint_interval has passed"
                : "a node has written durability.checkpoint_volume";
}

Result<uint32_t> CheckpointTaker::take(const std::string& why) {
  const auto begun = Clock::now();
  last_log_bytes_ = hooks_.log_bytes();
  Result<uint32_t> taken = hooks_.take();
  last_at_ = Clock::now();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(last_at_ - begun);
  if (taken) {
    logger_->info("checkpoint {}: {}; it took {} ms", *taken, why, took.count());
  } else if (taken.error().code == ExitCode::not_running) {
    logger_->info("a checkpoint was cancelled: {}", taken.error().message);
  } else {
    logger_->error("no checkpoint was taken (reason: {}): {}; the previous one remains the newest",
                   why, taken.error().message);
  }
  return taken;
}

void CheckpointTaker::run() {
  name_thread("checkpoints");
  if (hooks_.on_start) hooks_.on_start();
  for (;;) {
    const std::chrono::milliseconds interval = config_.checkpoint_interval;
    const auto batch =
        queue_.wait(interval.count() == 0 ? kReasonPause : std::min(kReasonPause, interval));
    if (!batch) return;
    for (const TakerQueue::Task& task : batch->tasks) task(true);
    if (!batch->replies.empty()) {
      const uint32_t newest = hooks_.newest();
      const bool has_all = newest != 0 && !hooks_.has_new_commits();
      const Result<uint32_t> answer = has_all ? Result<uint32_t>(newest) : take("requested");
      for (const TakerQueue::Reply& reply : batch->replies) reply(answer);
    } else if (const std::string why = reason(); !why.empty()) {
      static_cast<void>(take(why));  // it logs its error
    }
  }
}

}  // namespace atolldb
