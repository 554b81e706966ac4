// The stages between the end of an epoch and its durability, as the cluster measured them during a
// run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/latency_histogram.h"

namespace atolldb::bench {

struct EpochStages {
  struct Stage {
    std::string name;
    LatencyHistogram times;
  };
  std::vector<Stage> stages;     // in the order in which an epoch passes them, then "total"
  nlohmann::json slowest_epoch;  // the slowest epoch with its stages; null: none
};

/// Returns the times between two answers of ClusterPort::acknowledgement. The maximum of a stage is
/// the end of its largest bucket. Returns no stages if an answer is null or lacks a member.
EpochStages epoch_stages_between(const nlohmann::json& before, const nlohmann::json& after);

/// Returns "slowest epoch 812: 170.24 ms: epoch_end 1.20, ..., last logger node1/0". `epoch`: the
/// member "slowest_epoch" of the cluster's status.
std::string slowest_epoch_text(const nlohmann::json& epoch);

}  // namespace atolldb::bench
