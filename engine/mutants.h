// Deliberate faults, for tests only. Each switches one rule off and turns a row of kRules in
// tests/engine/rules_mutant_test.cpp red; a test there sees to it that each has a row. The rules
// are in engine/RULES.md. The ordinary engine has none of this: `mutant` is constant false there.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

enum class Mutant : uint32_t {
  none = 0,
  skip_read_set_check,         // R11
  skip_lock_check,             // verification accepts records locked by others
  excuse_own_writes,           // R11: "r not in W", taken literally
  skip_page_version_check,     // R6, R12
  skip_pointer_set_check,      // R4
  unlock_before_publish,       // unlocks before the new VID is stored
  ignore_dead_in_scans,        // R12: reserved and reviving records do not enter the read set
  revive_unannounced,          // R12: dead records come back without a change of the page word
  no_version_bump_on_layer,    // R6: a next-layer conversion leaves the page word as it was
  no_page_registration,        // R12: not-found look-ups and scans register nothing
  reuse_without_grace,         // R9
  no_vid_recheck,              // torn reads
  vid_ignores_locked_record,   // R15
  adopt_foreign_version,       // R13: accepts any word as "before"
  hide_own_writes,             // R14
  uncovered_reservation,       // R13: nothing covers an absence between reserving and reading
  forget_own_increment,        // R33: an upsert over an own increment forgets what that answered
  skip_own_blind_writes,       // R14: scans pass dead records without asking for own writes
  use_dropped_storage,         // R34: operations do not look at the state of their storage
  keep_page_entry_on_reserve,  // R13: leaves the own page-version entry as it was
  // Commits.
  ignore_used_up_ordinals,    // R16: goes on into the bits of the epoch
  lock_blocks_from_zero,      // R25: the first lock of worker 0 of node 0 reads as "unlocked"
  unsorted_locks,             // R22: locks in the order of the writes
  unnamed_locks,              // R22: blocks do not say which lock they are for
  keep_locks_on_failure,      // R22: an aborted commit unlocks nothing
  vid_before_lock,            // verification loads the VID first, then the lock word
  epoch_before_in_commit,     // R21: the commit epoch is loaded before the in-commit epoch is out
  clear_in_commit_early,      // R21: the in-commit epoch is cleared before the records are written
  unverified_user_abort,      // R20: a user abort does not look at its reads
  user_abort_keeps_writes,    // R20: planned writes excuse locks that nobody holds for them
  ignore_deadline,            // R20
  read_only_publishes,        // R19: read-only transactions publish an in-commit epoch
  reserved_counts_as_commit,  // R19: ordinal 0 raises what an answer depends on
  forget_skipped_dead,        // R15, R19: dead records that a scan passes are not observed
  increment_before_lock,      // R33: the sum is made when the increment is planned
  update_dead_records,        // R33: an update of a record that has died meanwhile
  // Appends.
  even_list_while_appending,  // R17: the list's version word changes only afterwards
  unchanged_list_version,     // R17: the word ends where it began
  unregistered_lists,         // R17: scans register nothing
  excuse_any_odd_list,        // R17: any list may be odd by "our own" commit
  scan_odd_lists,             // R17: scans do not wait for the end of an append
  ignore_list_gaps,           // R17: page numbers do not count
  // Pages.
  install_by_store,           // R1: a page goes over whatever was installed meanwhile
  install_over_own_reads,     // R5: an installation forgets what was read through the pointer
  keep_vids_on_move,          // R7: records that have moved do not say so
  move_without_record_locks,  // R7: records are copied without their locks
  merge_parent_first,         // R7, R46: the merged page is reachable before its parts say moved
  change_moved_pages,         // a change goes into a page that was replaced while we waited for it
  reserved_as_commit,         // R10: a reserved record gets an ordinal
  remove_young_dead,          // R10: dead records are left out whatever their epoch
  floor_forgets_left_out,     // R43
  floor_forgets_predecessor,  // R43
  drop_layer_with_keys,       // R45: a layer that is not empty goes with its slot
  drop_layer_unmarked,        // R45: the root of a layer that is left out does not say so
  merge_unchecked,            // R46: pages are not looked at again under their locks
  scan_from_page_fence,       // R46: a scan starts where its page starts
  copy_without_freezing,      // R3
  move_separators,            // R3: a separator and its pointer change places
  keep_snapshot_words,        // R44: a slot that leads to another range keeps its snapshot word
  keep_reads_of_left_out,     // R13: own reads of records that the own split left out stay
  keep_memo,                  // R9: a worker remembers pages longer than it protects them
  // Waiting.
  waits_ignore_failure,  // R24
  wait_out_of_order,     // R22: waits where it may only try
  no_await_move,         // looks again at once at a page that is being replaced
  wait_in_verification,  // R23: waits, with locks held, for a record that is being moved
  pages_under_locks,     // R23: pages are taken from the pool when they are needed
  // The log.
  share_log_blocks,  // R26: records stay in a block that may have been written for its older epoch
  committed_before_closed,  // R26: loads the committed markers before the epoch is closed
  clean_epochs,             // R27: commits do not raise the node's dirty epoch
  unchecked_checksum,       // R30: blocks count whatever their checksum says
  unchecked_sequence,       // R30: gaps in a chain of blocks do not count
  cut_at_maximum,           // R28: the cut is what one logger made durable
  damage_is_torn_tail,      // R30: what is missing below what was known as durable is cut off
  cut_before_sync,          // R29: a cut is stored that unsynced blocks are part of
  keep_leftovers,           // R54: what starts that were given up have left stays
  read_through_cache,       // R53: a start reads what the page cache kept of a failed sync
  uncreated_storages,       // R52: records of storages that no DDL record creates are left alone
  // Snapshots.
  reuse_frames_at_once,        // R39: an evicted frame is filled anew while readers look at it
  keep_known_frames,           // R39: readers use addresses of frames from an earlier round
  trust_hints,                 // R39: a hint is followed whatever the frame holds now
  keep_scanned_pages,          // R39: scans use addresses of frames from an earlier round
  keep_rounds,                 // R57: engine calls end without leaving the round of the cache
  read_within_round,           // R57: readers hold their round while the device reads
  drop_unlocked_records,       // R8: pages are dropped under commits that write into them
  drop_later_changes,          // R8: what was changed after the snapshot is dropped with its page
  drop_without_count,          // R1: null words are the same before and after a drop
  drop_unfrozen,               // R3: a page may still be installed below one that is being dropped
  use_dropped_pages,           // R8: array records are read and written in pages that were dropped
  scan_one_snapshot_word,      // R17: scans do not look whether a snapshot was installed meanwhile
  snapshot_write_unchecked,    // R18: writes go over what was committed after the snapshot
  snapshot_reserve_unchecked,  // R18: the floor of a page does not count
  snapshot_read_volatile,      // R18: reads go on in volatile pages
  unannounced_snapshot,        // R18: a worker's slot does not say which snapshot it reads
  drop_before_install,         // R2: the snapshot word is stored after the one that drops the page
  install_in_moved_pages,      // R3: snapshot pages are installed in pages that were replaced
  walk_dropped_storages,       // R34: who walks pages does not ask whether their storage is there
  endless_shape,               // a shape waits until all that moves has its place
  unnested_shape,              // R44: a page may begin where none begins below it
  forget_held_records,         // R56: the log records of a range that cannot be read are not held
  drop_onto_stand_ins,         // R56: volatile pages are dropped onto what cannot be read
  forget_kept_log,             // R55: the log behind an older snapshot that is kept goes
  layers_of_two_only,  // R44: one record alone gets no layer, though there is a volatile one
  // The gleaner.
  leave_out_uncovered,     // R35: an update leaves out all records of its key before it
  keep_void_reservations,  // R40: a mapper that fails does not say so
  // Layers.
  keep_empty_layers,  // R45: an empty one stays until half of the slots beside it are dead
  // Own writes and answers.
  forget_increment_length,  // R33: an own increment's answer does not rest on the length
  cold_hides_own_writes,    // R14: reads of dropped pages do not ask for own writes
  forget_lost_writes,       // R14, R20: user abort in spite of own writes that reads have missed
  leave_out_own_writes,     // R14: an own split leaves out the dead record that is written
  forget_layer_root,        // R13: an own layer's root does not answer for an absence
  keep_record_entry_on_revival,  // R13: an own revival leaves the read-set entry as it was
  append_after_in_commit,        // R17: a list is odd only after the commit epoch is known
  await_any_epoch,               // R16: waits for an epoch after the last one
  dirty_after_in_commit,         // R27: the node is dirty only after the in-commit epoch is cleared
  // Pointers and pages.
  load_null_once,             // R2: no second look at a null word
  register_frozen_null,       // R3: a frozen null word decides a read
  missing_without_version,    // R3: a null word counts though the page has got other children
  ignore_oldest_begin,        // R10: the dead go though a transaction from before may rest on them
  records_descending,         // R22: a restructuring locks records against universal order
  interior_floor_zero,        // R43: pages that hold pointers do not inherit their floor
  layer_keeps_snapshot_word,  // R44: bytes of a payload name the snapshot page of a new layer
  forget_young_dead,          // R45: what a compaction could not leave out yet gets no other hint
  lose_deep_hints,            // R45: nothing is remembered of what dies in layers below the eighth
  // Small semantics: answers, drops of storages, snapshots that are published.
  newest_snapshot_of_node,            // R61: each node reads the newest one of its own table
  newest_before_published,            // R61: the word is stored before all nodes have published it
  empty_snapshot_after_commits,       // R62: without a snapshot the empty state is read, always
  job_told_before_durable,            // R59
  answer_before_durable,              // R19: answers to transactions are not held
  drop_logged_before_grace,           // R34: the drop is durable while users of the storage run
  drop_logged_before_durable,         // R60: commits before the drop may be lost, the drop not
  release_before_drop_logged,         // R34: pages go, and a crash brings the storage back
  snapshot_epoch_from_current,        // R36: the epoch of a run is the current one
  release_files_before_begin_epochs,  // R38: files go while transactions hold pointers there
  requests_before_listed,             // R28: requests run before the savepoint lists the loggers
  savepoint_same_slot_always,         // R28: a torn savepoint leaves none
  metadata_after_savepoint,           // R37: the savepoint names a snapshot that may be missing
  count_,
};

#ifdef ATOLL_MUTANTS
inline std::atomic<Mutant> active_mutant{Mutant::none};
inline bool mutant(Mutant which) { return active_mutant.load(std::memory_order_relaxed) == which; }
#else
constexpr bool mutant(Mutant) { return false; }
#endif

}  // namespace atolldb
