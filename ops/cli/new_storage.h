// The arguments of `atoll storage create` and of the statement `create` of the shell, and the cells
// that both show of a storage.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "shared/message/control_message.h"

namespace atolldb::cli {

struct NewStorage {
  std::string name;
  std::string type;
  uint64_t payload_bytes = 0;
  uint64_t record_count = 0;
};

/// Adds NAME, --type, --payload-bytes and --records. The type is required if `storage` has none.
void add_new_storage_options(CLI::App& command, NewStorage& storage);
/// Returns the body of the request `storage.create`.
Json creation_of(const NewStorage& storage);

/// Returns the cells of a table. 0 is "-": the type of the storage has no such number.
std::string payload_cell(uint64_t payload_bytes);
std::string records_cell(uint64_t record_count);

}  // namespace atolldb::cli
