#include "bench/driver/run_summary.h"

namespace atolldb::bench {

Result<void> RunSummary::merge(const WorkerResult& result, const std::string& command) {
  if (result.node >= nodes.size()) {
    return make_error(ExitCode::failed, command + ": a result names an unknown node");
  }
  NodeSummary& node = nodes[result.node];
  seconds = std::max(seconds, result.seconds);
  // Divides the commits of each worker by its own measured time. The workers end their runs within
  // one transaction of each other.
  for (uint32_t type = 0; type < commits.size() && result.seconds > 0; ++type) {
    const double type_tps = static_cast<double>(result.commits[type]) / result.seconds;
    commits[type] += result.commits[type];
    tps_of_type[type] += type_tps;
    tps += type_tps;
    node.tps += type_tps;
    latency[type].merge(result.latency[type]);
    durable_latency[type].merge(result.durable_latency[type]);
  }
  epoch_wait.merge(result.epoch_wait);
  log_wait.merge(result.log_wait);
  engine.add(result.engine);
  node.engine.add(result.engine);
  pauses = pauses ? common_pauses(*pauses, result.pauses) : result.pauses;
  // Prefers the reason of the worker that stopped first. The others report "another worker had to
  // stop".
  if (!result.ended_early.empty() && (ended_early.empty() || ended_early.starts_with("another"))) {
    ended_early = result.ended_early;
  }
  return {};
}

LatencyHistogram merged(const std::vector<LatencyHistogram>& latency) {
  LatencyHistogram all;
  for (const LatencyHistogram& type : latency) all.merge(type);
  return all;
}

}  // namespace atolldb::bench
