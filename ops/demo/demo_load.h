// The load of `atoll demo`: transfers between accounts, reads of balances, and audits of their sum.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ops/cluster/cluster.h"
#include "shared/base/error.h"
#include "shared/client/session_client.h"

namespace atolldb::demo {

inline constexpr const char* kAccounts = "accounts";    // key "account-042", value i64
inline constexpr const char* kTransfers = "transfers";  // key "transfer-00042", value JSON
inline constexpr uint32_t kAccountCount = 500;
/// A transfer replaces the one that is this many transfers older, so the data do not grow.
inline constexpr uint32_t kKeptTransfers = 20'000;
inline constexpr int64_t kFirstBalance = 1'000;

/// Returns the key of an account. REQUIRES: number < kAccountCount.
std::string account_key(uint32_t number);

/// Counts of what was acknowledged as durable. Writers: the threads of the load.
struct LoadCounts {
  std::atomic<uint64_t> transfers{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> failures{0};  // requests that ended with any other status than ok
};

/// A client of the cluster with one session and one thread per node. Each thread transfers and
/// reads at an even rate, with several requests in flight.
class Load {
 public:
  /// Creates the storages and the accounts, and then starts. `per_second`: transfers of all nodes
  /// together; there are as many reads. REQUIRES: the cluster outlives the load.
  static Result<std::unique_ptr<Load>> start(Cluster& cluster, uint32_t per_second);
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { stop(); }

  /// Ends the load. Returns when no request is in flight.
  void stop();
  /// Returns false if a session has ended, because the cluster stops or has failed.
  bool is_alive() const { return is_alive_.load(std::memory_order_relaxed); }
  const LoadCounts& counts() const { return counts_; }

  /// Reads all accounts in one transaction, and returns the sum of their balances. Returns nothing
  /// if the transaction has not committed, for example because of transfers meanwhile. Thread: one.
  std::optional<int64_t> audit();
  /// Returns the sum that every audit must find.
  static constexpr int64_t expected_sum() { return int64_t{kAccountCount} * kFirstBalance; }

 private:
  explicit Load(uint32_t per_second) : per_second_(per_second) {}
  void run(SessionClient& session, uint32_t node, uint32_t nodes);
  void submit_transfer(SessionClient& session, uint64_t number, uint64_t random);
  void submit_read(SessionClient& session, uint64_t random);
  void record(Status status, std::atomic<uint64_t>& count);

  const uint32_t per_second_;
  LoadCounts counts_;
  std::atomic<bool> is_alive_{true};
  std::atomic<bool> ends_{false};
  std::unique_ptr<SessionClient> auditor_;
  std::vector<std::unique_ptr<SessionClient>> sessions_;  // by node
  std::vector<std::jthread> threads_;                     // destroyed before the sessions
};

}  // namespace atolldb::demo
