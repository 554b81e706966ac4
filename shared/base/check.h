// Checks of invariants. A broken invariant stops the process, before it can damage shared memory.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace atolldb {

[[noreturn]] inline void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "atoll: CHECK failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace atolldb

/// Always on. For cold paths, and for invariants of shared memory that must always hold.
#define CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::atolldb::check_failed(#expression, __FILE__, __LINE__))

/// Debug and sanitizer builds only: for the transaction path. The engine for mutant tests has none,
/// because a mutant breaks an invariant and its test shows the consequence.
#if defined(ATOLL_DCHECK) && !defined(ATOLL_MUTANTS)
#define DCHECK(expression) CHECK(expression)
#else
#define DCHECK(expression) static_cast<void>(sizeof((expression) ? 1 : 0))
#endif
