// Facts for the consistency conditions of clause 3.3.2, per warehouse.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/tpcc/scale.h"

namespace atolldb::tpcc {

struct OrderFacts {
  uint32_t o_id = 0;
  uint32_t c_id = 0;
  uint32_t carrier_id = 0;  // 0 = null
  uint32_t ol_cnt = 0;
  // Number of the order's rows in ORDER-LINE.
  uint32_t lines = 0;
  uint32_t undelivered_lines = 0;  // OL_DELIVERY_D is null
};

struct CustomerFacts {
  int64_t balance = 0;
  int64_t ytd_payment = 0;
  uint32_t delivery_cnt = 0;
  int64_t delivered_amount = 0;  // sum of OL_AMOUNT of delivered lines of the customer's orders
  int64_t history_amount = 0;    // sum of H_AMOUNT of the customer's payments
};

struct DistrictFacts {
  uint32_t next_o_id = 0;
  int64_t ytd = 0;
  int64_t history_amount = 0;            // sum of H_AMOUNT with this H_W_ID and H_D_ID
  std::vector<OrderFacts> orders;        // by o_id
  std::vector<uint32_t> new_orders;      // by o_id
  uint64_t lines = 0;                    // rows in ORDER-LINE, including those without an order
  std::vector<CustomerFacts> customers;  // customer c at index c - 1

  /// Returns null if there is no such order.
  OrderFacts* find_order(uint32_t o_id);
};

struct WarehouseFacts {
  uint32_t w_id = 0;
  int64_t ytd = 0;
  int64_t history_amount = 0;  // sum of H_AMOUNT with this H_W_ID
  std::array<DistrictFacts, kDistricts> districts;
};

}  // namespace atolldb::tpcc
