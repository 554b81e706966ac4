// Every rule that can be switched off has a body that fails without it.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "tests/engine/anomalies.h"
#include "tests/engine/mutant_guard.h"
#include "tests/engine/own_effects.h"
#include "tests/engine/races.h"

namespace atolldb::test {

struct Rule {
  const char* name;
  Mutant mutant;
  std::function<std::string()> body;
  /// 1: the body is deterministic. More: it races, so a fault may take a few rounds to show.
  int rounds = 1;
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

namespace {

class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, TheBodyPassesWithTheRuleAndFailsWithoutIt) {
  const Rule& rule = GetParam();
  EXPECT_EQ(rule.body(), "") << "with all rules in force";
  const MutantGuard guard(rule.mutant);
  std::string problem;
  for (int round = 0; round < rule.rounds && problem.empty(); ++round) problem = rule.body();
  EXPECT_NE(problem, "") << "nothing noticed that the rule was off";
}

const Rule kRules[] = {
    {"ReadSetCheckLostUpdate", Mutant::skip_read_set_check, [] { return lost_update(Kind::tree); }},
    {"ReadSetCheckWriteSkew", Mutant::skip_read_set_check, [] { return write_skew(Kind::array); }},
    {"ReadSetCheckReadSkew", Mutant::skip_read_set_check, [] { return read_skew(Kind::array); }},
    {"ReadSetCheckUserAbort", Mutant::skip_read_set_check,
     [] { return user_abort_after_a_foreign_write(); }},
    {"LockCheck", Mutant::skip_lock_check, [] { return read_of_locked_record(Kind::array); }},
    {"LockCheckUserAbort", Mutant::skip_lock_check,
     [] { return user_abort_of_a_record_locked_by_another(); }},
    {"OwnWritesAreChecked", Mutant::excuse_own_writes, [] { return lost_update(Kind::array); }},
    {"PageVersionCheckScan", Mutant::skip_page_version_check,
     [] { return scan_then_foreign_insert(true, true); }},
    {"PageVersionCheckLookUp", Mutant::skip_page_version_check,
     [] { return not_found_then_foreign_insert(); }},
    {"PointerSetCheckArray", Mutant::skip_pointer_set_check,
     [] { return absence_of_a_page_then_foreign_install(Kind::array); }},
    {"PointerSetCheckTree", Mutant::skip_pointer_set_check,
     [] { return absence_of_a_page_then_foreign_install(Kind::tree); }},
    {"PublishBeforeUnlock", Mutant::unlock_before_publish, [] { return counters_sum_up(5000); },
     20},
    {"ReservedRecordsInScans", Mutant::ignore_dead_in_scans,
     [] { return scan_amid_foreign_insert(false, true); }},
    {"RevivingRecordsInScans", Mutant::ignore_dead_in_scans,
     [] { return scan_amid_foreign_insert(true, true); }},
    {"RevivalsChangeThePageWord", Mutant::revive_unannounced,
     [] { return scan_then_dead_record_returns(true); }},
    {"BlindWritesDoNotRevive", Mutant::revive_unannounced,
     [] { return scan_between_erase_and_blind_write(); }},
    {"LayersChangeThePageWord", Mutant::no_version_bump_on_layer,
     [] { return scan_then_foreign_layer(); }},
    {"PagesAreRegisteredByScans", Mutant::no_page_registration,
     [] { return scan_then_foreign_insert(false, false); }},
    {"PagesAreRegisteredByLookUps", Mutant::no_page_registration,
     [] { return not_found_then_foreign_insert(); }},
    {"Grace", Mutant::reuse_without_grace, [] { return replaced_pages_wait_for_their_readers(); }},
    {"VidRecheck", Mutant::no_vid_recheck, [] { return half_written_record_is_waited_for(); }, 20},
    {"VidsGrow", Mutant::vid_ignores_locked_record, [] { return vids_grow_per_key(Kind::array); }},
    {"ForeignPageWordsAreNotAdopted", Mutant::adopt_foreign_version,
     [] { return scan_foreign_insert_own_insert(); }},
    {"OwnWritesAreSeen", Mutant::hide_own_writes, [] { return look_ups_see_own_writes(); }},
    {"OwnWritesAreSeenByCursors", Mutant::hide_own_writes,
     [] { return cursors_see_own_writes(true); }},
    {"OwnInsertsUpdateThePageEntry", Mutant::keep_page_entry_on_reserve,
     [] { return look_up_then_insert_commits(2); }},
};

INSTANTIATE_TEST_SUITE_P(Engine, Rules, testing::ValuesIn(kRules),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace atolldb::test
