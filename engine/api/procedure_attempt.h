// The state of a thread that runs code of a procedure library, and the functions that the library
// calls. The library names its attempt by a number, which is unique in the process. So a call after
// the end of the attempt, or on another thread, finds another number and touches nothing.
#pragma once

#include <atoll/abi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// The table that all libraries call. It lives until the process ends.
const atoll_api::abi::NodeFunctions& node_functions();

/// Makes a transaction the current attempt of this thread, until the scope ends. Its end closes the
/// cursors of the attempt.
class ProcedureAttempt {
 public:
  /// REQUIRES: the transaction is active, and this thread runs no other attempt.
  ProcedureAttempt(Transaction& transaction, std::vector<std::byte>& output, std::string& message);
  ProcedureAttempt(const ProcedureAttempt&) = delete;
  ProcedureAttempt& operator=(const ProcedureAttempt&) = delete;
  ~ProcedureAttempt();

  uint64_t number() const;
};

/// Lets this thread run a prefetch function while a transaction is active, until the scope ends.
/// The function can only name records to load (R9): it has no attempt, so calls with effects are
/// refused.
class PrefetchRun {
 public:
  /// REQUIRES: the transaction is active, and this thread runs no attempt.
  explicit PrefetchRun(Transaction& transaction);
  PrefetchRun(const PrefetchRun&) = delete;
  PrefetchRun& operator=(const PrefetchRun&) = delete;
  ~PrefetchRun();

  uint64_t number() const;
};

/// Lets this thread run a library's load function, which may look storages up, until the scope
/// ends.
class LibraryLoad {
 public:
  /// `message` receives the reason of a failure. The first storage that is not found is one.
  LibraryLoad(ControlSegment& control, std::string& message);
  LibraryLoad(const LibraryLoad&) = delete;
  LibraryLoad& operator=(const LibraryLoad&) = delete;
  ~LibraryLoad();

  uint64_t number() const;
};

}  // namespace atolldb
