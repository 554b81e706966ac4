// The five transactions of clause 2: bodies for `run`. Each produces all outputs of the
// specification. None keeps state between transactions.
#pragma once

#include <array>
#include <cstdint>

#include "bench/tpcc/inputs.h"
#include "bench/tpcc/rows.h"
#include "bench/tpcc/tables.h"
#include "engine/transaction/transaction.h"

namespace atolldb::tpcc {

struct NewOrderOutput {
  struct Line {
    uint32_t i_id;
    uint16_t supply_w_id;
    uint8_t quantity;
    char brand_generic;  // 'B' or 'G'
    int32_t stock_quantity;
    int32_t price;
    int32_t amount;
    Text<24> name;
  };
  uint32_t o_id;
  int32_t w_tax;
  int32_t d_tax;
  int64_t total_amount;
  CustomerIdentity customer;
  uint32_t lines_done;
  std::array<Line, kMaxLines> lines;
};

/// Returns user_abort if the last item does not exist (clause 2.4.2.3), after all other work.
Status new_order(Transaction& txn, const Tables& tables, const NewOrderInput& input,
                 NewOrderOutput& output);

struct PaymentOutput {
  uint32_t c_id;
  PlaceRow warehouse;
  PlaceRow district;
  CustomerRow customer;
  int64_t balance;
  Text<200> data;  // C_DATA, only for customers with bad credit
};
Status payment(Transaction& txn, const Tables& tables, const PaymentInput& input,
               PaymentOutput& output);

struct OrderStatusOutput {
  uint32_t c_id;
  CustomerIdentity customer;
  int64_t balance;
  uint32_t o_id;
  OrderRow order;
  uint32_t line_count;
  std::array<OrderLineRow, kMaxLoadedLines> lines;  // line_count of them
};
Status order_status(Transaction& txn, const Tables& tables, const OrderStatusInput& input,
                    OrderStatusOutput& output);

struct DeliveryOutput {
  std::array<uint32_t, kDistricts> o_id;  // 0: the district had no order to deliver
  uint32_t delivered;
};
Status delivery(Transaction& txn, const Tables& tables, const DeliveryInput& input,
                DeliveryOutput& output);

struct StockLevelOutput {
  uint32_t low_stock;
};
Status stock_level(Transaction& txn, const Tables& tables, const StockLevelInput& input,
                   StockLevelOutput& output);

/// Clause 2.5.2.2: finds a customer by number or by last name. Of several customers with that last
/// name, chooses the middle one in the order of first names. Returns not_found if there is none.
Status find_customer(Transaction& txn, const Tables& tables, const CustomerChoice& choice,
                     uint32_t& c_id);

/// Clause 2.4.2.2: returns the stock after a sale of `sold`.
constexpr int32_t stock_after_sale(int32_t quantity, int32_t sold) {
  return quantity - sold >= 10 ? quantity - sold : quantity - sold + 91;
}

/// Clause 2.4.2.2: returns sum x (1 - discount) x (1 + warehouse tax + district tax), to the
/// nearest cent.
constexpr int64_t total_amount(int64_t sum, int32_t discount, int32_t w_tax, int32_t d_tax) {
  constexpr int64_t kUnit = 10'000;
  const int64_t scaled = sum * (kUnit - discount) * (kUnit + w_tax + d_tax);
  return (scaled + kUnit * kUnit / 2) / (kUnit * kUnit);
}

}  // namespace atolldb::tpcc
