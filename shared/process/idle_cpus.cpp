#include "shared/process/idle_cpus.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {

std::map<int32_t, CpuTicks> parse_cpu_ticks(const std::string& text) {
  // cpu<n> user nice system idle iowait irq softirq steal ...: proc_stat(5). The fields after
  // steal are parts of user and nice.
  constexpr int kIdle = 3;
  constexpr int kIoWait = 4;
  constexpr int kFields = 8;
  std::map<int32_t, CpuTicks> ticks;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    int32_t cpu = 0;
    if (!line.starts_with("cpu") || !fields.ignore(3) || line[3] == ' ' || !(fields >> cpu)) {
      continue;
    }
    CpuTicks read;
    uint64_t value = 0;
    for (int field = 0; field < kFields && fields >> value; ++field) {
      read.total += value;
      if (field == kIdle || field == kIoWait) read.idle += value;
    }
    ticks[cpu] = read;
  }
  return ticks;
}

IdleCpus::IdleCpus(std::vector<int32_t> cpus, ReadStat read_stat)
    : cpus_(std::move(cpus)), read_stat_(std::move(read_stat)) {
  CHECK(read_stat_);
  CHECK(std::ranges::all_of(cpus_, [](int32_t cpu) { return cpu >= 0 && cpu < kMaxCpus; }));
  // No processor occurs twice, because it would count twice.
  CHECK(std::ranges::adjacent_find(cpus_, std::ranges::greater_equal()) == cpus_.end());
}

double IdleCpus::measure(Clock::time_point now) {
  if (now < next_) return idle_;
  next_ = now + kPause;
  auto ticks = parse_cpu_ticks(read_stat_());
  idle_ = 0;
  for (const int32_t cpu : cpus_) {
    const auto before = before_.find(cpu);
    const auto after = ticks.find(cpu);
    if (before == before_.end() || after == ticks.end()) continue;
    // Skips a processor whose times did not grow. The kernel sometimes corrects them downwards.
    const CpuTicks& from = before->second;
    const CpuTicks& to = after->second;
    if (to.total <= from.total || to.idle <= from.idle) continue;
    idle_ += std::min(
        1.0, static_cast<double>(to.idle - from.idle) / static_cast<double>(to.total - from.total));
  }
  before_ = std::move(ticks);
  CHECK(idle_ <= static_cast<double>(cpus_.size()));
  return idle_;
}

std::string IdleCpus::read_proc_stat() {
  std::ifstream file("/proc/stat");
  std::ostringstream text;
  text << file.rdbuf();  // sets an error state if a read fails
  return text.str();
}

}  // namespace atolldb
