// Procedures and jobs by name: those linked into the program, and those of the config's libraries.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shared/error.h"
#include "soc/procedure/procedure.h"

namespace atolldb {

class ProcedureRegistry {
 public:
  static constexpr uint32_t kMaxEntriesPerLibrary = 4096;

  struct Entry {
    ProcedureEntry entry;
    std::string origin;  // "built in", or the path of the library
  };

  /// Loads the libraries; they stay loaded until the process ends. The error names library and
  /// reason.
  static Result<ProcedureRegistry> load(const std::vector<std::string>& libraries);

  /// The entry that is a procedure (or a job); the error tells what there is instead.
  Result<ProcedureFunction> procedure(std::string_view name) const;
  Result<JobFunction> job(std::string_view name) const;
  /// Of a procedure, where the call does not say otherwise.
  Isolation isolation(std::string_view name) const;
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

  /// For `load` and tests: checks and adds the entries of one library.
  Result<void> add_library(const ProcedureLibrary& library, const std::string& origin);

 private:
  Result<void> add(const ProcedureEntry& entry, const std::string& origin);

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace atolldb
