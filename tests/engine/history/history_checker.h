// Is a history serializable? Adya's direct serialization graph (Weak Consistency, 1999, chapter 4)
// and its phenomena, predicates included.
//
// Nodes: committed transactions. Edges from one to the next in any equivalent serial order:
//   ww  writes the next version of an item that the other wrote
//   wr  reads a version that the other wrote
//   rw  overwrites a version that the other read (by item, or by predicate: phantoms)
// A serial order exists iff there is no cycle.
//
// An absence that was read may fit several places in an item's versions. Then only those edges are
// drawn that every choice implies: no false alarms, at the price of a rare miss.
#pragma once

#include <cstdint>
#include <string>

#include "tests/engine/history/history.h"

namespace atolldb::test {

enum class Phenomenon : uint8_t {
  none,
  g1a,       // read of a version that an aborted transaction wrote
  g1b,       // read of a version that its own transaction overwrote
  unknown,   // read of a version that nobody wrote
  g0,        // cycle of ww
  g1c,       // cycle of ww and wr
  g_single,  // cycle with one rw: read skew, lost update
  g2_item,   // cycle with several rw, all by item: write skew
  g2,        // cycle with an rw by predicate: phantoms
};

struct Verdict {
  Phenomenon phenomenon = Phenomenon::none;
  std::string text;  // the cycle, edge by edge
};

Verdict check_history(const History& history);

}  // namespace atolldb::test
