#include "ops/export/export_source.h"

#include <fmt/format.h>

#include "shared/memory/state_names.h"

namespace atolldb {

std::unexpected<Error> unfit_table(const TableSchema& table, const std::string& reason) {
  return make_error(ExitCode::failed, fmt::format("export: table \"{}\", storage \"{}\": {}",
                                                  table.name, table.storage, reason));
}

Result<void> check_table(const TableSchema& table, const ExportedStorage& storage) {
  if (storage.type != table.type) {
    return unfit_table(table, fmt::format("the storage is of type {}, the schema says {}",
                                          to_string(storage.type), to_string(table.type)));
  }
  if (table.type == StorageType::array && storage.payload_bytes != table.payload_bytes) {
    return unfit_table(table, fmt::format("payloads have {} bytes, the schema says {}",
                                          storage.payload_bytes, table.payload_bytes));
  }
  return {};
}

}  // namespace atolldb
