// Evaluates the status of a cluster: its problems, and what to do about them. `atoll status` and
// the status page show the same problems.
#pragma once

#include <string>
#include <vector>

#include "shared/message/control_message.h"

namespace atolldb {

struct Problem {
  std::string what;
  std::string what_to_do;
};

/// Returns the problems; empty: the cluster is healthy. `status`: the coordinator's answer to
/// `status`, perhaps with members that its readers add. `progress`: progress of a start-up as text,
/// or "" if it is unknown.
std::vector<Problem> find_problems(const Json& status, const std::string& progress);

/// Returns which part of a pool is in use, from 0 to 1. `pool`: the member `nodes[].pool`.
double pool_used_share(const Json& pool);

}  // namespace atolldb
