// Deliberate faults, for tests only. Each mutant switches one rule of engine/RULES.md off. Then the
// test of its row in kRules must fail (tests/engine/rules_mutant_test.cpp). A test in that file
// checks that every mutant has a row. In the product each `fault::...` is constant false.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

enum class Mutant : uint32_t {
  none = 0,
#define ATOLL_MUTANT(name) name,
#include "engine/hooks/mutants.inc"
#undef ATOLL_MUTANT
  count_,
};

#ifdef ATOLL_MUTANTS

inline std::atomic<Mutant> active_mutant{Mutant::none};
inline bool mutant(Mutant which) { return active_mutant.load(std::memory_order_relaxed) == which; }

struct FaultSwitch {
  Mutant which;
  operator bool() const { return mutant(which); }
};
#define ATOLL_MUTANT(name) inline constexpr FaultSwitch name{Mutant::name};
/// Marks a member function that tests/engine/mutants overrides.
#define ATOLL_STEP virtual
/// Declares a hook with these parameters, which tests/engine/mutants defines.
#define ATOLL_HOOK(name, ...) void name(__VA_ARGS__);

#else

constexpr bool mutant(Mutant) { return false; }
#define ATOLL_MUTANT(name) inline constexpr bool name = false;
#define ATOLL_STEP
#define ATOLL_HOOK(name, ...) \
  inline void name(__VA_ARGS__) {}

#endif

/// `fault::<name>` is true while a test has switched the mutant `name` on.
namespace fault {
#include "engine/hooks/mutants.inc"
}
#undef ATOLL_MUTANT

}  // namespace atolldb
