#include "bench/tpcc_driver/driver.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/tpcc/job_input.h"
#include "bench/tpcc/tables.h"
#include "bench/tpcc_driver/client_port.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {

Driver::Driver(ClusterPort& cluster, const Options& options, uint32_t warehouses, Console console)
    : cluster_(cluster), console_(std::move(console)), input_(job_input(options, warehouses)) {
  static_cast<bench::ReportHead&>(report_) = bench::describe(cluster);
  report_.options = options;
  report_.warehouses = warehouses;
}

Result<Report> Driver::go() {
  ATOLL_TRY(load_database());
  return resume();
}

Result<void> Driver::load_database() {
  return bench::load(cluster_, console_, storage_specs(report_.warehouses, report_.options.scale),
                     kLoadJob, input_.to_json(), fmt::format("{} warehouses", report_.warehouses),
                     report_);
}

Result<Report> Driver::resume(uint64_t runs_before) {
  ClientPort clients(cluster_, report_.options.clients);
  ClusterPort& cluster = report_.options.clients.is_used() ? clients : cluster_;
  ATOLL_TRY(bench::run_all(cluster, console_, kCommand, kRunJob, kSurveyJob, input_, report_,
                           summarize, runs_before));
  if (report_.options.verify) {
    ATOLL_TRY(verify());
  }
  return std::move(report_);
}

Result<bench::ReportHead> Driver::check() {
  ATOLL_TRY(verify());
  return report_;
}

Result<void> Driver::verify() {
  ATOLL_ASSIGN(const auto outputs, cluster_.run_job(kVerifyJob, input_.to_json()));
  uint64_t checked = 0;
  try {
    for (const std::string& output : outputs) {
      const auto json = nlohmann::json::parse(output);
      checked += json.at("warehouses").get<uint64_t>();
      for (const auto& violation : json.at("violations")) {
        report_.violations.push_back(violation.at("message"));
      }
    }
  } catch (const std::exception& error) {
    return make_error(ExitCode::failed,
                      std::string("bench tpcc: the verification cannot be read: ") + error.what());
  }
  if (checked != report_.warehouses) {
    return make_error(ExitCode::failed,
                      fmt::format("bench tpcc: verify: {} of {} warehouses were checked", checked,
                                  report_.warehouses));
  }
  report_.verify_done = true;
  return {};
}

}  // namespace atolldb::tpcc
