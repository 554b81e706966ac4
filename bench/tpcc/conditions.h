// Consistency conditions 1-12 of clause 3.3.2, one function each, over collected facts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/tpcc/facts.h"

namespace atolldb::tpcc {

inline constexpr uint32_t kConditions = 12;

struct Violation {
  uint32_t condition;
  std::string message;  // names the condition, the place, and both values
};

/// Keeps the first messages of each condition, and counts all violations.
class Violations {
 public:
  static constexpr uint32_t kKeptPerCondition = 5;

  void add(uint32_t condition, uint32_t warehouse, uint32_t district, const std::string& text);

  bool empty() const { return kept_.empty(); }
  const std::vector<Violation>& kept() const { return kept_; }
  uint64_t count(uint32_t condition) const { return counts_[condition - 1]; }

 private:
  std::vector<Violation> kept_;
  std::array<uint64_t, kConditions> counts_{};
};

using Condition = void (*)(const WarehouseFacts&, const Scale&, Violations&);
extern const std::array<Condition, kConditions> kConditionFunctions;

inline void check_conditions(const WarehouseFacts& facts, const Scale& scale,
                             Violations& violations) {
  for (const Condition condition : kConditionFunctions) condition(facts, scale, violations);
}

}  // namespace atolldb::tpcc
