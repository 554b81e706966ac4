// Inputs of the TPC-C transactions: their ranges and fractions.
#include "bench/tpcc/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/seed.h"

namespace atolldb::tpcc {
namespace {

Workload make_workload(uint32_t warehouses, uint32_t lines, uint32_t payments) {
  Workload workload;
  workload.warehouses = warehouses;
  workload.remote_line_percent = lines;
  workload.remote_payment_percent = payments;
  workload.constants = NurandConstants::for_run(1, 2);
  return workload;
}

/// Expects `count` of `total` to be within six standard deviations of the probability.
void expect_fraction(double count, double total, double probability) {
  const double deviation = std::sqrt(total * probability * (1 - probability));
  EXPECT_NEAR(count, total * probability, 6 * deviation + 1e-9);
}

TEST(Inputs, TypesComeInTheirProportions) {
  InputGenerator generator(make_workload(2, 1, 15), test::seed());
  std::array<double, kTransactionTypes> counts{};
  constexpr int kDraws = 1'000'000;
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(generator.next_type())];
  const std::array<double, kTransactionTypes> expected = {0.45, 0.43, 0.04, 0.04, 0.04};
  for (uint32_t i = 0; i < kTransactionTypes; ++i) expect_fraction(counts[i], kDraws, expected[i]);
}

TEST(Inputs, AMixOfOneTypeGivesOnlyThatType) {
  for (uint32_t type = 0; type < kTransactionTypes; ++type) {
    Workload workload = make_workload(1, 1, 15);
    workload.mix = {};
    workload.mix[type] = 100;
    InputGenerator generator(workload, test::seed());
    for (int i = 0; i < 1'000; ++i) {
      ASSERT_EQ(generator.next_type(), static_cast<TransactionType>(type));
    }
  }
}

TEST(Inputs, NewOrdersAreWithinTheClause241) {
  InputGenerator generator(make_workload(5, 1, 15), test::seed());
  double lines = 0, remote = 0, rolled_back = 0;
  constexpr int kOrders = 200'000;
  for (int i = 0; i < kOrders; ++i) {
    const NewOrderInput order = generator.new_order(3);
    ASSERT_EQ(order.w_id, 3u);
    ASSERT_TRUE(order.d_id >= 1 && order.d_id <= 10);
    ASSERT_TRUE(order.c_id >= 1 && order.c_id <= 3'000);
    ASSERT_TRUE(order.ol_cnt >= 5 && order.ol_cnt <= 15);
    bool all_local = true;
    for (uint32_t k = 0; k < order.ol_cnt; ++k) {
      const NewOrderInput::Line& line = order.lines[k];
      ASSERT_TRUE(line.supply_w_id >= 1 && line.supply_w_id <= 5);
      ASSERT_TRUE(line.quantity >= 1 && line.quantity <= 10);
      if (line.supply_w_id != 3) all_local = false, ++remote;
      if (line.i_id == 100'001) {
        ASSERT_EQ(k, order.ol_cnt - 1) << "only the last item may be unused";
        ++rolled_back;
      } else {
        ASSERT_TRUE(line.i_id >= 1 && line.i_id <= 100'000);
      }
    }
    ASSERT_EQ(order.all_local, all_local);
    lines += order.ol_cnt;
  }
  EXPECT_NEAR(lines / kOrders, 10.0, 0.1);
  expect_fraction(remote, lines, 0.01);
  expect_fraction(rolled_back, kOrders, 0.01);
}

TEST(Inputs, RemotePercentZeroAndHundredAreExact) {
  InputGenerator none(make_workload(4, 0, 0), test::seed());
  InputGenerator all(make_workload(4, 100, 100), test::seed());
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(none.new_order(2).all_local);
    ASSERT_EQ(none.payment(2).customer.w_id, 2u);
    const NewOrderInput order = all.new_order(2);
    for (uint32_t k = 0; k < order.ol_cnt; ++k) ASSERT_NE(order.lines[k].supply_w_id, 2u);
    ASSERT_NE(all.payment(2).customer.w_id, 2u);
  }
}

TEST(Inputs, RemoteWarehousesAreAllOthersAlike) {
  InputGenerator generator(make_workload(4, 0, 100), test::seed());
  std::array<double, 5> counts{};
  for (int i = 0; i < 90'000; ++i) ++counts[generator.payment(2).customer.w_id];
  for (const uint32_t w : {1u, 3u, 4u}) expect_fraction(counts[w], 90'000, 1.0 / 3);
}

TEST(Inputs, TheOnlyWarehouseIsNeverRemote) {
  InputGenerator generator(make_workload(1, 100, 100), test::seed());
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(generator.new_order(1).all_local);
    ASSERT_EQ(generator.payment(1).customer.w_id, 1u);
  }
}

TEST(Inputs, PaymentsAreWithinClause251) {
  InputGenerator generator(make_workload(3, 1, 15), test::seed());
  double by_name = 0, remote = 0;
  constexpr int kPayments = 200'000;
  for (int i = 0; i < kPayments; ++i) {
    const PaymentInput payment = generator.payment(1);
    ASSERT_TRUE(payment.amount >= 100 && payment.amount <= 500'000);
    if (payment.customer.w_id == 1) {
      ASSERT_EQ(payment.customer.d_id, payment.d_id);
    } else {
      ++remote;
    }
    if (payment.customer.by_last_name) ++by_name;
  }
  expect_fraction(by_name, kPayments, 0.60);
  expect_fraction(remote, kPayments, 0.15);
}

TEST(Inputs, TheOthersAreWithinTheirClauses) {
  InputGenerator generator(make_workload(3, 1, 15), test::seed());
  std::set<uint32_t> carriers;
  std::set<int32_t> thresholds;
  for (int i = 0; i < 10'000; ++i) {
    carriers.insert(generator.delivery(2).carrier_id);
    thresholds.insert(generator.stock_level(2).threshold);
    ASSERT_EQ(generator.order_status(2).customer.w_id, 2u);
  }
  EXPECT_EQ(carriers.size(), 10u);
  EXPECT_EQ(*carriers.begin(), 1u);
  EXPECT_EQ(*carriers.rbegin(), 10u);
  EXPECT_EQ(thresholds.size(), 11u);
  EXPECT_EQ(*thresholds.begin(), 10);
  EXPECT_EQ(*thresholds.rbegin(), 20);
}

}  // namespace
}  // namespace atolldb::tpcc
