// Shared parts of the benchmarks that read the log of a TPC-C run or of a data directory.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb::cli {

struct LogSourceOptions {
  std::string data_dir;   // data directory with the log to read; empty: a run of TPC-C makes one
  std::string directory;  // parent of the output; empty: next to the default data directory
  std::string json_file;
  bool smoke = false;
};

void add_log_source_options(CLI::App& command, LogSourceOptions& options,
                            const char* data_dir_help);

/// Makes a new folder for the output. `name`: stem of its name within --directory.
Result<std::string> new_output_folder(const LogSourceOptions& options, const char* name);

/// Returns a function that tells whether SIGINT or SIGTERM has arrived. These signals no longer end
/// the process.
Result<std::function<bool()>> watch_for_interrupts();

struct TpccForItsLog {
  std::string command;        // prefix of error messages: "bench log"
  std::string cluster_name;   // name of the cluster
  std::string what_to_lower;  // option to lower if memory does not suffice: "--record-seconds"
  uint32_t seconds = 1;
  uint32_t warehouses = 0;  // 0: one per worker
};

/// Reads the log in `data_dir`, which is removed afterwards. Log from `run_epoch` on belongs to the
/// run, earlier log to the load.
using UseLog = std::function<Result<void>(const std::string& data_dir, uint64_t run_epoch)>;

/// Runs TPC-C on its own cluster with one node and one worker. Calls `use` after that cluster has
/// stopped.
Result<void> run_tpcc_for_its_log(const TpccForItsLog& run, const UseLog& use);

}  // namespace atolldb::cli
