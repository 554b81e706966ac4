#include "coordinator/snapshots/gleaner_cpus.h"

#include <algorithm>
#include <set>

namespace atolldb {

bool has_dedicated_gleaner_cpus(const Config& config) {
  std::set<int32_t> of_workers;
  std::set<int32_t> of_jobs;
  for (const NodeConfig& node : config.nodes) {
    if (node.cpus.empty() || node.gleaner_cpus.empty()) return false;
    of_workers.insert(node.cpus.begin(), node.cpus.end());
    of_jobs.insert(node.gleaner_cpus.begin(), node.gleaner_cpus.end());
  }
  return std::ranges::none_of(of_jobs, [&](int32_t cpu) { return of_workers.contains(cpu); });
}

std::vector<int32_t> watched_cpus(const Config& config, const Machine& machine) {
  if (machine.has_cpu_quota()) return {};
  std::set<int32_t> cpus;
  for (const NodeConfig& node : config.nodes) {
    if (node.gleaner_cpus.empty()) return machine.cpus;
    cpus.insert(node.gleaner_cpus.begin(), node.gleaner_cpus.end());
  }
  return {cpus.begin(), cpus.end()};
}

}  // namespace atolldb
