// The procedures and jobs of a node by name: those linked into the program, and those of the
// libraries in the config.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "soc/procedure/library.h"
#include "soc/procedure/procedure.h"

namespace atolldb {

/// The code of a procedure: a function with the API of this folder, or with the public API.
struct ProcedureCode {
  ProcedureCode() = default;
  ProcedureCode(ProcedureFunction own) : function(own) {}
  ProcedureCode(atoll_api::ProcedureFunction procedure, LoadedLibrary& its_library)
      : external(procedure), library(&its_library) {}

  bool is_set() const { return function != nullptr || external != nullptr; }
  bool has_prefetch() const { return prefetch != nullptr || external_prefetch != nullptr; }

  ProcedureFunction function = nullptr;
  atoll_api::ProcedureFunction external = nullptr;          // set if `function` is null
  LoadedLibrary* library = nullptr;                         // that of `external`
  PrefetchFunction prefetch = nullptr;                      // with `function`; null: none
  atoll_api::PrefetchFunction external_prefetch = nullptr;  // with `external`; null: none
};

/// A procedure of the registry, with all that a call of it needs.
struct RegisteredProcedure {
  ProcedureCode code;
  Isolation isolation = Isolation::serializable;  // unless the call asks for another one
  /// Place among the procedures of the registry, without the jobs: 0, 1, 2, ... in the order in
  /// which they were added. Statistics use it as their index.
  uint32_t ordinal = 0;
};

/// Thread: any may look entries up. `publish` may run meanwhile; all other changes may not.
class ProcedureRegistry {
 public:
  static constexpr uint32_t kMaxEntriesPerLibrary = 4096;

  struct Entry {
    RegisteredProcedure procedure;  // without code if this is a job
    JobFunction job = nullptr;
    std::string origin;  // "built in", or the path of the library
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  /// All procedures and jobs at a time. It never changes once it is published.
  struct Table {
    Entries entries;
    std::vector<std::string> procedure_names;  // by ordinal
    std::vector<LoadedLibrary*> libraries;     // the versions that the entries use
  };

  ProcedureRegistry();
  ProcedureRegistry(ProcedureRegistry&& other) noexcept;
  ProcedureRegistry& operator=(ProcedureRegistry&& other) noexcept;
  ~ProcedureRegistry();

  /// Loads the libraries. They stay loaded until the process ends. An error names the library and
  /// the reason.
  static Result<ProcedureRegistry> load(const std::vector<std::string>& libraries);

  /// Runs the load functions of all libraries. Storages that do not exist yet are no error.
  Result<void> prepare_libraries(ControlSegment& control) const;

  /// Returns the procedure (or job) of this name. An error says whether the name is unknown, or
  /// names a job (or procedure).
  Result<RegisteredProcedure> procedure(std::string_view name) const;
  Result<JobFunction> job(std::string_view name) const;
  /// Returns the names of the procedures by their ordinals.
  const std::vector<std::string>& procedure_names() const { return table().procedure_names; }
  const Entries& entries() const { return table().entries; }

  /// Returns a table in which the entries of the library come from another version of it. An error
  /// says why the version cannot replace the one in use: it lacks an entry, or another origin has
  /// one of its names, or its list is invalid, or the path is not one of a loaded library.
  Result<std::unique_ptr<Table>> with_version(LoadedLibrary& version) const;
  /// Makes the table the current one. Calls that were looked up before run the code of then, so
  /// older tables and libraries are kept. REQUIRES: one thread at a time.
  void publish(std::unique_ptr<Table> table, std::unique_ptr<LoadedLibrary> version);

  /// Checks and adds the entries of one library. For tests.
  Result<void> add_library(const ProcedureLibrary& library, const std::string& origin);

 private:
  // Acquire pairs with the release of `publish`: the table is complete.
  const Table& table() const { return *table_.load(std::memory_order_acquire); }
  Table& own_table() { return *tables_.back(); }

  std::vector<std::unique_ptr<Table>> tables_;  // the current one is the last one
  std::vector<std::unique_ptr<LoadedLibrary>> libraries_;
  std::atomic<const Table*> table_;
};

}  // namespace atolldb
