// Rules that a coordinator and its nodes keep together, on a cluster that starts stage by stage.
#include <gtest/gtest.h>

#include "tests/coordinator/cluster_rules.h"

namespace atolldb::test {
namespace {

TEST(ClusterRules, RequestsAreRefusedUntilTheLoggersAreListed) {
  EXPECT_EQ(requests_are_refused_until_the_loggers_are_listed(), "");
}

TEST(ClusterRules, SnapshotsAreOfDurableEpochs) {
  EXPECT_EQ(snapshots_are_of_durable_epochs(), "");
}

TEST(ClusterRules, FilesAreKeptWhileTransactionsMayHoldTheirPointers) {
  EXPECT_EQ(files_are_kept_while_transactions_may_hold_their_pointers(), "");
}

TEST(ClusterRules, EveryOpenNamesTheFilesOfKeptSnapshots) {
  EXPECT_EQ(every_open_names_the_files_of_kept_snapshots(), "");
}

TEST(ClusterRules, NewestSnapshotsOnlyAdvance) { EXPECT_EQ(newest_snapshots_only_advance(), ""); }

TEST(ClusterRules, TheFirstSnapshotIsTakenWhenItIsAskedFor) {
  EXPECT_EQ(the_first_snapshot_is_taken_when_it_is_asked_for(), "");
}

TEST(ClusterRules, JobsAreDoneWhenTheirCommitsAreDurable) {
  EXPECT_EQ(jobs_are_done_when_their_commits_are_durable(), "");
}

TEST(ClusterRules, DropsWaitForTransactionsAndHoldNothingUp) {
  EXPECT_EQ(drops_wait_for_transactions_and_hold_nothing_up(), "");
}

TEST(ClusterRules, AFailedPublicationIsLogged) { EXPECT_EQ(a_failed_publication_is_logged(), ""); }

TEST(ClusterRules, ASlowListOfDamageDelaysNoDdl) {
  EXPECT_EQ(a_slow_list_of_damage_delays_no_ddl(), "");
}

}  // namespace
}  // namespace atolldb::test
