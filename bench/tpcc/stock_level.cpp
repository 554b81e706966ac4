// The Stock-Level transaction (clause 2.8).
#include <array>
#include <cstddef>
#include <span>

#include "bench/job/try.h"
#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "bench/tpcc/transactions.h"

namespace atolldb::tpcc {

namespace {

constexpr uint32_t kOrders = 20;
constexpr uint32_t kItemLimit = kOrders * kMaxLines;

/// Distinct item numbers, in insertion order.
class DistinctItems {
 public:
  void add(uint32_t item) {
    uint32_t at = item * 0x9e3779b1u >> (32 - kSlotBits);
    for (; slots_[at] != 0; at = (at + 1) % kSlots) {
      if (slots_[at] == item) return;
    }
    slots_[at] = item;  // 0 is a free slot, because item numbers start at 1
    items_[size_++] = item;
  }
  uint32_t size() const { return size_; }
  uint32_t operator[](uint32_t i) const { return items_[i]; }

 private:
  static constexpr uint32_t kSlotBits = 10;
  static constexpr uint32_t kSlots = 1 << kSlotBits;
  static_assert(kSlots > 2 * kItemLimit);
  std::array<uint32_t, kSlots> slots_{};
  std::array<uint32_t, kItemLimit> items_;
  uint32_t size_ = 0;
};

/// Collects the items of the lines of orders [first, last].
Status distinct_items(Transaction& txn, const Tables& tables, const StockLevelInput& input,
                      uint32_t first, uint32_t last, DistinctItems& items) {
  KeyRange lines(order_line_key(input.w_id, input.d_id, first, 0),
                 order_line_key(input.w_id, input.d_id, last, kLastLine));
  MasterTreeCursor cursor(tables.order_line, txn, lines.range(), true);
  static_assert(offsetof(OrderLineRow, i_id) == 0);
  constexpr size_t kRows = 32;
  std::array<ScanRow, kRows> rows;
  std::array<uint32_t, kRows> found;
  const ScanBatch batch{.rows = rows,
                        .payloads = std::as_writable_bytes(std::span(found)),
                        .stride = sizeof(found[0])};
  for (uint32_t lines_read = 0;;) {
    uint32_t count = 0;
    const Status status = cursor.next_many(batch, count);
    if (status == Status::end_of_scan) return Status::ok;
    BENCH_TRY(status);
    lines_read += count;
    if (lines_read > kItemLimit) return Status::transaction_too_large;
    for (uint32_t i = 0; i < count; ++i) items.add(found[i]);
  }
}

}  // namespace

Status stock_level(Transaction& txn, const Tables& tables, const StockLevelInput& input,
                   StockLevelOutput& output) {
  uint32_t next_o_id = 0;
  BENCH_TRY(tables.district_next.get(txn, tables.district_next_at(input.w_id, input.d_id),
                                     offsetof(DistrictNextRow, next_o_id), sizeof(next_o_id),
                                     &next_o_id));
  const uint32_t first = next_o_id > kOrders ? next_o_id - kOrders : 1;
  DistinctItems items;
  BENCH_TRY(distinct_items(txn, tables, input, first, next_o_id - 1, items));

  const uint32_t count = items.size();
  std::array<uint64_t, kItemLimit> places;
  for (uint32_t i = 0; i < count; ++i) {
    places[i] = tables.stock_at<StockRow>(input.w_id, items[i]);
  }
  std::array<StockRow, kItemLimit> stocks;
  BENCH_TRY(tables.stock.get_many(txn, {places.data(), count}, stocks.data()));
  output.low_stock = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (stocks[i].quantity < input.threshold) ++output.low_stock;
  }
  return Status::ok;
}

}  // namespace atolldb::tpcc
