// How far the start of a cluster is, for people and programs that wait: step, bytes, rate and the
// time that is left. Knows no processes and reads no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atolldb {

/// The step in which the coordinator serves requests already, but no recovery has begun.
inline constexpr const char* kOpeningStep = "opening";

/// What is known of a step at one time.
struct StartReport {
  std::string state;         // "starting" or "recovering"
  std::string step;          // "reading the logs"
  uint64_t done_bytes = 0;   // of this step
  uint64_t total_bytes = 0;  // 0: unknown
  uint64_t bytes_per_second = 0;
  std::optional<uint64_t> eta_seconds;  // until the end of this step
  uint64_t elapsed_seconds = 0;         // since the start began

  /// The coordinator serves requests already.
  bool is_served() const { return state != "starting" || step == kOpeningStep; }
  /// Nothing if the total is unknown.
  std::optional<uint32_t> percent() const;
};

/// One line of JSON, as in `<run_dir>/start.json`.
std::string to_json_line(const StartReport& report);
/// Nothing if `text` is not such a line.
std::optional<StartReport> parse_start_report(std::string_view text);

class StartProgress {
 public:
  using Clock = std::chrono::steady_clock;

  /// A start begins.
  void begin(Clock::time_point now);
  /// A step goes on, or another one begins. `total_bytes` 0: unknown.
  void note(std::string state, std::string step, uint64_t done_bytes, uint64_t total_bytes,
            Clock::time_point now);
  /// The same from the coordinator's line: "recovering 12 400 reading the logs". False: another
  /// form.
  bool note_line(const std::string& line, Clock::time_point now);

  const std::string& step() const { return report_.step; }
  StartReport report(Clock::time_point now) const;

 private:
  StartReport report_;
  Clock::time_point began_at_;
  Clock::time_point step_began_at_;
  uint64_t step_began_with_ = 0;  // bytes
};

}  // namespace atolldb
