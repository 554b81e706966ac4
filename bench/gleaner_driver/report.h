// The report of `atoll bench gleaner`: records per second of the mapper, of the reducer and of the
// composer, and bytes of log per second of the whole snapshot job.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/common/machine_info.h"
#include "bench/gleaner_driver/glean_once.h"
#include "bench/gleaner_driver/options.h"

namespace atolldb::gleaner_bench {

/// Repeated runs over the same log.
struct Scenario {
  std::string name;         // name in the JSON report
  std::string what;         // human-readable description
  uint64_t base_bytes = 0;  // size of the base snapshot; 0: there is none
  /// Log after the base snapshot. More bytes may be read, because a log file is read from its first
  /// block.
  uint64_t log_bytes = 0;
  std::vector<Gleaned> runs;  // at least one; runs of one scenario differ only in their times

  const Gleaned& first() const { return runs.front(); }
  /// Returns the median of the runs.
  double records_per_second(uint64_t Gleaned::* records, PartTime Gleaned::* part,
                            uint64_t PartTime::* clock) const;
  double log_bytes_per_second() const;       // wall time, one core for each part
  double log_bytes_per_core_second() const;  // processor time of all parts together
  /// Return the time of one part, or of all parts together, per record that the mapper read.
  double ns_per_log_record(PartTime Gleaned::* part, uint64_t PartTime::* clock) const;
  double ns_per_log_record(uint64_t PartTime::* clock) const;
  double seconds() const;
};

struct Report {
  Options options;
  std::string source;  // origin of the log
  std::string directory;
  std::vector<Scenario> scenarios;
  bench::MachineInfo machine;

  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace atolldb::gleaner_bench
