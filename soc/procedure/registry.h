// The procedures and jobs of a node by name: those linked into the program, and those of the
// libraries in the config.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "soc/procedure/procedure.h"

namespace atolldb {

/// A procedure of the registry, with all that a call of it needs.
struct RegisteredProcedure {
  ProcedureFunction function = nullptr;
  Isolation isolation = Isolation::serializable;  // unless the call asks for another one
  /// Place among the procedures of the registry, without the jobs: 0, 1, 2, ... in the order in
  /// which they were added. Statistics use it as their index.
  uint32_t ordinal = 0;
};

class ProcedureRegistry {
 public:
  static constexpr uint32_t kMaxEntriesPerLibrary = 4096;

  struct Entry {
    ProcedureEntry entry;
    std::string origin;    // "built in", or the path of the library
    uint32_t ordinal = 0;  // that of a procedure
  };

  /// Loads the libraries. They stay loaded until the process ends. An error names the library and
  /// the reason.
  static Result<ProcedureRegistry> load(const std::vector<std::string>& libraries);

  /// Returns the procedure (or job) of this name. An error says whether the name is unknown, or
  /// names a job (or procedure).
  Result<RegisteredProcedure> procedure(std::string_view name) const;
  Result<JobFunction> job(std::string_view name) const;
  /// Returns the names of the procedures by their ordinals.
  const std::vector<std::string>& procedure_names() const { return procedure_names_; }
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

  /// Checks and adds the entries of one library. Used by `load` and by tests.
  Result<void> add_library(const ProcedureLibrary& library, const std::string& origin);

 private:
  Result<void> add(const ProcedureEntry& entry, const std::string& origin);

  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> procedure_names_;
};

}  // namespace atolldb
