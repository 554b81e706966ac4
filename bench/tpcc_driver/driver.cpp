#include "bench/tpcc_driver/driver.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/common/clock.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/tables.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {

Driver::Driver(ClusterPort& cluster, const Options& options, uint32_t warehouses, Console console)
    : cluster_(cluster),
      options_(options),
      console_(std::move(console)),
      input_(job_input(options, warehouses)) {
  report_.options = options;
  report_.nodes = cluster.node_count();
  report_.workers = cluster.worker_count();
  report_.warehouses = warehouses;
  report_.mode = cluster.mode();
  report_.durability = cluster.durability();
  report_.machine = bench::MachineInfo::detect();
}

Result<Report> Driver::go() {
  const Result<void> loaded = load_database();
  return loaded ? resume() : std::unexpected(loaded.error());
}

Result<void> Driver::load_database() {
  const Result<void> created = create_storages();
  return created ? load() : created;
}

Result<Report> Driver::resume() {
  for (uint32_t number = 1; number <= options_.repeat; ++number) {
    ATOLL_TRY(run_once(number));
    if (report_.ended_early()) break;
  }
  const Result<void> surveyed =
      bench::survey(cluster_, kCommand, kSurveyJob, input_.to_json(), report_);
  if (!surveyed) return std::unexpected(surveyed.error());
  if (options_.verify) {
    ATOLL_TRY(verify());
  }
  return std::move(report_);
}

Result<void> Driver::create_storages() {
  for (const StorageSpec& spec : storage_specs(report_.warehouses, options_.scale)) {
    ATOLL_TRY(cluster_.create_storage(spec));
  }
  return {};
}

Result<void> Driver::load() {
  const uint64_t start_ns = bench::monotonic_ns();
  ATOLL_TRY(cluster_.run_job(kLoadJob, input_.to_json()));
  report_.load_seconds = static_cast<double>(bench::monotonic_ns() - start_ns) * 1e-9;
  console_.line(
      fmt::format("loaded {} warehouses in {:.1f} s", report_.warehouses, report_.load_seconds));
  return {};
}

Result<void> Driver::run_once(uint32_t number) {
  input_.times = bench::announce_run(console_, options_, number);
  ATOLL_ASSIGN(const auto outputs,
               bench::run_with_progress(cluster_, console_, kRunJob, input_.to_json(),
                                        input_.times.start_ns));
  ATOLL_ASSIGN(auto summary, summarize(outputs, report_.nodes));
  report_.runs.push_back(std::move(summary));
  return {};
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
