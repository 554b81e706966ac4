// The Delivery transaction (clause 2.7). One transaction delivers the oldest order of each
// district.
#include <array>
#include <cstddef>
#include <span>

#include "bench/job/try.h"
#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "bench/tpcc/transactions.h"
#include "engine/mastertree/prefetch.h"

namespace atolldb::tpcc {

namespace {

/// Removes the oldest order from new_order. Returns not_found if there is none.
Status take_oldest(Transaction& txn, const Tables& tables, uint32_t w, uint32_t d, uint32_t& o_id) {
  KeyRange waiting(order_key(w, d, 0), order_key(w, d, ~uint32_t{0}));
  MasterTreeCursor cursor(tables.new_order, txn, waiting.range(), true);
  const Status status = cursor.next();
  if (status == Status::end_of_scan) return Status::not_found;
  BENCH_TRY(status);
  o_id = order_of_order_key(key_value(cursor.key()));
  return tables.new_order.erase(txn, cursor.ref(), cursor.key());
}

/// Sets the delivery date of the order's lines and sums up their amounts.
Status deliver_lines(Transaction& txn, const Tables& tables, const DeliveryInput& input, uint32_t d,
                     uint32_t o_id, int64_t& amount) {
  KeyRange lines(order_line_key(input.w_id, d, o_id, 0),
                 order_line_key(input.w_id, d, o_id, kLastLine));
  MasterTreeCursor cursor(tables.order_line, txn, lines.range(), true);
  amount = 0;
  for (;;) {
    const Status status = cursor.next();
    if (status == Status::end_of_scan) return Status::ok;
    BENCH_TRY(status);
    struct {
      uint32_t i_id;
      int32_t amount;
    } read;
    static_assert(offsetof(OrderLineRow, amount) == 4);
    BENCH_TRY(cursor.get(&read, sizeof(read)));
    amount += read.amount;
    BENCH_TRY(tables.order_line.update_range(txn, cursor.ref(), cursor.key(),
                                             offsetof(OrderLineRow, delivery_d),
                                             std::as_bytes(std::span(&input.delivery_d, 1))));
  }
}

/// An order that is being delivered.
struct Waiting {
  uint32_t d;
  uint32_t o_id;
  uint64_t customer_at = 0;
  RecordRef customer{};
};

/// Removes the oldest order of each district from new_order.
Status take_orders(Transaction& txn, const Tables& tables, const DeliveryInput& input,
                   DeliveryOutput& output, std::span<Waiting, kDistricts> waiting) {
  output.delivered = 0;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    uint32_t& o_id = output.o_id[d - 1];
    o_id = 0;
    const Status taken = take_oldest(txn, tables, input.w_id, d, o_id);
    if (taken == Status::not_found) continue;
    BENCH_TRY(taken);
    waiting[output.delivered++] = {d, o_id};
  }
  return Status::ok;
}

/// Reads the missing pages of all orders and of their first and last lines at the same time.
void read_cold_orders(Transaction& txn, const Tables& tables, uint32_t w,
                      std::span<const Waiting> waiting) {
  ColdBatch cold(txn.worker());
  if (!cold.is_wanted()) return;
  for (const uint32_t line : {1u, uint32_t{kLastLine}}) {
    for (const Waiting& order : waiting) {
      add_cold(txn, tables.order_line, ordered_key(order_line_key(w, order.d, order.o_id, line)),
               cold);
    }
  }
  for (const Waiting& order : waiting) {
    const auto key = tables.stored_order(order_key(w, order.d, order.o_id));
    add_cold(txn, tables.order, key, cold);
  }
}

/// Starts to load all orders and their lines, so that the cache misses overlap. Orders to deliver
/// are old, so the processor's caches do not have them.
void prefetch_orders(Transaction& txn, const Tables& tables, uint32_t w,
                     std::span<const Waiting> waiting) {
  std::array<bench::StoredId, kDistricts> orders;
  std::array<Key, kDistricts> lines;
  std::array<Bytes, kDistricts> order_keys;
  std::array<Bytes, kDistricts> line_keys;
  for (size_t i = 0; i < waiting.size(); ++i) {
    orders[i] = tables.stored_order(order_key(w, waiting[i].d, waiting[i].o_id));
    lines[i] = ordered_key(order_line_key(w, waiting[i].d, waiting[i].o_id, 1));
    order_keys[i] = orders[i];
    line_keys[i] = lines[i];
  }
  tables.order.prefetch(txn, {order_keys.data(), waiting.size()});
  tables.order_line.prefetch(txn, {line_keys.data(), waiting.size()}, kMaxLines);
}

/// Writes the carrier into the orders and finds their customers.
Status dispatch_orders(Transaction& txn, const Tables& tables, const DeliveryInput& input,
                       std::span<Waiting> waiting) {
  std::array<uint64_t, kDistricts> places;
  std::array<RecordRef, kDistricts> customers;
  for (size_t i = 0; i < waiting.size(); ++i) {
    const auto key = tables.stored_order(order_key(input.w_id, waiting[i].d, waiting[i].o_id));
    OrderRow order;
    RecordRef ref;
    uint32_t bytes = 0;
    BENCH_TRY(tables.order.get_for_update(txn, key, &order, sizeof(order), bytes, ref));
    BENCH_TRY(tables.order.update_range(txn, ref, key, offsetof(OrderRow, carrier_id),
                                        std::as_bytes(std::span(&input.carrier_id, 1))));
    places[i] = tables.customer_at<CustomerBalanceRow>(input.w_id, waiting[i].d, order.c_id);
  }
  BENCH_TRY(tables.customer_dynamic.find_many_for_update(txn, {places.data(), waiting.size()},
                                                         customers));
  for (size_t i = 0; i < waiting.size(); ++i) {
    Array::prefetch(customers[i], 0, kBalanceBytes);
    waiting[i].customer_at = places[i];
    waiting[i].customer = customers[i];
  }
  return Status::ok;
}

Status charge(Transaction& txn, const Tables& tables, const Waiting& order, int64_t amount) {
  CustomerBalanceRow customer;
  BENCH_TRY(tables.customer_dynamic.get(txn, order.customer, 0, kBalanceBytes, &customer));
  customer.balance += amount;
  ++customer.delivery_cnt;
  return tables.customer_dynamic.update(txn, order.customer, order.customer_at, 0, kBalanceBytes,
                                        &customer);
}

}  // namespace

Status delivery(Transaction& txn, const Tables& tables, const DeliveryInput& input,
                DeliveryOutput& output) {
  std::array<Waiting, kDistricts> orders;
  BENCH_TRY(take_orders(txn, tables, input, output, orders));
  const std::span<Waiting> waiting(orders.data(), output.delivered);
  read_cold_orders(txn, tables, input.w_id, waiting);
  prefetch_orders(txn, tables, input.w_id, waiting);
  BENCH_TRY(dispatch_orders(txn, tables, input, waiting));
  for (const Waiting& order : waiting) {
    int64_t amount = 0;
    BENCH_TRY(deliver_lines(txn, tables, input, order.d, order.o_id, amount));
    BENCH_TRY(charge(txn, tables, order, amount));
  }
  return Status::ok;
}

}  // namespace atolldb::tpcc
