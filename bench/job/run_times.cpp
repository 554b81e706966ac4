#include "bench/job/run_times.h"

#include <nlohmann/json.hpp>

namespace atolldb::bench {

void RunTimes::put(nlohmann::json& json) const {
  json["run_number"] = run_number;
  json["start_ns"] = start_ns;
  json["warmup_ms"] = warmup_ms;
  json["run_ms"] = run_ms;
}

void RunTimes::take(const nlohmann::json& json) {
  json.at("run_number").get_to(run_number);
  json.at("start_ns").get_to(start_ns);
  json.at("warmup_ms").get_to(warmup_ms);
  json.at("run_ms").get_to(run_ms);
}

}  // namespace atolldb::bench
