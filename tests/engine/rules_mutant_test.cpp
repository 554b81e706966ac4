// Every rule that can be switched off has a body that fails without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>

#include "tests/engine/anomalies.h"
#include "tests/engine/append_rules.h"
#include "tests/engine/commit_rules.h"
#include "tests/engine/dropped_storage.h"
#include "tests/engine/gleaner/compaction_rules.h"
#include "tests/engine/gleaner/exchange_rules.h"
#include "tests/engine/log/log_rules.h"
#include "tests/engine/log/logger_rules.h"
#include "tests/engine/log/power_cut_logs.h"
#include "tests/engine/move_rules.h"
#include "tests/engine/mutant_guard.h"
#include "tests/engine/own_effects.h"
#include "tests/engine/races.h"
#include "tests/engine/reclaim_rules.h"
#include "tests/engine/reservation_window.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/engine/snapshot/cold_storages.h"
#include "tests/engine/snapshot/drop_races.h"
#include "tests/engine/snapshot/install_races.h"
#include "tests/engine/snapshot/isolation_rules.h"
#include "tests/engine/snapshot/isolation_tree.h"
#include "tests/engine/snapshot/shape_rules.h"
#include "tests/engine/snapshot/tree_drop_rules.h"
#include "tests/engine/wait_rules.h"

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
  RecordProperty("fault", problem);  // in the XML report: what the body saw
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
    {"PointerSetCheckColdPage", Mutant::skip_pointer_set_check,
     [] { return cold_read_then_foreign_copy_up(); }},
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
    {"ReservationsCoverTheAbsence", Mutant::uncovered_reservation,
     [] { return foreign_commit_of_a_reserved_key(false, false); }},
    {"RevivalsCoverTheAbsence", Mutant::uncovered_reservation,
     [] { return foreign_commit_of_a_reserved_key(true, true); }},
    {"DroppedStoragesAreNotUsed", Mutant::use_dropped_storage,
     [] { return operations_on_dropped_storages(false); }},
    {"PlacesOfDroppedStoragesAreNotUsed", Mutant::use_dropped_storage,
     [] { return operations_on_dropped_storages(true); }},
    {"ScansDoNotMissOwnBlindWrites", Mutant::skip_own_blind_writes,
     [] { return scan_of_an_own_blind_write_that_died(true); }},
    {"UserAbortsDoNotRestOnScansThatMissOwnWrites", Mutant::skip_own_blind_writes,
     [] { return user_abort_after_a_scan_of_an_own_blind_write_that_died(); }},
    {"WritesDoNotForgetIncrements", Mutant::forget_own_increment,
     [] { return write_over_an_increment_of_a_key_that_died(true); }},
    {"OwnInsertsUpdateThePageEntry", Mutant::keep_page_entry_on_reserve,
     [] { return look_up_then_insert_commits(2); }},

    // Commits.
    {"UsedUpOrdinals", Mutant::ignore_used_up_ordinals,
     [] { return used_up_ordinals_end_the_epoch_for_a_key(); }},
    {"LockBlocksStartAtOne", Mutant::lock_blocks_from_zero,
     [] { return write_skew_amid_a_commit(); }},
    {"LockCheckAmidACommit", Mutant::skip_lock_check, [] { return write_skew_amid_a_commit(); }},
    {"LocksInUniversalOrder", Mutant::unsorted_locks,
     [] { return locks_are_named_and_in_universal_order(); }},
    {"CrossingWriters", Mutant::unsorted_locks,
     [] { return crossing_writers_do_not_wait_for_each_other(); }},
    {"LockBlocksNameTheirLock", Mutant::unnamed_locks,
     [] { return locks_are_named_and_in_universal_order(); }},
    {"FailedCommitsHoldNothing", Mutant::keep_locks_on_failure,
     [] { return a_failed_commit_holds_nothing(); }},
    {"LockWordBeforeVid", Mutant::vid_before_lock,
     [] { return a_writer_ends_amid_a_verification(); }},
    {"CommitEpochAfterInCommit", Mutant::epoch_before_in_commit,
     [] { return no_commit_enters_a_closed_epoch(Seam::loaded_epoch); }},
    {"InCommitUntilWritten", Mutant::clear_in_commit_early,
     [] { return no_commit_enters_a_closed_epoch(Seam::verified); }},
    {"UserAbortsAreVerified", Mutant::unverified_user_abort,
     [] { return user_abort_after_a_foreign_write(); }},
    {"UserAbortsExcuseNoLock", Mutant::user_abort_keeps_writes,
     [] { return user_abort_of_a_record_locked_by_another(); }},
    {"Deadline", Mutant::ignore_deadline, [] { return every_call_fails_from_the_deadline_on(); }},
    {"ReadOnlyWritesNothing", Mutant::read_only_publishes,
     [] { return read_only_transactions_write_nothing(); }},
    {"SkippedDeadAreObserved", Mutant::forget_skipped_dead,
     [] { return an_answer_depends_on_the_dead_it_passed(); }},
    {"ReservationsAreNoCommits", Mutant::reserved_counts_as_commit,
     [] { return an_answer_does_not_depend_on_reservations(); }},
    {"IncrementsUnderTheLockArray", Mutant::increment_before_lock,
     [] { return increments_sum_up(Kind::array); }},
    {"IncrementsUnderTheLockTree", Mutant::increment_before_lock,
     [] { return increments_sum_up(Kind::tree); }},
    {"IncrementsOfTheLivingOnly", Mutant::update_dead_records,
     [] { return an_increment_does_not_wake_the_dead(); }},

    // Appends.
    {"ListIsOddWhileAppending", Mutant::even_list_while_appending,
     [] { return a_scan_commits_amid_an_append(); }},
    {"OnlyTheOwnListMayBeOdd", Mutant::excuse_any_odd_list,
     [] { return a_scan_commits_amid_an_append(); }},
    {"ScansWaitForTheAppend", Mutant::scan_odd_lists,
     [] { return a_scan_begins_amid_an_append(); }},
    {"AppendsChangeTheList", Mutant::unchanged_list_version,
     [] { return scan_then_foreign_append(true); }},
    {"ScansRegisterLists", Mutant::unregistered_lists,
     [] { return scan_then_foreign_append(true); }},
    {"ScansRegisterMissingLists", Mutant::unregistered_lists,
     [] { return scan_then_foreign_append(false); }},
    {"MissingFirstPage", Mutant::ignore_list_gaps, [] { return a_missing_page_is_noticed(0); }},
    {"MissingPage", Mutant::ignore_list_gaps, [] { return a_missing_page_is_noticed(1); }},

    // Pages.
    {"InstallsByCasArray", Mutant::install_by_store,
     [] { return two_installations_leave_one_page(Kind::array); }},
    {"InstallsByCasTree", Mutant::install_by_store,
     [] { return two_installations_leave_one_page(Kind::tree); }},
    {"InstallsByCasSequential", Mutant::install_by_store,
     [] { return two_first_appends_leave_one_directory(); }},
    {"OwnInstallAbortsArray", Mutant::install_over_own_reads,
     [] { return own_installation_over_an_absence(Kind::array); }},
    {"OwnInstallAbortsTree", Mutant::install_over_own_reads,
     [] { return own_installation_over_an_absence(Kind::tree); }},
    {"MovedRecordsSaySo", Mutant::keep_vids_on_move,
     [] { return a_write_to_the_moved_copy_is_seen(); }},
    {"SplitsLockTheirRecords", Mutant::move_without_record_locks,
     [] { return a_record_is_moved_amid_a_commit(false); }},
    {"LayersLockTheirRecord", Mutant::move_without_record_locks,
     [] { return a_record_is_moved_amid_a_commit(true); }},
    {"MergedPagesMoveFirst", Mutant::merge_parent_first,
     [] { return a_merge_moves_its_pages_first(); }},
    {"MovedPagesAreNotChanged", Mutant::change_moved_pages,
     [] { return a_page_is_replaced_before_it_is_locked(false); }},
    {"MovedPagesAreNotChangedByMany", Mutant::change_moved_pages,
     [] { return a_page_is_replaced_before_it_is_locked(true); }},
    {"OwnSplitsUpdateThePageEntry", Mutant::keep_page_entry_on_reserve,
     [] { return look_up_then_insert_commits(2000); }},
    {"ForeignPageWordsAreNotAdoptedBySplits", Mutant::adopt_foreign_version,
     [] { return scan_foreign_revival_own_split(); }},
    {"SlotsStay", Mutant::move_separators, [] { return interior_slots_stay_and_freeze(); }},
    {"ReplacedWordsAreFrozen", Mutant::copy_without_freezing,
     [] { return interior_slots_stay_and_freeze(); }},
    {"ReservedIsNoCommit", Mutant::reserved_as_commit,
     [] { return an_answer_does_not_depend_on_reservations(); }},
    {"YoungDeadStayInACompaction", Mutant::remove_young_dead,
     [] { return a_reservation_survives_a_compaction(); }},
    {"YoungDeadStayInASplit", Mutant::remove_young_dead, [] { return vids_grow_over_a_split(); }},
    {"FloorsOfCompactions", Mutant::floor_forgets_left_out,
     [] { return floors_cover_what_was_left_out(); }},
    {"FloorsOfSplits", Mutant::floor_forgets_predecessor,
     [] { return floors_are_inherited_by_splits(); }},
    {"FloorsOfLayers", Mutant::floor_forgets_predecessor,
     [] { return floors_are_inherited_by_layers(); }},
    {"FloorsOfMerges", Mutant::floor_forgets_predecessor,
     [] { return floors_are_inherited_by_merged_pages(); }},
    {"CompactionKeepsLayersWithKeys", Mutant::drop_layer_with_keys,
     [] { return a_compaction_keeps_layers_with_keys(); }},
    {"EmptyLayersGo", Mutant::keep_empty_layers,
     [] { return an_empty_layer_goes_from_a_living_page(); }},
    {"LayersThatHaveGoneSaySo", Mutant::drop_layer_unmarked,
     [] { return a_layer_that_has_gone_says_so(); }},
    {"MergesLookAgainAtKeys", Mutant::merge_unchecked,
     [] { return a_merge_looks_again_under_its_locks(1); }},
    {"MergesLookAgainAtSplits", Mutant::merge_unchecked,
     [] { return a_merge_looks_again_under_its_locks(99); }},
    {"ScansStartAtTheirBound", Mutant::scan_from_page_fence,
     [] { return a_scan_starts_within_a_merged_page(); }},
    {"OwnSplitsAnswerForWhatTheyLeaveOut", Mutant::keep_reads_of_left_out,
     [] { return own_split_leaves_out_what_was_read(); }},
    {"AdoptionsForgetSnapshots", Mutant::keep_snapshot_words,
     [] { return adoption_forgets_the_snapshot_page(); }},
    {"MergesForgetSnapshots", Mutant::keep_snapshot_words,
     [] { return a_merge_forgets_the_snapshot_pages(); }},
    {"PagesAreForgottenInTime", Mutant::keep_memo,
     [] { return what_a_worker_remembers_ends_with_its_epoch(); }},

    // Waiting.
    {"CompactionOnlyTries", Mutant::wait_out_of_order,
     [] { return reclaiming_waits_for_no_lock(Held::page); }},
    {"LayerDropOnlyTries", Mutant::wait_out_of_order,
     [] { return reclaiming_waits_for_no_lock(Held::layer_root); }},
    {"MergeOnlyTriesPages", Mutant::wait_out_of_order,
     [] { return reclaiming_waits_for_no_lock(Held::merged_page); }},
    {"MergeOnlyTriesTheParent", Mutant::wait_out_of_order,
     [] { return reclaiming_waits_for_no_lock(Held::parent); }},
    {"MergeOnlyTriesTheRoot", Mutant::wait_out_of_order,
     [] { return reclaiming_waits_for_no_lock(Held::root); }},
    {"AdoptionOnlyTries", Mutant::wait_out_of_order,
     [] { return an_adoption_waits_for_no_lock(); }},
    {"VerificationWaitsForNoMovedRecord", Mutant::wait_in_verification,
     [] { return verification_waits_for_no_mover(false); }},
    {"VerificationWaitsForNoMovedPage", Mutant::wait_in_verification,
     [] { return verification_waits_for_no_mover(true); }},
    {"SplitsTakePagesFirst", Mutant::pages_under_locks,
     [] { return a_split_takes_its_pages_first(); }},
    {"AppendsTakePagesFirst", Mutant::pages_under_locks,
     [] { return an_append_takes_its_page_first(); }},
    {"ReclaimingTakesPagesFirst", Mutant::pages_under_locks,
     [] { return reclaiming_takes_its_pages_first(); }},
    {"MovingPagesAreWaitedFor", Mutant::no_await_move,
     [] { return a_moving_page_is_waited_for(); }},
    {"FailureEndsLocking", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::record_lock); }},
    {"FailureEndsReads", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::half_written); }},
    {"FailureEndsLookUps", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::moving_get); }},
    {"FailureEndsInserts", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::moving_insert); }},
    {"FailureEndsIncrements", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::moving_increment); }},
    {"FailureEndsScans", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::moving_scan); }},
    {"FailureEndsCursorReads", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::moving_cursor); }},
    {"FailureEndsDescents", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::missing_twins); }},
    {"FailureEndsListScans", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::open_append); }},
    {"FailureEndsTheWaitForAnEpoch", Mutant::waits_ignore_failure,
     [] { return a_wait_ends_with_the_cluster(Stuck::used_up_ordinals); }},
    // The log.
    {"BlocksHaveOneEpoch", Mutant::share_log_blocks,
     [] { return a_commit_in_a_later_epoch_leaves_the_block(); }},
    {"ClosingWaitsForCommits", Mutant::committed_before_closed,
     [] { return closing_waits_for_commits_under_way(); }},
    {"CommitsMakeTheirEpochDirty", Mutant::clean_epochs,
     [] { return a_commit_makes_its_epoch_dirty(); }},
    {"DamagedBlocksDoNotCount", Mutant::unchecked_checksum,
     [] { return a_flipped_bit_is_noticed(); }},
    {"TornBlocksDoNotCount", Mutant::unchecked_checksum, [] { return cut_logs(1, 30); }},
    {"GapsAreNoticed", Mutant::unchecked_sequence, [] { return a_missing_block_is_noticed(); }},
    {"TheSlowestLoggerSetsTheCut", Mutant::cut_at_maximum,
     [] { return the_slowest_logger_sets_the_cut(); }},
    {"EpochsCountAsAWhole", Mutant::cut_at_maximum, [] { return cut_logs(1, 30); }},
    {"DurableBlocksMayNotBeMissing", Mutant::damage_is_torn_tail,
     [] { return missing_durable_blocks_are_corruption(); }},
    {"CutsAreSyncedBeforeTheyAreStored", Mutant::cut_before_sync, [] { return cut_logs(1, 30); }},
    {"LaterChangesStay", Mutant::drop_later_changes, [] { return later_changes_stay(); }},
    {"LockedRecordsStay", Mutant::drop_unlocked_records, [] { return locked_records_stay(); }},
    {"TreeDropsAreCounted", Mutant::drop_without_count,
     [] { return a_dropped_page_is_not_the_one_before(); }},
    // Snapshots.
    {"SnapshotWritesAreCheckedArray", Mutant::snapshot_write_unchecked,
     [] { return snapshot_write_of_a_changed_record(Kind::array, true); }},
    {"SnapshotWritesAreCheckedTree", Mutant::snapshot_write_unchecked,
     [] { return snapshot_write_of_a_changed_record(Kind::tree, false); }},
    {"SnapshotWritesAreCheckedOracle", Mutant::snapshot_write_unchecked,
     [] { return tree_isolation_oracle(300, 5); }, 3},
    {"SnapshotReservationsAreChecked", Mutant::snapshot_reserve_unchecked,
     [] { return snapshot_write_of_a_key_that_was_left_out(); }},
    {"SnapshotReadsEnterByItsRootArray", Mutant::snapshot_read_volatile,
     [] { return snapshot_readers_see_no_later_commit(Kind::array); }},
    {"SnapshotReadsEnterByItsRootTree", Mutant::snapshot_read_volatile,
     [] { return snapshot_readers_see_no_later_commit(Kind::tree); }},
    {"OwnWritesAreSeenOnSnapshots", Mutant::hide_own_writes,
     [] { return tree_isolation_oracle(300, 5); }, 3},
    {"SnapshotsAreAnnounced", Mutant::unannounced_snapshot,
     [] { return a_snapshot_that_is_read_is_announced(); }},
    {"FramesAreReusedAfterTheirGrace", Mutant::reuse_frames_at_once,
     [] { return a_page_stays_while_it_is_looked_at(); }},
    {"AddressesOfFramesGoWithTheRound", Mutant::keep_known_frames,
     [] { return a_page_that_was_evicted_is_read_again(); }},
    {"HintsAreChecked", Mutant::trust_hints, [] { return a_hint_is_only_a_hint(); }},
    {"PagesOfScansGoWithTheRound", Mutant::keep_scanned_pages,
     [] { return a_scan_goes_on_though_its_page_was_evicted(); }},
    {"DropsLockRecords", Mutant::drop_unlocked_records,
     [] { return a_commit_under_way_keeps_its_page(); }},
    {"LaterChangesAreNotDropped", Mutant::drop_later_changes,
     [] { return later_changes_keep_their_page(); }},
    {"LaterAppendsAreNotDropped", Mutant::drop_later_changes, [] { return later_appends_stay(); }},
    {"DropsAreCounted", Mutant::drop_without_count,
     [] { return a_copy_up_of_an_older_page_fails(); }},
    {"ReplacedColdWordsAreCounted", Mutant::drop_without_count,
     [] { return a_copy_up_brings_no_older_snapshot_back(); }},
    {"DroppedWordsAreFrozen", Mutant::drop_unfrozen,
     [] { return nothing_is_installed_below_a_dropped_page(); }},
    {"RecordsInDroppedPagesAreNotRead", Mutant::use_dropped_pages,
     [] { return found_records_are_not_read_in_dropped_pages(); }},
    {"RecordsInDroppedPagesAreNotWritten", Mutant::use_dropped_pages,
     [] { return nothing_is_written_into_dropped_pages(false); }},
    {"RecordsInDroppedPagesAreNotIncremented", Mutant::use_dropped_pages,
     [] { return nothing_is_written_into_dropped_pages(true); }},
    {"FloorsOfDrops", Mutant::floor_forgets_left_out, [] { return drops_raise_the_floor_above(); }},
    {"ScansLookAgainAtTheSnapshot", Mutant::scan_one_snapshot_word,
     [] { return a_scan_amid_an_installation_misses_nothing(); }},
    {"SnapshotPagesComeBeforeDrops", Mutant::drop_before_install,
     [] { return what_stands_for_a_page_is_there_before_it_goes(); }},
    {"MovedPagesGetNoSnapshots", Mutant::install_in_moved_pages,
     [] { return nothing_is_installed_in_moved_pages(); }},
    {"TreesThatGoAreLeftAlone", Mutant::walk_dropped_storages,
     [] { return a_storage_that_goes_is_left_alone(StorageType::mastertree, false); }},
    {"ArraysThatGoAreLeftAlone", Mutant::walk_dropped_storages,
     [] { return a_storage_that_goes_is_left_alone(StorageType::array, true); }},
    {"HeapsThatGoAreLeftAlone", Mutant::walk_dropped_storages,
     [] { return a_storage_that_goes_is_left_alone(StorageType::sequential, false); }},
    {"PlacesOfTreesThatHaveGoneAreLeftAlone", Mutant::walk_dropped_storages,
     [] { return a_storage_that_goes_is_left_alone(StorageType::mastertree, true); }},
    {"ShapesOfTreesThatGoAreGivenUp", Mutant::walk_dropped_storages,
     [] { return a_shape_of_a_storage_that_goes_is_given_up(false); }},
    {"ShapesOfTreesThatHaveGoneAreGivenUp", Mutant::walk_dropped_storages,
     [] { return a_shape_of_a_storage_that_goes_is_given_up(true); }},
    {"ShapesEnd", Mutant::endless_shape, [] { return a_shape_ends_on_a_full_pool(); }},
    {"ShapesAreNested", Mutant::unnested_shape, [] { return shapes_are_nested(); }},
    {"LayersOfOneRecordGo", Mutant::layers_of_two_only,
     [] { return a_layer_of_one_record_goes(true); }},
    {"LayersOfTheSecondRecordGo", Mutant::layers_of_two_only,
     [] { return a_layer_of_one_record_goes(false); }},
    // The gleaner.
    {"OnlyWhatIsCoveredIsLeftOut", Mutant::leave_out_uncovered,
     [] { return compaction::leaves_records_as_their_changes_do(200); }},
    {"ReservationsAreAnnouncedOrVoid", Mutant::keep_void_reservations,
     [] { return a_reservation_that_is_not_announced_is_void(); }},
};

TEST(Mutants, EachHasABodyThatFails) {
  for (uint32_t which = 1; which < static_cast<uint32_t>(Mutant::count_); ++which) {
    EXPECT_TRUE(std::ranges::any_of(
        kRules, [&](const Rule& rule) { return rule.mutant == static_cast<Mutant>(which); }))
        << "mutant number " << which << " has no row in kRules";
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, Rules, testing::ValuesIn(kRules),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace atolldb::test
