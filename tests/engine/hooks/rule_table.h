// A table of rules: each row has a body that passes with the rule, and fails without it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <string>

#include "tests/engine/hooks/mutant_guard.h"

namespace atolldb::test {

struct Rule {
  const char* name;
  Mutant mutant;
  std::function<std::string()> body;
  /// Maximum number of runs of the body with the rule off. 1: the body is deterministic. More: the
  /// body races, or a slow machine hides the fault, so the fault may need several runs to show.
  int rounds = 1;
};

inline void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

inline void expect_to_fail_without(const Rule& rule) {
  EXPECT_EQ(rule.body(), "") << "with all rules in force";
  const MutantGuard guard(rule.mutant);
  std::string problem;
  for (int round = 0; round < rule.rounds && problem.empty(); ++round) problem = rule.body();
  EXPECT_NE(problem, "") << "nothing noticed that the rule was off";
  testing::Test::RecordProperty("fault", problem);  // the body's error text, in the XML report
}

/// Expects a row for each mutant from `first` to the one before `end`.
inline void expect_rows(std::span<const Rule> rules, Mutant first, Mutant end) {
  for (auto which = static_cast<uint32_t>(first); which < static_cast<uint32_t>(end); ++which) {
    EXPECT_TRUE(std::ranges::any_of(
        rules, [&](const Rule& rule) { return rule.mutant == static_cast<Mutant>(which); }))
        << "mutant number " << which << " has no row in kRules";
  }
}

}  // namespace atolldb::test
