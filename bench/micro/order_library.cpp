#include "bench/micro/order_library.h"

#include "bench/example_procedure/orders.cpp"  // its functions are static

namespace atolldb::bench {

atoll_api::Status load_orders(Library& library) { return find_storages(library); }

atoll_api::Status order_by_example(Context& context) { return place_order(context); }

atoll_api::Status order_by_single_calls(Context& context) {
  using atoll_api::Status;
  Order order;
  if (!read_order(context.input().bytes(), order)) return Status::invalid_argument;
  const atoll_api::Transaction txn = context.transaction();
  for (size_t i = 0; i < order.count; ++i) {
    int64_t left = 0;
    Place place;
    TRY(stock.get_for_update(txn, order.items[i], left, place));
    left -= order.pieces[i];
    if (left < 0) return Status::user_abort;
    TRY(stock.update(txn, place, left));
  }
  uint64_t number = 0;
  Place next;
  TRY(branches.get_for_update(txn, order.branch, number, next));
  TRY(branches.update(txn, next, number + 1));
  for (size_t i = 0; i < order.count; ++i) {
    const Line line = {order.items[i], order.pieces[i]};
    TRY(orders.insert(txn, line_key(order.branch, number, i), Bytes(&line, sizeof(line))));
  }
  return context.set_output(std::to_string(number));
}

bool parse_order(atoll_api::Bytes input, ParsedOrder& order) {
  Order parsed;
  if (!read_order(input, parsed)) return false;
  order = {parsed.branch, parsed.count, parsed.items, parsed.pieces};
  return true;
}

}  // namespace atolldb::bench
