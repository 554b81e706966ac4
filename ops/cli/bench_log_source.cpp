#include "ops/cli/bench_log_source.h"

#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "bench/tpcc_driver/driver.h"
#include "bench/tpcc_driver/estimate.h"
#include "ops/cli/bench_cluster.h"
#include "ops/cli/bench_run.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/process/start_up.h"

namespace atolldb::cli {
namespace {

/// Records the epoch in which the run begins. Log before that epoch belongs to the load.
class RecordingPort final : public bench::ClusterPort {
 public:
  explicit RecordingPort(bench::ClusterPort& below) : below_(below) {}

  uint64_t run_epoch() const { return run_epoch_; }

  uint32_t node_count() const override { return below_.node_count(); }
  uint32_t worker_count() const override { return below_.worker_count(); }
  std::string mode() const override { return below_.mode(); }
  std::string durability() const override { return below_.durability(); }
  Result<void> create_storage(const bench::StorageSpec& spec) override {
    return below_.create_storage(spec);
  }
  Result<std::vector<std::string>> run_job(const std::string& name,
                                           const std::string& input) override {
    if (name == tpcc::kRunJob) run_epoch_ = epoch();
    return below_.run_job(name, input);
  }
  uint64_t commits() override { return below_.commits(); }
  uint64_t epoch() override { return below_.epoch(); }

 private:
  bench::ClusterPort& below_;
  uint64_t run_epoch_ = 0;
};

}  // namespace

void add_log_source_options(CLI::App& command, LogSourceOptions& options,
                            const char* data_dir_help) {
  command.add_option("--data-dir", options.data_dir, data_dir_help)->type_name("DIRECTORY");
  command
      .add_option("--directory", options.directory,
                  "Folder for the output files [next to the default data directory]")
      ->type_name("DIRECTORY");
  command.add_flag("--smoke", options.smoke,
                   "Run a small workload, which tests the benchmark but measures nothing");
  command.add_option("--json", options.json_file, "Also write the report to this file")
      ->type_name("FILE");
}

Result<std::string> new_output_folder(const LogSourceOptions& options, const char* name) {
  const std::filesystem::path stem = options.directory.empty()
                                         ? std::filesystem::path(default_config().cluster.data_dir)
                                         : std::filesystem::absolute(options.directory) / name;
  return new_folder(stem, "choose a --directory that this user can write to");
}

Result<std::function<bool()>> watch_for_interrupts() {
  ATOLL_ASSIGN(UniqueFd fd, receive_signals({SIGINT, SIGTERM}));
  return [signals = std::make_shared<UniqueFd>(std::move(fd))] {
    pollfd wait = {signals->get(), POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
  };
}

Result<void> run_tpcc_for_its_log(const TpccForItsLog& run, const UseLog& use) {
  tpcc::Options tpcc;
  tpcc.nodes = tpcc.workers_per_node = 1;
  tpcc.seconds = run.seconds;
  tpcc.warmup_seconds = 0;
  tpcc.warehouses = run.warehouses;
  tpcc.verify = false;
  tpcc.durability = "durable";
  uint64_t run_epoch = 0;
  return run_on_own_cluster(
      {},
      {.command = run.command,
       .cluster_name = run.cluster_name,
       .options = tpcc,
       .what_to_lower = run.what_to_lower,
       .violated = "",
       .estimate = [&](uint32_t nodes, uint32_t workers,
                       uint32_t cores) -> Result<bench::Estimate> {
         ATOLL_ASSIGN(const auto warehouses, tpcc::choose_warehouses(tpcc, nodes, workers));
         return tpcc::estimate_memory(tpcc, warehouses, nodes, workers, cores);
       },
       .run = [&](bench::ClusterPort& port, const bench::Console& console) -> Result<BenchReport> {
         ATOLL_ASSIGN(const auto warehouses,
                      tpcc::choose_warehouses(tpcc, port.node_count(), port.worker_count()));
         RecordingPort recorder(port);
         ATOLL_TRY(tpcc::Driver(recorder, tpcc, warehouses, console).go());
         run_epoch = recorder.run_epoch();
         // Succeeds even if a pool filled up early, because the log is complete in that case, too.
         return BenchReport{"", {}, ExitCode::success};
       },
       .after_stop =
           [&](const Config& config) { return use(config.cluster.data_dir, run_epoch); }});
}

}  // namespace atolldb::cli
