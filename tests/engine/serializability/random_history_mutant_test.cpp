// The random histories must notice when a rule is off: each of these mutants is found by them.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/engine/mutant_guard.h"
#include "tests/engine/serializability/bodies.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

struct Fault {
  const char* name;
  Mutant mutant;
};

class RandomHistoryWithAFault : public testing::TestWithParam<Fault> {};

TEST_P(RandomHistoryWithAFault, IsFoundToBeWrong) {
  // Random interleavings: an anomaly shows in some round. Each takes a fraction of a second.
  constexpr uint64_t kRounds = 60;
  const uint64_t first_seed = seed();
  for (uint64_t round = 0; round < kRounds; ++round) {
    const WorkloadOptions options{.seed = first_seed + round, .attempts = 3'000, .keys = 20};
    WorkloadResult result;
    {
      const MutantGuard guard(GetParam().mutant);
      result = run_in_threads(2, 2, options);
    }
    if (result.is_sound()) continue;
    std::printf("round %llu: %s\n", static_cast<unsigned long long>(round), result.text().c_str());
    return;
  }
  FAIL() << kRounds << " random histories look sound without the rule";
}

constexpr Fault kFaults[] = {{"ReadSetUnchecked", Mutant::skip_read_set_check},
                             {"OwnWritesExcused", Mutant::excuse_own_writes},
                             {"PageVersionsUnchecked", Mutant::skip_page_version_check},
                             {"PagesNotRegistered", Mutant::no_page_registration},
                             {"DeadRecordsIgnored", Mutant::ignore_dead_in_scans},
                             {"OwnWritesHidden", Mutant::hide_own_writes},
                             {"UnlockedBeforePublished", Mutant::unlock_before_publish}};

INSTANTIATE_TEST_SUITE_P(Mutants, RandomHistoryWithAFault, testing::ValuesIn(kFaults),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace atolldb::test
