// Whether a cluster that has failed is started again, and when: cluster.restart = "recover". Knows
// no processes and reads no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "shared/config/config.h"
#include "shared/error.h"

namespace atolldb {

struct RestartLimits {
  /// Restarts in succession, without a run of `steady` between them.
  uint32_t most = 5;
  /// The first one of a succession is at once; before the second one this time passes, and twice as
  /// long before each later one, up to `longest_wait`.
  std::chrono::milliseconds first_wait{1'000};
  std::chrono::milliseconds longest_wait{30'000};
  /// A run that lasted so long was sound: what fails after it begins a new succession.
  std::chrono::milliseconds steady{60'000};
};

class RestartPlan {
 public:
  using Clock = std::chrono::steady_clock;

  RestartPlan(RestartPolicy policy, RestartLimits limits) : policy_(policy), limits_(limits) {}

  /// Accepts commits from now on, or all that anybody has waited for.
  void note_running(Clock::time_point now) { running_since_ = now; }
  /// How long to wait before the next start; nothing: the cluster stays down. `error`: why it
  /// failed, or could not be started again; gets the reason behind it where it is not what the
  /// config asks for. A first start that failed is not tried again: somebody waits for it.
  std::optional<std::chrono::milliseconds> after_failure(Error& error, Clock::time_point now);

  /// Of the succession under way, the one that waits included.
  uint32_t attempt() const { return attempt_; }
  /// Since the first start.
  uint32_t count() const { return count_; }
  const RestartLimits& limits() const { return limits_; }

 private:
  const RestartPolicy policy_;
  const RestartLimits limits_;
  std::optional<Clock::time_point> running_since_;  // none: it has failed since
  uint32_t attempt_ = 0;
  uint32_t count_ = 0;
};

/// Whether a start can do away with the cause: not with damaged data, a failing or full disk, or a
/// config that is wrong.
bool may_pass(ExitCode code);

}  // namespace atolldb
