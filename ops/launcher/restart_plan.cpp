#include "ops/launcher/restart_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace atolldb {

bool may_pass(ExitCode code) {
  switch (code) {
    case ExitCode::failed:  // a process has died or hung
    case ExitCode::resources:
    case ExitCode::coordinator_unreachable:
      return true;
    case ExitCode::success:
    case ExitCode::usage:
    case ExitCode::not_running:
    case ExitCode::already_running:  // another process has locked its directories
    case ExitCode::corruption:
    case ExitCode::durability:
    case ExitCode::recovering:  // only requests fail with it, not processes
    case ExitCode::disk_full:
    case ExitCode::identity:
    case ExitCode::condition:  // only requests fail with it
    case ExitCode::config:
      return false;
  }
  return false;
}

std::optional<std::chrono::milliseconds> RestartPlan::after_failure(Error& error,
                                                                    Clock::time_point now) {
  const bool has_run = running_since_.has_value() || count_ != 0;
  if (policy_ == RestartPolicy::never || !has_run) return std::nullopt;
  if (!may_pass(error.code)) {
    error.message += ": not restarted, because a restart does not remove this cause";
    return std::nullopt;
  }
  if (running_since_ && now - *running_since_ >= limits_.steady) attempt_ = 0;
  running_since_.reset();
  if (attempt_ == limits_.most) {
    error.message += fmt::format(
        ": given up after {} restarts in succession, none of which lasted {} ms: remove the "
        "cause, then run `atoll up`",
        attempt_, limits_.steady.count());
    return std::nullopt;
  }
  ++attempt_;
  ++count_;
  auto wait = std::chrono::milliseconds(0);
  for (uint32_t step = 1; step < attempt_; ++step) {
    wait = std::min(step == 1 ? limits_.first_wait : 2 * wait, limits_.longest_wait);
  }
  return wait;
}

}  // namespace atolldb
