#include "bench/ycsb_driver/driver.h"

#include <fmt/format.h>

#include "bench/ycsb/table.h"
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
  ATOLL_TRY(bench::load(cluster_, console_, storage_specs(input_, report_.nodes), kLoadJob,
                        input_.to_json(),
                        fmt::format("{} records", bench::format_count(input_.records)), report_));
  ATOLL_TRY(bench::run_all(cluster_, console_, kCommand, kRunJob, kSurveyJob, input_, report_,
                           summarize));
  if (report_.options.verify) {
    ATOLL_TRY(verify());
  }
  return std::move(report_);
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
  report_.violations = find_violations(found, report_.runs, input_, report_.nodes);
  report_.verify_done = true;
  return {};
}

}  // namespace atolldb::ycsb
