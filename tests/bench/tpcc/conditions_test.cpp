// Consistency conditions of TPC-C as functions over facts. Each condition detects one wrong value
// and names it.
#include "bench/tpcc/conditions.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace atolldb::tpcc {
namespace {

constexpr Scale kScale{.items = 10, .customers = 10, .new_orders = 3, .last_names = 5};

/// A consistent warehouse. Each district has ten customers with one order each. Seven orders are
/// delivered.
WarehouseFacts consistent() {
  WarehouseFacts facts;
  facts.w_id = 3;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    DistrictFacts& district = facts.districts[d - 1];
    district.next_o_id = 11;
    district.customers.resize(10);
    for (uint32_t o = 1; o <= 10; ++o) {
      const bool delivered = o <= 7;
      district.orders.push_back({.o_id = o,
                                 .c_id = o,
                                 .carrier_id = delivered ? 4u : 0u,
                                 .ol_cnt = 5,
                                 .lines = 5,
                                 .undelivered_lines = delivered ? 0u : 5u});
      if (!delivered) district.new_orders.push_back(o);
      district.lines += 5;
      CustomerFacts& customer = district.customers[o - 1];
      customer.delivered_amount = delivered ? 700 : 0;
      customer.history_amount = customer.ytd_payment = 1'000;
      customer.balance = customer.delivered_amount - customer.history_amount;
      district.history_amount += 1'000;
    }
    district.ytd = district.history_amount;
    facts.ytd += district.ytd;
    facts.history_amount += district.history_amount;
  }
  return facts;
}

/// Returns the numbers of the conditions that are violated after `change`, and all messages.
std::pair<std::set<uint32_t>, std::string> violated(
    const std::function<void(WarehouseFacts&, DistrictFacts&)>& change) {
  WarehouseFacts facts = consistent();
  change(facts, facts.districts[4]);
  Violations violations;
  check_conditions(facts, kScale, violations);
  std::set<uint32_t> numbers;
  std::string messages;
  for (const Violation& violation : violations.kept()) {
    numbers.insert(violation.condition);
    messages += violation.message + "\n";
  }
  return {numbers, messages};
}

using Numbers = std::set<uint32_t>;

TEST(Conditions, HoldForAConsistentWarehouse) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts&) {});
  EXPECT_EQ(numbers, Numbers{}) << messages;
}

TEST(Conditions, One_WarehouseYtdIsTheSumOfItsDistricts) {
  const auto [numbers, messages] = violated([](WarehouseFacts& facts, DistrictFacts&) {
    facts.ytd += 1;
    facts.history_amount += 1;
  });
  EXPECT_EQ(numbers, Numbers{1});
  EXPECT_EQ(messages, "condition 1: warehouse 3: W_YTD is 1000.01, the sum of D_YTD is 1000.00\n");
}

TEST(Conditions, Two_NextOrderFollowsTheGreatestOrderAndNewOrder) {
  const auto [numbers, messages] =
      violated([](WarehouseFacts&, DistrictFacts& district) { district.next_o_id = 13; });
  EXPECT_EQ(numbers, Numbers{2});
  EXPECT_EQ(messages,
            "condition 2: warehouse 3, district 5: D_NEXT_O_ID - 1 is 12, max(O_ID) is 10\n"
            "condition 2: warehouse 3, district 5: D_NEXT_O_ID - 1 is 12, max(NO_O_ID) is 10\n");
}

TEST(Conditions, Two_ADistrictWithoutNewOrdersHasNoGreatestOne) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts& district) {
    for (OrderFacts& order : district.orders) {
      order.carrier_id = 1;
      order.undelivered_lines = 0;
    }
    district.new_orders.clear();
    district.customers[0].delivery_cnt = 3;
  });
  EXPECT_EQ(numbers, Numbers{}) << messages;
}

TEST(Conditions, Three_NewOrdersHaveNoGap) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts& district) {
    district.new_orders.erase(district.new_orders.begin() + 1);
    district.orders[8].carrier_id = 2;
    district.orders[8].undelivered_lines = 0;
    district.customers[8].delivery_cnt = 1;
  });
  EXPECT_EQ(numbers, Numbers{3});
  EXPECT_EQ(messages,
            "condition 3: warehouse 3, district 5: max(NO_O_ID) - min(NO_O_ID) + 1 is 3, "
            "NEW-ORDER has 2 rows\n");
}

TEST(Conditions, Four_OrdersCountAllTheirLines) {
  const auto [numbers, messages] =
      violated([](WarehouseFacts&, DistrictFacts& district) { ++district.lines; });
  EXPECT_EQ(numbers, Numbers{4});
  EXPECT_EQ(messages,
            "condition 4: warehouse 3, district 5: the sum of O_OL_CNT is 50, ORDER-LINE has 51 "
            "rows\n");
}

TEST(Conditions, Five_OnlyOrdersWithoutCarrierAreNew) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts& district) {
    district.orders[8].carrier_id = 7;
    district.orders[8].undelivered_lines = 0;
  });
  EXPECT_EQ(numbers, Numbers{5});
  EXPECT_EQ(messages,
            "condition 5: warehouse 3, district 5: order 9: O_CARRIER_ID is 7, NEW-ORDER has a "
            "row for it\n");
}

