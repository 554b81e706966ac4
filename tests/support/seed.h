// Seeds of random tests. A seed is printed, and can be set through the environment.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "shared/sync/racy_copy.h"

namespace atolldb::test {

/// Returns ATOLL_SEED, or a random seed if it is not set. Prints the seed in both cases.
inline uint64_t seed() {
  const char* given = std::getenv("ATOLL_SEED");
  const uint64_t value =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("ATOLL_SEED=%llu\n", static_cast<unsigned long long>(value));
  return value;
}

/// Returns `short_count`, or `long_count` if long tests are on (ATOLL_LONG=1).
inline uint64_t rounds(uint64_t short_count, uint64_t long_count) {
  const char* value = std::getenv("ATOLL_LONG");
  return value != nullptr && value[0] == '1' ? long_count : short_count;
}

/// As above. But under ThreadSanitizer, which makes a test ten times slower, the short form returns
/// `sanitized_count`. It is for rounds in which mostly one thread works: more of them would find no
/// more races.
inline uint64_t rounds(uint64_t short_count, uint64_t long_count,
                       [[maybe_unused]] uint64_t sanitized_count) {
#ifdef ATOLL_TSAN
  short_count = sanitized_count;
#endif
  return rounds(short_count, long_count);
}

/// Returns the value of an environment variable that sets the duration of a test, in seconds. If it
/// is not set, returns `short_seconds`, or `long_seconds` if long tests are on.
inline uint64_t seconds_of_test(const char* variable, uint64_t short_seconds,
                                uint64_t long_seconds) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : rounds(short_seconds, long_seconds);
}

}  // namespace atolldb::test
