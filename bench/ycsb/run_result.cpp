#include "bench/ycsb/run_result.h"

#include <nlohmann/json.hpp>

namespace atolldb::ycsb {

std::string RunResult::to_json() const {
  nlohmann::json json{{"scanned_records", scanned_records},
                      {"updates", updates},
                      {"inserted", inserted},
                      {"torn_reads", torn_reads}};
  put(json);
  return json.dump();
}

Result<RunResult> RunResult::parse(std::string_view text) {
  RunResult result;
  try {
    const auto json = nlohmann::json::parse(text);
    result.take(json);
    json.at("scanned_records").get_to(result.scanned_records);
    json.at("updates").get_to(result.updates);
    json.at("inserted").get_to(result.inserted);
    json.at("torn_reads").get_to(result.torn_reads);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed,
                      std::string("ycsb: a worker's result cannot be read: ") + error.what());
  }
  return result;
}

}  // namespace atolldb::ycsb
