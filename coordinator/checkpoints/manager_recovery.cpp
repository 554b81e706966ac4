// Recovery: all nodes load the newest checkpoint and replay the log after it. Until the end of the
// recovery, transactions can read nothing.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "coordinator/checkpoints/checkpoint_manager.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

Result<void> CheckpointManager::recover(const OnRecovering& on_recovering) {
  CHECK(durable_ != nullptr && taker_ == nullptr && on_recovering);
  thread_ = std::this_thread::get_id();
  if (durable_->checkpoint()) record_newest(*durable_->checkpoint());
  has_replayed_ = !durable_->streams_to_read().empty();
  if (durable_->checkpoint() || has_replayed_) {
    on_recovering("");
    const ReplayPlan plan = replay_plan();
    logger_->info(
        "recovery: replaying {} and {} logs up to epoch {}",
        plan.checkpoint == 0 ? "no checkpoint" : fmt::format("checkpoint {}", plan.checkpoint),
        plan.streams.size(), plan.cut_epoch);
    ATOLL_TRY(recovery_.run(plan));
    record_recovery();
  }
  if (!durable_->salvages()) return {};  // the start-up has deleted what is not needed
  delete_unneeded();
  return report_salvage();
}

ReplayPlan CheckpointManager::replay_plan() const {
  ReplayPlan plan;
  if (durable_->checkpoint()) {
    plan.checkpoint = durable_->checkpoint()->id;
    plan.first_epoch = durable_->checkpoint()->replay_epoch;
  }
  plan.cut_epoch = durable_->recovery_epoch();
  plan.order = config_.durability.replay_order;
  plan.streams = durable_->streams_to_read();
  for (const DdlRecord& record : durable_->ddl()) {
    plan.last_storage = std::max(plan.last_storage, record.storage_id);
  }
  CHECK(plan.checkpoint == 0 || plan.cut_epoch >= durable_->checkpoint()->end_epoch);  // R89
  return plan;
}

void CheckpointManager::record_recovery() {
  const Json counts = recovery_.progress();
  const auto get = [&](const char* name) { return counts.value(name, uint64_t{0}); };
  const auto time = recovery_.time();
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  CheckpointMetrics& metrics = checkpoint_metrics_;
  // Relaxed: for display. The recovery may have been too short for record_recovery_progress.
  control_.recovered_percent.store(100, std::memory_order_relaxed);
  metrics.replayed_bytes.store(get("bytes"), std::memory_order_relaxed);
  metrics.replayed_records.store(get("inserted") + get("overwritten") + get("updates"),
                                 std::memory_order_relaxed);
  metrics.replay_us.store(static_cast<uint64_t>(us), std::memory_order_relaxed);
  logger_->info(
      "recovery: {} ms: {} bytes of files, {} records: {} inserted, {} overwritten, {} older, {} "
      "of dropped storages, {} updates at the end",
      us / 1000, get("bytes"), get("records"), get("inserted"), get("overwritten"), get("older"),
      get("dropped"), get("updates"));
}

/// Writes to the process log and to the salvage report what the salvage has omitted. Then ends the
/// salvage. The cuts in the savepoint exclude the damaged parts of the logs. Their files stay until
/// the next checkpoint.
Result<void> CheckpointManager::report_salvage() {
  const Json found = {{"left_out", durable_->left_out()},
                      {"ranges", Json::array()},
                      {"checkpoint", checkpoint_metrics_.id.load(std::memory_order_relaxed)},
                      {"epoch", durable_->recovery_epoch()}};
  ATOLL_ASSIGN(const auto report, durable_->report_salvage(found));
  ATOLL_ASSIGN(const auto path, durable_->end_salvage());
  logger_->warn("salvage: {} parts of the log are missing: {}", report.at("left_out").size(), path);
  return {};
}

Json CheckpointManager::recovery_status() const {
  const RecoveryStep step = recovery_.step();
  const ReplayProgress progress = replay_progress_of(recovery_.progress());
  const uint32_t percent = progress.percent(step);
  // The time of later steps is unknown.
  const bool reads = step == RecoveryStep::files;
  const int64_t seconds = reads ? replay_seconds_left(progress, recovery_.time()) : -1;
  return {{"log_bytes", progress.bytes_total},
          {"percent_read", percent},
          {"percent", reads ? Json(percent) : Json()},
          {"eta_seconds", seconds < 0 ? Json() : Json(static_cast<uint64_t>(seconds))},
          {"step", text_of(step, config_.nodes.size())},
          {"reads", nullptr}};
}

std::string CheckpointManager::recovery_progress() const {
  const RecoveryStep step = recovery_.step();
  ReplayProgress progress;  // later steps have no known length
  if (step == RecoveryStep::files) progress = replay_progress_of(recovery_.progress());
  return fmt::format("recovering {} {} {}", progress.bytes, progress.bytes_total,
                     text_of(step, config_.nodes.size()));
}

void CheckpointManager::record_recovery_progress() {
  const RecoveryStep step = recovery_.step();
  const ReplayProgress progress = replay_progress_of(recovery_.progress());
  // Relaxed: for display.
  control_.recovered_percent.store(progress.percent(step), std::memory_order_relaxed);
  const std::chrono::nanoseconds time = recovery_.time();
  {
    const std::lock_guard guard(mutex_);
    if (time < recovery_reported_ + kRecoveryReportPause) return;
    recovery_reported_ = time;
  }
  logger_->info("recovery: {} % of {} bytes of checkpoint and logs are read; now {}",
                progress.percent(step), progress.bytes_total, text_of(step, config_.nodes.size()));
}

}  // namespace atolldb
