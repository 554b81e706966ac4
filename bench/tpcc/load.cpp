// Writes the initial rows through ordinary transactions. A worker of the warehouse's node runs
// them, so the pages are in that node's pool.
#include "bench/tpcc/load.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "bench/job/try.h"
#include "bench/tpcc/keys.h"

namespace atolldb::tpcc {

namespace {
constexpr uint32_t kBatchRows = 1'000;
constexpr uint32_t kBatchCustomers = Transaction::kMaxAppends;  // each adds a row to HISTORY
constexpr uint32_t kBatchLines = 3'000;                         // maximum number of order lines
constexpr int64_t kFirstPayment = 1'000;
}  // namespace

template <typename Row, typename Make, typename Write>
Status Loader::in_batches(uint32_t count, uint32_t batch, Make&& make, Write&& write) {
  std::vector<Row> rows;
  rows.reserve(batch);
  for (uint32_t first = 1; first <= count; first += batch) {
    const uint32_t end = std::min(count + 1, first + batch);
    rows.clear();
    for (uint32_t i = first; i < end; ++i) rows.push_back(make(i));
    const Status status = run(*txn_, *backoff_, kMaxEpoch, [&](Transaction&) {
      for (uint32_t i = first; i < end; ++i) BENCH_TRY(write(i, rows[i - first]));
      return Status::ok;
    });
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

Status Loader::load_items() {
  Selection original(scale_.items / 10, scale_.items);
  return in_batches<ItemRow>(
      scale_.items, kBatchRows,
      [&](uint32_t) { return maker_.item(original.next(maker_.random())); },
      [&](uint32_t i, const ItemRow& row) {
        return tables_.item.update(*txn_, tables_.item_at(i), 0, sizeof(row), &row);
      });
}

Status Loader::load_warehouse(uint32_t w) {
  BENCH_TRY(load_places(w));
  BENCH_TRY(load_stock(w));
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    BENCH_TRY(load_customers(w, d));
    BENCH_TRY(load_orders(w, d));
  }
  return Status::ok;
}

Status Loader::load_places(uint32_t w) {
  const PlaceRow warehouse = maker_.place();
  PlaceRow districts[kDistricts];
  for (PlaceRow& district : districts) district = maker_.place();
  const int64_t district_ytd = kFirstPayment * scale_.customers;
  const int64_t warehouse_ytd = district_ytd * kDistricts;
  const uint32_t next_o_id = scale_.customers + 1;
  return run(*txn_, *backoff_, kMaxEpoch, [&](Transaction& txn) {
    BENCH_TRY(tables_.warehouse_static.update(txn, tables_.warehouse_at(w), 0, sizeof(warehouse),
                                              &warehouse));
    BENCH_TRY(tables_.warehouse_ytd.update(txn, tables_.warehouse_ytd_at(w), offsetof(YtdRow, ytd),
                                           sizeof(warehouse_ytd), &warehouse_ytd));
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      BENCH_TRY(tables_.district_static.update(txn, tables_.district_at(w, d), 0, sizeof(PlaceRow),
                                               &districts[d - 1]));
      BENCH_TRY(tables_.district_ytd.update(txn, tables_.district_ytd_at(w, d),
                                            offsetof(YtdRow, ytd), sizeof(district_ytd),
                                            &district_ytd));
      BENCH_TRY(tables_.district_next.update(txn, tables_.district_next_at(w, d),
                                             offsetof(DistrictNextRow, next_o_id),
                                             sizeof(next_o_id), &next_o_id));
    }
    return Status::ok;
  });
}

Status Loader::load_stock(uint32_t w) {
  struct Stock {
    StockRow row;
    StockInfoRow info;
  };
  Selection original(scale_.items / 10, scale_.items);
  return in_batches<Stock>(
      scale_.items, kBatchRows,
      [&](uint32_t) {
        return Stock{maker_.stock(), maker_.stock_info(original.next(maker_.random()))};
      },
      [&](uint32_t i, const Stock& stock) {
        BENCH_TRY(tables_.stock.update(*txn_, tables_.stock_at<StockRow>(w, i), 0,
                                       sizeof(stock.row), &stock.row));
        return tables_.stock_static.update(*txn_, tables_.stock_at<StockInfoRow>(w, i), 0,
                                           sizeof(stock.info), &stock.info);
      });
}

Status Loader::load_customers(uint32_t w, uint32_t d) {
  Selection bad_credit(scale_.customers / 10, scale_.customers);
  std::vector<CustomerName> names;
  names.reserve(scale_.customers);
  BENCH_TRY(in_batches<NewCustomer>(
      scale_.customers, kBatchCustomers,
      [&](uint32_t c) {
        NewCustomer made = maker_.customer(w, d, c, bad_credit.next(maker_.random()));
        const CustomerNameRow name{made.row.identity.last, made.row.identity.first};
        names.push_back({customer_name_key(w, d, last_name_hash(name.last), c), name});
        return made;
      },
      [&](uint32_t c, const NewCustomer& customer) { return write_customer(w, d, c, customer); }));
  return load_names(names);
}

/// Inserts the names in the order of their keys. No row is added later, so the pages stay sorted,
/// and a search by last name reads neighbouring records.
Status Loader::load_names(std::vector<CustomerName>& names) {
  std::ranges::sort(names, {}, &CustomerName::key);
  return in_batches<CustomerName>(
      static_cast<uint32_t>(names.size()), kBatchRows, [&](uint32_t i) { return names[i - 1]; },
      [&](uint32_t, const CustomerName& name) {
        return tables_.customer_by_name.insert(*txn_, ordered_key(name.key),
                                               std::as_bytes(std::span(&name.row, 1)));
      });
}

Status Loader::write_customer(uint32_t w, uint32_t d, uint32_t c, const NewCustomer& customer) {
  BENCH_TRY(tables_.customer_static.update(*txn_, tables_.customer_at<CustomerRow>(w, d, c), 0,
                                           sizeof(CustomerRow), &customer.row));
  BENCH_TRY(tables_.customer_dynamic.update(*txn_, tables_.customer_at<CustomerBalanceRow>(w, d, c),
                                            0, sizeof(CustomerBalanceRow), &customer.balance));
  BENCH_TRY(tables_.customer_data.update(*txn_, tables_.customer_at<CustomerDataRow>(w, d, c), 0,
                                         sizeof(CustomerDataRow), &customer.data));
  return tables_.history.append(*txn_, std::as_bytes(std::span(&customer.history, 1)));
}

Status Loader::load_orders(uint32_t w, uint32_t d) {
  // Clause 4.3.3.1: customer numbers of the orders are a random permutation.
  std::vector<uint32_t> customers(scale_.customers);
  std::iota(customers.begin(), customers.end(), 1);
  maker_.random().shuffle(std::span(customers));
  return in_batches<NewOrderRows>(
      scale_.customers, kBatchLines / scale_.max_lines,
      [&](uint32_t o) { return maker_.order(w, o, customers[o - 1]); },
      [&](uint32_t, const NewOrderRows& order) { return write_order(w, d, order); });
}

Status Loader::write_order(uint32_t w, uint32_t d, const NewOrderRows& order) {
  const Key key = ordered_key(order_key(w, d, order.o_id));
  BENCH_TRY(tables_.order.insert(*txn_, tables_.stored_order(order_key(w, d, order.o_id)),
                                 std::as_bytes(std::span(&order.row, 1))));
  const Key by_customer = ordered_key(customer_order_key(w, d, order.row.c_id, order.o_id));
  BENCH_TRY(tables_.order_by_customer.insert(*txn_, by_customer, {}));
  if (!order.delivered) BENCH_TRY(tables_.new_order.insert(*txn_, key, {}));
  for (uint32_t i = 0; i < order.row.ol_cnt; ++i) {
    const Key line = ordered_key(order_line_key(w, d, order.o_id, i + 1));
    BENCH_TRY(tables_.order_line.insert(*txn_, line, std::as_bytes(std::span(&order.lines[i], 1))));
  }
  return Status::ok;
}

}  // namespace atolldb::tpcc
