// Seeds of random tests: printed, and repeatable through the environment.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace atolldb::test {

/// ATOLL_SEED, or a random one; printed either way.
inline uint64_t seed() {
  const char* given = std::getenv("ATOLL_SEED");
  const uint64_t value =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("ATOLL_SEED=%llu\n", static_cast<unsigned long long>(value));
  return value;
}

/// `short_count`, or `long_count` when the long tests were asked for (ATOLL_LONG=1).
inline uint64_t rounds(uint64_t short_count, uint64_t long_count) {
  const char* value = std::getenv("ATOLL_LONG");
  return value != nullptr && value[0] == '1' ? long_count : short_count;
}

}  // namespace atolldb::test
