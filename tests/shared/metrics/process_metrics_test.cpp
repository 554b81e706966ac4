// Metrics that each process has: values are those of this process.
#include "shared/metrics/process_metrics.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "shared/base/unique_fd.h"

namespace atolldb {
namespace {

/// Returns the values of the families by name. Each has one sample.
std::map<std::string, double> values_of(const ProcessMetrics& metrics) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    EXPECT_EQ(family.metric.size(), 1u) << family.name;
    const prometheus::ClientMetric& metric = family.metric.front();
    const bool is_counter = family.type == prometheus::MetricType::Counter;
    values[family.name] = is_counter ? metric.counter.value : metric.gauge.value;
  }
  return values;
}

double unix_time_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

TEST(ProcessMetricsTest, TellsTheMemoryAndTheTimesOfThisProcess) {
  const ProcessMetrics metrics;
  const auto values = values_of(metrics);
  EXPECT_EQ(values.at("atoll_build_info"), 1);
  EXPECT_GT(values.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(values.at("process_virtual_memory_bytes"), values.at("process_resident_memory_bytes"));
  // The kernel rounds the start of the machine to seconds.
  constexpr double kRoundingS = 3;
  EXPECT_LT(values.at("process_start_time_seconds"), unix_time_s() + kRoundingS);
  EXPECT_GT(values.at("process_start_time_seconds"), unix_time_s() - 24 * 3600);
  // A loop until the clock of the process moves.
  const double before = values.at("process_cpu_seconds_total");
  while (values_of(metrics).at("process_cpu_seconds_total") <= before) {
  }
}

TEST(ProcessMetricsTest, CountsOpenDescriptorsWithoutItsOwn) {
  const ProcessMetrics metrics;
  const double before = values_of(metrics).at("process_open_fds");
  EXPECT_GE(before, 3);
  constexpr int kMore = 5;
  std::vector<UniqueFd> more;
  for (int i = 0; i < kMore; ++i) more.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(values_of(metrics).at("process_open_fds"), before + kMore);
  more.clear();
  EXPECT_EQ(values_of(metrics).at("process_open_fds"), before);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(values_of(metrics).at("process_max_fds"), static_cast<double>(limit.rlim_cur));
}

TEST(ProcessMetricsTest, TheBuildHasAVersionACompilerAndAType) {
  const std::vector<prometheus::MetricFamily> families = ProcessMetrics().Collect();
  ASSERT_FALSE(families.empty());
  ASSERT_EQ(families.front().name, "atoll_build_info");
  std::map<std::string, std::string> labels;
  for (const auto& label : families.front().metric.front().label) labels[label.name] = label.value;
  EXPECT_EQ(labels.size(), 3u);
  EXPECT_NE(labels["version"].find('.'), std::string::npos) << labels["version"];
  EXPECT_NE(labels["compiler"].find(' '), std::string::npos) << labels["compiler"];
  EXPECT_NE(labels["build_type"], "");
}

}  // namespace
}  // namespace atolldb
