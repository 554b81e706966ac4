// Progress of a start-up, for people and programs that wait: step, bytes, rate and remaining time.
// It starts no processes and reads no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atolldb {

/// Name of the step in which the coordinator already serves requests and no recovery has begun.
inline constexpr const char* kOpeningStep = "opening";

/// The progress of a step at one time.
struct StartReport {
  std::string state;         // "starting" or "recovering"
  std::string step;          // "reading the logs"
  uint64_t done_bytes = 0;   // of this step
  uint64_t total_bytes = 0;  // 0: unknown
  uint64_t bytes_per_second = 0;
  std::optional<uint64_t> eta_seconds;  // until the end of this step
  uint64_t elapsed_seconds = 0;         // since the start began

  /// Returns whether the coordinator serves requests already.
  bool is_served() const { return state != "starting" || step == kOpeningStep; }
  /// Returns nothing if the total is unknown.
  std::optional<uint32_t> percent() const;
};

/// Returns one line of JSON, as in `<run_dir>/start.json`.
std::string to_json_line(const StartReport& report);
/// Returns the report, or nothing if `text` is not a line of to_json_line.
std::optional<StartReport> parse_start_report(std::string_view text);

class StartProgress {
 public:
  using Clock = std::chrono::steady_clock;

  /// Begins the progress of a start-up.
  void begin(Clock::time_point now);
  /// Records progress of the current step, or the beginning of another step. `total_bytes`: 0 if
  /// unknown.
  void note(std::string state, std::string step, uint64_t done_bytes, uint64_t total_bytes,
            Clock::time_point now);
  /// Records progress from a line of the coordinator: "recovering 12 400 reading the logs". Returns
  /// false if the line has another form.
  bool note_line(const std::string& line, Clock::time_point now);

  const std::string& step() const { return report_.step; }
  StartReport report(Clock::time_point now) const;

 private:
  StartReport report_;
  Clock::time_point began_at_;
  Clock::time_point step_began_at_;
  uint64_t step_began_with_ = 0;  // bytes that were done when the step began
};

}  // namespace atolldb
