// Storages of a snapshot or checkpoint that no record of the DDL log creates.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "engine/hooks/mutants.h"
#include "engine/log/ddl_log.h"
#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns an error for a storage of a snapshot or checkpoint that no DDL record creates. That is
/// damage of the DDL log (R52). `path`: the file with the list of the storages.
template <typename Storage>
Result<void> refuse_uncreated_storages(const std::vector<Storage>& storages,
                                       std::span<const DdlRecord> ddl, const std::string& path) {
  CHECK(!path.empty());
  for (const Storage& storage : storages) {
    DCHECK(storage.id != 0);
    const auto creates = [&](const DdlRecord& record) {
      return record.operation == DdlOperation::create_storage && record.storage_id == storage.id;
    };
    if (std::ranges::any_of(ddl, creates) || fault::uncreated_storages) continue;
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: holds storage {} ({}), which none of the {} records of the DDL log "
                    "creates: the DDL log is damaged: restore a backup, or start empty with `atoll "
                    "up --discard-data`",
                    path, storage.id, storage.name, ddl.size()));
  }
  return {};
}

}  // namespace atolldb
