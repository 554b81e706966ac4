#include "bench/job/worker_result.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace atolldb::bench {

uint64_t WorkerResult::total_commits() const {
  return std::accumulate(commits.begin(), commits.end(), uint64_t{0});
}

void WorkerResult::put(nlohmann::json& json) const {
  json["node"] = node;
  json["worker"] = worker;
  json["seconds"] = seconds;
  json["ended_early"] = ended_early;
  json["commits"] = commits;
  json["aborts"] = engine.aborts;
  engine.put(json);
  for (const LatencyHistogram& histogram : latency) {
    json["latency"].push_back({{"max_ns", histogram.max_ns()}, {"buckets", histogram.sparse()}});
  }
}

void WorkerResult::take(const nlohmann::json& json) {
  json.at("node").get_to(node);
  json.at("worker").get_to(worker);
  json.at("seconds").get_to(seconds);
  json.at("ended_early").get_to(ended_early);
  json.at("aborts").get_to(engine.aborts);
  engine.take(json);
  for (uint32_t type = 0; type < commits.size(); ++type) {
    json.at("commits").at(type).get_to(commits[type]);
    const auto& histogram = json.at("latency").at(type);
    latency[type].restore(histogram.at("buckets").get<std::vector<std::pair<uint32_t, uint64_t>>>(),
                          histogram.at("max_ns").get<uint64_t>());
  }
}

}  // namespace atolldb::bench
