#include "bench/ycsb/verify_result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atolldb::ycsb {

void VerifyResult::violate(std::string message) {
  ++violation_count;
  if (violations.size() < kKept) violations.push_back(std::move(message));
}

void VerifyResult::add_record(uint32_t lane, uint64_t sequence) {
  Lane& found = lanes[lane];
  ++found.count;
  found.end = std::max(found.end, sequence + 1);
}

std::string VerifyResult::to_json() const {
  nlohmann::json json{{"node", node},
                      {"worker", worker},
                      {"inserted", inserted},
                      {"lanes", nlohmann::json::array()},
                      {"updates", updates},
                      {"violation_count", violation_count},
                      {"violations", violations}};
  for (const auto& [lane, found] : lanes) {
    json["lanes"].push_back({lane, found.count, found.end});
  }
  return json.dump();
}

Result<VerifyResult> VerifyResult::parse(std::string_view text) {
  VerifyResult result;
  try {
    const auto json = nlohmann::json::parse(text);
    json.at("node").get_to(result.node);
    json.at("worker").get_to(result.worker);
    json.at("inserted").get_to(result.inserted);
    for (const auto& lane : json.at("lanes")) {
      result.lanes[lane.at(0).get<uint32_t>()] = {lane.at(1).get<uint64_t>(),
                                                  lane.at(2).get<uint64_t>()};
    }
    json.at("updates").get_to(result.updates);
    json.at("violation_count").get_to(result.violation_count);
    json.at("violations").get_to(result.violations);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed,
                      std::string("ycsb: a verification cannot be read: ") + error.what());
  }
  return result;
}

}  // namespace atolldb::ycsb
