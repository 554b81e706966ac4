// The procedure API: all that a library of procedures includes.
//
// A *procedure* is the body of one transaction. The node begins, commits and retries it. So the
// body may run several times, and must have no side effects except those of its transaction.
// Thread: a worker of the node; no call may be made from another thread.
//
//   #include <atoll/procedure.h>
//
//   static atoll_api::Array accounts;
//
//   static atoll_api::Status on_load(atoll_api::Library& library) {
//     return library.find("accounts", accounts);
//   }
//   static atoll_api::Status deposit(atoll_api::Context& context) {
//     return accounts.increment(context.transaction(), 7, int64_t{100});
//   }
//   ATOLL_LIBRARY(on_load, {"deposit", deposit});
//
// * Return an abort status (`is_abort`) of a call unchanged. Return user_abort, or any result such
//   as not_found, to roll back.
// * An exception, or an output above the limit, ends the transaction with procedure_failed.
// * <atoll/storages.h> states what is guaranteed about storages, places and cursors.
// * The node maps a private copy of the library file, so the file may be overwritten at any time.
//   `atoll procedure reload` loads a new version. Running transactions end with the old code, and
//   the old version stays loaded until the node ends. Static data of the old version is not copied.
// * Compile with -fvisibility=hidden, as the CMake package and pkg-config do. Otherwise all
//   versions of a library share inline variables, and static data of inline functions and
//   templates.
//
// Needs C++17, GCC or Clang, and Linux on x86-64.
#pragma once

#include <atoll/storages.h>

#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

namespace atoll_api {

inline constexpr uint32_t kMaxProcedureName = 60;
/// Limits of calls by a control request. All other calls have those of the config:
/// procedures.max_input and procedures.max_output, 64 MiB by default.
inline constexpr uint32_t kMaxProcedureInputBytes = 1u << 20;
inline constexpr uint32_t kMaxProcedureOutputBytes = 1u << 20;

/// The input of a procedure, in the node's memory. `bytes` and `text` check that the attempt still
/// runs on this thread. If not, they throw std::logic_error (without exceptions: abort). The views
/// that they return are unchecked: use them before the procedure returns, or copy them.
class Input {
 public:
  Input() = default;
  Input(Transaction txn, Bytes bytes) : txn_(txn), bytes_(bytes) {}

  Bytes bytes() const {
    if (!txn_.is_current()) end_of_attempt();
    return bytes_;
  }
  std::string_view text() const { return bytes().text(); }
  size_t size() const { return bytes_.size(); }

 private:
  [[noreturn]] static void end_of_attempt() {
#if defined(__cpp_exceptions)
    throw std::logic_error("atoll_api::Input: used after the end of its transaction");
#else
    std::abort();
#endif
  }

  Transaction txn_;
  Bytes bytes_;
};

/// What the node passes to a procedure. It lives until the procedure returns.
class Context {
 public:
  /// Called by the node.
  Context(const abi::NodeFunctions& node, uint64_t attempt, Bytes input)
      : txn_(node, attempt), input_(input) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Transaction transaction() const { return txn_; }
  Input input() const { return {txn_, input_}; }
  /// Replaces the output. The caller receives it only if the transaction commits.
  Status set_output(Bytes output) { return txn_.call(&abi::NodeFunctions::set_output, output); }
  /// Sets the text that the caller receives with a status other than ok.
  Status set_message(Bytes message) { return txn_.call(&abi::NodeFunctions::set_message, message); }
  /// Looks a storage up by name. The search is linear: prefer Library::find, once per load. Returns
  /// storage_not_found if there is no storage of this name and type.
  template <typename Storage>
  Status find(std::string_view name, Storage& storage) const {
    return txn_.call(&abi::NodeFunctions::find_storage, Bytes(name), Storage::kType,
                     &storage.handle_);
  }

 private:
  Transaction txn_;
  Bytes input_;
};

/// What the node passes to the load function of a library. It lives until that function returns.
///
/// The node calls the load function before the first procedure of the library runs. If it returns
/// ok, it never runs again for this load of the library. If it returns storage_not_found, calls of
/// the library's procedures return that status, and the node runs it again before each of them. Any
/// other status refuses the library.
class Library {
 public:
  /// Called by the node.
  Library(const abi::NodeFunctions& node, uint64_t attempt) : node_(&node), attempt_(attempt) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Looks a storage up by name. Returns storage_not_found if there is no storage of this name and
  /// type.
  template <typename Storage>
  Status find(std::string_view name, Storage& storage) const {
    return node_->find_storage(attempt_, Bytes(name), Storage::kType, &storage.handle_);
  }
  /// Sets the reason of a status other than ok.
  Status set_message(Bytes message) { return node_->set_message(attempt_, message); }

 private:
  const abi::NodeFunctions* node_;
  uint64_t attempt_;
};

/// What the node passes to a prefetch function. It lives until that function returns.
///
/// If a call of a procedure waits for a worker, the worker calls the procedure's prefetch function
/// shortly before the commit of the transaction that it runs now. The function names records that
/// the procedure will use, so that the processor loads them during the commit. This is a hint:
/// * the function may run once, several times or never, and the procedure must not depend on it;
/// * it sees no data, and its calls have no result and no effect on any transaction;
/// * it does not run beside a transaction that reads a snapshot;
/// * it delays the running transaction, so it should name few records and compute little;
/// * an exception ends only the function.
/// Records that are in no page of memory, and storages that the load function has not found, are
/// ignored.
class Prefetch {
 public:
  /// Called by the node.
  Prefetch(const abi::NodeFunctions& node, uint64_t run, Bytes input)
      : node_(&node), run_(run), input_(input) {}
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The input of the call. The view ends with the function.
  Bytes input() const { return input_; }
  void records(const Array& array, const uint64_t* indexes, size_t count) const {
    node_->prefetch_array(run_, &array.handle_, indexes, count);
  }
  /// Prefetches records of several storages, and only the wanted bytes of records of arrays. Does
  /// nothing if a storage was not found, or the payload lacks the bytes.
  void records(std::initializer_list<Wanted> wanted) const {
    static_cast<void>(node_->prefetch_wanted(run_, wanted.begin(), wanted.size(), sizeof(Wanted)));
  }
  /// Prefetches `records` records from each key on. 0: only the start of their page, for keys to
  /// insert.
  void records(const Mastertree& tree, const Bytes* keys, size_t count,
               uint32_t records = 1) const {
    node_->prefetch_tree(run_, &tree.handle_, keys, count, records);
  }

 private:
  const abi::NodeFunctions* node_;
  uint64_t run_;
  Bytes input_;
};

}  // namespace atoll_api

/// Use once in a library. `on_load`: a LoadFunction, or nullptr. The procedures follow as
/// {"name", function} or {"name", function, atoll_api::Isolation::snapshot_read_only}. A prefetch
/// function may come last.
#define ATOLL_LIBRARY(on_load, ...)                                               \
  static const ::atoll_api::Procedure atoll_library_procedures[] = {__VA_ARGS__}; \
  extern "C" __attribute__((visibility("default")))                               \
  const ::atoll_api::abi::LibraryDescription atoll_library;                       \
  const ::atoll_api::abi::LibraryDescription atoll_library = {                    \
      ::atoll_api::abi::kMagic,                                                   \
      ::atoll_api::abi::kAbiMajor,                                                \
      ::atoll_api::abi::kAbiMinor,                                                \
      sizeof(atoll_library_procedures) / sizeof(atoll_library_procedures[0]),     \
      atoll_library_procedures,                                                   \
      on_load}
