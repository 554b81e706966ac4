// A first procedure: moves an amount between two accounts. README.md in this folder explains it.
#include <atoll/procedure.h>

#include <cstdint>
#include <cstdio>
#include <string>

using namespace atoll_api;

static Array accounts;  // valid until the storage is dropped

static Status on_load(Library& library) { return library.find("accounts", accounts); }

struct Order {
  unsigned long from = 0, to = 0;
  long amount = 0;
};

/// Returns whether the input is "from to amount".
static bool parse(Bytes input, Order& order) {
  const std::string text(input.text());
  return std::sscanf(text.c_str(), "%lu %lu %ld", &order.from, &order.to, &order.amount) == 3;
}

/// Input: "from to amount". Output: the new balance of `from`.
static Status transfer(Context& context) {
  Order order;
  if (!parse(context.input().bytes(), order)) return Status::invalid_argument;
  const auto [from, to, amount] = order;
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

/// Names the accounts of the next transfer, while the worker commits the present one.
static void prefetch_transfer(Prefetch& prefetch) {
  Order order;
  if (!parse(prefetch.input(), order)) return;
  const uint64_t indexes[] = {order.from, order.to};
  prefetch.records(accounts, indexes, 2);
}

ATOLL_LIBRARY(on_load, {"transfer", transfer, Isolation::serializable, prefetch_transfer});
