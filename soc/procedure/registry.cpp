#include "soc/procedure/registry.h"

#include <dlfcn.h>

#include <cstring>

#include "shared/base/try.h"
#include "soc/kv/kv_procedures.h"

namespace atolldb {
namespace {

constexpr const char* kSymbol = "atoll_procedure_library";

std::unexpected<Error> library_error(const std::string& path, const std::string& why) {
  return make_error(ExitCode::config, "procedures.libraries: " + path + ": " + why);
}

}  // namespace

Result<ProcedureRegistry> ProcedureRegistry::load(const std::vector<std::string>& libraries) {
  ProcedureRegistry registry;
  // Adds the procedures kv.* by name. They do not register themselves, because a linker omits
  // object files that nothing refers to.
  for (const ProcedureEntry& entry : kv_procedures()) {
    ATOLL_TRY(registry.add(entry, "built in"));
  }
  for (const auto* built_in = ProcedureRegistration::first(); built_in != nullptr;
       built_in = built_in->next()) {
    ATOLL_TRY(registry.add(built_in->entry(), "built in"));
  }
  for (const std::string& path : libraries) {
    // The library is never closed, because workers may run its code until the process ends.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return library_error(
          path, "cannot be loaded: " + std::string(reason != nullptr ? reason : "no reason given") +
                    ": build it against this version's headers");
    }
    const auto* library = static_cast<const ProcedureLibrary*>(dlsym(handle, kSymbol));
    if (library == nullptr) {
      return library_error(path, std::string("it has no symbol ") + kSymbol +
                                     ": use ATOLL_PROCEDURE_LIBRARY once in it");
    }
    ATOLL_TRY(registry.add_library(*library, path));
  }
  return registry;
}

Result<void> ProcedureRegistry::add_library(const ProcedureLibrary& library,
                                            const std::string& origin) {
  if (library.api_version != kProcedureApiVersion) {
    return library_error(origin, "it was built for version " + std::to_string(library.api_version) +
                                     " of the procedure API, this is version " +
                                     std::to_string(kProcedureApiVersion) + ": build it again");
  }
  if (library.count > kMaxEntriesPerLibrary || (library.count != 0 && library.entries == nullptr)) {
    return library_error(origin, "its list of " + std::to_string(library.count) +
                                     " entries is invalid: the limit is " +
                                     std::to_string(kMaxEntriesPerLibrary));
  }
  for (uint32_t i = 0; i < library.count; ++i) {
    ATOLL_TRY(add(library.entries[i], origin));
  }
  return {};
}

Result<void> ProcedureRegistry::add(const ProcedureEntry& entry, const std::string& origin) {
  const size_t length =
      entry.name == nullptr ? 0 : strnlen(entry.name, size_t{kMaxProcedureName} + 1);
  if (length == 0 || length > kMaxProcedureName) {
    return library_error(origin, "a procedure's name must have 1 to " +
                                     std::to_string(kMaxProcedureName) + " bytes");
  }
  const std::string name(entry.name, length);
  if ((entry.procedure == nullptr) == (entry.job == nullptr)) {
    return library_error(origin, name + " must be either a procedure or a job");
  }
  if (entry.isolation >= Isolation::count_) {
    return library_error(origin, name + " has the unknown isolation " +
                                     std::to_string(static_cast<uint32_t>(entry.isolation)) +
                                     ": see shared/base/isolation.h");
  }
  const auto ordinal = static_cast<uint32_t>(procedure_names_.size());
  const auto [existing, is_new] = entries_.emplace(name, Entry{entry, origin, ordinal});
  if (is_new) {
    if (entry.procedure != nullptr) procedure_names_.push_back(name);
    return {};
  }
  return library_error(
      origin, name + " exists already (" + existing->second.origin + "): give it another name");
}

Result<RegisteredProcedure> ProcedureRegistry::procedure(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.entry.procedure != nullptr) {
    const auto& [entry, origin, ordinal] = found->second;
    return RegisteredProcedure{entry.procedure, entry.isolation, ordinal};
  }
  return make_error(ExitCode::failed, "procedure \"" + std::string(name) + "\": " +
                                          (found == entries_.end() ? "unknown" : "is a job") +
                                          ": `atoll procedure ls` lists all procedures and jobs");
}

Result<JobFunction> ProcedureRegistry::job(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.entry.job != nullptr) return found->second.entry.job;
  return make_error(ExitCode::failed, "job \"" + std::string(name) + "\": " +
                                          (found == entries_.end() ? "unknown" : "is a procedure") +
                                          ": `atoll procedure ls` lists all procedures and jobs");
}

}  // namespace atolldb
