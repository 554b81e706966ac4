#include "bench/ycsb/job_input.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace atolldb::ycsb {

namespace {

bool is_valid(const JobInput& input) {
  const RecordShape& shape = input.shape;
  return input.records >= 1 && input.records <= kMaxRecords && shape.fields >= 1 &&
         shape.fields <= kMaxFields && shape.record_bytes <= kMaxRecordBytes &&
         shape.record_bytes % shape.fields == 0 && shape.field_bytes() >= kMinFieldBytes &&
         std::accumulate(input.mix.begin(), input.mix.end(), 0u) == 100 &&
         input.distribution <= Distribution::latest && input.theta > 0 && input.theta < 1 &&
         input.remote_percent <= kAllNodesAlike && input.operations >= 1 &&
         input.operations <= kMaxOperations && input.scan_length >= 1 &&
         input.scan_length <= kMaxScanLength && !(input.is_array && input.is_hash) &&
         !(input.is_hash && percent_of(input.mix, Operation::scan) != 0) &&
         !(input.is_array && percent_of(input.mix, Operation::insert) != 0);
}

}  // namespace

std::string JobInput::to_json() const {
  nlohmann::json json{{"records", records},
                      {"record_bytes", shape.record_bytes},
                      {"fields", shape.fields},
                      {"is_array", is_array},
                      {"is_hash", is_hash},
                      {"is_ordered", is_ordered},
                      {"seed", seed},
                      {"mix", mix},
                      {"distribution", static_cast<uint32_t>(distribution)},
                      {"theta", theta},
                      {"remote_percent", remote_percent},
                      {"operations", operations},
                      {"scan_length", scan_length},
                      {"prefetch", prefetch},
                      {"blind_updates", blind_updates}};
  times.put(json);
  return json.dump();
}

Result<JobInput> JobInput::parse(std::string_view text) {
  JobInput input;
  try {
    const auto json = nlohmann::json::parse(text);
    json.at("records").get_to(input.records);
    json.at("record_bytes").get_to(input.shape.record_bytes);
    json.at("fields").get_to(input.shape.fields);
    json.at("is_array").get_to(input.is_array);
    json.at("is_hash").get_to(input.is_hash);
    json.at("is_ordered").get_to(input.is_ordered);
    json.at("seed").get_to(input.seed);
    json.at("mix").get_to(input.mix);
    input.distribution = static_cast<Distribution>(json.at("distribution").get<uint8_t>());
    json.at("theta").get_to(input.theta);
    json.at("remote_percent").get_to(input.remote_percent);
    json.at("operations").get_to(input.operations);
    json.at("scan_length").get_to(input.scan_length);
    json.at("prefetch").get_to(input.prefetch);
    json.at("blind_updates").get_to(input.blind_updates);
    input.times.take(json);
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::usage, std::string("ycsb: the job's input is wrong: ") +
                                           error.what() + ": use `atoll bench ycsb`");
  }
  if (!is_valid(input)) {
    return make_error(ExitCode::usage,
                      "ycsb: the job's input has a value out of range: use `atoll bench ycsb`");
  }
  return input;
}

}  // namespace atolldb::ycsb
