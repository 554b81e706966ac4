#include "bench/job/run_times.h"

#include <nlohmann/json.hpp>
#include <string>

#include "bench/common/clock.h"

namespace atolldb::bench {

Result<void> RunTimes::check(std::string_view benchmark) const {
  const auto wrong = [&](const std::string& why) {
    return make_error(ExitCode::usage, std::string(benchmark) + ": run: " + why);
  };
  if (warmup_ms > kMaxMs || run_ms > kMaxMs) {
    return wrong("a warm-up of " + std::to_string(warmup_ms) + " ms and a run of " +
                 std::to_string(run_ms) + " ms: each has at most " + std::to_string(kMaxMs));
  }
  const uint64_t now_ns = monotonic_ns();
  if (start_ns > now_ns && start_ns - now_ns > kMaxStartDelayNs) {
    return wrong("begins in " + std::to_string((start_ns - now_ns) / 1'000'000'000) +
                 " s: at most 60 s are possible");
  }
  return {};
}

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
