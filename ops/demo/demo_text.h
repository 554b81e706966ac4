// The texts of `atoll demo`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace atolldb::demo {

struct Place {
  std::string program;  // as the user called it, for example "build/release/bin/atoll"
  std::string cluster;
  bool needs_name = false;  // several clusters run, so commands need --cluster
  uint32_t nodes = 0;
  uint32_t per_second = 0;
  std::string status_page;  // URL, or ""
  std::string metrics;      // host and port of the coordinator, or ""
  std::string folder;
  bool keeps_folder = false;
};

/// Returns what runs and what to try next. Has at most 23 lines. They have at most 80 columns,
/// unless a path is longer.
std::string introduction(const Place& place);
/// Returns the same facts for programs, with "event" "running".
nlohmann::json introduction_json(const Place& place);

struct Progress {
  uint64_t transfers = 0;
  double per_second = 0;
  uint64_t failures = 0;
};
/// Returns one line without its end. `sum`: what the last audit says, for example "correct".
std::string progress_line(const Progress& progress, const std::string& sum);
/// Returns the result of a demo for programs, with "event" "ended". `sum`: of the last audit;
/// nothing if it has not committed.
nlohmann::json result_json(const Progress& progress, double seconds, std::optional<int64_t> sum,
                           int64_t expected_sum);

}  // namespace atolldb::demo
