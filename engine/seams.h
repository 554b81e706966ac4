// Places within an operation where a test lets another worker take its steps, so that an
// interleaving is the same in every run. The ordinary engine has none of this: `reach` is empty.
#pragma once

#include <cstdint>
#ifdef ATOLL_MUTANTS
#include <functional>
#endif

namespace atolldb {

enum class Seam : uint32_t {
  locking_write,     // a commit is about to lock a record
  locked_writes,     // a commit has locked all its records
  loaded_epoch,      // a commit knows the epoch, and has not published it
  awaiting_epoch,    // a commit waits for the next epoch
  verifying_read,    // a commit has seen one half of a record in the read set
  tracking,          // following a record that has moved through the twins of its page
  verified,          // a commit may write now
  applied,           // a commit has written, and is still locked
  installing,        // a null word was read, the new page is ready
  scanning_list,     // waiting for the end of an append
  locking_page,      // a change of a border page is about to lock it
  locked_page,       // a system transaction has locked a page or a root
  unlocking_page,    // ... and is about to unlock it
  moved_records,     // the VIDs of a border page say moved, its word does not yet
  descending,        // a look-up starts at the root of a layer
  awaiting_move,     // waiting for a page word that is about to say moved
  found_run,         // a merge has seen a run of empty pages, and locked none of them
  publishing_merge,  // a merge publishes what it has built
  dropping,          // a page says that it was dropped, its parent does not yet
  awaiting_closed,   // a logger waits for a commit under way
  opening_lists,     // a scan knows the snapshot, and has not seen the lists
  found_layers,      // an installer knows the layers below a border page, and has not locked it
  reading_frames,    // a reader of the snapshot cache has frames, and asks the device
  dropped,           // the parent of a page that was dropped says so, too
  loaded_null,       // a null word was read, what stands for it was not
  frozen_words,      // all words of a page are frozen, it does not yet say that it is dropped
  found_child,       // a descent knows the slot of the child, and has not loaded its word
  awaiting_writer,   // waiting for the end of a write to a record
};

#ifdef ATOLL_MUTANTS
/// Set and reset while no other thread is in the engine.
inline std::function<void(Seam)> at_seam;
inline void reach(Seam which) {
  if (at_seam) at_seam(which);
}
#else
constexpr void reach(Seam) {}
#endif

}  // namespace atolldb
