#include "shared/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

#include "shared/base/check.h"
#include "shared/base/process_id.h"
#include "shared/base/unique_fd.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// Returns the time at which the machine has started, in seconds since 1970, or 0 if /proc does not
/// have it.
double boot_time_s() {
  std::istringstream lines(file_text("/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (words >> name >> value && name == "btime") return value;
  }
  return 0;
}

double start_time_s() {
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  CHECK(ticks_per_second > 0);
  const auto ticks = static_cast<double>(this_process().start_time);
  return boot_time_s() + ticks / static_cast<double>(ticks_per_second);
}

struct MemorySizes {
  uint64_t virtual_bytes = 0;
  uint64_t resident_bytes = 0;
};
MemorySizes memory_sizes() {
  const long page_bytes = sysconf(_SC_PAGESIZE);
  CHECK(page_bytes > 0);
  std::istringstream words(file_text("/proc/self/statm"));
  MemorySizes pages;
  words >> pages.virtual_bytes >> pages.resident_bytes;
  const auto unit = static_cast<uint64_t>(page_bytes);
  return {pages.virtual_bytes * unit, pages.resident_bytes * unit};
}

/// Returns the number of open descriptors, without the one that lists them.
uint64_t open_descriptors() {
  uint64_t count = 0;
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/self/fd", error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) ++count;
  return count - std::min<uint64_t>(count, 1);
}

uint64_t descriptor_limit() {
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);  // fails only for wrong arguments
  return limit.rlim_cur;
}

double cpu_seconds() {
  rusage usage{};
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);  // fails only for wrong arguments
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

const char* compiler() {
#ifdef __clang__
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

ProcessMetrics::ProcessMetrics() : started_at_s_(start_time_s()) {}

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  const MemorySizes memory = memory_sizes();
  MetricFamilies families({});
  families.gauge("atoll_build_info", "Always 1. The labels describe the build of this process.")
      .sample(
          uint64_t{1},
          {{"version", ATOLL_VERSION}, {"compiler", compiler()}, {"build_type", ATOLL_BUILD_TYPE}});
  families
      .counter("process_cpu_seconds_total", "Processor time of the process, in user and kernel.")
      .sample(cpu_seconds());
  families
      .gauge("process_start_time_seconds", "When the process has started, in seconds since 1970.")
      .sample(started_at_s_);
  families
      .gauge("process_resident_memory_bytes",
             "Memory of the process, with the pages of shared memory that it has used.")
      .sample(memory.resident_bytes);
  families
      .gauge("process_virtual_memory_bytes",
             "Address space of the process, with all mapped segments of shared memory.")
      .sample(memory.virtual_bytes);
  families.gauge("process_open_fds", "Open descriptors of the process.").sample(open_descriptors());
  families.gauge("process_max_fds", "Limit of the open descriptors of the process.")
      .sample(descriptor_limit());
  return families.take();
}

}  // namespace atolldb
