// With a rule switched off, random histories must not stay serializable: the checker notices.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/engine/history/random_history.h"
#include "tests/engine/mutant_guard.h"
#include "tests/support/seed.h"

namespace atolldb::test {

struct HistoryMutant {
  const char* name;
  Mutant mutant;
};

void PrintTo(const HistoryMutant& tested, std::ostream* out) { *out << tested.name; }

namespace {

class HistoryMutants : public testing::TestWithParam<HistoryMutant> {};

TEST_P(HistoryMutants, AreCaughtByTheChecker) {
  constexpr uint64_t kMostRounds = 60;
  const MutantGuard guard(GetParam().mutant);
  const RandomHistoryOptions options{.seed = seed() % 1'000'000'000, .key_count = 16};
  const std::string problem = run_random_histories(options, kMostRounds);
  EXPECT_NE(problem, "") << "nothing noticed that the rule was off";
  std::printf("%s\n", problem.c_str());
}

const HistoryMutant kMutants[] = {
    {"ReadSetCheck", Mutant::skip_read_set_check},
    {"OwnWritesAreChecked", Mutant::excuse_own_writes},
    {"PageVersionCheck", Mutant::skip_page_version_check},
    {"PageRegistration", Mutant::no_page_registration},
    {"PublishBeforeUnlock", Mutant::unlock_before_publish},
    {"DeadRecordsInScans", Mutant::ignore_dead_in_scans},
    {"ForeignPageWords", Mutant::adopt_foreign_version},
    {"OwnWritesAreSeen", Mutant::hide_own_writes},
    {"VidsGrow", Mutant::vid_ignores_locked_record},
};

INSTANTIATE_TEST_SUITE_P(Engine, HistoryMutants, testing::ValuesIn(kMutants),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace atolldb::test
