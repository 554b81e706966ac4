// Decides whether and when a failed cluster is restarted (cluster.restart = "recover"). It starts
// no processes and reads no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "shared/base/error.h"
#include "shared/config/config.h"

namespace atolldb {

struct RestartLimits {
  /// Maximum number of restarts in succession. A run of at least `steady` ends a succession.
  uint32_t most = 5;
  /// The first restart of a succession is immediate. The second waits for this time. Each later
  /// restart waits twice as long as the one before, up to `longest_wait`.
  std::chrono::milliseconds first_wait{1'000};
  std::chrono::milliseconds longest_wait{30'000};
  /// A failure after a run of this length begins a new succession.
  std::chrono::milliseconds steady{60'000};
};

class RestartPlan {
 public:
  using Clock = std::chrono::steady_clock;

  RestartPlan(RestartPolicy policy, RestartLimits limits) : policy_(policy), limits_(limits) {}

  /// Records that the cluster has been running since `now`. It runs if it accepts commits, or if it
  /// serves all requests that its callers wait for.
  void record_running(Clock::time_point now) { running_since_ = now; }
  /// Returns how long to wait before the next start-up, or nothing if the cluster stays down.
  /// `error`: the cause of the failure, or of a failed restart. If the config asks for restarts but
  /// the cluster stays down, the function appends the reason to `error`. A failed first start-up is
  /// not repeated, because a caller waits for its result; nothing is appended then.
  std::optional<std::chrono::milliseconds> after_failure(Error& error, Clock::time_point now);

  /// Returns the number of restarts in the current succession, including one that still waits.
  uint32_t attempt() const { return attempt_; }
  /// Returns the number of restarts since the first start.
  uint32_t count() const { return count_; }
  const RestartLimits& limits() const { return limits_; }

 private:
  const RestartPolicy policy_;
  const RestartLimits limits_;
  std::optional<Clock::time_point> running_since_;  // no value: it does not run
  uint32_t attempt_ = 0;
  uint32_t count_ = 0;
};

/// Returns whether a restart can remove the cause. It cannot remove damaged data, a failing or full
/// disk, or a wrong config.
bool may_pass(ExitCode code);

}  // namespace atolldb
