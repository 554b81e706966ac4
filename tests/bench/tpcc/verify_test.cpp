// Each consistency condition against a real database with one wrong field. A field that several
// conditions use violates all of them, and no others.
#include <gtest/gtest.h>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "tests/bench/tpcc/database.h"

namespace atolldb::tpcc {
namespace {

using test::Database;
using test::kSmallScale;
using Numbers = std::set<uint32_t>;

constexpr uint32_t kW = 2;
constexpr uint32_t kD = 4;

class Verify : public testing::Test {
 protected:
  Verify() : database_(test::MiniCluster::Options{.nodes = 2, .workers = 1}) {
    database_.input.seed = 7;
    // Runs deliveries and payments, so that the conditions hold for more than the loaded data.
    const auto results = database_.run(60);
    EXPECT_GT(results.at(0).total_commits() + results.at(1).total_commits(), 50u);
    EXPECT_EQ(database_.verify(), std::vector<std::string>{});
  }

  const Tables& tables() { return *database_.tables; }

  /// Adds to an integer in a record of an array.
  template <typename T>
  void add_to_array(const Array& array, uint64_t at, uint32_t offset, T amount) {
    database_.transact([&](Transaction& txn) {
      T value{};
      RecordRef ref;
      const Status status = array.get_for_update(txn, at, offset, sizeof(value), &value, ref);
      if (status != Status::ok) return status;
      value = static_cast<T>(value + amount);
      return array.update(txn, ref, at, offset, sizeof(value), &value);
    });
  }

  template <typename Row>
  void change_row(const MasterTree& tree, uint64_t key, const std::function<void(Row&)>& change) {
    database_.transact([&](Transaction& txn) {
      Row row;
      uint32_t bytes = 0;
      const Key bytes_of_key = ordered_key(key);
      Status status = tree.get(txn, bytes_of_key, &row, sizeof(row), bytes);
      if (status != Status::ok) return status;
      change(row);
      return tree.update(txn, bytes_of_key, std::as_bytes(std::span(&row, 1)));
    });
  }

  uint32_t next_o_id() {
    uint32_t value = 0;
    database_.transact([&](Transaction& txn) {
      return tables().district_next.get(txn, tables().district_next_at(kW, kD), 0, sizeof(value),
                                        &value);
    });
    return value;
  }

  void append_history(const HistoryRow& row) {
    database_.transact([&](Transaction& txn) {
      return tables().history.append(txn, std::as_bytes(std::span(&row, 1)));
    });
  }

  /// Expects exactly these conditions to be violated, with the warehouse named and `text` in each
  /// message.
  void expect_violated(const Numbers& numbers, const std::string& text) {
    const std::vector<std::string> messages = database_.verify();
    EXPECT_EQ(database_.violated, numbers);
    for (const std::string& message : messages) {
      EXPECT_NE(message.find("warehouse 2"), std::string::npos) << message;
      EXPECT_NE(message.find(text), std::string::npos) << message;
    }
  }

