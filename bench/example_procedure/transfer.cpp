// A first procedure: moves an amount between two accounts. README.md in this folder explains it.
#include <cstdint>
#include <cstdio>
#include <string>

#include "soc/procedure/procedure.h"

using namespace atolldb;

/// Input: "from to amount". Output: the new balance of `from`.
static Status transfer(ProcedureContext& context) {
  StorageControl* accounts = context.storage("accounts", StorageType::array);
  if (accounts == nullptr) return Status::storage_not_found;
  unsigned long from = 0, to = 0;
  long amount = 0;
  const std::string input(context.input_text());
  if (std::sscanf(input.c_str(), "%lu %lu %ld", &from, &to, &amount) != 3) {
    return Status::invalid_argument;
  }
  const Array array(*accounts);
  int64_t balance = 0;
  RecordRef place;
  const Status read = array.get_for_update(context.transaction(), from, 0, 8, &balance, place);
  if (read != Status::ok) return read;
  balance -= amount;
  if (balance < -1000) return Status::user_abort;  // rolls the whole transaction back
  const Status taken = array.update(context.transaction(), place, from, 0, 8, &balance);
  if (taken != Status::ok) return taken;
  context.set_output(std::to_string(balance));
  const int64_t delta = amount;
  return array.increment(context.transaction(), to, 0, IncrementType::i64, &delta);
}

ATOLL_PROCEDURE_LIBRARY({"transfer", transfer});
