// Ledger clients of a durable cluster, and checks of its log after its death.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/format/log_block.h"
#include "engine/format/vid.h"
#include "engine/recovery/log_start.h"
#include "ops/cli/running_cluster.h"
#include "ops/ledger/ledger_check.h"
#include "ops/ledger/ledger_client.h"
#include "shared/file/posix_file_system.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {

/// Returns what the ledger says about a state that ends with `epoch`. Transactions of later epochs
/// must be missing there, so they count as failed, and what they read says nothing.
inline Ledger ledger_at(Ledger ledger, uint64_t epoch) {
  for (auto& [token, transaction] : ledger) {
    if (!transaction.outcome) continue;
    LedgerOutcome& outcome = *transaction.outcome;
    const bool has_later_read = std::ranges::any_of(
        outcome.reads, [&](const auto& read) { return Vid(read.second.version).epoch() > epoch; });
    if (outcome.commit_epoch <= epoch && !has_later_read) continue;
    outcome.reads.clear();
    if (outcome.status == Status::ok) outcome.status = Status::write_conflict;
  }
  return ledger;
}

/// One client per node, each in a thread, until the cluster ends or the test stops them.
class LedgerClients {
 public:
  /// The clients append to ledgers in `folder`. `reconnects`: they continue with the cluster's next
  /// incarnation until the test stops them. REQUIRES: the cluster runs and has the ledger's
  /// storage.
  LedgerClients(const Config& config, const std::string& folder, uint64_t seed,
                bool reconnects = false) {
    // All names first: the threads read them.
    for (uint32_t node = 0; node < config.nodes.size(); ++node) {
      files_.push_back(folder + "/client" + std::to_string(node) + ".ledger");
    }
    for (uint32_t node = 0; node < config.nodes.size(); ++node) {
      threads_.emplace_back([this, node, seed, reconnects, run_dir = config.cluster.run_dir] {
        reconnects ? run_over_restarts(run_dir, node, seed + node)
                   : run_client(run_dir, node, seed + node);
      });
    }
  }
  ~LedgerClients() { stop(); }
  LedgerClients(const LedgerClients&) = delete;
  LedgerClients& operator=(const LedgerClients&) = delete;

