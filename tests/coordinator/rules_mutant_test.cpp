// Table of rules of nodes and coordinator: every rule that can be switched off has a body that
// fails without it.
#include <gtest/gtest.h>

#include <string>

#include "tests/coordinator/archive/made_archive.h"
#include "tests/coordinator/archive/unstored_state.h"
#include "tests/coordinator/checkpoint_rules.h"
#include "tests/coordinator/cluster_rules.h"
#include "tests/coordinator/drop_rules.h"
#include "tests/coordinator/durability/cut_history.h"
#include "tests/engine/hooks/rule_table.h"
#include "tests/soc/node/job_rules.h"
#include "tests/soc/session/answer_rules.h"
#include "tests/soc/snapshot_job/snapshot_job_rules.h"

namespace atolldb::test {
namespace {

class ClusterRulesOff : public testing::TestWithParam<Rule> {};

TEST_P(ClusterRulesOff, TheBodyPassesWithTheRuleAndFailsWithoutIt) {
  expect_to_fail_without(GetParam());
}

/// Runs power cuts of a few incarnations, with different seeds on each call.
std::string power_cuts() {
  constexpr uint64_t kRounds = 6;
  static uint64_t seed = 1;
  const std::string problem = cut_clusters(seed, kRounds);
  seed += kRounds;
  return problem;
}

const Rule kRules[] = {
    {"AnswersWaitForDurability", Mutant::answer_before_durable, answers_wait_for_durability},
    {"RequestsWaitForTheSavepoint", Mutant::requests_before_listed,
     requests_are_refused_until_the_loggers_are_listed},
    {"DropsWaitForTransactions", Mutant::drop_logged_before_grace,
     a_drop_goes_through_its_phases_in_their_order},
    {"DropsAreLoggedBeforePagesAreReleased", Mutant::release_before_drop_logged,
     a_drop_goes_through_its_phases_in_their_order},
    {"DropsWaitForDurability", Mutant::drop_logged_before_durable,
     a_drop_goes_through_its_phases_in_their_order},
    {"SnapshotsAreOfDurableEpochs", Mutant::snapshot_epoch_from_current,
     snapshots_are_of_durable_epochs, 5},
    {"FilesAreKeptForBeginEpochs", Mutant::release_files_before_begin_epochs,
     files_are_kept_while_transactions_may_hold_their_pointers},
    {"JobsWaitForDurability", Mutant::job_told_before_durable,
     a_job_is_done_when_what_it_committed_is_durable},
    {"JobsOfNodesWaitForDurability", Mutant::job_told_before_durable,
     jobs_are_done_when_their_commits_are_durable, 5},
    {"NewestSnapshotIsOfTheCluster", Mutant::newest_snapshot_of_node,
     newest_snapshots_only_advance},
    {"NewestSnapshotIsPublishedFirst", Mutant::newest_before_published,
     newest_snapshots_only_advance},
    {"SavepointSlotsAlternate", Mutant::savepoint_same_slot_always, power_cuts, 20},
    {"MetadataComesBeforeTheSavepoint", Mutant::metadata_after_savepoint, power_cuts, 20},
    {"FirstSnapshotHasCommits", Mutant::empty_snapshot_after_commits,
     the_first_snapshot_is_taken_when_it_is_asked_for},
    {"OnlyClosedFilesAreArchived", Mutant::archive_open_log, only_closed_files_are_archived},
    {"UnstoredArchiveStateKeepsTheLog", Mutant::forget_unstored_log, unstored_states_keep_the_log},
    {"ComposersWaitForTheInstall", Mutant::compose_amid_install,
     a_job_that_holds_composes_after_the_first_wait},
    {"TheSettledEpochIsHeldDuringAReplay", Mutant::settled_during_replay,
     the_settled_epoch_is_held_until_all_nodes_have_replayed},
    {"StoragesAreListedAfterTheReplayEpoch", Mutant::storages_before_replay_epoch,
     a_storage_that_is_created_during_a_checkpoint_loses_nothing},
    {"CheckpointsWaitForLoggedDrops", Mutant::checkpoint_amid_unlogged_drop,
     checkpoints_wait_for_drops_that_are_not_logged, 5},
    {"NodesDivideFilesAlike", Mutant::unchecked_divisions,
     different_divisions_of_the_files_are_refused},
    {"NodesExchangeWhenAllHaveReadTheirFiles", Mutant::exchange_amid_files,
     nodes_exchange_when_all_have_read_their_files},
};

/// The earlier mutants belong to the engine: tests/engine/rules_mutant_test.cpp has their bodies.
TEST(ClusterMutants, EachHasABodyThatFails) {
  expect_rows(kRules, Mutant::newest_snapshot_of_node, Mutant::count_);
}

INSTANTIATE_TEST_SUITE_P(All, ClusterRulesOff, testing::ValuesIn(kRules),
                         [](const auto& test_info) { return std::string(test_info.param.name); });

}  // namespace
}  // namespace atolldb::test
