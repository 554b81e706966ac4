// The Delivery transaction (clause 2.7): the oldest order of each district, as one transaction.
#include <cstddef>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "bench/tpcc/transactions.h"
#include "bench/tpcc/try.h"

namespace atolldb::tpcc {

namespace {

/// Takes the oldest order out of new_order. not_found: there is none.
Status take_oldest(Transaction& txn, const Tables& tables, uint32_t w, uint32_t d, uint32_t& o_id) {
  KeyRange waiting(order_key(w, d, 0), order_key(w, d, ~uint32_t{0}));
  MasterTreeCursor cursor(tables.new_order, txn, waiting.range(), true);
  const Status status = cursor.next();
  if (status == Status::end_of_scan) return Status::not_found;
  TPCC_TRY(status);
  o_id = order_of_order_key(key_value(cursor.key()));
  return tables.new_order.erase(txn, cursor.ref(), cursor.key());
}

/// Dates the order's lines and adds up their amounts.
Status deliver_lines(Transaction& txn, const Tables& tables, const DeliveryInput& input, uint32_t d,
                     uint32_t o_id, int64_t& amount) {
  KeyRange lines(order_line_key(input.w_id, d, o_id, 0), order_line_key(input.w_id, d, o_id, 0xff));
  MasterTreeCursor cursor(tables.order_line, txn, lines.range(), true);
  amount = 0;
  for (;;) {
    const Status status = cursor.next();
    if (status == Status::end_of_scan) return Status::ok;
    TPCC_TRY(status);
    struct {
      uint32_t i_id;
      int32_t amount;
    } read;
    static_assert(offsetof(OrderLineRow, amount) == 4);
    TPCC_TRY(cursor.get(&read, sizeof(read)));
    amount += read.amount;
    TPCC_TRY(tables.order_line.update_range(txn, cursor.ref(), cursor.key(),
                                            offsetof(OrderLineRow, delivery_d),
                                            std::as_bytes(std::span(&input.delivery_d, 1))));
  }
}

Status deliver_order(Transaction& txn, const Tables& tables, const DeliveryInput& input, uint32_t d,
                     uint32_t o_id) {
  const Key key = ordered_key(order_key(input.w_id, d, o_id));
  OrderRow order;
  RecordRef ref;
  uint32_t bytes = 0;
  TPCC_TRY(tables.order.get_for_update(txn, key, &order, sizeof(order), bytes, ref));
  TPCC_TRY(tables.order.update_range(txn, ref, key, offsetof(OrderRow, carrier_id),
                                     std::as_bytes(std::span(&input.carrier_id, 1))));
  int64_t amount = 0;
  TPCC_TRY(deliver_lines(txn, tables, input, d, o_id, amount));

  const uint64_t at = tables.customer_at<CustomerBalanceRow>(input.w_id, d, order.c_id);
  CustomerBalanceRow customer;
  TPCC_TRY(tables.customer_dynamic.get_for_update(txn, at, 0, kBalanceBytes, &customer, ref));
  customer.balance += amount;
  ++customer.delivery_cnt;
  return tables.customer_dynamic.update(txn, ref, at, 0, kBalanceBytes, &customer);
}

}  // namespace

Status delivery(Transaction& txn, const Tables& tables, const DeliveryInput& input,
                DeliveryOutput& output) {
  output.delivered = 0;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    uint32_t& o_id = output.o_id[d - 1];
    o_id = 0;
    const Status taken = take_oldest(txn, tables, input.w_id, d, o_id);
    if (taken == Status::not_found) continue;
    TPCC_TRY(taken);
    TPCC_TRY(deliver_order(txn, tables, input, d, o_id));
    ++output.delivered;
  }
  return Status::ok;
}

}  // namespace atolldb::tpcc
