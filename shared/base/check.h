// Checks of invariants. A broken invariant stops the process, before it can damage shared memory.
//
// CHECK is for cold paths, and for conditions that must stop a release build, too. DCHECK is for
// code that a worker executes per transaction. Both are for internal errors only. A condition that
// input, a damaged file, another process or a race can make false is an error (error.h, status.h).
// A static_assert is better than both where the compiler can see the fact.
//
// A condition must have no side effects, because release builds do not evaluate the condition of a
// DCHECK. A failed check prints its whole condition, so join two facts by && only if they fail
// together. It prints no values; the core file has them.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace atolldb {

[[noreturn]] inline void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "atoll: CHECK failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace atolldb

/// Stops the process if the condition is false. All builds.
#define CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::atolldb::check_failed(#expression, __FILE__, __LINE__))

/// Does the same as CHECK, but only in debug and sanitizer builds. The engine for mutant tests
/// disables DCHECK, because a mutant breaks an invariant and its test shows the consequence.
#if defined(ATOLL_DCHECK) && !defined(ATOLL_MUTANTS)
#define DCHECK(expression) CHECK(expression)
#else
#define DCHECK(expression) static_cast<void>(sizeof((expression) ? 1 : 0))
#endif
