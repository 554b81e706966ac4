#include "bench/tpcc/conditions.h"

#include <algorithm>

#include <fmt/format.h>

namespace atolldb::tpcc {

namespace {

std::string money(int64_t cents) {
  const int64_t whole = cents < 0 ? -cents : cents;
  return fmt::format("{}{}.{:02}", cents < 0 ? "-" : "", whole / 100, whole % 100);
}

/// Calls check(district, d) for each district of the warehouse.
template <typename Check>
void each_district(const WarehouseFacts& facts, Check&& check) {
  for (uint32_t d = 1; d <= kDistricts; ++d) check(facts.districts[d - 1], d);
}

/// W_YTD = sum(D_YTD)
void condition_1(const WarehouseFacts& facts, const Scale&, Violations& out) {
  int64_t sum = 0;
  each_district(facts, [&](const DistrictFacts& district, uint32_t) { sum += district.ytd; });
  if (facts.ytd == sum) return;
  out.add(1, facts.w_id, 0,
          fmt::format("W_YTD is {}, the sum of D_YTD is {}", money(facts.ytd), money(sum)));
}

/// D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID). In a district without new orders only the first
/// equality applies.
void condition_2(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    const uint32_t last = district.orders.empty() ? 0 : district.orders.back().o_id;
    if (district.next_o_id - 1 != last) {
      out.add(2, facts.w_id, d,
              fmt::format("D_NEXT_O_ID - 1 is {}, max(O_ID) is {}", district.next_o_id - 1, last));
    }
    if (!district.new_orders.empty() && district.new_orders.back() != district.next_o_id - 1) {
      out.add(2, facts.w_id, d,
              fmt::format("D_NEXT_O_ID - 1 is {}, max(NO_O_ID) is {}", district.next_o_id - 1,
                          district.new_orders.back()));
    }
  });
}

/// max(NO_O_ID) - min(NO_O_ID) + 1 = number of rows in NEW-ORDER
void condition_3(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    if (district.new_orders.empty()) return;
    const uint64_t span = uint64_t{district.new_orders.back()} - district.new_orders.front() + 1;
    if (span == district.new_orders.size()) return;
    out.add(3, facts.w_id, d,
            fmt::format("max(NO_O_ID) - min(NO_O_ID) + 1 is {}, NEW-ORDER has {} rows", span,
                        district.new_orders.size()));
  });
}

/// sum(O_OL_CNT) = number of rows in ORDER-LINE
void condition_4(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    uint64_t sum = 0;
    for (const OrderFacts& order : district.orders) sum += order.ol_cnt;
    if (sum == district.lines) return;
    out.add(4, facts.w_id, d,
            fmt::format("the sum of O_OL_CNT is {}, ORDER-LINE has {} rows", sum, district.lines));
  });
}

/// O_CARRIER_ID is null iff NEW-ORDER has a row for the order
void condition_5(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    for (const OrderFacts& order : district.orders) {
      const bool is_new = std::ranges::binary_search(district.new_orders, order.o_id);
      if (is_new == (order.carrier_id == 0)) continue;
      out.add(5, facts.w_id, d,
              fmt::format("order {}: O_CARRIER_ID is {}, NEW-ORDER has {} row for it", order.o_id,
                          order.carrier_id == 0 ? "null" : std::to_string(order.carrier_id),
                          is_new ? "a" : "no"));
    }
  });
}

/// O_OL_CNT = number of rows in ORDER-LINE of the order
void condition_6(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    for (const OrderFacts& order : district.orders) {
      if (order.ol_cnt == order.lines) continue;
      out.add(6, facts.w_id, d,
              fmt::format("order {}: O_OL_CNT is {}, ORDER-LINE has {} rows for it", order.o_id,
                          order.ol_cnt, order.lines));
    }
  });
}

/// OL_DELIVERY_D is null iff O_CARRIER_ID of its order is null
void condition_7(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    for (const OrderFacts& order : district.orders) {
      const uint32_t expected = order.carrier_id == 0 ? order.lines : 0;
      if (order.undelivered_lines == expected) continue;
      out.add(
          7, facts.w_id, d,
          fmt::format("order {}: O_CARRIER_ID is {}, OL_DELIVERY_D is null in {} of {} lines",
                      order.o_id, order.carrier_id == 0 ? "null" : std::to_string(order.carrier_id),
                      order.undelivered_lines, order.lines));
    }
  });
}

