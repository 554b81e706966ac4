// Terminals with the keying and think times of clause 5.2.5: each warehouse has ten, and each
// terminal submits its next transaction a keying time and a think time after its previous one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "bench/common/random.h"
#include "bench/tpcc/inputs.h"

namespace atolldb::tpcc {

inline constexpr uint32_t kTerminalsPerWarehouse = 10;
/// Keying times, and means of the think times, in seconds, by TransactionType (clause 5.2.5.7).
inline constexpr std::array<double, kTransactionTypes> kKeyingSeconds = {18, 3, 2, 2, 2};
inline constexpr std::array<double, kTransactionTypes> kThinkSeconds = {12, 12, 10, 5, 5};
inline constexpr double kMaxThinkScale = 100;
/// Upper bound of New-Orders per minute and warehouse at the specification's times (clause 4.2.1).
inline constexpr double kMaxTpmcPerWarehouse = 12.86;

/// Returns a random think time after a transaction of this type. `scale`: factor of the mean.
uint64_t think_ns(TransactionType type, double scale, bench::Random& random);
/// Returns the time that keying a transaction of this type in takes.
uint64_t keying_ns(TransactionType type, double scale);

/// The terminals of one worker. All times are in nanoseconds since the worker's start.
class Terminals {
 public:
  struct Next {
    uint64_t due_ns = 0;
    TransactionType type = TransactionType::new_order;
    uint32_t home = 0;  // warehouse
  };

  /// `scale`: factor of all times. The first transactions of the terminals are spread over one
  /// cycle. REQUIRES: 0 < scale <= kMaxThinkScale.
  Terminals(std::span<const uint32_t> warehouses, double scale, uint64_t seed,
            const std::function<TransactionType()>& next_type);

  bool empty() const { return queue_.empty(); }
  /// Returns the transaction that is due first. REQUIRES: not empty.
  const Next& first() const { return queue_.top(); }
  /// The transaction that was due first has ended: its terminal thinks, and then keys the next one
  /// in.
  void end_first(uint64_t ended_ns);

 private:
  struct IsLater {
    bool operator()(const Next& a, const Next& b) const { return a.due_ns > b.due_ns; }
  };
  const double scale_;
  bench::Random random_;
  const std::function<TransactionType()> next_type_;
  std::priority_queue<Next, std::vector<Next>, IsLater> queue_;
};

}  // namespace atolldb::tpcc
