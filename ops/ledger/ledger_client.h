// Runs random transactions through a session and notes them in a ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "ops/ledger/ledger.h"
#include "ops/ledger/ledger_check.h"
#include "shared/session/session_client.h"

namespace atolldb {

inline constexpr std::string_view kLedgerStorage = "ledger";  // a mastertree

struct LedgerClientOptions {
  std::string path;        // of the ledger's file
  uint64_t client = 0;     // makes tokens different between clients; below 2^16
  LedgerKey keys = 1'000;  // at least 4
  uint32_t in_flight = 16;
  uint32_t read_only_percent = 30;
  uint32_t precommitted_percent = 0;
  uint64_t seed = 1;
};

struct LedgerClientCounts {
  uint64_t submitted = 0;
  uint64_t ok = 0;
  uint64_t failed = 0;  // for certain
  uint64_t unknown = 0;
  uint64_t sessions = 0;  // of run_over_restarts
};

/// One thread's.
class LedgerClient {
 public:
  /// Goes on behind what the file holds: tokens are never used twice.
  static Result<std::unique_ptr<LedgerClient>> open(const LedgerClientOptions& options);

  /// Submits until `stop` says so, the session ends, or `max_transactions` were submitted (0: no
  /// limit); then waits for all answers and notes them. An error: the ledger cannot be written.
  /// `unavailable` and `recovering` answers (a cluster that starts, recovers or drains) end it,
  /// too.
  Result<LedgerClientCounts> run(SessionClient& session, const std::function<bool()>& stop,
                                 uint64_t max_transactions = 0);

  /// The same over several sessions: whenever one ends, it goes on with what `connect` answers, in
  /// the cluster's next incarnation. An error of `connect` when nobody has said stop ends it, too.
  using Connect = std::function<Result<std::unique_ptr<SessionClient>>()>;
  Result<LedgerClientCounts> run_over_restarts(const Connect& connect,
                                               const std::function<bool()>& stop,
                                               uint64_t max_transactions = 0);

 private:
  explicit LedgerClient(const LedgerClientOptions& options)
      : options_(options), random_(options.seed) {}
  Result<void> submit_one(SessionClient& session);
  void note(LedgerToken token, const std::vector<LedgerKey>& reads, const SessionReply& reply,
            const std::vector<std::byte>& request);

  const LedgerClientOptions options_;
  std::mt19937_64 random_;
  LedgerFile file_;
  uint64_t next_ = 1;  // the sequence number within the tokens
  LedgerClientCounts counts_;
  bool was_refused_ = false;
  Result<void> noted_;
};

/// What the storage holds now, by scans of `session`'s node: complete when nobody writes.
Result<LedgerState> read_ledger_state(SessionClient& session);

}  // namespace atolldb
