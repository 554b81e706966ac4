// Sync points for tests. At each one a test can let another worker take its steps, so that an
// interleaving is the same in every run. In the product `reach` is empty.
#pragma once

#include <cstdint>
#ifdef ATOLL_MUTANTS
#include <functional>
#endif

namespace atolldb {

enum class SyncPoint : uint32_t {
  locking_write,     // a commit is about to lock a record
  locked_writes,     // a commit has locked all records of its write set
  loaded_epoch,      // a commit has loaded the current epoch, but published no in-commit epoch yet
  awaiting_epoch,    // a commit waits for the next epoch
  verifying_read,    // a commit is between the loads of a read record's lock and its VID
  tracking,          // a worker follows a moved record through the twins of its page
  verified,          // a commit is verified and starts to write
  applied,           // a commit has written its records and still holds its locks
  installing,        // a worker has read a null word and has the new page ready
  scanning_list,     // a scan waits until an append ends
  locking_page,      // a worker is about to lock a border page to change it
  locked_page,       // a system transaction has locked a page or a root
  unlocking_page,    // a system transaction is about to unlock that page or root
  moved_records,     // the VIDs of a border page are marked as moved, but not yet its page word
  descending,        // a look-up starts at the root of a layer
  awaiting_move,     // a worker waits until a page word is marked as moved
  found_run,         // a merge has found a run of empty pages and locked none of them
  publishing_merge,  // a merge publishes what it has built
  dropping,          // a page is marked as dropped, but its parent still points to it
  awaiting_closed,   // a logger closes an epoch and waits for a commit in progress
  opening_lists,     // a scan knows its snapshot and has not loaded the lists yet
  found_layers,     // an installer knows the layers below a border page and has not locked the page
  reading_frames,   // a reader of the snapshot cache has frames and is about to read the device
  dropped,          // a page is dropped, and its parent has the null word
  loaded_null,      // a reader has loaded a null word, but not the snapshot word beside it
  frozen_words,     // all words of a page are frozen, but it is not marked as dropped yet
  found_child,      // a descent knows the slot of the child and has not loaded its word
  awaiting_writer,  // a reader waits until a write to a record ends
  draining_delta,   // an installer is about to remove records from a delta tree
  adding_blindly,   // an addition has reserved an open record, and not loaded its VID yet
  listing_storages,    // a checkpoint has its replay epoch, but not the list of storages yet
  copying_frame,       // a thread without a slot is about to copy a frame of the snapshot cache
  capturing,           // a capture has examined a border page and is about to copy its records
  taking_early_locks,  // a retry is about to take its early locks
  verifying_mark,      // a commit is between the loads of a lock's mark and of the record's VID
  unlocking_early,     // a worker has ended the mark of an early lock that it is about to release
};

#ifdef ATOLL_MUTANTS
/// Called by `reach`. REQUIRES: no other thread is in the engine while it is set or reset.
inline std::function<void(SyncPoint)> at_sync_point;
inline void reach(SyncPoint which) {
  if (at_sync_point) at_sync_point(which);
}
#else
constexpr void reach(SyncPoint) {}
#endif

}  // namespace atolldb
