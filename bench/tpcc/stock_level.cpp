// The Stock-Level transaction (clause 2.8).
#include <algorithm>
#include <array>
#include <cstddef>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "bench/tpcc/transactions.h"
#include "bench/tpcc/try.h"

namespace atolldb::tpcc {

namespace {

constexpr uint32_t kOrders = 20;
using Items = std::array<uint32_t, kOrders * kMaxLines>;

/// Items of the lines of orders [first, last], each once; `count` of them.
Status distinct_items(Transaction& txn, const Tables& tables, const StockLevelInput& input,
                      uint32_t first, uint32_t last, Items& items, uint32_t& count) {
  KeyRange lines(order_line_key(input.w_id, input.d_id, first, 0),
                 order_line_key(input.w_id, input.d_id, last, 0xff));
  MasterTreeCursor cursor(tables.order_line, txn, lines.range(), true);
  count = 0;
  for (;;) {
    const Status status = cursor.next();
    if (status == Status::end_of_scan) break;
    TPCC_TRY(status);
    if (count == items.size()) return Status::transaction_too_large;
    static_assert(offsetof(OrderLineRow, i_id) == 0);
    TPCC_TRY(cursor.get(&items[count++], sizeof(uint32_t)));
  }
  std::sort(items.data(), items.data() + count);
  count = static_cast<uint32_t>(std::unique(items.data(), items.data() + count) - items.data());
  return Status::ok;
}

}  // namespace

Status stock_level(Transaction& txn, const Tables& tables, const StockLevelInput& input,
                   StockLevelOutput& output) {
  uint32_t next_o_id = 0;
  TPCC_TRY(tables.district_next.get(txn, tables.district_next_at(input.w_id, input.d_id),
                                    offsetof(DistrictNextRow, next_o_id), sizeof(next_o_id),
                                    &next_o_id));
  const uint32_t first = next_o_id > kOrders ? next_o_id - kOrders : 1;
  Items items;
  uint32_t count = 0;
  TPCC_TRY(distinct_items(txn, tables, input, first, next_o_id - 1, items, count));

  std::array<uint64_t, kOrders * kMaxLines> places;
  for (uint32_t i = 0; i < count; ++i) {
    places[i] = tables.stock_at<StockRow>(input.w_id, items[i]);
  }
  std::array<StockRow, kOrders * kMaxLines> stocks;
  TPCC_TRY(tables.stock.get_many(txn, {places.data(), count}, stocks.data()));
  output.low_stock = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (stocks[i].quantity < input.threshold) ++output.low_stock;
  }
  return Status::ok;
}

}  // namespace atolldb::tpcc
