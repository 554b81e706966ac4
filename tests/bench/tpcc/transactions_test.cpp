// Reads, writes and outputs of each transaction of TPC-C clause 2.
#include "bench/tpcc/transactions.h"

#include <gtest/gtest.h>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/prefetch.h"
#include "bench/tpcc/scan.h"
#include "tests/bench/tpcc/database.h"
#include "tests/support/seed.h"

namespace atolldb::tpcc {
namespace {

using test::Database;
using test::kSmallScale;

class Transactions : public testing::Test {
 protected:
  Transactions() : database_(test::MiniCluster::Options{}, 2) {}

  const Tables& tables() { return *database_.tables; }

  template <typename Row>
  Row read(const Array& array, uint64_t at) {
    Row row{};
    database_.transact([&](Transaction& txn) { return array.get(txn, at, 0, sizeof(Row), &row); });
    return row;
  }
  template <typename Row>
  Row read(const MasterTree& tree, uint64_t key) {
    Row row{};
    uint32_t bytes = 0;
    database_.transact([&](Transaction& txn) {
      return tree.get(txn, ordered_key(key), &row, sizeof(row), bytes);
    });
    return row;
  }
  Status exists(const MasterTree& tree, uint64_t key) {
    char byte = 0;
    uint32_t bytes = 0;
    return database_.cluster.transact(
        [&](Transaction& txn) { return tree.get(txn, ordered_key(key), &byte, 1, bytes); });
  }
  StockRow stock(uint32_t w, uint32_t i) {
    return read<StockRow>(tables().stock, tables().stock_at<StockRow>(w, i));
  }
  CustomerBalanceRow balance(uint32_t w, uint32_t d, uint32_t c) {
    return read<CustomerBalanceRow>(tables().customer_dynamic,
                                    tables().customer_at<CustomerBalanceRow>(w, d, c));
  }
  CustomerRow customer(uint32_t w, uint32_t d, uint32_t c) {
    return read<CustomerRow>(tables().customer_static, tables().customer_at<CustomerRow>(w, d, c));
  }

  static NewOrderInput order_of(std::initializer_list<NewOrderInput::Line> lines) {
    NewOrderInput input{};
    input.w_id = 1;
    input.d_id = 3;
    input.c_id = 8;
    input.entry_d = 12'345;
    input.all_local = true;
    for (const NewOrderInput::Line& line : lines) {
      input.lines[input.ol_cnt++] = line;
      if (line.supply_w_id != 1) input.all_local = false;
    }
    return input;
  }
  Status place(const NewOrderInput& input, NewOrderOutput& output) {
    return database_.cluster.transact(
        [&](Transaction& txn) { return new_order(txn, tables(), input, output); });
  }

