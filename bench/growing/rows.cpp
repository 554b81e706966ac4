// Procedures of bench/growth: insert records of a Master-tree, and change some of them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "soc/procedure/procedure.h"

using namespace atolldb;

namespace {

constexpr size_t kRecordBytes = 100;

struct Input {
  char storage[64];
  unsigned long first;
  unsigned long count;
  unsigned long step;
};

/// Parses "storage first count step". Returns null if the text has another form, or if there is no
/// such storage.
StorageControl* parse(ProcedureContext& context, Input& input) {
  const std::string text(context.input_text());
  const int found = std::sscanf(text.c_str(), "%63s %lu %lu %lu", input.storage, &input.first,
                                &input.count, &input.step);
  return found == 4 ? context.storage(input.storage, StorageType::mastertree) : nullptr;
}

/// Inserts records with the keys first, first + step, ...: `count` in all.
Status fill(ProcedureContext& context) {
  Input input;
  StorageControl* storage = parse(context, input);
  if (storage == nullptr) return Status::invalid_argument;
  std::array<std::byte, kRecordBytes> record;
  for (unsigned long i = 0; i < input.count; ++i) {
    const unsigned long key = input.first + i * input.step;
    // Bytes that do not compress well.
    for (size_t at = 0; at < record.size(); ++at) {
      record[at] = static_cast<std::byte>((key * 0x9e3779b97f4a7c15 >> (at % 57)) + at);
    }
    const Status status =
        MasterTree(*storage).upsert(context.transaction(), ordered_key(key), record);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

/// Adds 1 to a number in these records.
Status touch(ProcedureContext& context) {
  Input input;
  StorageControl* storage = parse(context, input);
  if (storage == nullptr) return Status::invalid_argument;
  const long one = 1;
  for (unsigned long i = 0; i < input.count; ++i) {
    const Status status = MasterTree(*storage).increment(context.transaction(),
                                                         ordered_key(input.first + i * input.step),
                                                         8, IncrementType::i64, &one);
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

}  // namespace

ATOLL_PROCEDURE_LIBRARY({"growth.fill", fill}, {"growth.touch", touch});
