// Checker for the anomalies of a history: the cycles that a serializable system cannot have (Adya,
// "Weak consistency", 1999).
#pragma once

#include <string>

#include "tests/engine/serializability/history.h"

namespace atolldb::test {

enum class Anomaly : uint8_t {
  none,
  lost_order,  // two commits gave one key the same version, so they have no order
  // a value that no transaction wrote, or an absence that never held in the reader's time
  impossible_read,
  aborted_read,       // G1a
  intermediate_read,  // G1b
  write_cycle,        // G0: ww
  information_cycle,  // G1c: ww, wr
  single_cycle,       // G-single: exactly one rw
  item_cycle,         // G2-item: several rw, all on items read
  predicate_cycle,    // G2: rw edges, at least one from a scan or a not-found look-up
};
std::string to_text(Anomaly anomaly);

struct Verdict {
  Anomaly anomaly = Anomaly::none;
  std::string text;  // report: transactions, keys, and the dependencies between them
  uint64_t transactions = 0;
  uint64_t edges = 0;
};

/// Returns the first anomaly, simplest kind first. Sessions are ordered, too: a worker's later
/// transaction cannot come before its earlier one.
Verdict check_history(const History& history);

}  // namespace atolldb::test
