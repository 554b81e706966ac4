// How transactions are kept apart (design: transactions, isolation levels; foedus.txt appendix B).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace atolldb {

enum class Isolation : uint8_t {
  /// As if all transactions had run one after the other.
  serializable,
  /// Reads all from the latest snapshot, but its own writes; aborts with snapshot_conflict if a
  /// record that it writes has changed since. Two of these may each write what the other one has
  /// read (write skew).
  snapshot,
  /// Reads all from one snapshot, the latest or a named older one; never aborts because of others.
  snapshot_read_only,
  count_,
};

/// What a transaction begins with.
struct TransactionMode {
  Isolation isolation = Isolation::serializable;
  /// Id of the snapshot; 0: the latest. Only with snapshot_read_only.
  uint32_t snapshot = 0;

  bool operator==(const TransactionMode&) const = default;
};

constexpr std::string_view to_string(Isolation isolation) {
  constexpr std::string_view kNames[] = {"serializable", "snapshot", "snapshot_read_only"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<uint32_t>(Isolation::count_));
  const auto index = static_cast<uint32_t>(isolation);
  return isolation < Isolation::count_ ? kNames[index] : "unknown";
}

constexpr std::optional<Isolation> isolation_of(std::string_view name) {
  for (const Isolation each :
       {Isolation::serializable, Isolation::snapshot, Isolation::snapshot_read_only}) {
    if (name == to_string(each)) return each;
  }
  return std::nullopt;
}

}  // namespace atolldb
