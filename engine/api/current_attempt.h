// What a thread that runs code of a procedure library runs now: for the functions that the library
// calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/open_cursors.h"
#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// What the calling thread runs now. Thread-local, and without a constructor or destructor, so that
/// an access is one instruction.
struct CurrentAttempt {
  /// No attempt has this number, so calls of a default-constructed transaction fail, too.
  static constexpr uint64_t kNone = ~uint64_t{0};

  uint64_t number = kNone;             // attempt of a transaction
  uint64_t load_number = kNone;        // run of a library's load function
  uint64_t prefetch_number = kNone;    // run of a prefetch function
  Transaction* transaction = nullptr;  // during an attempt or a prefetch
  ControlSegment* control = nullptr;   // during an attempt or a load
  std::vector<std::byte>* output = nullptr;
  std::string* message = nullptr;
  OpenCursors* cursors = nullptr;  // null until the attempt opens a cursor

  bool runs(uint64_t attempt) const { return attempt == number; }
  bool runs_or_loads(uint64_t attempt) const { return runs(attempt) || attempt == load_number; }
  bool prefetches(uint64_t run) const { return run == prefetch_number; }
};
extern constinit thread_local CurrentAttempt current_attempt;

/// Returns the cursors of the current attempt. REQUIRES: this thread runs an attempt.
OpenCursors& cursors_of_attempt();

}  // namespace atolldb
