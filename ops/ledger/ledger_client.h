// Runs random transactions through a session and records them in a ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "ops/ledger/ledger.h"
#include "ops/ledger/ledger_check.h"
#include "shared/client/session_client.h"

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
  uint64_t failed = 0;  // known not to have committed
  uint64_t unknown = 0;
  uint64_t sessions = 0;  // number of sessions of run_over_restarts
};

/// Thread: one at a time.
class LedgerClient {
 public:
  /// Continues after the tokens in the file, so that no token is used twice.
  static Result<std::unique_ptr<LedgerClient>> open(const LedgerClientOptions& options);

  /// Submits transactions until `stop` returns true, the session ends, or `max_transactions` were
  /// submitted (0: no limit). Replies `unavailable` and `recovering` (the cluster starts, recovers
  /// or drains) also end the run. Then waits for all replies and records them. Returns an error if
  /// the ledger cannot be written.
  Result<LedgerClientCounts> run(SessionClient& session, const std::function<bool()>& stop,
                                 uint64_t max_transactions = 0);

  /// Does the same as `run` over several sessions. After the end of a session it continues with the
  /// next one from `connect`, in the cluster's next incarnation. Ends if `stop` returns true.
  /// Returns the error if `connect` fails before that.
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
  uint64_t next_ = 1;  // the next sequence number within the tokens
  LedgerClientCounts counts_;
  bool was_refused_ = false;
  Result<void> noted_;
};

/// Returns the content of the storage, by scans through the session's node. The result is complete
/// if no client writes.
Result<LedgerState> read_ledger_state(SessionClient& session);

}  // namespace atolldb
