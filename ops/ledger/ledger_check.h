// Compares a ledger with what the database holds after a failure: nothing promised may be missing,
// and nothing may be there in part.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/ledger/ledger.h"

namespace atolldb {

/// Keys that exist, and what they hold.
using LedgerState = std::map<LedgerKey, LedgerValue>;

/// One write as found in a log.
struct LedgerWrite {
  LedgerKey key = 0;
  LedgerValue value;
};
/// The last write of each key, by VID.
LedgerState state_of_log(const std::vector<LedgerWrite>& writes);

enum class LedgerFault : uint8_t {
  lost,            // a promised write is missing, and nothing later is there
  torn,            // of a transaction that is there, another key is older
  unknown_token,   // a token that nobody submitted, or for another key
  revived,         // a transaction that was told to have failed is there
  lost_read,       // a promised read showed what is missing now
  fractured_read,  // one transaction read part of another
  wrong_version,   // one VID on two values of a key, or an answer that contradicts itself
};
std::string_view to_string(LedgerFault fault);

struct LedgerViolation {
  LedgerFault fault;
  LedgerToken token = 0;  // of the transaction that is wronged, or wrong
  LedgerKey key = 0;
  std::string text;
};

/// Empty: all is well. `ledger`: of all clients together. Complete at a moment without
/// transactions in flight.
std::vector<LedgerViolation> check_ledger(const Ledger& ledger, const LedgerState& state);

/// The same, and every write of a promised transaction is in the log itself. REQUIRES: `writes` is
/// all of the log, nothing of it has been deleted.
std::vector<LedgerViolation> check_ledger_log(const Ledger& ledger,
                                              const std::vector<LedgerWrite>& writes);

}  // namespace atolldb
