#include "ops/cli/new_storage.h"

#include <CLI/CLI.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "ops/cli/terminal.h"
#include "shared/memory/state_names.h"

namespace atolldb::cli {

void add_new_storage_options(CLI::App& command, NewStorage& storage) {
  command.add_option("NAME", storage.name, "Name of the storage")->required();
  const std::span<const std::string_view> types = storage_type_names();
  CLI::Option* const type =
      command.add_option("--type", storage.type, "array, mastertree, sequential or hash")
          ->check(CLI::IsMember(std::vector<std::string>(types.begin(), types.end())));
  if (storage.type.empty()) {
    type->required();
  } else {
    type->capture_default_str();
  }
  // Checks the numbers, because the parser would read -1 as the largest number.
  command
      .add_option("--payload-bytes", storage.payload_bytes,
                  "array: size of a record; mastertree, hash: typical size")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--records", storage.record_count, "array: number of records")
      ->check(CLI::NonNegativeNumber);
}

Json creation_of(const NewStorage& storage) {
  return {{"name", storage.name},
          {"type", storage.type},
          {"payload_bytes", storage.payload_bytes},
          {"record_count", storage.record_count}};
}

std::string payload_cell(uint64_t payload_bytes) {
  return payload_bytes == 0 ? "-" : std::to_string(payload_bytes);
}

std::string records_cell(uint64_t record_count) {
  return record_count == 0 ? "-" : format_count(record_count);
}

}  // namespace atolldb::cli
