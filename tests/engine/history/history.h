// What transactions read and wrote, as recorded by those who ran them.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace atolldb::test {

struct Item {
  uint32_t table;
  uint64_t key;
  auto operator<=>(const Item&) const = default;
};

/// Every write of a history has a version of its own. 0: what was there at the start.
using Version = uint64_t;
inline constexpr Version kInitialVersion = 0;
/// Read: there was no such record. Which erase (or the start) left it so is for the checker.
inline constexpr Version kAbsent = ~uint64_t{0};

struct ItemRead {
  Item item;
  Version version;
};

struct ItemWrite {
  Item item;
  Version version;
  bool erases = false;
  /// Overwritten by a later write of the same transaction: nobody else may ever see it (G1b).
  bool intermediate = false;
  /// Order among the writes of the item; 0: that of its transaction.
  uint64_t order = 0;
};

/// "All records of `table` with first <= key <= last are `found`": says as much about those that
/// are not there. A look-up that found nothing is one over a single key.
struct PredicateRead {
  uint32_t table;
  uint64_t first;
  uint64_t last;
  std::vector<std::pair<uint64_t, Version>> found;
  std::vector<uint64_t> own_keys;  // written by the reader itself before: says nothing about them
};

struct TransactionRecord {
  uint64_t id = 0;  // for messages; unique
  bool committed = false;
  /// Order of its writes among all writes of the same item: the commit's VID.
  uint64_t order = 0;
  std::vector<ItemRead> reads;  // own writes are not recorded
  std::vector<PredicateRead> predicates;
  std::vector<ItemWrite> writes;
};

using History = std::vector<TransactionRecord>;

}  // namespace atolldb::test
