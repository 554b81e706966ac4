// A seed for a test, printed so that a failure can be repeated: ATOLL_TEST_SEED=... sets it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace atolldb::test {

inline uint64_t seed() {
  const char* given = std::getenv("ATOLL_TEST_SEED");
  const uint64_t value =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(value));
  return value;
}

}  // namespace atolldb::test