  Database database_;
};

TEST_F(Verify, NamesConditions1And8ForAWrongWarehouseYtd) {
  add_to_array<int64_t>(tables().warehouse_ytd, tables().warehouse_ytd_at(kW), 0, 1);
  expect_violated({1, 8}, "W_YTD");
}

TEST_F(Verify, NamesConditions1And9ForAWrongDistrictYtd) {
  add_to_array<int64_t>(tables().district_ytd, tables().district_ytd_at(kW, kD), 0, -1);
  expect_violated({1, 9}, "D_YTD");
}

TEST_F(Verify, NamesCondition2ForAWrongNextOrder) {
  add_to_array<uint32_t>(tables().district_next, tables().district_next_at(kW, kD), 0, 1);
  expect_violated({2}, "D_NEXT_O_ID");
}

TEST_F(Verify, NamesConditions3And5And11ForAMissingNewOrder) {
  // Removes neither the first nor the last row, so that the greatest order number does not change.
  const uint32_t o_id = next_o_id() - 2;
  database_.transact([&](Transaction& txn) {
    return tables().new_order.erase(txn, ordered_key(order_key(kW, kD, o_id)));
  });
  expect_violated({3, 5, 11}, "NEW-ORDER");
}

TEST_F(Verify, NamesConditions4And6ForAMissingOrderLine) {
  const uint32_t o_id = next_o_id() - 1;
  database_.transact([&](Transaction& txn) {
    return tables().order_line.erase(txn, ordered_key(order_line_key(kW, kD, o_id, 1)));
  });
  expect_violated({4, 6}, "ORDER-LINE");
}

TEST_F(Verify, NamesCondition4ForALineWithoutAnOrder) {
  const Key key = ordered_key(order_line_key(kW, kD, next_o_id() + 5, 1));
  database_.transact([&](Transaction& txn) {
    const OrderLineRow line{};
    return tables().order_line.insert(txn, key, std::as_bytes(std::span(&line, 1)));
  });
  expect_violated({4}, "sum of O_OL_CNT");
}

TEST_F(Verify, NamesConditions5And7ForAWrongCarrier) {
  change_row<OrderRow>(tables().order, order_key(kW, kD, next_o_id() - 1),
                       [](OrderRow& row) { row.carrier_id = 3; });
  expect_violated({5, 7}, "O_CARRIER_ID is 3");
}

TEST_F(Verify, NamesConditions4And6ForAWrongLineCount) {
  change_row<OrderRow>(tables().order, order_key(kW, kD, 1), [](OrderRow& row) { ++row.ol_cnt; });
  expect_violated({4, 6}, "O_OL_CNT");
}

TEST_F(Verify, NamesCondition7ForAWrongDeliveryDate) {
  // A line that the load created as delivered has the amount 0, so no balance depends on its date.
  change_row<OrderLineRow>(tables().order_line, order_line_key(kW, kD, 1, 2),
                           [](OrderLineRow& row) { row.delivery_d = 0; });
  expect_violated({7}, "order 1: O_CARRIER_ID");
}

TEST_F(Verify, NamesConditions8And9And10ForAWrongHistoryAmount) {
  HistoryRow row{};
  row.amount = 777;
  row.w_id = row.c_w_id = kW;
  row.d_id = row.c_d_id = kD;
  row.c_id = 5;
  append_history(row);
  expect_violated({8, 9, 10}, "H_AMOUNT");
}

TEST_F(Verify, NamesCondition10ForAHistoryRowOfAnotherCustomer) {
  // The two rows add nothing to the district's sum, but move an amount between customers.
  HistoryRow row{};
  row.amount = 777;
  row.w_id = row.c_w_id = kW;
  row.d_id = row.c_d_id = kD;
  row.c_id = 5;
  append_history(row);
  row.amount = -777;
  row.c_id = 6;
  append_history(row);
  expect_violated({10}, "customer ");
}

TEST_F(Verify, NamesConditions10And12ForAWrongBalance) {
  add_to_array<int64_t>(tables().customer_dynamic,
                        tables().customer_at<CustomerBalanceRow>(kW, kD, 9),
                        offsetof(CustomerBalanceRow, balance), 100);
  expect_violated({10, 12}, "district 4: customer 9: C_BALANCE");
}

TEST_F(Verify, NamesCondition11ForAWrongDeliveryCount) {
  add_to_array<uint32_t>(tables().customer_dynamic,
                         tables().customer_at<CustomerBalanceRow>(kW, kD, 9),
                         offsetof(CustomerBalanceRow, delivery_cnt), 1);
  expect_violated({11}, "deliveries");
}

TEST_F(Verify, NamesCondition12ForAWrongYtdPayment) {
  add_to_array<int64_t>(tables().customer_dynamic,
                        tables().customer_at<CustomerBalanceRow>(kW, kD, 9),
                        offsetof(CustomerBalanceRow, ytd_payment), 100);
  expect_violated({12}, "district 4: customer 9: C_BALANCE + C_YTD_PAYMENT");
}

TEST_F(Verify, NamesConditions10And12ForAWrongAmountOfADeliveredLine) {
  change_row<OrderLineRow>(tables().order_line, order_line_key(kW, kD, 1, 2),
                           [](OrderLineRow& row) { row.amount = 50; });
  expect_violated({10, 12}, "OL_AMOUNT");
}

}  // namespace
}  // namespace atolldb::tpcc
