// Measures from /proc/stat how many processors are idle.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace atolldb {

/// Idle and total time of one processor since the machine started, in clock ticks.
struct CpuTicks {
  uint64_t idle = 0;  // includes the time of waiting for devices
  uint64_t total = 0;
};

/// Returns the ticks of each processor in `text`, which has the format of /proc/stat. Ignores all
/// other lines.
std::map<int32_t, CpuTicks> parse_cpu_ticks(const std::string& text);

/// Thread: one at a time.
class IdleCpus {
 public:
  using Clock = std::chrono::steady_clock;
  /// Returns the content of /proc/stat, or "" if it cannot be read.
  using ReadStat = std::function<std::string()>;

  /// `cpus`: the processors to watch, ascending. Without any, `measure` returns 0.
  explicit IdleCpus(std::vector<int32_t> cpus, ReadStat read_stat = read_proc_stat);

  /// Returns how many of the processors were idle between the last two readings, for example 1.5.
  /// Reads at most once per kPause. Returns 0 before the second reading.
  double measure(Clock::time_point now);
  /// Returns the number of processors that are watched.
  uint32_t cpu_count() const { return static_cast<uint32_t>(cpus_.size()); }

  static constexpr std::chrono::milliseconds kPause{250};

 private:
  static std::string read_proc_stat();

  const std::vector<int32_t> cpus_;
  const ReadStat read_stat_;
  std::map<int32_t, CpuTicks> before_;
  Clock::time_point next_{};
  double idle_ = 0;
};

}  // namespace atolldb
