// A first procedure: moves an amount between two accounts. README.md in this folder explains it.
#include <atoll/procedure.h>

#include <cstdint>
#include <cstdio>
#include <string>

using namespace atoll_api;

static Array accounts;  // valid until the storage is dropped

static Status on_load(Library& library) { return library.find("accounts", accounts); }

/// Input: "from to amount". Output: the new balance of `from`.
static Status transfer(Context& context) {
  unsigned long from = 0, to = 0;
  long amount = 0;
  const std::string input(context.input().text());
  if (std::sscanf(input.c_str(), "%lu %lu %ld", &from, &to, &amount) != 3) {
    return Status::invalid_argument;
  }
  const Transaction txn = context.transaction();
  int64_t balance = 0;
  Place place;
  const Status read = accounts.get_for_update(txn, from, balance, place);
  if (read != Status::ok) return read;
  balance -= amount;
  if (balance < -1000) return Status::user_abort;  // rolls the whole transaction back
  const Status taken = accounts.update(txn, place, balance);
  if (taken != Status::ok) return taken;
  const Status printed = context.set_output(std::to_string(balance));
  if (printed != Status::ok) return printed;
  return accounts.increment(txn, to, int64_t{amount});
}

ATOLL_LIBRARY(on_load, {"transfer", transfer});
