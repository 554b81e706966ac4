// Deliberate faults, for tests only: each switches one rule off and must turn a named test red.
// The ordinary engine has none of this: `mutant` is constant false there.
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
  move_twins_before_moved,     // R7: twins reachable before the page word says moved
  adopt_foreign_version,       // R13: accepts any word as "before"
  hide_own_writes,             // R14
  keep_page_entry_on_reserve,  // R13: leaves the own page-version entry as it was
};

#ifdef ATOLL_MUTANTS
inline std::atomic<Mutant> active_mutant{Mutant::none};
inline bool mutant(Mutant which) { return active_mutant.load(std::memory_order_relaxed) == which; }
#else
constexpr bool mutant(Mutant) { return false; }
#endif

}  // namespace atolldb
