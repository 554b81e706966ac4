#include "bench/ycsb_driver/driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/ycsb/table.h"
#include "bench/ycsb_driver/client_port.h"
#include "shared/base/try.h"

namespace atolldb::ycsb {

Driver::Driver(bench::ClusterPort& cluster, const Options& options, const JobInput& input,
               bench::Console console)
    : cluster_(cluster), console_(std::move(console)), input_(input) {
  static_cast<bench::ReportHead&>(report_) = bench::describe(cluster);
  report_.options = options;
  report_.input = input;
}

Result<Report> Driver::go() {
  ATOLL_TRY(load_database());
  return resume();
}

Result<void> Driver::load_database() {
  return bench::load(cluster_, console_, storage_specs(input_, report_.nodes), kLoadJob,
                     input_.to_json(),
                     fmt::format("{} records", bench::format_count(input_.records)), report_);
}

Result<Report> Driver::resume(uint64_t runs_before) {
  ClientPort clients(cluster_, report_.options.clients);
  bench::ClusterPort& cluster = report_.options.clients.is_used() ? clients : cluster_;
  ATOLL_TRY(bench::run_all(cluster, console_, kCommand, kRunJob, kSurveyJob, input_, report_,
                           summarize, runs_before));
  if (report_.options.verify && runs_before == 0) {
    ATOLL_ASSIGN(const auto found, verify());
    report_.violations = find_violations(found, report_.runs, input_, report_.nodes);
    report_.verify_done = true;
  }
  return std::move(report_);
}

Result<bench::ReportHead> Driver::check(uint64_t updates) {
  ATOLL_ASSIGN(const auto found, verify());
  std::vector<std::unique_ptr<RunSummary>> runs;
  runs.push_back(std::make_unique<RunSummary>(report_.nodes));
  runs.back()->updates = updates;
  runs.back()->inserted.resize(report_.nodes);
  for (const VerifyResult& part : found) {
    std::vector<uint64_t>& inserted = runs.back()->inserted[part.node];
    inserted.resize(std::max<size_t>(inserted.size(), size_t{part.worker} + 1));
    inserted[part.worker] = part.inserted;
  }
  report_.violations = find_violations(found, runs, input_, report_.nodes);
  report_.verify_done = true;
  return report_;
}

Result<std::vector<VerifyResult>> Driver::verify() {
  ATOLL_ASSIGN(const auto outputs, cluster_.run_job(kVerifyJob, input_.to_json()));
  std::vector<VerifyResult> found;
  for (const std::string& output : outputs) {
    ATOLL_ASSIGN(auto part, VerifyResult::parse(output));
    if (part.node >= report_.nodes) {
      return make_error(ExitCode::failed, "bench ycsb: verify: a result names an unknown node");
    }
    found.push_back(std::move(part));
  }
  return found;
}

}  // namespace atolldb::ycsb