TEST(Conditions, Five_OrdersWithoutCarrierAreNew) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts& district) {
    district.orders[2].carrier_id = 0;
    district.orders[2].undelivered_lines = 5;
  });
  EXPECT_EQ(numbers, Numbers{5});
  EXPECT_EQ(messages,
            "condition 5: warehouse 3, district 5: order 3: O_CARRIER_ID is null, NEW-ORDER has "
            "no row for it\n");
}

TEST(Conditions, Six_EveryOrderCountsItsLines) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts& district) {
    ++district.orders[0].ol_cnt;
    --district.orders[1].ol_cnt;
  });
  EXPECT_EQ(numbers, Numbers{6});
  EXPECT_EQ(messages,
            "condition 6: warehouse 3, district 5: order 1: O_OL_CNT is 6, ORDER-LINE has 5 rows "
            "for it\n"
            "condition 6: warehouse 3, district 5: order 2: O_OL_CNT is 4, ORDER-LINE has 5 rows "
            "for it\n");
}

TEST(Conditions, Seven_LinesAreDatedIffTheirOrderHasACarrier) {
  for (const bool delivered : {true, false}) {
    const auto [numbers, messages] = violated([&](WarehouseFacts&, DistrictFacts& district) {
      district.orders[delivered ? 0 : 9].undelivered_lines = delivered ? 1 : 4;
    });
    EXPECT_EQ(numbers, Numbers{7});
    EXPECT_EQ(messages,
              delivered ? "condition 7: warehouse 3, district 5: order 1: O_CARRIER_ID is 4, "
                          "OL_DELIVERY_D is null in 1 of 5 lines\n"
                        : "condition 7: warehouse 3, district 5: order 10: O_CARRIER_ID is null, "
                          "OL_DELIVERY_D is null in 4 of 5 lines\n");
  }
}

TEST(Conditions, Eight_WarehouseYtdIsTheSumOfItsHistory) {
  const auto [numbers, messages] =
      violated([](WarehouseFacts& facts, DistrictFacts&) { facts.history_amount -= 250; });
  EXPECT_EQ(numbers, Numbers{8});
  EXPECT_EQ(messages,
            "condition 8: warehouse 3: W_YTD is 1000.00, the sum of H_AMOUNT is 997.50\n");
}

TEST(Conditions, Nine_DistrictYtdIsTheSumOfItsHistory) {
  const auto [numbers, messages] =
      violated([](WarehouseFacts&, DistrictFacts& district) { district.history_amount += 5; });
  EXPECT_EQ(numbers, Numbers{9});
  EXPECT_EQ(messages,
            "condition 9: warehouse 3, district 5: D_YTD is 100.00, the sum of H_AMOUNT is "
            "100.05\n");
}

TEST(Conditions, Ten_BalancesAreDeliveriesLessPayments) {
  const auto [numbers, messages] = violated([](WarehouseFacts&, DistrictFacts& district) {
    district.customers[5].history_amount += 100;
  });
  EXPECT_EQ(numbers, Numbers{10});
  EXPECT_EQ(messages,
            "condition 10: warehouse 3, district 5: customer 6: C_BALANCE is -3.00, the sum of "
            "OL_AMOUNT less that of H_AMOUNT is -4.00\n");
}

TEST(Conditions, Eleven_DeliveriesExplainTheDifferenceOfOrdersAndNewOrders) {
  const auto [numbers, messages] = violated(
      [](WarehouseFacts&, DistrictFacts& district) { district.customers[5].delivery_cnt = 1; });
  EXPECT_EQ(numbers, Numbers{11});
  EXPECT_EQ(messages,
            "condition 11: warehouse 3, district 5: ORDER has 7 rows more than NEW-ORDER, "
            "expected are 7 and 1 deliveries\n");
}

TEST(Conditions, Twelve_BalanceAndPaymentsAreDeliveries) {
  const auto [numbers, messages] = violated(
      [](WarehouseFacts&, DistrictFacts& district) { district.customers[5].ytd_payment += 100; });
  EXPECT_EQ(numbers, Numbers{12});
  EXPECT_EQ(messages,
            "condition 12: warehouse 3, district 5: customer 6: C_BALANCE + C_YTD_PAYMENT is "
            "8.00, the sum of OL_AMOUNT is 7.00\n");
}

TEST(Conditions, OnlyTheFirstMessagesOfAConditionAreKeptButAllAreCounted) {
  WarehouseFacts facts = consistent();
  for (CustomerFacts& customer : facts.districts[0].customers) customer.ytd_payment += 1;
  Violations violations;
  check_conditions(facts, kScale, violations);
  EXPECT_EQ(violations.kept().size(), Violations::kKeptPerCondition);
  EXPECT_EQ(violations.count(12), 10u);
}

}  // namespace
}  // namespace atolldb::tpcc
