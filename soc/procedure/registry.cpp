#include "soc/procedure/registry.h"

#include <atoll/procedure.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/network/wire.h"
#include "soc/kv/kv_procedures.h"

namespace atolldb {
namespace {

using Table = ProcedureRegistry::Table;
using Entry = ProcedureRegistry::Entry;

static_assert(kMaxProcedureName == atoll_api::kMaxProcedureName);
static_assert(kMaxProcedureInputBytes == atoll_api::kMaxProcedureInputBytes);
static_assert(kMaxProcedureOutputBytes == atoll_api::kMaxProcedureOutputBytes);
static_assert(static_cast<uint8_t>(Isolation::count_) ==
              static_cast<uint8_t>(atoll_api::Isolation::count_));
static_assert(static_cast<uint8_t>(Isolation::snapshot_read_only) ==
              static_cast<uint8_t>(atoll_api::Isolation::snapshot_read_only));

/// An entry of a library's list, before it is checked.
struct Listed {
  const char* name = nullptr;
  Entry entry;
};

constexpr std::array<std::string_view, 2> kBuiltInPrefixes = {"kv.", kAdministrationPrefix};
constexpr std::string_view kBuiltInOrigin = "built in";

/// Returns the name, or an error if its length is invalid, or if it is reserved.
Result<std::string> checked_name(const char* name, const std::string& origin) {
  const size_t length = name == nullptr ? 0 : strnlen(name, size_t{kMaxProcedureName} + 1);
  if (length == 0 || length > kMaxProcedureName) {
    return library_error(origin, "a procedure's name must have 1 to " +
                                     std::to_string(kMaxProcedureName) + " bytes");
  }
  std::string checked(name, length);
  // Clients of the network may call these procedures without the right to call procedures.
  for (const std::string_view prefix : kBuiltInPrefixes) {
    if (!checked.starts_with(prefix) || origin == kBuiltInOrigin) continue;
    return library_error(origin, checked + ": names that begin with \"" + std::string(prefix) +
                                     "\" are built in: choose another name");
  }
  return checked;
}

Result<void> check_entry(const std::string& name, const Entry& entry) {
  if (entry.procedure.code.is_set() == (entry.job != nullptr)) {
    return library_error(entry.origin, name + " must be either a procedure or a job");
  }
  if (entry.procedure.isolation < Isolation::count_) return {};
  return library_error(entry.origin,
                       name + " has the unknown isolation " +
                           std::to_string(static_cast<uint32_t>(entry.procedure.isolation)) +
                           ": it must be serializable (0), snapshot (1) or snapshot_read_only (2)");
}

/// Adds an entry. A procedure gets the next ordinal.
Result<void> add_entry(Table& table, Listed listed) {
  ATOLL_ASSIGN(const std::string name, checked_name(listed.name, listed.entry.origin));
  ATOLL_TRY(check_entry(name, listed.entry));
  const bool is_procedure = listed.entry.job == nullptr;
  listed.entry.procedure.ordinal = static_cast<uint32_t>(table.procedure_names.size());
  const auto [existing, is_new] = table.entries.try_emplace(name, listed.entry);
  if (!is_new) {
    return library_error(listed.entry.origin, name + " exists already (" + existing->second.origin +
                                                  "): give it another name");
  }
  if (is_procedure) table.procedure_names.push_back(name);
  return {};
}

/// Adds an entry of another version of a library: replaces the entry of this name and origin, if
/// there is one.
Result<void> replace_entry(Table& table, Listed listed) {
  ATOLL_ASSIGN(const std::string name, checked_name(listed.name, listed.entry.origin));
  const auto found = table.entries.find(name);
  if (found == table.entries.end() || found->second.origin != listed.entry.origin) {
    return add_entry(table, std::move(listed));
  }
  ATOLL_TRY(check_entry(name, listed.entry));
  if ((found->second.job != nullptr) != (listed.entry.job != nullptr)) {
    return library_error(listed.entry.origin,
                         name +
                             " is a procedure in one version and a job in the other: give it "
                             "another name, or restart the cluster");
  }
  listed.entry.procedure.ordinal = found->second.procedure.ordinal;
  found->second = std::move(listed.entry);
  return {};
}

Listed listed(const ProcedureEntry& entry, const std::string& origin) {
  ProcedureCode code(entry.procedure);
  code.prefetch = entry.prefetch;
  return {entry.name, {{code, entry.isolation}, entry.job, origin}};
}

/// Copies an entry of a library. A library of an older version lacks the last members.
atoll_api::Procedure copy_procedure(const atoll_api::abi::LibraryDescription& list, uint32_t i) {
  CHECK(i < list.procedure_count);
  atoll_api::Procedure copy;
  const size_t bytes = atoll_api::abi::procedure_bytes(list.abi_minor);
  const auto* from = reinterpret_cast<const std::byte*>(list.procedures) + i * bytes;
  std::memcpy(static_cast<void*>(&copy), from, bytes);
  return copy;
}

std::unexpected<Error> bad_list(const std::string& origin, uint32_t count) {
  return library_error(origin, "its list of " + std::to_string(count) +
                                   " entries is invalid: the limit is " +
                                   std::to_string(ProcedureRegistry::kMaxEntriesPerLibrary));
}

Result<std::vector<Listed>> entries_of(const ProcedureLibrary& library, const std::string& origin) {
  if (library.api_version != kProcedureApiVersion) {
    return library_error(origin, "it was built for version " + std::to_string(library.api_version) +
                                     " of the procedure API, this is version " +
                                     std::to_string(kProcedureApiVersion) + ": build it again");
  }
  const bool is_valid = library.count <= ProcedureRegistry::kMaxEntriesPerLibrary &&
                        (library.count == 0 || library.entries != nullptr);
  if (!is_valid) return bad_list(origin, library.count);
  std::vector<Listed> all;
  for (uint32_t i = 0; i < library.count; ++i) all.push_back(listed(library.entries[i], origin));
  return all;
}

Result<std::vector<Listed>> entries_of(LoadedLibrary& library) {
  if (library.internal_list() != nullptr) {
    return entries_of(*library.internal_list(), library.path());
  }
  CHECK(library.description() != nullptr);
  const atoll_api::abi::LibraryDescription& list = *library.description();
  const bool is_valid = list.procedure_count <= ProcedureRegistry::kMaxEntriesPerLibrary &&
                        (list.procedure_count == 0 || list.procedures != nullptr);
  if (!is_valid) return bad_list(library.path(), list.procedure_count);
  std::vector<Listed> all;
  for (uint32_t i = 0; i < list.procedure_count; ++i) {
    const atoll_api::Procedure one = copy_procedure(list, i);
    ProcedureCode code;
    if (one.function != nullptr) code = ProcedureCode(one.function, library);
    code.external_prefetch = one.prefetch;
    all.push_back(
        {one.name, {{code, static_cast<Isolation>(one.isolation)}, nullptr, library.path()}});
  }
  return all;
}

}  // namespace

ProcedureRegistry::ProcedureRegistry() {
  tables_.push_back(std::make_unique<Table>());
  table_.store(tables_.back().get(), std::memory_order_relaxed);
}

ProcedureRegistry::ProcedureRegistry(ProcedureRegistry&& other) noexcept
    : tables_(std::move(other.tables_)),
      libraries_(std::move(other.libraries_)),
      table_(other.table_.exchange(nullptr, std::memory_order_relaxed)) {}

ProcedureRegistry& ProcedureRegistry::operator=(ProcedureRegistry&& other) noexcept {
  tables_ = std::move(other.tables_);
  libraries_ = std::move(other.libraries_);
  table_.store(other.table_.exchange(nullptr, std::memory_order_relaxed),
               std::memory_order_relaxed);
  return *this;
}

ProcedureRegistry::~ProcedureRegistry() = default;

Result<ProcedureRegistry> ProcedureRegistry::load(const std::vector<std::string>& libraries) {
  ProcedureRegistry registry;
  Table& table = registry.own_table();
  // Adds the procedures kv.* by name. They do not register themselves, because a linker omits
  // object files that nothing refers to.
  for (const ProcedureEntry& entry : kv_procedures()) {
    ATOLL_TRY(add_entry(table, listed(entry, std::string(kBuiltInOrigin))));
  }
  for (const auto* built_in = ProcedureRegistration::first(); built_in != nullptr;
       built_in = built_in->next()) {
    ATOLL_TRY(add_entry(table, listed(built_in->entry(), std::string(kBuiltInOrigin))));
  }
  for (const std::string& path : libraries) {
    ATOLL_ASSIGN(auto library, LoadedLibrary::load(path));
    ATOLL_ASSIGN(std::vector<Listed> entries, entries_of(*library));
    for (Listed& entry : entries) ATOLL_TRY(add_entry(table, std::move(entry)));
    table.libraries.push_back(library.get());
    registry.libraries_.push_back(std::move(library));
  }
  return registry;
}

Result<void> ProcedureRegistry::add_library(const ProcedureLibrary& library,
                                            const std::string& origin) {
  ATOLL_ASSIGN(std::vector<Listed> entries, entries_of(library, origin));
  for (Listed& entry : entries) ATOLL_TRY(add_entry(own_table(), std::move(entry)));
  return {};
}

Result<void> ProcedureRegistry::prepare_libraries(ControlSegment& control) const {
  for (LoadedLibrary* const library : table().libraries) {
    std::string why;
    const Status status = library->prepare(control, why);
    if (status == Status::ok || status == Status::storage_not_found) continue;
    return make_error(ExitCode::config, "procedures.libraries: " + why);
  }
  return {};
}

Result<std::unique_ptr<Table>> ProcedureRegistry::with_version(LoadedLibrary& version) const {
  const std::string& path = version.path();
  auto changed = std::make_unique<Table>(table());
  const auto in_use = std::ranges::find(changed->libraries, path, &LoadedLibrary::path);
  if (in_use == changed->libraries.end()) {
    return library_error(path, "is not loaded: only libraries of the config can be loaded again");
  }
  ATOLL_ASSIGN(std::vector<Listed> entries, entries_of(version));
  std::set<std::string> names;
  for (Listed& entry : entries) {
    ATOLL_ASSIGN(std::string name, checked_name(entry.name, path));
    if (!names.insert(name).second) {
      return library_error(path, name + " exists twice in it: give one another name");
    }
    ATOLL_TRY(replace_entry(*changed, std::move(entry)));
  }
  for (const auto& [name, entry] : changed->entries) {
    if (entry.origin == path && !names.contains(name)) {
      return library_error(path, "it has no " + name +
                                     ", which the version in use has: clients may call it: keep "
                                     "it, or restart the cluster");
    }
  }
  *in_use = &version;
  return changed;
}

void ProcedureRegistry::publish(std::unique_ptr<Table> table,
                                std::unique_ptr<LoadedLibrary> version) {
  CHECK(table != nullptr && version != nullptr);
  libraries_.push_back(std::move(version));
  tables_.push_back(std::move(table));
  table_.store(tables_.back().get(), std::memory_order_release);
}

Result<RegisteredProcedure> ProcedureRegistry::procedure(std::string_view name) const {
  const Entries& all = entries();
  const auto found = all.find(name);
  if (found != all.end() && found->second.job == nullptr) return found->second.procedure;
  return make_error(ExitCode::failed, "procedure \"" + std::string(name) +
                                          "\": " + (found == all.end() ? "unknown" : "is a job") +
                                          ": `atoll procedure ls` lists all procedures and jobs");
}

Result<JobFunction> ProcedureRegistry::job(std::string_view name) const {
  const Entries& all = entries();
  const auto found = all.find(name);
  if (found != all.end() && found->second.job != nullptr) return found->second.job;
  return make_error(ExitCode::failed, "job \"" + std::string(name) + "\": " +
                                          (found == all.end() ? "unknown" : "is a procedure") +
                                          ": `atoll procedure ls` lists all procedures and jobs");
}

}  // namespace atolldb
