#include "bench/tpcc/run_result.h"

#include <nlohmann/json.hpp>

namespace atolldb::tpcc {

std::string RunResult::to_json() const {
  nlohmann::json json{{"user_aborts", user_aborts},
                      {"delivered_orders", delivered_orders},
                      {"skipped_deliveries", skipped_deliveries}};
  put(json);
  return json.dump();
}

Result<RunResult> RunResult::parse(std::string_view text) {
  RunResult result;
  try {
    const auto json = nlohmann::json::parse(text);
    result.take(json);
    json.at("user_aborts").get_to(result.user_aborts);
    json.at("delivered_orders").get_to(result.delivered_orders);
    json.at("skipped_deliveries").get_to(result.skipped_deliveries);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed,
                      std::string("tpcc: a worker's result cannot be read: ") + error.what());
  }
  return result;
}

}  // namespace atolldb::tpcc