  Database database_;
};

TEST(Arithmetic, StockStaysAtTenOrMoreOrIsRefilledBy91) {
  EXPECT_EQ(stock_after_sale(20, 10), 10);
  EXPECT_EQ(stock_after_sale(19, 10), 100);
  EXPECT_EQ(stock_after_sale(100, 1), 99);
  EXPECT_EQ(stock_after_sale(10, 1), 100);
}

TEST(Arithmetic, TotalsTakeDiscountAndTaxesAndRoundToTheCent) {
  EXPECT_EQ(total_amount(10'000, 0, 0, 0), 10'000);
  EXPECT_EQ(total_amount(10'000, 5'000, 0, 0), 5'000);
  EXPECT_EQ(total_amount(10'000, 1'000, 500, 1'500), 10'800);
  EXPECT_EQ(total_amount(1, 5'000, 0, 0), 1);  // 0.5 cents
  EXPECT_EQ(total_amount(1, 5'001, 0, 0), 0);  // 0.4999 cents
  EXPECT_EQ(total_amount(15 * 10 * 10'000, 0, 2'000, 2'000), 2'100'000);
}

TEST_F(Transactions, NewOrderTakesStockCountsRemoteSalesAndWritesAllRows) {
  const StockRow before_5 = stock(1, 5);
  const StockRow before_9 = stock(2, 9);
  const NewOrderInput input = order_of({{5, 1, 7}, {9, 2, 3}, {5, 1, 2}, {11, 1, 1}, {12, 1, 1}});
  NewOrderOutput output{};
  ASSERT_EQ(place(input, output), Status::ok);
  EXPECT_EQ(output.o_id, kSmallScale.customers + 1);
  EXPECT_EQ(output.lines_done, 5u);

  // The order has the same item twice, and both sales count.
  const StockRow after_5 = stock(1, 5);
  EXPECT_EQ(after_5.quantity, stock_after_sale(stock_after_sale(before_5.quantity, 7), 2));
  EXPECT_EQ(after_5.ytd, 9u);
  EXPECT_EQ(after_5.order_cnt, 2u);
  EXPECT_EQ(after_5.remote_cnt, 0u);
  const StockRow after_9 = stock(2, 9);
  EXPECT_EQ(after_9.quantity, stock_after_sale(before_9.quantity, 3));
  EXPECT_EQ(after_9.ytd, 3u);
  EXPECT_EQ(after_9.remote_cnt, 1u);

  const auto order = read<OrderRow>(tables().order, order_key(1, 3, output.o_id));
  EXPECT_EQ(order.c_id, 8);
  EXPECT_EQ(order.ol_cnt, 5);
  EXPECT_EQ(order.carrier_id, 0);
  EXPECT_EQ(order.entry_d, 12'345);
  EXPECT_EQ(order.all_local, 0);
  EXPECT_EQ(exists(tables().new_order, order_key(1, 3, output.o_id)), Status::ok);
  EXPECT_EQ(exists(tables().order_by_customer, customer_order_key(1, 3, 8, output.o_id)),
            Status::ok);

  int64_t sum = 0;
  for (uint32_t i = 0; i < input.ol_cnt; ++i) {
    const NewOrderInput::Line& line = input.lines[i];
    const auto item = read<ItemRow>(tables().item, tables().item_at(line.i_id));
    const auto info = read<StockInfoRow>(
        tables().stock_static, tables().stock_at<StockInfoRow>(line.supply_w_id, line.i_id));
    const auto row =
        read<OrderLineRow>(tables().order_line, order_line_key(1, 3, output.o_id, i + 1));
    EXPECT_EQ(row.i_id, line.i_id);
    EXPECT_EQ(row.supply_w_id, line.supply_w_id);
    EXPECT_EQ(row.quantity, line.quantity);
    EXPECT_EQ(row.amount, line.quantity * item.price);
    EXPECT_EQ(row.delivery_d, 0);
    EXPECT_EQ(row.dist_info, info.dist[2]) << "the district's information, not another's";
    EXPECT_EQ(output.lines[i].name, item.name);
    EXPECT_EQ(output.lines[i].brand_generic,
              contains_original(item.data) && contains_original(info.data) ? 'B' : 'G');
    sum += row.amount;
  }
  const auto warehouse = read<PlaceRow>(tables().warehouse_static, tables().warehouse_at(1));
  const auto district = read<PlaceRow>(tables().district_static, tables().district_at(1, 3));
  EXPECT_EQ(output.total_amount,
            total_amount(sum, customer(1, 3, 8).identity.discount, warehouse.tax, district.tax));
  EXPECT_EQ(output.customer.last, customer(1, 3, 8).identity.last);
}

TEST_F(Transactions, NewOrderFindsBrandGoodsWhateverTheLengthOfTheirData) {
  // Orders all items once: short and long S_DATA, with "ORIGINAL" in every position.
  uint32_t brand = 0;
  uint32_t expected = 0;
  for (uint32_t first = 1; first + 14 <= kSmallScale.items; first += 15) {
    NewOrderInput input = order_of({});
    for (uint32_t i = 0; i < 15; ++i) input.lines[input.ol_cnt++] = {first + i, 1, 1};
    NewOrderOutput output{};
    ASSERT_EQ(place(input, output), Status::ok);
    for (uint32_t i = 0; i < 15; ++i) {
      const auto item = read<ItemRow>(tables().item, tables().item_at(first + i));
      const auto info =
          read<StockInfoRow>(tables().stock_static, tables().stock_at<StockInfoRow>(1, first + i));
      if (contains_original(item.data) && contains_original(info.data)) ++expected;
      if (output.lines[i].brand_generic == 'B') ++brand;
    }
  }
  EXPECT_EQ(brand, expected);
  EXPECT_GT(brand, 0u);
}

TEST_F(Transactions, NewOrderWithAnUnusedItemChangesNothingAndStillShowsItsNumber) {
  const StockRow before = stock(1, 5);
  const NewOrderInput input =
      order_of({{5, 1, 7}, {6, 1, 7}, {7, 1, 7}, {8, 1, 7}, {kSmallScale.items + 1, 1, 1}});
  NewOrderOutput output{};
  EXPECT_EQ(place(input, output), Status::user_abort);
  EXPECT_EQ(output.o_id, kSmallScale.customers + 1);
  EXPECT_EQ(output.lines_done, 4u) << "all other work is done first";
  EXPECT_EQ(output.customer.last, customer(1, 3, 8).identity.last);
  EXPECT_EQ(stock(1, 5).ytd, before.ytd);
  EXPECT_EQ(exists(tables().order, order_key(1, 3, output.o_id)), Status::not_found);
  EXPECT_EQ(exists(tables().new_order, order_key(1, 3, output.o_id)), Status::not_found);
  EXPECT_EQ(database_.verify(), std::vector<std::string>{});
}

TEST_F(Transactions, PaymentMovesTheMoneyAndWritesHistory) {
  const auto warehouse_before = read<YtdRow>(tables().warehouse_ytd, tables().warehouse_ytd_at(1));
  const auto district_before = read<YtdRow>(tables().district_ytd, tables().district_ytd_at(1, 2));
  PaymentInput input{1, 2, {2, 9, false, 17, {}}, 12'345, 99};
  PaymentOutput output{};
  database_.transact([&](Transaction& txn) { return payment(txn, tables(), input, output); });
  EXPECT_EQ(read<YtdRow>(tables().warehouse_ytd, tables().warehouse_ytd_at(1)).ytd,
            warehouse_before.ytd + 12'345);
  EXPECT_EQ(read<YtdRow>(tables().district_ytd, tables().district_ytd_at(1, 2)).ytd,
            district_before.ytd + 12'345);
  const CustomerBalanceRow row = balance(2, 9, 17);
  EXPECT_EQ(row.balance, -1'000 - 12'345);
  EXPECT_EQ(row.ytd_payment, 1'000 + 12'345);
  EXPECT_EQ(row.payment_cnt, 2u);
  EXPECT_EQ(output.balance, row.balance);
  EXPECT_EQ(output.c_id, 17u);
  EXPECT_EQ(output.customer.phone, customer(2, 9, 17).phone);

  HistoryRow last{};
  database_.transact([&](Transaction& txn) {
    SequentialCursor cursor(tables().history, txn);
    for (;;) {
      const Status status = cursor.next();
      if (status == Status::end_of_scan) return Status::ok;
      if (status != Status::ok) return status;
      std::memcpy(&last, cursor.payload().data(), sizeof(last));
    }
  });
  EXPECT_EQ(last.amount, 12'345);
  EXPECT_EQ(last.date, 99);
  EXPECT_EQ(last.w_id, 1);
  EXPECT_EQ(last.d_id, 2);
  EXPECT_EQ(last.c_w_id, 2);
  EXPECT_EQ(last.c_d_id, 9);
  EXPECT_EQ(last.c_id, 17);
  EXPECT_EQ(last.data.view(), std::string(output.warehouse.name.view()) + "    " +
                                  std::string(output.district.name.view()));
  EXPECT_EQ(database_.verify(), std::vector<std::string>{});
}

TEST_F(Transactions, PaymentOfACustomerWithBadCreditIsNotedInFrontOfTheData) {
  uint32_t c = 1;
  while (customer(1, 2, c).identity.credit.view() != "BC") ++c;
  const uint64_t at = tables().customer_at<CustomerDataRow>(1, 2, c);
  const auto before = read<CustomerDataRow>(tables().customer_data, at);
  PaymentInput input{1, 4, {1, 2, false, c, {}}, 12'305, 99};
  PaymentOutput output{};
  database_.transact([&](Transaction& txn) { return payment(txn, tables(), input, output); });
  const auto after = read<CustomerDataRow>(tables().customer_data, at);
  const std::string note = std::to_string(c) + " 2 1 4 1 123.05|";
  const std::string expected =
      (note + std::string(before.data.bytes, sizeof(before.data.bytes))).substr(0, 500);
  EXPECT_EQ(std::string(after.data.bytes, sizeof(after.data.bytes)), expected);
  EXPECT_EQ(std::string(output.data.bytes, 200), expected.substr(0, 200));
}

TEST_F(Transactions, PaymentOfACustomerWithGoodCreditLeavesTheDataAlone) {
  uint32_t c = 1;
  while (customer(1, 2, c).identity.credit.view() != "GC") ++c;
  const uint64_t at = tables().customer_at<CustomerDataRow>(1, 2, c);
  const auto before = read<CustomerDataRow>(tables().customer_data, at);
  PaymentInput input{1, 4, {1, 2, false, c, {}}, 100, 99};
  PaymentOutput output{};
  database_.transact([&](Transaction& txn) { return payment(txn, tables(), input, output); });
  EXPECT_EQ(read<CustomerDataRow>(tables().customer_data, at).data, before.data);
}

TEST_F(Transactions, ACustomerByNameIsTheOneInTheMiddleByFirstName) {
  for (uint32_t number = 0; number < kSmallScale.last_names; ++number) {
    const Text<16> name = last_name(number);
    std::vector<std::pair<std::string, uint32_t>> same;
    for (uint32_t c = 1; c <= kSmallScale.customers; ++c) {
      const CustomerIdentity identity = customer(2, 6, c).identity;
      if (identity.last == name) same.emplace_back(identity.first.view(), c);
    }
    std::sort(same.begin(), same.end());
    uint32_t found = 0;
    database_.transact([&](Transaction& txn) {
      return find_customer(txn, tables(), {2, 6, true, 0, name}, found);
    });
    EXPECT_EQ(found, same[(same.size() + 1) / 2 - 1].second) << name.view();
  }
}

TEST_F(Transactions, AnUnknownNameIsNotFound) {
  uint32_t found = 0;
  EXPECT_EQ(database_.cluster.transact([&](Transaction& txn) {
    return find_customer(txn, tables(), {2, 6, true, 0, last_name(999)}, found);
  }),
            Status::not_found);
}

TEST_F(Transactions, OrderStatusShowsTheLatestOrderOfTheCustomer) {
  NewOrderOutput first{};
  NewOrderOutput second{};
  ASSERT_EQ(place(order_of({{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {5, 1, 1}}), first),
            Status::ok);
  ASSERT_EQ(
      place(order_of({{6, 1, 1}, {7, 1, 2}, {8, 1, 3}, {9, 1, 4}, {10, 1, 5}, {11, 1, 6}}), second),
      Status::ok);
  OrderStatusOutput output{};
  database_.transact([&](Transaction& txn) {
    return order_status(txn, tables(), {{1, 3, false, 8, {}}}, output);
  });
  EXPECT_EQ(output.o_id, second.o_id);
  EXPECT_EQ(output.order.entry_d, 12'345);
  EXPECT_EQ(output.balance, -1'000);
  ASSERT_EQ(output.line_count, 6u);
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(output.lines[i].i_id, 6 + i);
    EXPECT_EQ(output.lines[i].quantity, i + 1);
    EXPECT_EQ(output.lines[i].delivery_d, 0);
  }
  EXPECT_EQ(output.customer.first, customer(1, 3, 8).identity.first);
}

// Order-status over orders with many more lines. Source: [FOEDUS15] appendix A.
TEST(LoadedLines, OrderStatusReadsAllOfTheLargestOrders) {
  Scale scale = kSmallScale;
  scale.max_lines = kMaxLoadedLines;
  Database database({.nodes = 1, .workers = 1}, 1, scale);
  uint32_t most = 0;
  for (uint32_t c = 1; c <= scale.customers; ++c) {
    OrderStatusOutput output{};
    database.transact([&](Transaction& txn) {
      return order_status(txn, *database.tables, {{1, 1, false, c, {}}}, output);
    });
    ASSERT_EQ(output.line_count, output.order.ol_cnt);
    for (uint32_t i = 0; i < output.line_count; ++i) ASSERT_EQ(output.lines[i].quantity, 5);
    most = std::max(most, output.line_count);
  }
  EXPECT_GT(most, 300u) << "of the orders of one district";
  database.input.mix = {30, 30, 40, 0, 0};
  database.run(100);
  EXPECT_EQ(database.verify(), std::vector<std::string>{});
}

TEST_F(Transactions, DeliveryTakesTheOldestOrderOfEachDistrict) {
  const uint32_t oldest = kSmallScale.delivered_orders() + 1;
  const auto order_before = read<OrderRow>(tables().order, order_key(1, 5, oldest));
  const CustomerBalanceRow before = balance(1, 5, order_before.c_id);
  int64_t amount = 0;
  for (uint32_t line = 1; line <= order_before.ol_cnt; ++line) {
    amount += read<OrderLineRow>(tables().order_line, order_line_key(1, 5, oldest, line)).amount;
  }
  DeliveryOutput output{};
  database_.transact(
      [&](Transaction& txn) { return delivery(txn, tables(), {1, 7, 4'242}, output); });
  EXPECT_EQ(output.delivered, kDistricts);
  for (const uint32_t o_id : output.o_id) EXPECT_EQ(o_id, oldest);
  EXPECT_EQ(exists(tables().new_order, order_key(1, 5, oldest)), Status::not_found);
  EXPECT_EQ(exists(tables().new_order, order_key(1, 5, oldest + 1)), Status::ok);
  EXPECT_EQ(read<OrderRow>(tables().order, order_key(1, 5, oldest)).carrier_id, 7);
  for (uint32_t line = 1; line <= order_before.ol_cnt; ++line) {
    const auto row = read<OrderLineRow>(tables().order_line, order_line_key(1, 5, oldest, line));
    EXPECT_EQ(row.delivery_d, 4'242);
  }
  const CustomerBalanceRow after = balance(1, 5, order_before.c_id);
  EXPECT_EQ(after.balance, before.balance + amount);
  EXPECT_EQ(after.delivery_cnt, before.delivery_cnt + 1);
  EXPECT_EQ(database_.verify(), std::vector<std::string>{});
}

TEST_F(Transactions, DeliverySkipsDistrictsWithoutNewOrders) {
  DeliveryOutput output{};
  for (uint32_t i = 0; i < kSmallScale.new_orders; ++i) {
    database_.transact(
        [&](Transaction& txn) { return delivery(txn, tables(), {2, 1, 50}, output); });
    ASSERT_EQ(output.delivered, kDistricts);
  }
  database_.transact([&](Transaction& txn) { return delivery(txn, tables(), {2, 1, 50}, output); });
  EXPECT_EQ(output.delivered, 0u);
  for (const uint32_t o_id : output.o_id) EXPECT_EQ(o_id, 0u);
  EXPECT_EQ(database_.verify(), std::vector<std::string>{});
}

TEST_F(Transactions, StockLevelCountsDistinctItemsOfTheLastTwentyOrders) {
  for (int round = 0; round < 25; ++round) {
    NewOrderOutput output{};
    const auto i = static_cast<uint32_t>(round * 3 + 1);
    ASSERT_EQ(
        place(order_of({{i, 1, 9}, {i, 1, 9}, {i + 1, 1, 8}, {i + 2, 1, 7}, {i, 1, 1}}), output),
        Status::ok);
  }
  for (const int32_t threshold : {10, 15, 20, 60, 200}) {
    StockLevelOutput output{};
    database_.transact(
        [&](Transaction& txn) { return stock_level(txn, tables(), {1, 3, threshold}, output); });
    // The last twenty orders have the items of rounds 5 to 24.
    uint32_t expected = 0;
    for (uint32_t i = 5 * 3 + 1; i <= 24 * 3 + 3; ++i) {
      if (stock(1, i).quantity < threshold) ++expected;
    }
    EXPECT_EQ(output.low_stock, expected) << threshold;
    if (threshold == 200) {
      EXPECT_EQ(expected, 60u);
    }
  }
}

TEST_F(Transactions, PrefetchesRegisterNoReads) {
  const uint32_t unused = kSmallScale.items + 1;
  const NewOrderInput order = order_of({{5, 1, 3}, {6, 2, 4}, {unused, 1, 1}});
  PaymentInput by_number{};
  by_number.customer = {.w_id = 1, .d_id = 3, .by_last_name = false, .c_id = 8, .last_name = {}};
  PaymentInput by_name = by_number;
  by_name.customer.by_last_name = true;
  by_name.customer.last_name = customer(1, 3, 8).identity.last;
  Transaction& running = database_.cluster.transaction();
  ASSERT_EQ(running.begin(kMaxEpoch), Status::ok);
  const PrefetchContext next(running, {});
  prefetch(next, tables(), order);
  prefetch(next, tables(), by_number);
  prefetch(next, tables(), by_name);
  prefetch(next, tables(), OrderStatusInput{by_name.customer});
  EXPECT_EQ(running.read_set_size(), 0u);
  EXPECT_EQ(running.commit(), Status::ok);
  NewOrderOutput output{};
  EXPECT_EQ(place(order_of({{5, 1, 3}, {6, 2, 4}}), output), Status::ok);
}

}  // namespace
}  // namespace atolldb::tpcc