  void stop() {
    stop_.store(true, std::memory_order_relaxed);
    join();
  }
  /// Waits until the cluster has ended.
  void join() {
    for (std::jthread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  /// Returns the merged ledger of all clients. REQUIRES: stop() or join() was called.
  Ledger ledger() const {
    Ledger all;
    for (const std::string& file : files_) {
      // the client has no file if the cluster ended before the client connected
      if (!std::filesystem::exists(file)) continue;
      Result<Ledger> one = read_ledger(file);
      if (!one) ADD_FAILURE() << one.error().message;
      if (one) all.merge(*one);
    }
    return all;
  }

  /// Returns the ledger file of a node's client.
  const std::string& file(uint32_t node) const { return files_[node]; }
  /// Returns true if the client has written more than `bytes` bytes. May be called while it runs.
  bool has_written(uint32_t node, uint64_t bytes) const {
    std::error_code missing;  // an error while the file does not exist yet
    const uint64_t size = std::filesystem::file_size(file(node), missing);
    return !missing && size > bytes;
  }

 private:
  void run_over_restarts(const std::string& run_dir, uint32_t node, uint64_t seed) {
    auto client = LedgerClient::open(options_of(node, seed));
    ASSERT_TRUE(client) << client.error().message;
    const auto stop = [this] { return stop_.load(std::memory_order_relaxed); };
    const auto counts = (*client)->run_over_restarts(
        [&] { return SessionClient::connect_within(run_dir, node, std::chrono::minutes(1), stop); },
        stop);
    EXPECT_TRUE(counts) << counts.error().message;
  }
  LedgerClientOptions options_of(uint32_t node, uint64_t seed) const {
    LedgerClientOptions options;
    options.path = files_[node];
    options.client = node + 1;
    options.keys = 300;
    options.in_flight = 32;
    options.precommitted_percent = 10;
    options.seed = seed;
    return options;
  }
  void run_client(const std::string& run_dir, uint32_t node, uint64_t seed) {
    auto session = SessionClient::connect(run_dir, node);
    if (!session) return;  // the node was killed before the client connected
    auto client = LedgerClient::open(options_of(node, seed));
    ASSERT_TRUE(client) << client.error().message;
    const auto counts =
        (*client)->run(**session, [this] { return stop_.load(std::memory_order_relaxed); });
    EXPECT_TRUE(counts) << counts.error().message;
  }

  std::atomic<bool> stop_{false};
  std::vector<std::string> files_;
  std::vector<std::jthread> threads_;
};

/// Creates the storage that the clients write to.
inline Result<uint32_t> create_ledger(const Config& config) {
  return cli::RunningCluster(config).create_storage(kLedgerStorage, StorageType::mastertree, 8);
}

/// Log of the last incarnation, up to its cut.
struct DeadLog {
  IncarnationScan scan;
  std::vector<LedgerWrite> writes;
};

/// REQUIRES: the cluster has ended.
inline Result<DeadLog> read_dead_log(const Config& config) {
  PosixFileSystem files;
  auto start = examine(files, config.cluster.data_dir, node_directories(config));
  if (!start) return std::unexpected(start.error());
  if (start->last.size() != 1) return make_error(ExitCode::failed, "no incarnation without a cut");
  DeadLog log{start->last[0], {}};
  uint32_t id = 0;
  for (const DdlRecord& record : start->ddl) {
    if (record.name == kLedgerStorage) id = record.storage_id;
  }
  for (const LogScan& logger : log.scan.logs) {
    auto scan = scan_log(files, logger.stream, [&](const LogBlock& block, const auto&, uint64_t) {
      const bool counts =
          block.header.type == LogBlockType::records && block.header.epoch <= log.scan.cut_epoch;
      if (!counts) return;
      for_each_record(block, [&](const LogRecord& record) {
        if (record.type == LogType::filler) return;
        EXPECT_EQ(record.storage_id, id);
        EXPECT_EQ(record.key_bytes, 8);
        EXPECT_EQ(record.payload_bytes, 8);
        LedgerWrite write;
        uint64_t key = 0;
        std::memcpy(&key, record.key(), sizeof(key));
        write.key = static_cast<LedgerKey>(__builtin_bswap64(key));
        std::memcpy(&write.value.token, const_cast<LogRecord&>(record).payload(),
                    sizeof(write.value.token));
        write.value.version = record.vid;
        log.writes.push_back(write);
      });
    });
    if (!scan) return std::unexpected(scan.error());
  }
  return log;
}

/// Checks that every promise is kept, every transaction is complete, and all logs have the same
/// cut. Returns the number of promised transactions with writes.
inline uint64_t expect_log_keeps(const Config& config, const Ledger& ledger) {
  const auto log = read_dead_log(config);
  if (!log) {
    ADD_FAILURE() << log.error().message;
    return 0;
  }
  uint64_t least = UINT64_MAX;
  for (const LogScan& one : log->scan.logs) least = std::min(least, one.durable_epoch);
  EXPECT_EQ(log->scan.cut_epoch, least);
  for (const LedgerViolation& one : check_ledger_log(ledger, log->writes)) {
    ADD_FAILURE() << one.text;
  }
  std::map<LedgerToken, std::set<LedgerKey>> logged;
  for (const LedgerWrite& write : log->writes) logged[write.value.token].insert(write.key);
  for (const auto& [token, keys] : logged) {
    const auto found = ledger.find(token);
    if (found == ledger.end()) {
      ADD_FAILURE() << "the log has transaction " << token << ", which no client submitted";
      continue;
    }
    const auto& writes = found->second.writes;
    EXPECT_EQ(keys, std::set<LedgerKey>(writes.begin(), writes.end()))
        << "transaction " << token << " is not whole";
  }
  uint64_t promised = 0;
  for (const auto& [token, transaction] : ledger) {
    if (!transaction.outcome || !transaction.outcome->is_promised()) continue;
    EXPECT_LE(transaction.outcome->commit_epoch, log->scan.cut_epoch) << "transaction " << token;
    promised += transaction.writes.empty() ? 0 : 1;
  }
  return promised;
}

/// Expects that a session on each node sees what the ledger has as acknowledged. REQUIRES: the
/// cluster runs.
inline void expect_promises_kept(const Config& config, const Ledger& ledger) {
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    auto session = SessionClient::connect(config.cluster.run_dir, node);
    ASSERT_TRUE(session) << session.error().message;
    const auto state = read_ledger_state(**session);
    ASSERT_TRUE(state) << state.error().message;
    for (const LedgerViolation& one : check_ledger(ledger, *state)) ADD_FAILURE() << one.text;
  }
}

}  // namespace atolldb::test
