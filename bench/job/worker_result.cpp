#include "bench/job/worker_result.h"

#include <numeric>

namespace atolldb::bench {

namespace {

nlohmann::json json_of(const LatencyHistogram& histogram) {
  return {{"max_ns", histogram.max_ns()}, {"buckets", histogram.sparse()}};
}

void take(LatencyHistogram& histogram, const nlohmann::json& json) {
  histogram.restore(json.at("buckets").get<std::vector<std::pair<uint32_t, uint64_t>>>(),
                    json.at("max_ns").get<uint64_t>());
}

}  // namespace

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
  for (const LatencyHistogram& histogram : latency) json["latency"].push_back(json_of(histogram));
  for (const LatencyHistogram& histogram : durable_latency) {
    json["durable_latency"].push_back(json_of(histogram));
  }
  json["epoch_wait"] = json_of(epoch_wait);
  json["log_wait"] = json_of(log_wait);
  json["pauses"] = nlohmann::json::array();
  for (const Pause& pause : pauses) json["pauses"].push_back({pause.begin, pause.end});
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
    bench::take(latency[type], json.at("latency").at(type));
    bench::take(durable_latency[type], json.at("durable_latency").at(type));
  }
  bench::take(epoch_wait, json.at("epoch_wait"));
  bench::take(log_wait, json.at("log_wait"));
  pauses.clear();
  for (const nlohmann::json& pause : json.at("pauses")) {
    pauses.push_back({pause.at(0).get<uint64_t>(), pause.at(1).get<uint64_t>()});
  }
}

}  // namespace atolldb::bench
