// The Order-Status transaction (clause 2.6).
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "bench/job/try.h"
#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "bench/tpcc/transactions.h"
#include "engine/mastertree/prefetch.h"

namespace atolldb::tpcc {

namespace {

/// Reads the missing pages of the customer and of the customer's latest orders at the same time.
void read_cold_customer(Transaction& txn, const Tables& tables, uint32_t w, uint32_t d,
                        uint32_t c) {
  ColdBatch cold(txn.worker());
  if (!cold.is_wanted()) return;
  const uint64_t identity = tables.customer_at<CustomerRow>(w, d, c);
  const uint64_t balance = tables.customer_at<CustomerBalanceRow>(w, d, c);
  tables.customer_static.add_cold(txn, {&identity, 1}, cold);
  tables.customer_dynamic.add_cold(txn, {&balance, 1}, cold);
  const Key latest = ordered_key(customer_order_key(w, d, c, ~uint32_t{0}));
  add_cold(txn, tables.order_by_customer, latest, cold);
}

/// Does the same for an order, its first line and its last one.
void read_cold_order(Transaction& txn, const Tables& tables, uint32_t w, uint32_t d,
                     uint32_t o_id) {
  ColdBatch cold(txn.worker());
  if (!cold.is_wanted()) return;
  const auto order = tables.stored_order(order_key(w, d, o_id));
  add_cold(txn, tables.order, order, cold);
  add_cold(txn, tables.order_line, ordered_key(order_line_key(w, d, o_id, 1)), cold);
  add_cold(txn, tables.order_line, ordered_key(order_line_key(w, d, o_id, kLastLine)), cold);
}

Status read_lines(MasterTreeCursor& cursor, OrderStatusOutput& output) {
  for (;;) {
    const Status status = cursor.next();
    if (status == Status::end_of_scan) return Status::ok;
    BENCH_TRY(status);
    if (output.line_count == output.lines.size()) return Status::transaction_too_large;
    BENCH_TRY(cursor.get(&output.lines[output.line_count++], sizeof(OrderLineRow)));
  }
}

/// Does the same in batches, which are faster for more lines than the orders of TPC-C have. Only
/// experiments load longer orders.
Status read_many_lines(MasterTreeCursor& cursor, OrderStatusOutput& output) {
  std::array<ScanRow, 32> rows;
  const std::span<OrderLineRow> all(output.lines);
  while (output.line_count < all.size()) {
    const std::span<OrderLineRow> left = all.subspan(output.line_count);
    const ScanBatch batch{.rows = std::span(rows).first(std::min(rows.size(), left.size())),
                          .payloads = std::as_writable_bytes(left),
                          .stride = sizeof(OrderLineRow)};
    uint32_t count = 0;
    const Status status = cursor.next_many(batch, count);
    if (status == Status::end_of_scan) return Status::ok;
    BENCH_TRY(status);
    output.line_count += count;
  }
  const Status status = cursor.next();
  if (status == Status::end_of_scan) return Status::ok;
  return status == Status::ok ? Status::transaction_too_large : status;
}

}  // namespace

Status order_status(Transaction& txn, const Tables& tables, const OrderStatusInput& input,
                    OrderStatusOutput& output) {
  const uint32_t w = input.customer.w_id;
  const uint32_t d = input.customer.d_id;
  BENCH_TRY(find_customer(txn, tables, input.customer, output.c_id));
  read_cold_customer(txn, tables, w, d, output.c_id);
  BENCH_TRY(tables.customer_static.get(txn, tables.customer_at<CustomerRow>(w, d, output.c_id), 0,
                                       sizeof(output.customer), &output.customer));
  BENCH_TRY(tables.customer_dynamic.get(
      txn, tables.customer_at<CustomerBalanceRow>(w, d, output.c_id),
      offsetof(CustomerBalanceRow, balance), sizeof(output.balance), &output.balance));

  // The customer's latest order has the greatest key.
  KeyRange orders(customer_order_key(w, d, output.c_id, 0),
                  customer_order_key(w, d, output.c_id, ~uint32_t{0}));
  MasterTreeCursor latest(tables.order_by_customer, txn, orders.range(), false);
  BENCH_TRY(latest.next());
  output.o_id = order_of_customer_order_key(key_value(latest.key()));
  read_cold_order(txn, tables, w, d, output.o_id);
  uint32_t bytes = 0;
  const auto key = tables.stored_order(order_key(w, d, output.o_id));
  BENCH_TRY(tables.order.get(txn, key, &output.order, sizeof(output.order), bytes));

  KeyRange lines(order_line_key(w, d, output.o_id, 0),
                 order_line_key(w, d, output.o_id, kLastLine));
  MasterTreeCursor cursor(tables.order_line, txn, lines.range(), true);
  output.line_count = 0;
  return output.order.ol_cnt > kMaxLines ? read_many_lines(cursor, output)
                                         : read_lines(cursor, output);
}

}  // namespace atolldb::tpcc
