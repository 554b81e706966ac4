#include "bench/ycsb_driver/driver.h"

#include <fmt/format.h>

#include "bench/common/clock.h"
#include "bench/ycsb/table.h"
#include "shared/base/try.h"

namespace atolldb::ycsb {

Driver::Driver(bench::ClusterPort& cluster, const Options& options, const JobInput& input,
               bench::Console console)
    : cluster_(cluster), console_(std::move(console)), input_(input) {
  report_.options = options;
  report_.input = input;
  report_.nodes = cluster.node_count();
  report_.workers = cluster.worker_count();
  report_.mode = cluster.mode();
  report_.durability = cluster.durability();
  report_.machine = bench::MachineInfo::detect();
}

Result<Report> Driver::go() {
  for (const auto phase : {&Driver::create_storages, &Driver::load}) {
    ATOLL_TRY((this->*phase)());
  }
  for (uint32_t number = 1; number <= report_.options.repeat; ++number) {
    ATOLL_TRY(run_once(number));
    if (report_.ended_early()) break;
  }
  const Result<void> surveyed =
      bench::survey(cluster_, kCommand, kSurveyJob, input_.to_json(), report_);
  if (!surveyed) return std::unexpected(surveyed.error());
  if (report_.options.verify) {
    ATOLL_TRY(verify());
  }
  return std::move(report_);
}

Result<void> Driver::create_storages() {
  for (const bench::StorageSpec& spec : storage_specs(input_, report_.nodes)) {
    ATOLL_TRY(cluster_.create_storage(spec));
  }
  return {};
}

Result<void> Driver::load() {
  const uint64_t start_ns = bench::monotonic_ns();
  ATOLL_TRY(cluster_.run_job(kLoadJob, input_.to_json()));
  report_.load_seconds = static_cast<double>(bench::monotonic_ns() - start_ns) * 1e-9;
  console_.line(fmt::format("loaded {} records in {:.1f} s", bench::format_count(input_.records),
                            report_.load_seconds));
  return {};
}

Result<void> Driver::run_once(uint32_t number) {
  input_.times = bench::announce_run(console_, report_.options, number);
  ATOLL_ASSIGN(const auto outputs,
               bench::run_with_progress(cluster_, console_, kRunJob, input_.to_json(),
                                        input_.times.start_ns));
  ATOLL_ASSIGN(auto summary, summarize(outputs, report_.nodes));
  report_.runs.push_back(std::move(summary));
  return {};
}

Result<void> Driver::verify() {
  ATOLL_ASSIGN(const auto outputs, cluster_.run_job(kVerifyJob, input_.to_json()));
  std::vector<VerifyResult> found;
  for (const std::string& output : outputs) {
    ATOLL_ASSIGN(auto part, VerifyResult::parse(output));
    if (part.node >= report_.nodes) {
      return make_error(ExitCode::failed, "bench ycsb: verify: a result names an unknown node");
    }
    found.push_back(std::move(part));
  }
  report_.violations = find_violations(found, report_.runs, input_.keyspace(report_.nodes));
  report_.verify_done = true;
  return {};
}

}  // namespace atolldb::ycsb
