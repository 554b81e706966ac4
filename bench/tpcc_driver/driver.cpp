#include "bench/tpcc_driver/driver.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/common/clock.h"
#include "bench/tpcc/job_input.h"

namespace atolldb::tpcc {

namespace {

/// From the driver's request to the common start: the request must have reached every worker.
constexpr uint64_t kStartDelayNs = 300'000'000;

/// Prints the rate of commits once a second until it is destroyed.
class Progress {
 public:
  Progress(ClusterPort& cluster, const Console& console, std::string note, uint64_t start_ns)
      : thread_([this, &cluster, &console, note = std::move(note), start_ns] {
          uint64_t last = cluster.commits();
          for (uint32_t second = 1;; ++second) {
            if (stopped_before(start_ns + second * 1'000'000'000ull)) return;
            const uint64_t now = cluster.commits();
            console.progress(fmt::format("  {:>4} s: {:>9} transactions/s ({})", second,
                                         bench::format_count(now - last), note));
            last = now;
          }
        }) {}
  ~Progress() {
    {
      const std::lock_guard guard(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  bool stopped_before(uint64_t at_ns) {
    std::unique_lock lock(mutex_);
    const uint64_t now = bench::monotonic_ns();
    const auto left = std::chrono::nanoseconds(at_ns > now ? at_ns - now : 0);
    return changed_.wait_for(lock, left, [this] { return stop_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

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
  report_.machine = bench::MachineInfo::detect();
}

Result<Report> Driver::go() {
  for (const auto phase : {&Driver::create_storages, &Driver::load}) {
    if (const Result<void> done = (this->*phase)(); !done) return std::unexpected(done.error());
  }
  for (uint32_t number = 1; number <= options_.repeat; ++number) {
    if (const Result<void> done = run_once(number); !done) return std::unexpected(done.error());
    if (report_.ended_early()) break;
  }
  if (const Result<void> done = survey(); !done) return std::unexpected(done.error());
  if (options_.verify) {
    if (const Result<void> done = verify(); !done) return std::unexpected(done.error());
  }
  return std::move(report_);
}

Result<void> Driver::create_storages() {
  for (const StorageSpec& spec : storage_specs(report_.warehouses, options_.scale)) {
    const Result<void> created = cluster_.create_storage(spec);
    if (!created) return created;
  }
  return {};
}

Result<void> Driver::load() {
  const uint64_t start_ns = bench::monotonic_ns();
  const auto outputs = cluster_.run_job(kLoadJob, input_.to_json());
  if (!outputs) return std::unexpected(outputs.error());
  report_.load_seconds = static_cast<double>(bench::monotonic_ns() - start_ns) * 1e-9;
  console_.line(
      fmt::format("loaded {} warehouses in {:.1f} s", report_.warehouses, report_.load_seconds));
  return {};
}

Result<void> Driver::run_once(uint32_t number) {
  input_.run_number = number;
  // The first run warms up the database for all.
  input_.warmup_ms = number == 1 ? uint64_t{options_.warmup_seconds} * 1'000 : 0;
  input_.run_ms = uint64_t{options_.seconds} * 1'000;
  input_.start_ns = bench::monotonic_ns() + kStartDelayNs;
  console_.line(fmt::format(
      "run {} of {}: {} s{}", number, options_.repeat, options_.seconds,
      input_.warmup_ms == 0 ? "" : fmt::format(" after {} s warm-up", options_.warmup_seconds)));
  Result<std::vector<std::string>> outputs = [&] {
    const Progress progress(cluster_, console_, report_.durability_note(), input_.start_ns);
    return cluster_.run_job(kRunJob, input_.to_json());
  }();
  if (!outputs) return std::unexpected(outputs.error());
  auto summary = summarize(*outputs, report_.nodes);
  if (!summary) return std::unexpected(summary.error());
  report_.runs.push_back(std::move(*summary));
  return {};
}

Result<void> Driver::survey() {
  const auto outputs = cluster_.run_job(kSurveyJob, input_.to_json());
  if (!outputs) return std::unexpected(outputs.error());
  try {
    const auto json = nlohmann::json::parse(outputs->at(0));
    for (const auto& [name, bytes] : json.at("storage_bytes").items()) {
      report_.storage_bytes.emplace_back(name, bytes.get<uint64_t>());
    }
    for (const auto& pool : json.at("pools")) {
      report_.pools.push_back({pool.at("node"), pool.at("bytes"), pool.at("used_bytes")});
      report_.pool_page_bytes = pool.at("mapped_page_bytes");
    }
  } catch (const std::exception& error) {
    return make_error(ExitCode::failed,
                      std::string("bench tpcc: the survey cannot be read: ") + error.what());
  }
  return {};
}

Result<void> Driver::verify() {
  const auto outputs = cluster_.run_job(kVerifyJob, input_.to_json());
  if (!outputs) return std::unexpected(outputs.error());
  uint64_t checked = 0;
  try {
    for (const std::string& output : *outputs) {
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

ExitCode exit_code_of(const Report& report) {
  if (!report.violations.empty()) return ExitCode::corruption;
  return report.ended_early() ? ExitCode::resources : ExitCode::success;
}

}  // namespace atolldb::tpcc