/// W_YTD = sum(H_AMOUNT)
void condition_8(const WarehouseFacts& facts, const Scale&, Violations& out) {
  if (facts.ytd == facts.history_amount) return;
  out.add(8, facts.w_id, 0,
          fmt::format("W_YTD is {}, the sum of H_AMOUNT is {}", money(facts.ytd),
                      money(facts.history_amount)));
}

/// D_YTD = sum(H_AMOUNT)
void condition_9(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    if (district.ytd == district.history_amount) return;
    out.add(9, facts.w_id, d,
            fmt::format("D_YTD is {}, the sum of H_AMOUNT is {}", money(district.ytd),
                        money(district.history_amount)));
  });
}

/// C_BALANCE = sum(OL_AMOUNT of delivered lines) - sum(H_AMOUNT)
void condition_10(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    for (size_t c = 0; c < district.customers.size(); ++c) {
      const CustomerFacts& customer = district.customers[c];
      const int64_t expected = customer.delivered_amount - customer.history_amount;
      if (customer.balance == expected) continue;
      out.add(10, facts.w_id, d,
              fmt::format("customer {}: C_BALANCE is {}, the sum of OL_AMOUNT less that of "
                          "H_AMOUNT is {}",
                          c + 1, money(customer.balance), money(expected)));
    }
  });
}

/// count(ORDER) - count(NEW-ORDER) = 2100 after the load. Each later delivery removes a row from
/// NEW-ORDER and increments C_DELIVERY_CNT of one customer of the district.
void condition_11(const WarehouseFacts& facts, const Scale& scale, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    uint64_t deliveries = 0;
    for (const CustomerFacts& customer : district.customers) deliveries += customer.delivery_cnt;
    const auto rows = static_cast<int64_t>(district.orders.size()) -
                      static_cast<int64_t>(district.new_orders.size());
    const auto expected = static_cast<int64_t>(scale.delivered_orders() + deliveries);
    if (rows == expected) return;
    out.add(11, facts.w_id, d,
            fmt::format("ORDER has {} rows more than NEW-ORDER, expected are {} and {} deliveries",
                        rows, scale.delivered_orders(), deliveries));
  });
}

/// C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of delivered lines)
void condition_12(const WarehouseFacts& facts, const Scale&, Violations& out) {
  each_district(facts, [&](const DistrictFacts& district, uint32_t d) {
    for (size_t c = 0; c < district.customers.size(); ++c) {
      const CustomerFacts& customer = district.customers[c];
      const int64_t sum = customer.balance + customer.ytd_payment;
      if (sum == customer.delivered_amount) continue;
      out.add(12, facts.w_id, d,
              fmt::format("customer {}: C_BALANCE + C_YTD_PAYMENT is {}, the sum of OL_AMOUNT is "
                          "{}",
                          c + 1, money(sum), money(customer.delivered_amount)));
    }
  });
}

}  // namespace

const std::array<Condition, kConditions> kConditionFunctions = {
    condition_1, condition_2, condition_3, condition_4,  condition_5,  condition_6,
    condition_7, condition_8, condition_9, condition_10, condition_11, condition_12};

OrderFacts* DistrictFacts::find_order(uint32_t o_id) {
  const auto found = std::ranges::lower_bound(orders, o_id, {}, &OrderFacts::o_id);
  return found != orders.end() && found->o_id == o_id ? &*found : nullptr;
}

void Violations::add(uint32_t condition, uint32_t warehouse, uint32_t district,
                     const std::string& text) {
  if (++counts_[condition - 1] > kKeptPerCondition) return;
  const std::string where = district == 0
                                ? fmt::format("warehouse {}", warehouse)
                                : fmt::format("warehouse {}, district {}", warehouse, district);
  kept_.push_back({condition, fmt::format("condition {}: {}: {}", condition, where, text)});
}

}  // namespace atolldb::tpcc
