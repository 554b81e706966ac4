#include "bench/tpcc/prefetch.h"

#include <array>
#include <cstddef>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/transactions.h"

namespace atolldb::tpcc {

namespace {

void prefetch_customer(const PrefetchContext& next, const Tables& tables,
                       const CustomerChoice& choice, uint32_t identity_bytes) {
  if (choice.by_last_name) {
    const Key first = ordered_key(
        customer_name_key(choice.w_id, choice.d_id, last_name_hash(choice.last_name), 0));
    const Bytes key = first;
    // Only the start of the page. A prefetch of the records would search its slots, which are not
    // in the caches yet.
    next.records(tables.customer_by_name, {&key, 1}, 0);
    return;
  }
  const uint64_t identity = tables.customer_at<CustomerRow>(choice.w_id, choice.d_id, choice.c_id);
  const uint64_t balance =
      tables.customer_at<CustomerBalanceRow>(choice.w_id, choice.d_id, choice.c_id);
  next.records(tables.customer_static, {&identity, 1}, 0, identity_bytes);
  next.records(tables.customer_dynamic, {&balance, 1}, 0, kBalanceBytes);
}

}  // namespace

void prefetch(const PrefetchContext& next, const Tables& tables, const NewOrderInput& input) {
  std::array<uint64_t, kMaxLines> stock;
  std::array<uint64_t, kMaxLines> stock_static;
  for (uint32_t i = 0; i < input.ol_cnt; ++i) {
    const NewOrderInput::Line& line = input.lines[i];
    stock[i] = tables.stock_at<StockRow>(line.supply_w_id, line.i_id);
    stock_static[i] = tables.stock_at<StockInfoRow>(line.supply_w_id, line.i_id);
  }
  // Only the first line of each stock_static record. The transaction itself prefetches the line
  // with S_DIST_xx long before it reads it.
  next.records(tables.stock_static, {stock_static.data(), input.ol_cnt}, 0, kFirstDataBytes);
  next.records(tables.stock, {stock.data(), input.ol_cnt}, 0, sizeof(StockRow));
  const uint64_t customer = tables.customer_at<CustomerRow>(input.w_id, input.d_id, input.c_id);
  next.records(tables.customer_static, {&customer, 1}, 0, sizeof(CustomerIdentity));
}

void prefetch(const PrefetchContext& next, const Tables& tables, const PaymentInput& input) {
  prefetch_customer(next, tables, input.customer, sizeof(CustomerRow));
}

void prefetch(const PrefetchContext& next, const Tables& tables, const OrderStatusInput& input) {
  prefetch_customer(next, tables, input.customer, sizeof(CustomerIdentity));
}

}  // namespace atolldb::tpcc
