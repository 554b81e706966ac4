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

class ProcedureRegistry {
 public:
  static constexpr uint32_t kMaxEntriesPerLibrary = 4096;

  struct Entry {
    ProcedureEntry entry;
    std::string origin;  // "built in", or the path of the library
  };

  /// Loads the libraries. They stay loaded until the process ends. An error names the library and
  /// the reason.
  static Result<ProcedureRegistry> load(const std::vector<std::string>& libraries);

  /// Returns the procedure (or job) of this name. An error says whether the name is unknown, or
  /// names a job (or procedure).
  Result<ProcedureFunction> procedure(std::string_view name) const;
  Result<JobFunction> job(std::string_view name) const;
  /// Returns the default isolation of a procedure; a call may ask for another one. Returns
  /// serializable for an unknown name.
  Isolation isolation(std::string_view name) const;
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

  /// Checks and adds the entries of one library. Used by `load` and by tests.
  Result<void> add_library(const ProcedureLibrary& library, const std::string& origin);

 private:
  Result<void> add(const ProcedureEntry& entry, const std::string& origin);

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace atolldb
