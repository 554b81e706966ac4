#include "ops/ledger/ledger_check.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace atolldb {
namespace {

/// VIDs have their epoch in the upper 36 bits.
constexpr uint64_t epoch_of(uint64_t version) { return version >> 28; }

class Checker {
 public:
  Checker(const Ledger& ledger, const LedgerState& state) : ledger_(ledger), state_(state) {}

  std::vector<LedgerViolation> run() {
    for (const auto& [key, value] : state_) check_present(key, value);
    for (const auto& [token, transaction] : ledger_) {
      if (!transaction.outcome || transaction.outcome->status != Status::ok) continue;
      check_answer(token, transaction);
      check_reads(token, *transaction.outcome);
    }
    return std::move(violations_);
  }

 private:
  LedgerValue held(LedgerKey key) const {
    const auto found = state_.find(key);
    return found == state_.end() ? LedgerValue() : found->second;
  }

  void report(LedgerFault fault, LedgerToken token, LedgerKey key, const std::string& why) {
    // Each violation is reported once per key.
    if (!reported_.insert({fault, token, key}).second) return;
    violations_.push_back({fault, token, key,
                           std::string(to_string(fault)) + ": transaction " +
                               std::to_string(token) + ", key " + std::to_string(key) + ": " +
                               why});
  }

  static std::string describe(const LedgerValue& value) {
    return "token " + std::to_string(value.token) + " of epoch " +
           std::to_string(epoch_of(value.version));
  }

  /// Returns the transaction of the value's token, or null if it was not submitted for this key.
  /// Reports a violation if that transaction cannot have written the value.
  const LedgerTransaction* writer(LedgerKey key, const LedgerValue& value) {
    const auto found = ledger_.find(value.token);
    if (found == ledger_.end()) {
      report(LedgerFault::unknown_token, value.token, key, "no client has submitted it");
      return nullptr;
    }
    const LedgerTransaction& transaction = found->second;
    if (std::find(transaction.writes.begin(), transaction.writes.end(), key) ==
        transaction.writes.end()) {
      report(LedgerFault::unknown_token, value.token, key, "it was submitted for other keys");
      return nullptr;
    }
    const auto& outcome = transaction.outcome;
    if (outcome && outcome->status != Status::ok && outcome->status != Status::outcome_unknown) {
      report(LedgerFault::revived, value.token, key,
             "its answer was " + std::string(to_string(outcome->status)));
    }
    if (outcome && outcome->status == Status::ok && outcome->version != value.version) {
      report(LedgerFault::wrong_version, value.token, key,
             "its answer names another version than the record has");
    }
    return &transaction;
  }

  /// Checks a transaction if one of its writes was found. Each of its keys must hold the
  /// transaction's write or a newer one.
  void check_whole(const LedgerTransaction& transaction, LedgerToken token, uint64_t version,
                   LedgerKey seen_at) {
    for (const LedgerKey key : transaction.writes) {
      const LedgerValue value = held(key);
      if (value.version < version) {
        report(LedgerFault::torn, token, key,
               "it holds " + describe(value) + ", but key " + std::to_string(seen_at) +
                   " shows the transaction");
      } else if (value.version == version && value.token != token) {
        report(LedgerFault::wrong_version, token, key, "it holds " + describe(value));
      }
    }
  }

  void check_present(LedgerKey key, const LedgerValue& value) {
    const LedgerTransaction* transaction = writer(key, value);
    if (transaction != nullptr) check_whole(*transaction, value.token, value.version, key);
  }

  void check_answer(LedgerToken token, const LedgerTransaction& transaction) {
    const LedgerOutcome& outcome = *transaction.outcome;
    if (transaction.writes.empty()) return;
    if (epoch_of(outcome.version) != outcome.commit_epoch) {
      report(LedgerFault::wrong_version, token, transaction.writes.front(),
             "its answer names epoch " + std::to_string(outcome.commit_epoch) +
                 ", its version epoch " + std::to_string(epoch_of(outcome.version)));
    }
    if (!outcome.is_promised()) return;
    for (const LedgerKey key : transaction.writes) {
      const LedgerValue value = held(key);
      if (value.version < outcome.version) {
        report(LedgerFault::lost, token, key,
               "acknowledged in epoch " + std::to_string(outcome.commit_epoch) +
                   " as durable, but the key holds " + describe(value));
      } else if (value.version == outcome.version && value.token != token) {
        report(LedgerFault::wrong_version, token, key, "it holds " + describe(value));
      }
    }
  }

  void check_reads(LedgerToken token, const LedgerOutcome& outcome) {
    for (const auto& [key, seen] : outcome.reads) {
      if (seen.token == 0) continue;
      const LedgerTransaction* transaction = writer(key, seen);
      if (transaction == nullptr) continue;
      for (const LedgerKey other : transaction->writes) {
        const auto also = outcome.reads.find(other);
        if (also != outcome.reads.end() && also->second.version < seen.version) {
          report(LedgerFault::fractured_read, token, other,
                 "it read transaction " + std::to_string(seen.token) + " at key " +
                     std::to_string(key) + " and not here");
        }
      }
      if (!outcome.is_promised()) continue;
      const LedgerValue value = held(key);
      if (value.version < seen.version) {
        report(LedgerFault::lost_read, token, key,
               "it was shown " + describe(seen) + ", but the key holds " + describe(value));
      } else if (value.version == seen.version && value.token != seen.token) {
        report(LedgerFault::wrong_version, token, key, "it was shown " + describe(seen));
      } else {
        check_whole(*transaction, seen.token, seen.version, key);
      }
    }
  }

  const Ledger& ledger_;
  const LedgerState& state_;
  std::set<std::tuple<LedgerFault, LedgerToken, LedgerKey>> reported_;
  std::vector<LedgerViolation> violations_;
};

}  // namespace

std::string_view to_string(LedgerFault fault) {
  constexpr std::string_view kNames[] = {"lost",      "torn",           "unknown_token", "revived",
                                         "lost_read", "fractured_read", "wrong_version"};
  return kNames[static_cast<size_t>(fault)];
}

LedgerState state_of_log(const std::vector<LedgerWrite>& writes) {
  LedgerState state;
  for (const LedgerWrite& write : writes) {
    LedgerValue& last = state[write.key];
    if (write.value.version >= last.version) last = write.value;
  }
  return state;
}

std::vector<LedgerViolation> check_ledger(const Ledger& ledger, const LedgerState& state) {
  return Checker(ledger, state).run();
}

std::vector<LedgerViolation> check_ledger_log(const Ledger& ledger,
                                              const std::vector<LedgerWrite>& writes) {
  std::vector<LedgerViolation> violations = check_ledger(ledger, state_of_log(writes));
  std::set<std::pair<LedgerKey, LedgerToken>> logged;
  for (const LedgerWrite& write : writes) logged.insert({write.key, write.value.token});
  for (const auto& [token, transaction] : ledger) {
    if (!transaction.outcome || !transaction.outcome->is_promised()) continue;
    for (const LedgerKey key : transaction.writes) {
      if (logged.contains({key, token})) continue;
      violations.push_back({LedgerFault::lost, token, key,
                            "lost: transaction " + std::to_string(token) + ", key " +
                                std::to_string(key) + ": no log holds its write"});
    }
  }
  return violations;
}

}  // namespace atolldb
