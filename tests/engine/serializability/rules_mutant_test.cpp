// With a rule switched off, random histories must not stay sound: the checker notices.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>

#include "tests/engine/mutant_guard.h"
#include "tests/engine/serializability/bodies.h"
#include "tests/support/seed.h"

namespace atolldb::test {

struct HistoryMutant {
  const char* name;
  Mutant mutant;
  /// Few: the same records are met again and again. Many: physical inserts go on during the run.
  uint32_t keys = 20;
};

void PrintTo(const HistoryMutant& tested, std::ostream* out) { *out << tested.name; }

namespace {

class HistoryMutants : public testing::TestWithParam<HistoryMutant> {};

TEST_P(HistoryMutants, AreCaughtByTheChecker) {
  constexpr int kMostRounds = 100;
  const MutantGuard guard(GetParam().mutant);
  WorkloadOptions options{.seed = seed(), .attempts = 2000, .keys = GetParam().keys};
  for (int round = 0; round < kMostRounds; ++round, ++options.seed) {
    const WorkloadResult result = run_in_threads(2, 2, options);
    if (result.is_sound()) continue;
    std::printf("%s\n", result.text().c_str());
    return;
  }
  ADD_FAILURE() << "nothing noticed that the rule was off";
}

const HistoryMutant kMutants[] = {
    {"ReadSetCheck", Mutant::skip_read_set_check},
    {"OwnWritesAreChecked", Mutant::excuse_own_writes},
    {"PageVersionCheck", Mutant::skip_page_version_check},
    {"PageRegistration", Mutant::no_page_registration},
    {"PublishBeforeUnlock", Mutant::unlock_before_publish},
    {"DeadRecordsInScans", Mutant::ignore_dead_in_scans},
    {"ForeignPageWords", Mutant::adopt_foreign_version, 200},
    {"OwnWritesAreSeen", Mutant::hide_own_writes},
    {"VidsGrow", Mutant::vid_ignores_locked_record},
};

INSTANTIATE_TEST_SUITE_P(Engine, HistoryMutants, testing::ValuesIn(kMutants),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace atolldb::test
