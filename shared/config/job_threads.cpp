#include "shared/config/job_threads.h"

#include <algorithm>
#include <set>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {
namespace {

/// Returns the processors of all workers, or an empty set if a node does not name its processors.
std::set<int32_t> named_worker_cpus(const Config& config) {
  std::set<int32_t> named;
  for (const NodeConfig& node : config.nodes) {
    if (node.cpus.empty()) return {};
    named.insert(node.cpus.begin(), node.cpus.end());
  }
  return named;
}

/// Returns how many processors no worker uses. A quota of the control group limits the number of
/// processors.
uint32_t spare_cpus(const Config& config, const Machine& machine, const std::set<int32_t>& named) {
  uint64_t used = named.size();
  if (named.empty()) {
    for (const NodeConfig& node : config.nodes) used += node.workers;
  }
  const uint64_t usable = machine.usable_cpus();
  return static_cast<uint32_t>(usable - std::min(usable, used));
}

}  // namespace

JobThreads running_threads(const NodeConfig& node) {
  // A number is 0 only in a Config on which resolve_defaults was not called.
  return {std::max(node.mappers, 1u), std::max(node.reducers, 1u)};
}

JobThreads recovery_threads(const NodeConfig& node) {
  const JobThreads running = running_threads(node);
  return {std::max(running.mappers, node.recovery_threads),
          std::max(running.reducers, node.recovery_threads)};
}

uint32_t inbox_count(const NodeConfig& node) { return recovery_threads(node).reducers; }

void resolve_job_threads(Config& config, const Machine& machine) {
  CHECK(!config.nodes.empty() && config.memory.exchange > 0);
  const auto nodes = static_cast<uint32_t>(config.nodes.size());
  const std::set<int32_t> named = named_worker_cpus(config);
  const uint32_t spare_share = spare_cpus(config, machine, named) / nodes;
  const uint64_t room = machine.memory_bytes / kInboxShareOfMemory / nodes / config.memory.exchange;
  const auto most = static_cast<uint32_t>(std::clamp<uint64_t>(room, 1, kMaxAutomaticThreads));
  for (NodeConfig& node : config.nodes) {
    const std::vector<int32_t>& own = node.gleaner_cpus;
    const auto usable = own.empty() ? machine.usable_cpus() / nodes
                                    : std::min(machine.usable_cpus(), uint32_t(own.size()));
    auto spare = spare_share;
    if (!own.empty() && named.empty()) {
      spare = std::min(spare, static_cast<uint32_t>(own.size()));
    } else if (!own.empty()) {
      spare = static_cast<uint32_t>(
          std::ranges::count_if(own, [&](int32_t cpu) { return !named.contains(cpu); }));
    }
    const auto automatic = [most](uint32_t cpus) { return std::clamp(cpus, 1u, most); };
    if (node.running_workers == 0) {
      const auto own_cpus = static_cast<uint32_t>(node.cpus.size());
      const uint32_t cpus = own_cpus == 0 ? (machine.usable_cpus() + nodes - 1) / nodes
                                          : std::min(machine.usable_cpus(), own_cpus);
      // One more, so that no CPU is idle while a place passes from one worker to another.
      node.running_workers = std::min(cpus + 1, kMaxWorkersPerNode);
    }
    if (node.mappers == 0) node.mappers = automatic(spare / 2);
    if (node.reducers == 0) node.reducers = automatic(spare / 2);
    if (node.recovery_threads == 0) node.recovery_threads = automatic(usable);
    CHECK(node.mappers != 0 && node.reducers != 0 && node.recovery_threads != 0);
    CHECK(inbox_count(node) >= running_threads(node).reducers);
  }
}

}  // namespace atolldb
