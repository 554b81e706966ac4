// Deliberate faults, for tests only. Each mutant switches one rule off, so that its row of kRules
// in tests/engine/rules_mutant_test.cpp fails. A test there checks that every mutant has a row. The
// rules are in engine/RULES.md. In the product `mutant` is constant false.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

enum class Mutant : uint32_t {
  none = 0,
  skip_read_set_check,        // R11
  skip_lock_check,            // verification accepts records that other workers have locked
  excuse_own_writes,          // R11: "r not in W", taken literally
  skip_page_version_check,    // R6, R12
  skip_pointer_set_check,     // R4
  unlock_before_publish,      // unlocks before it stores the new VID
  ignore_dead_in_scans,       // R12: reserved and pending tombstones do not enter the read set
  revive_unannounced,         // R12: a tombstone comes alive without a change of the page word
  no_version_bump_on_layer,   // R6: a next-layer conversion does not change the page word
  no_page_registration,       // R12: look-ups that find nothing, and scans, register no page
  reuse_without_grace,        // R9
  no_vid_recheck,             // readers accept torn reads
  vid_ignores_locked_record,  // R15
  adopt_foreign_version,      // R13: accepts any page word as "before"
  hide_own_writes,            // R14
  uncovered_reservation,  // R13: no entry covers the absence between the reservation and the read
  forget_own_increment,   // R33: an upsert that replaces an increment does not verify it
  skip_own_blind_writes,  // R14: scans skip tombstones without a search for own writes
  use_dropped_storage,    // R34: operations do not check the state of their storage
  keep_page_entry_on_reserve,  // R13: the own page-version entry keeps its old word
  // Commit.
  ignore_used_up_ordinals,    // R16: the ordinal overflows into the bits of the epoch
  lock_blocks_from_zero,      // R25: the first lock of worker 0 of node 0 reads as "unlocked"
  unsorted_locks,             // R22: locks in the order in which the writes were planned
  unnamed_locks,              // R22: MCS blocks do not name their lock
  keep_locks_on_failure,      // R22: an aborted commit unlocks nothing
  vid_before_lock,            // verification loads the VID first, then the lock word
  epoch_before_in_commit,     // R21: loads the commit epoch before it publishes the in-commit epoch
  clear_in_commit_early,      // R21: clears the in-commit epoch before it writes the records
  unverified_user_abort,      // R20: a user abort does not verify its reads
  user_abort_keeps_writes,    // R20: planned writes excuse locks that this worker does not hold
  ignore_deadline,            // R20
  read_only_publishes,        // R19: read-only transactions publish an in-commit epoch
  reserved_counts_as_commit,  // R19: ordinal 0 raises the epoch that a reply depends on
  forget_skipped_dead,        // R15, R19: tombstones that a scan skips are not observed
  increment_before_lock,      // R33: computes the sum when the increment is planned
  update_dead_records,        // R33: updates a record that was deleted after the update was planned
  // Appends.
  even_list_while_appending,  // R17: the list's version word changes only after the append
  unchanged_list_version,     // R17: the version word ends at its old value
  unregistered_lists,         // R17: scans register nothing
  excuse_any_odd_list,        // R17: accepts any odd list as the own one
  scan_odd_lists,             // R17: scans do not wait until an append ends
  ignore_list_gaps,           // R17: scans ignore gaps in the page numbers
  // Pages.
  install_by_store,           // R1: installs a page over any page that was installed meanwhile
  install_over_own_reads,     // R5: an installation forgets the reads through its pointer
  keep_vids_on_move,          // R7: records that moved do not get the flag kMoved
  move_without_record_locks,  // R7: records are copied without their locks
  merge_parent_first,  // R7, R46: the merged page is reachable before its parts are marked as moved
  change_moved_pages,  // changes a page that was replaced while the worker waited for its lock
  reserved_as_commit,  // R10: a reserved record gets an ordinal
  remove_young_dead,   // R10: elides tombstones of any epoch
  floor_forgets_left_out,     // R43: the floor ignores elided records
  floor_forgets_predecessor,  // R43: the floor ignores the floor of the replaced page
  drop_layer_with_keys,       // R45: drops a layer that is not empty together with its slot
  drop_layer_unmarked,        // R45: the root of a dropped layer is not marked as dropped
  merge_unchecked,            // R46: does not check the pages again under their locks
  scan_from_page_fence,       // R46: a scan starts at the fence of its page, not at its own bound
  copy_without_freezing,      // R3
  move_separators,            // R3: a separator and its pointer change their position
  keep_snapshot_words,        // R44: a slot that now leads to another range keeps its snapshot word
  keep_reads_of_left_out,  // R13: own reads of records that the own split elided stay in the read
                           // set
  keep_memo,  // R9: a worker remembers pages for longer than its begin epoch protects them
  // Waiting.
  waits_ignore_failure,  // R24
  wait_out_of_order,     // R22: waits where it may only try to lock
  no_await_move,         // retries at once when it meets a page that is being replaced
  wait_in_verification,  // R23: waits, with locks held, for a record that is moving
  pages_under_locks,     // R23: takes pages from the pool only when it needs them
  // The log.
  share_log_blocks,  // R26: keeps records in a block that may already be written for its older
                     // epoch
  committed_before_closed,  // R26: loads the committed markers before the epoch is closed
  clean_epochs,             // R27: commits do not raise the dirty epoch of their node
  unchecked_checksum,       // R30: accepts blocks with a wrong checksum
  unchecked_sequence,       // R30: accepts gaps in a chain of blocks
  cut_at_maximum,           // R28: the cut is the durable epoch of a single logger
  damage_is_torn_tail,      // R30: cuts off damage below the known durable epoch as a torn tail
  cut_before_sync,          // R29: stores a cut before the blocks below it are synced
  keep_leftovers,           // R54: keeps the files of failed starts
  read_through_cache,       // R53: a start reads pages that the page cache kept after a failed sync
  uncreated_storages,       // R52: ignores records of storages that no DDL record creates
  // Snapshots.
  reuse_frames_at_once,      // R39: refills an evicted frame while readers still use it
  keep_known_frames,         // R39: readers use frame addresses of an earlier round
  trust_hints,               // R39: follows a hint without a check of the frame's content
  keep_scanned_pages,        // R39: scans use frame addresses of an earlier round
  keep_rounds,               // R57: engine calls end without leaving the cache's round
  read_within_round,         // R57: readers stay in their round during device reads
  drop_unlocked_records,     // R8: drops a page while a commit writes into it
  drop_later_changes,        // R8: drops a page that has changes newer than the snapshot
  drop_without_count,        // R1: a drop does not increase the drop count of the null word
  drop_unfrozen,             // R3: a page can still be installed below a page that is being dropped
  use_dropped_pages,         // R8: reads and writes array records in dropped pages
  scan_one_snapshot_word,    // R17: scans do not check whether a snapshot was installed meanwhile
  snapshot_write_unchecked,  // R18: writes overwrite commits that are newer than the snapshot
  snapshot_reserve_unchecked,  // R18: ignores the floor of the page
  snapshot_read_volatile,      // R18: snapshot reads continue in volatile pages
  unannounced_snapshot,        // R18: the worker's slot does not name the snapshot that it reads
  drop_before_install,         // R2: stores the snapshot word after the word that drops the page
  install_in_moved_pages,      // R3: installs snapshot pages in pages that were replaced
  walk_dropped_storages,       // R34: page walks do not check that their storage still exists
  endless_shape,               // tree_shape.cpp: waits until every moving page has its final place
  unnested_shape,              // R44: a page may begin where no page of the level below begins
  forget_held_records,         // R56: does not keep the log records of an unreadable range
  drop_onto_stand_ins,         // R56: drops volatile pages onto stand-ins for unreadable pages
  forget_kept_log,             // R55: deletes log that an older, kept snapshot still needs
  layers_of_two_only,  // R44: a single record gets no layer although its volatile layer exists
  // The gleaner.
  leave_out_uncovered,     // R35: an update removes all earlier records of its key
  keep_void_reservations,  // R40: a failing mapper does not declare its reservation void
  // Layers.
  keep_empty_layers,  // R45: an empty layer stays until half of the slots beside it are dead
  // Own writes and answers.
  forget_increment_length,  // R33: an own increment's result does not depend on the record's length
  cold_hides_own_writes,    // R14: reads of dropped pages do not search for own writes
  forget_lost_writes,       // R14, R20: reports a user abort although reads missed own writes
  leave_out_own_writes,     // R14: an own split elides the tombstone that the transaction writes
  forget_layer_root,        // R13: the root of an own layer does not cover an absence
  keep_record_entry_on_revival,  // R13: an own revival leaves the read-set entry unchanged
  append_after_in_commit,        // R17: a list becomes odd only after the commit epoch is known
  await_any_epoch,               // R16: waits for an epoch after kMaxEpoch
  dirty_after_in_commit,  // R27: raises the dirty epoch only after it clears the in-commit epoch
  // Pointers and pages.
  load_null_once,             // R2: does not load a null word a second time
  register_frozen_null,       // R3: a frozen null word decides a read
  missing_without_version,    // R3: accepts a null word although the page has got other children
  ignore_oldest_begin,        // R10: elides tombstones that a running transaction may depend on
  records_descending,         // R22: a restructuring locks records against universal order
  interior_floor_zero,        // R43: pages that hold pointers do not inherit their floor
  layer_keeps_snapshot_word,  // R44: payload bytes become the snapshot word of a new layer
  forget_young_dead,  // R45: tombstones that a compaction could not elide yet get no new hint
  lose_deep_hints,    // R45: deletes in layers below the eighth leave no hint
  // Answers, drops of storages, published snapshots.
  newest_snapshot_of_node,  // R61: each node reads the newest snapshot of its own table
  newest_before_published,  // R61: stores the word before all nodes have published the snapshot
  empty_snapshot_after_commits,  // R62: without a snapshot, transactions always read the empty
                                 // state
  job_told_before_durable,       // R59: reports a job as done before its commits are durable
  answer_before_durable,         // R19: sends replies before their epoch is durable
  drop_logged_before_grace,      // R34: logs the drop while transactions still use the storage
  drop_logged_before_durable,   // R60: logs the drop before the commits that precede it are durable
  release_before_drop_logged,   // R34: retires pages first, so a crash restores a storage without
                                // them
  snapshot_epoch_from_current,  // R36: the epoch of a snapshot job is the current epoch
  release_files_before_begin_epochs,  // R38: deletes files that transactions still hold pointers to
  requests_before_listed,      // R28: accepts requests before the savepoint lists the loggers
  savepoint_same_slot_always,  // R28: overwrites the only valid slot, so a torn savepoint leaves
                               // none
  metadata_after_savepoint,    // R37: the savepoint names a snapshot whose metadata may be missing
  count_,
};

#ifdef ATOLL_MUTANTS
inline std::atomic<Mutant> active_mutant{Mutant::none};
inline bool mutant(Mutant which) { return active_mutant.load(std::memory_order_relaxed) == which; }
#else
constexpr bool mutant(Mutant) { return false; }
#endif

}  // namespace atolldb
