// Populates a database as clause 4.3.3.1 says: one warehouse at a time, and ITEM once.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/tpcc/inputs.h"
#include "bench/tpcc/random.h"
#include "bench/tpcc/rows.h"
#include "bench/tpcc/tables.h"
#include "engine/transaction/run.h"
#include "engine/transaction/transaction.h"

namespace atolldb::tpcc {

/// The rows of one customer, except that of customer_by_name.
struct NewCustomer {
  CustomerRow row;
  CustomerBalanceRow balance;
  CustomerDataRow data;
  HistoryRow history;
};

/// A row of customer_by_name, with its key.
struct CustomerName {
  uint64_t key;
  CustomerNameRow row;
};

/// The rows of one order with its lines. An undelivered order also has a row in new_order.
struct NewOrderRows {
  uint32_t o_id;
  bool delivered;
  OrderRow row;
  std::vector<OrderLineRow> lines;
};

/// Generates the rows; writes nothing.
class RowMaker {
 public:
  RowMaker(const Scale& scale, const NurandConstants& constants, uint64_t seed, int64_t now)
      : scale_(scale), constants_(constants), random_(seed), now_(now) {}

  Random& random() { return random_; }

  /// `original` and `bad_credit`: true for 10 % of the rows, which a Selection chooses.
  ItemRow item(bool original);
  PlaceRow place();
  StockRow stock();
  StockInfoRow stock_info(bool original);
  NewCustomer customer(uint32_t w, uint32_t d, uint32_t c, bool bad_credit);
  NewOrderRows order(uint32_t w, uint32_t o, uint32_t c);

 private:
  Address address();

  Scale scale_;
  NurandConstants constants_;
  Random random_;
  int64_t now_;
};

class Loader {
 public:
  Loader(Transaction& txn, Backoff& backoff, const Tables& tables, const NurandConstants& constants,
         uint64_t seed)
      : txn_(&txn),
        backoff_(&backoff),
        tables_(tables),
        scale_(tables.scale),
        maker_(tables.scale, constants, seed, now_us()) {}

  Status load_items();
  /// Loads all tables of warehouse `w` except ITEM.
  Status load_warehouse(uint32_t w);

 private:
  Status load_places(uint32_t w);
  Status load_stock(uint32_t w);
  Status load_customers(uint32_t w, uint32_t d);
  Status load_names(std::vector<CustomerName>& names);
  Status load_orders(uint32_t w, uint32_t d);
  Status write_customer(uint32_t w, uint32_t d, uint32_t c, const NewCustomer& customer);
  Status write_order(uint32_t w, uint32_t d, const NewOrderRows& order);

  /// Calls make(i) for each i of [1, count], then write(i, row) in one transaction per batch, so
  /// that a retry writes the same rows.
  template <typename Row, typename Make, typename Write>
  Status in_batches(uint32_t count, uint32_t batch, Make&& make, Write&& write);

  Transaction* txn_;
  Backoff* backoff_;
  Tables tables_;
  Scale scale_;
  RowMaker maker_;
};

}  // namespace atolldb::tpcc
