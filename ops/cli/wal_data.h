// Shared parts of the commands of `atoll wal`: the data directory and its content. The commands
// only read, and the cluster may be live or dead.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/log/log_scan.h"
#include "ops/cli/cluster_finder.h"
#include "shared/base/error.h"
#include "shared/file/posix_file_system.h"

namespace atolldb::cli {

/// Options of the commands that read the data of live and dead clusters.
struct DataOptions {
  std::string data_dir;  // --data-dir; empty: that of the chosen cluster
  bool json = false;
};

struct LogOptions : DataOptions {
  std::optional<uint64_t> epoch;  // dump: only records of this epoch
  std::string storage;            // dump: only this storage, by id or name; empty: all storages
};

struct LogData {
  std::string data_dir;
  std::set<std::string> directories;  // directories that hold logs
  Savepoint savepoint;
  std::string damaged_slot;  // damaged slot of the savepoint; empty: none
};

/// Returns code failed if there is no log, or corruption if no slot of the savepoint is intact.
Result<LogData> find_log_data(FileSystem& file_system, const ClusterChoice& choice,
                              const DataOptions& options);

/// Returns code failed if the data have checkpoints, and so no snapshots.
Result<void> refuse_checkpoints(const LogData& data);

void add_data_options(CLI::App& command, DataOptions& options);

/// Returns "finished" if the incarnation has a cut. Returns "running" without a cut: the cluster
/// runs, or no start-up has examined the end of the incarnation yet.
std::string state_of(const Incarnation& incarnation);

Result<void> list_logs(const ClusterChoice& choice, const LogOptions& options);
Result<void> verify_logs(const ClusterChoice& choice, const LogOptions& options);
Result<void> dump_logs(const ClusterChoice& choice, const LogOptions& options);

}  // namespace atolldb::cli
