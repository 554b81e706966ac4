// Takes samples of a cluster for `atoll top`.
#pragma once

#include "ops/cli/cluster_finder.h"
#include "ops/top/sample.h"
#include "shared/base/error.h"
#include "shared/config/config.h"

namespace atolldb::top {

/// Thread: one at a time.
class Sampler {
 public:
  /// Limit for each request of a sample.
  static constexpr std::chrono::milliseconds kTimeout{2'000};

  /// `choice`: as the user gave it. `config`: from cli::find_reachable with this choice.
  Sampler(const cli::ClusterChoice& choice, const Config& config);

  /// Asks the coordinator for the status, and each node for the calls of procedures and for the
  /// sessions. If the cluster starts, restarts or hangs, the sample has a note. Errors: those of
  /// cli::find_reachable; not_running if the cluster has ended.
  Result<Sample> take();

 private:
  void ask_node(uint32_t node, Sample& sample) const;

  cli::ClusterChoice choice_;
  Config config_;
};

}  // namespace atolldb::top
