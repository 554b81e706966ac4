// Input of the jobs, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/job/run_times.h"
#include "bench/ycsb/keyspace.h"
#include "bench/ycsb/record.h"
#include "bench/ycsb/workload.h"
#include "shared/base/error.h"

namespace atolldb::ycsb {

inline constexpr const char* kLoadJob = "ycsb.load";
inline constexpr const char* kRunJob = "ycsb.run";
inline constexpr const char* kVerifyJob = "ycsb.verify";
inline constexpr const char* kSurveyJob = "ycsb.survey";

inline constexpr uint64_t kMaxRecords = 4'000'000'000;
inline constexpr uint32_t kMaxOperations = 1'000;
inline constexpr uint32_t kMaxScanLength = 1'000;
inline constexpr uint32_t kMaxFields = 100;
/// Value of remote_percent: keys come from the partitions of all nodes with equal probability.
inline constexpr uint32_t kAllNodesAlike = 101;

/// Input of all jobs; every worker gets the same text.
struct JobInput {
  uint64_t records = 1'000'000;  // loaded, on all nodes together
  RecordShape shape;
  bool is_array = false;    // false: a Master-tree, or is_hash
  bool is_hash = false;     // a hash storage; not with is_array
  bool is_ordered = false;  // keys in record order; false: scrambled

  // The members below are for ycsb.run.
  uint64_t seed = 1;
  Mix mix = {100, 0, 0, 0, 0};
  Distribution distribution = Distribution::zipfian;
  double theta = 0.99;
  uint32_t remote_percent = kAllNodesAlike;
  uint32_t operations = 1;
  uint32_t scan_length = 100;
  bool prefetch = false;
  bool blind_updates = false;  // updates overwrite whole records without reading them
  bench::RunTimes times;

  Keyspace keyspace(uint32_t nodes) const {
    return {records, nodes, shape.record_bytes, is_array, is_ordered};
  }
  std::string to_json() const;
  static Result<JobInput> parse(std::string_view text);
};

}  // namespace atolldb::ycsb
