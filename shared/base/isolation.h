// Isolation levels of transactions. Source: [FOEDUS15] appendix B.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace atolldb {

enum class Isolation : uint8_t {
  /// The result is that of some serial order of all transactions.
  serializable,
  /// Reads the latest snapshot and its own writes. Aborts with snapshot_conflict if a record that
  /// it writes has changed since the snapshot. Two such transactions may each write what the other
  /// has read (write skew).
  snapshot,
  /// Reads one snapshot, the latest or a named older one. Never aborts because of other
  /// transactions.
  snapshot_read_only,
  count_,
};

/// Settings of a transaction, fixed at its begin.
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
