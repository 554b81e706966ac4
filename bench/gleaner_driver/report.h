// What `atoll bench gleaner` reports: records a second of each part, and how fast a start gleans.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/common/machine_info.h"
#include "bench/gleaner_driver/glean_once.h"
#include "bench/gleaner_driver/options.h"

namespace atolldb::gleaner_bench {

/// The same log gleaned again and again.
struct Scenario {
  std::string name;         // in JSON
  std::string what;         // for people
  uint64_t base_bytes = 0;  // of the snapshot below; 0: none
  /// Behind that. A file of log is read from its first block, so that more may be read.
  uint64_t log_bytes = 0;
  std::vector<Gleaned> runs;  // at least one; those of one scenario differ in their times alone

  const Gleaned& first() const { return runs.front(); }
  /// Median of the runs.
  double records_per_second(uint64_t Gleaned::* records, PartTime Gleaned::* part,
                            uint64_t PartTime::* clock) const;
  double log_bytes_per_second() const;       // one core for each part, as they run
  double log_bytes_per_core_second() const;  // of processor time, all parts together
  double seconds() const;
};

struct Report {
  Options options;
  std::string source;  // of the log
  std::string directory;
  std::vector<Scenario> scenarios;
  bench::MachineInfo machine;

  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace atolldb::gleaner_bench
