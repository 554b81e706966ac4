// Compares a ledger with the database after a failure: no promised write may be missing, and no
// transaction may be present in part.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/ledger/ledger.h"

namespace atolldb {

/// The keys that exist, with their values.
using LedgerState = std::map<LedgerKey, LedgerValue>;

/// One write, as found in a log.
struct LedgerWrite {
  LedgerKey key = 0;
  LedgerValue value;
};
/// Returns the last write of each key, by VID.
LedgerState state_of_log(const std::vector<LedgerWrite>& writes);

enum class LedgerFault : uint8_t {
  lost,            // a promised write is missing, and no newer one is there
  torn,            // a transaction is present, but another of its keys holds an older write
  unknown_token,   // no client submitted the token, or none for this key
  revived,         // a transaction that was reported as failed is present
  lost_read,       // a promised reply returned a value that is missing now
  fractured_read,  // one transaction read only a part of another
  wrong_version,   // two values of a key have one VID, or a reply contradicts itself
};
std::string_view to_string(LedgerFault fault);

struct LedgerViolation {
  LedgerFault fault;
  LedgerToken token = 0;  // of the transaction concerned
  LedgerKey key = 0;
  std::string text;
};

/// Returns the violations; empty: none. `ledger`: transactions of all clients together. REQUIRES
/// for a complete result: no transaction is in flight.
std::vector<LedgerViolation> check_ledger(const Ledger& ledger, const LedgerState& state);

/// Does the same as `check_ledger`, and requires every write of a promised transaction in the log.
/// REQUIRES: `writes` is the whole log, and none of it has been deleted.
std::vector<LedgerViolation> check_ledger_log(const Ledger& ledger,
                                              const std::vector<LedgerWrite>& writes);

}  // namespace atolldb
