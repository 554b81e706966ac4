// The New-Order transaction (clause 2.4).
#include <cstddef>
#include <cstring>

#include "bench/job/try.h"
#include "bench/tpcc/keys.h"
#include "bench/tpcc/transactions.h"
#include "engine/transaction/cold_batch.h"

namespace atolldb::tpcc {

namespace {

/// Positions of the records of the order lines and of the customer. All keys follow from the input.
/// So the records are looked up together, and their cache misses overlap.
struct Places {
  std::array<RecordRef, kMaxLines> item;
  std::array<RecordRef, kMaxLines> stock;
  std::array<RecordRef, kMaxLines> stock_static;
  std::array<uint64_t, kMaxLines> stock_index;
  RecordRef customer;
  uint32_t dist_at;  // offset of the district's S_DIST_xx in a StockInfoRow
};

/// Finds the customer, and prefetches the page for the order's entry in order_by_customer.
Status find_customer(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                     uint64_t customer, Places& places) {
  BENCH_TRY(tables.customer_static.find_many(txn, {&customer, 1}, {&places.customer, 1}));
  Array::prefetch(places.customer, 0, sizeof(CustomerIdentity));
  // The order number is not known yet. The greatest number finds the page of the latest order.
  const Key by_customer =
      ordered_key(customer_order_key(input.w_id, input.d_id, input.c_id, ~uint32_t{0}));
  const Bytes by_customer_bytes = by_customer;
  tables.order_by_customer.prefetch(txn, {&by_customer_bytes, 1}, 0);
  return Status::ok;
}

Status find_records(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                    Places& places) {
  std::array<uint64_t, kMaxLines> item_index;
  std::array<uint64_t, kMaxLines> static_index;
  uint32_t count = input.ol_cnt;
  // Only the last line may have an unused item number. Such an item has no stock either.
  if (input.lines[count - 1].i_id > tables.scale.items) {
    --count;
    places.item[count] = RecordRef{};
  }
  for (uint32_t i = 0; i < count; ++i) {
    const NewOrderInput::Line& line = input.lines[i];
    item_index[i] = tables.item_at(line.i_id);
    places.stock_index[i] = tables.stock_at<StockRow>(line.supply_w_id, line.i_id);
    static_index[i] = tables.stock_at<StockInfoRow>(line.supply_w_id, line.i_id);
  }
  const uint64_t customer = tables.customer_at<CustomerRow>(input.w_id, input.d_id, input.c_id);
  {
    ColdBatch cold(txn.worker());
    tables.stock_static.add_cold(txn, {static_index.data(), count}, cold);
    tables.stock.add_cold(txn, {places.stock_index.data(), count}, cold);
    tables.customer_static.add_cold(txn, {&customer, 1}, cold);
    tables.item.add_cold(txn, {item_index.data(), count}, cold);
  }
  BENCH_TRY(tables.stock_static.find_many(txn, {static_index.data(), count}, places.stock_static));
  places.dist_at = static_cast<uint32_t>(offsetof(StockInfoRow, dist) +
                                         (input.d_id - 1) * sizeof(StockInfoRow::dist[0]));
  for (uint32_t i = 0; i < count; ++i) {
    Array::prefetch(places.stock_static[i], 0, kFirstDataBytes);
    Array::prefetch(places.stock_static[i], places.dist_at, sizeof(StockInfoRow::dist[0]));
  }
  BENCH_TRY(tables.item.find_many(txn, {item_index.data(), count}, places.item));
  for (uint32_t i = 0; i < count; ++i) Array::prefetch(places.item[i], 0, kItemReadBytes);
  BENCH_TRY(
      tables.stock.find_many_for_update(txn, {places.stock_index.data(), count}, places.stock));
  for (uint32_t i = 0; i < count; ++i) Array::prefetch(places.stock[i], 0, sizeof(StockRow));
  return find_customer(txn, tables, input, customer, places);
}

Status insert_order(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                    uint32_t o_id) {
  OrderRow order{};
  order.entry_d = input.entry_d;
  order.c_id = static_cast<uint16_t>(input.c_id);
  order.ol_cnt = static_cast<uint16_t>(input.ol_cnt);
  order.all_local = input.all_local ? 1 : 0;
  const Key key = ordered_key(order_key(input.w_id, input.d_id, o_id));
  BENCH_TRY(tables.order.insert(txn, tables.stored_order(order_key(input.w_id, input.d_id, o_id)),
                                std::as_bytes(std::span(&order, 1))));
  BENCH_TRY(tables.new_order.insert(txn, key, {}));
  const Key by_customer = ordered_key(customer_order_key(input.w_id, input.d_id, input.c_id, o_id));
  // The order number is new, so the key is. A blind write does not read the page of the customer's
  // earlier orders, which may be cold.
  return tables.order_by_customer.upsert(txn, by_customer, {});
}

/// Reads S_DATA and S_DIST_xx.
Status read_stock_info(Transaction& txn, const Array& stock_static, const RecordRef& ref,
                       uint32_t dist_at, Text<50>& data, Text<24>& dist) {
  BENCH_TRY(stock_static.get(txn, ref, dist_at, sizeof(dist), &dist));
  BENCH_TRY(stock_static.get(txn, ref, offsetof(StockInfoRow, data), kFirstDataBytes, data.bytes));
  constexpr size_t kOtherDataBytes = sizeof(data.bytes) - kFirstDataBytes;
  std::memset(data.bytes + kFirstDataBytes, 0, kOtherDataBytes);
  if (data.bytes[kFirstDataBytes - 1] == 0) return Status::ok;
  return stock_static.get(txn, ref, offsetof(StockInfoRow, data) + kFirstDataBytes, kOtherDataBytes,
                          data.bytes + kFirstDataBytes);
}

/// Subtracts the line's quantity from the stock. Sets `quantity` to the remaining stock.
Status sell(Transaction& txn, const Tables& tables, const NewOrderInput& input,
            const NewOrderInput::Line& line, const RecordRef& ref, uint64_t at, int32_t& quantity) {
  StockRow stock;
  BENCH_TRY(tables.stock.get(txn, ref, 0, sizeof(stock), &stock));
  stock.quantity = stock_after_sale(stock.quantity, line.quantity);
  stock.ytd += line.quantity;
  ++stock.order_cnt;
  if (line.supply_w_id != input.w_id) ++stock.remote_cnt;
  quantity = stock.quantity;
  return tables.stock.update(txn, ref, at, 0, sizeof(stock), &stock);
}

/// Sells the item of one line and fills the row of its order line.
Status sell_line(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                 const Places& places, uint32_t i, OrderLineRow& row,
                 NewOrderOutput::Line& output) {
  const NewOrderInput::Line& line = input.lines[i];
  ItemRow item;
  const Status found = tables.item.get(txn, places.item[i], 0, kItemReadBytes, &item);
  // The item number is not valid, so the order is rolled back (clause 2.4.2.3).
  if (found == Status::out_of_range) return Status::user_abort;
  BENCH_TRY(found);
  BENCH_TRY(sell(txn, tables, input, line, places.stock[i], places.stock_index[i],
                 output.stock_quantity));
  Text<50> stock_data;
  BENCH_TRY(read_stock_info(txn, tables.stock_static, places.stock_static[i], places.dist_at,
                            stock_data, row.dist_info));
  row.i_id = line.i_id;
  row.delivery_d = 0;
  std::memset(row.spare, 0, sizeof(row.spare));
  row.supply_w_id = line.supply_w_id;
  row.quantity = line.quantity;
  row.amount = line.quantity * item.price;

  output.i_id = line.i_id;
  output.supply_w_id = line.supply_w_id;
  output.quantity = line.quantity;
  output.brand_generic = contains_original(item.data) && contains_original(stock_data) ? 'B' : 'G';
  output.price = item.price;
  output.amount = row.amount;
  output.name = item.name;
  return Status::ok;
}

Status add_lines(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                 const Places& places, NewOrderOutput& output, int64_t& sum) {
  std::array<OrderLineRow, kMaxLines> rows;
  std::array<Key, kMaxLines> keys;
  std::array<Bytes, kMaxLines> key_bytes;
  std::array<Bytes, kMaxLines> row_bytes;
  sum = 0;
  for (uint32_t i = 0; i < input.ol_cnt; ++i) {
    BENCH_TRY(sell_line(txn, tables, input, places, i, rows[i], output.lines[i]));
    sum += output.lines[i].amount;
    output.lines_done = i + 1;
    keys[i] = ordered_key(order_line_key(input.w_id, input.d_id, output.o_id, i + 1));
    key_bytes[i] = keys[i];
    row_bytes[i] = std::as_bytes(std::span(&rows[i], 1));
  }
  return tables.order_line.insert_many(txn, {key_bytes.data(), input.ol_cnt},
                                       {row_bytes.data(), input.ol_cnt});
}

}  // namespace

Status new_order(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                 NewOrderOutput& output) {
  Places places;
  BENCH_TRY(find_records(txn, tables, input, places));
  output.lines_done = 0;
  BENCH_TRY(tables.warehouse_static.get(txn, tables.warehouse_at(input.w_id),
                                        offsetof(PlaceRow, tax), sizeof(output.w_tax),
                                        &output.w_tax));
  BENCH_TRY(tables.district_static.get(txn, tables.district_at(input.w_id, input.d_id),
                                       offsetof(PlaceRow, tax), sizeof(output.d_tax),
                                       &output.d_tax));
  const uint64_t next_at = tables.district_next_at(input.w_id, input.d_id);
  RecordRef ref;
  BENCH_TRY(
      tables.district_next.get_for_update(txn, next_at, 0, sizeof(output.o_id), &output.o_id, ref));
  const uint32_t next_o_id = output.o_id + 1;
  BENCH_TRY(tables.district_next.update(txn, ref, next_at, 0, sizeof(next_o_id), &next_o_id));
  BENCH_TRY(tables.customer_static.get(txn, places.customer, 0, sizeof(CustomerIdentity),
                                       &output.customer));
  BENCH_TRY(insert_order(txn, tables, input, output.o_id));
  int64_t sum = 0;
  BENCH_TRY(add_lines(txn, tables, input, places, output, sum));
  output.total_amount = total_amount(sum, output.customer.discount, output.w_tax, output.d_tax);
  return Status::ok;
}

}  // namespace atolldb::tpcc
