// Switches one engine rule off during its lifetime.
#pragma once

#include "engine/hooks/mutants.h"

namespace atolldb::test {

class MutantGuard {
 public:
  explicit MutantGuard(Mutant which) { active_mutant.store(which, std::memory_order_relaxed); }
  ~MutantGuard() { active_mutant.store(Mutant::none, std::memory_order_relaxed); }
  MutantGuard(const MutantGuard&) = delete;
  MutantGuard& operator=(const MutantGuard&) = delete;
};

}  // namespace atolldb::test
