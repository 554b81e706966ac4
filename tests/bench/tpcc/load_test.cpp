// The initial population of TPC-C (clause 4.3.3.1), read back through the ordinary interface.
#include "bench/tpcc/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/scan.h"
#include "tests/bench/tpcc/database.h"

namespace atolldb::tpcc {
namespace {

using test::Database;
using test::kSmallScale;

class Load : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    database = std::make_unique<Database>(test::MiniCluster::Options{.nodes = 2, .workers = 1}, 3);
  }
  static void TearDownTestSuite() { database.reset(); }

  static const Tables& tables() { return *database->tables; }

  template <typename Row>
  static Row read(const Array& array, uint64_t at) {
    Row row{};
    database->transact([&](Transaction& txn) { return array.get(txn, at, 0, sizeof(Row), &row); });
    return row;
  }

  /// Returns all records of [low, high] by key.
  template <typename Row>
  static std::map<uint64_t, Row> scan(const MasterTree& tree, uint64_t low, uint64_t high) {
    std::map<uint64_t, Row> rows;
    database->transact([&](Transaction& txn) {
      rows.clear();
      KeyRange keys(low, high);
      MasterTreeCursor cursor(tree, txn, keys.range(), true);
      for (;;) {
        const Status status = cursor.next();
        if (status == Status::end_of_scan) return Status::ok;
        if (status != Status::ok) return status;
        Row& row = rows[key_value(cursor.key())];
        const Status got = cursor.get(&row, sizeof(row));
        if (got != Status::ok) return got;
      }
    });
    return rows;
  }

  static void expect_length(std::string_view text, size_t low, size_t high) {
    EXPECT_GE(text.size(), low);
    EXPECT_LE(text.size(), high);
  }
  static void expect_address(const Address& address) {
    expect_length(address.street_1.view(), 10, 20);
    expect_length(address.street_2.view(), 10, 20);
    expect_length(address.city.view(), 10, 20);
    expect_length(address.state.view(), 2, 2);
    EXPECT_EQ(address.zip.view().substr(4), "11111");
  }

  static inline std::unique_ptr<Database> database;
};

TEST_F(Load, ItemsAreWithinTheirRangesAndOneInTenIsOriginal) {
  uint32_t original = 0;
  for (uint32_t i = 1; i <= kSmallScale.items; ++i) {
    const auto item = read<ItemRow>(tables().item, tables().item_at(i));
    ASSERT_TRUE(item.im_id >= 1 && item.im_id <= 10'000);
    ASSERT_TRUE(item.price >= 100 && item.price <= 10'000);
    expect_length(item.name.view(), 14, 24);
    expect_length(item.data.view(), 26, 50);
    if (contains_original(item.data)) ++original;
  }
  EXPECT_EQ(original, kSmallScale.items / 10);
}

TEST_F(Load, AnUnusedItemDoesNotExist) {
  ItemRow row;
  EXPECT_EQ(database->cluster.transact([&](Transaction& txn) {
    return tables().item.get(txn, tables().item_at(kSmallScale.items + 1), 0, kItemReadBytes, &row);
  }),
            Status::out_of_range);
}

TEST_F(Load, WarehousesAndDistrictsHaveTheirYtdAndNextOrder) {
  for (uint32_t w = 1; w <= 3; ++w) {
    const auto warehouse = read<PlaceRow>(tables().warehouse_static, tables().warehouse_at(w));
    EXPECT_TRUE(warehouse.tax >= 0 && warehouse.tax <= 2'000);
    expect_length(warehouse.name.view(), 6, 10);
    expect_address(warehouse.address);
    const auto ytd = read<YtdRow>(tables().warehouse_ytd, tables().warehouse_ytd_at(w));
    EXPECT_EQ(ytd.ytd, int64_t{1'000} * kSmallScale.customers * kDistricts);
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      const auto district = read<PlaceRow>(tables().district_static, tables().district_at(w, d));
      EXPECT_TRUE(district.tax >= 0 && district.tax <= 2'000);
      expect_length(district.name.view(), 6, 10);
      expect_address(district.address);
      const auto next =
          read<DistrictNextRow>(tables().district_next, tables().district_next_at(w, d));
      EXPECT_EQ(next.next_o_id, kSmallScale.customers + 1);
    }
  }
}

TEST_F(Load, StockIsWithinItsRangesAndOneInTenIsOriginalInEachWarehouse) {
  for (uint32_t w = 1; w <= 3; ++w) {
    uint32_t original = 0;
    for (uint32_t i = 1; i <= kSmallScale.items; ++i) {
      const auto stock = read<StockRow>(tables().stock, tables().stock_at<StockRow>(w, i));
      ASSERT_TRUE(stock.quantity >= 10 && stock.quantity <= 100);
      ASSERT_TRUE(stock.ytd == 0 && stock.order_cnt == 0 && stock.remote_cnt == 0);
      const auto info =
          read<StockInfoRow>(tables().stock_static, tables().stock_at<StockInfoRow>(w, i));
      expect_length(info.data.view(), 26, 50);
      for (const Text<24>& dist : info.dist) ASSERT_EQ(dist.view().size(), 24u);
      if (contains_original(info.data)) ++original;
    }
    EXPECT_EQ(original, kSmallScale.items / 10);
  }
}

TEST_F(Load, OneCustomerInTenOfEachDistrictHasBadCredit) {
  for (uint32_t w = 1; w <= 3; ++w) {
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      uint32_t bad = 0;
      for (uint32_t c = 1; c <= kSmallScale.customers; ++c) {
        const auto row =
            read<CustomerRow>(tables().customer_static, tables().customer_at<CustomerRow>(w, d, c));
        const std::string_view credit = row.identity.credit.view();
        ASSERT_TRUE(credit == "BC" || credit == "GC") << credit;
        if (credit == "BC") ++bad;
      }
      EXPECT_EQ(bad, kSmallScale.customers / 10);
    }
  }
}

TEST_F(Load, CustomersAreWithinTheirRanges) {
  for (uint32_t c = 1; c <= kSmallScale.customers; ++c) {
    const auto row =
        read<CustomerRow>(tables().customer_static, tables().customer_at<CustomerRow>(2, 7, c));
    EXPECT_TRUE(row.identity.discount >= 0 && row.identity.discount <= 5'000);
    EXPECT_EQ(row.identity.middle.view(), "OE");
    if (c <= kSmallScale.last_names) {
      EXPECT_EQ(row.identity.last, last_name(c - 1));
    }
    expect_length(row.identity.first.view(), 8, 16);
    expect_length(row.phone.view(), 16, 16);
    EXPECT_EQ(row.credit_lim, 5'000'000);
    EXPECT_GT(row.since, 0);
    expect_address(row.address);
    const auto balance = read<CustomerBalanceRow>(
        tables().customer_dynamic, tables().customer_at<CustomerBalanceRow>(2, 7, c));
    EXPECT_EQ(balance.balance, -1'000);
    EXPECT_EQ(balance.ytd_payment, 1'000);
    EXPECT_EQ(balance.payment_cnt, 1u);
    EXPECT_EQ(balance.delivery_cnt, 0u);
    const auto data = read<CustomerDataRow>(tables().customer_data,
                                            tables().customer_at<CustomerDataRow>(2, 7, c));
    expect_length(data.data.view(), 300, 500);
  }
}

TEST_F(Load, EveryCustomerIsFoundByNameOnce) {
  const auto names = scan<CustomerNameRow>(tables().customer_by_name, customer_name_key(1, 3, 0, 0),
                                           customer_name_key(1, 3, ~uint32_t{0}, 0xfff));
  std::set<uint32_t> customers;
  for (const auto& [key, name] : names) {
    const uint32_t c = customer_of_name_key(key);
    EXPECT_TRUE(customers.insert(c).second);
    const auto row =
        read<CustomerRow>(tables().customer_static, tables().customer_at<CustomerRow>(1, 3, c));
    EXPECT_EQ(row.identity.last, name.last);
    EXPECT_EQ(row.identity.first, name.first);
    EXPECT_EQ(key, customer_name_key(1, 3, last_name_hash(name.last), c));
  }
  EXPECT_EQ(customers.size(), kSmallScale.customers);
}

TEST_F(Load, OrdersAreAPermutationOfCustomersAndTheLastOnesAreNew) {
  for (uint32_t w = 1; w <= 3; ++w) {
    for (const uint32_t d : {1u, 10u}) {
      const auto orders =
          scan<OrderRow>(tables().order, order_key(w, d, 0), order_key(w, d, ~uint32_t{0}));
      ASSERT_EQ(orders.size(), kSmallScale.customers);
      std::set<uint32_t> customers;
      uint32_t in_order = 0;
      for (const auto& [key, order] : orders) {
        const uint32_t o = order_of_order_key(key);
        const bool delivered = o <= kSmallScale.delivered_orders();
        customers.insert(order.c_id);
        if (order.c_id == o) ++in_order;
        EXPECT_TRUE(order.ol_cnt >= 5 && order.ol_cnt <= 15);
        EXPECT_EQ(order.all_local, 1);
        if (delivered) {
          EXPECT_TRUE(order.carrier_id >= 1 && order.carrier_id <= 10);
        } else {
          EXPECT_EQ(order.carrier_id, 0);
        }
        const auto lines = scan<OrderLineRow>(tables().order_line, order_line_key(w, d, o, 0),
                                              order_line_key(w, d, o, kLastLine));
        ASSERT_EQ(lines.size(), order.ol_cnt);
        for (const auto& [line_key, line] : lines) {
          EXPECT_EQ(line.supply_w_id, w);
          EXPECT_EQ(line.quantity, 5);
          EXPECT_TRUE(line.i_id >= 1 && line.i_id <= kSmallScale.items);
          EXPECT_EQ(line.dist_info.view().size(), 24u);
          EXPECT_EQ(line.delivery_d, delivered ? order.entry_d : 0);
          if (delivered) {
            EXPECT_EQ(line.amount, 0);
          } else {
            EXPECT_TRUE(line.amount >= 1 && line.amount <= 999'999);
          }
        }
      }
      EXPECT_EQ(customers.size(), kSmallScale.customers);
      EXPECT_LT(in_order, kSmallScale.customers / 2) << "the permutation is not random";
      const auto waiting = scan<std::array<char, 1>>(tables().new_order, order_key(w, d, 0),
                                                     order_key(w, d, ~uint32_t{0}));
      ASSERT_EQ(waiting.size(), kSmallScale.new_orders);
      EXPECT_EQ(order_of_order_key(waiting.begin()->first), kSmallScale.delivered_orders() + 1);
      EXPECT_EQ(order_of_order_key(waiting.rbegin()->first), kSmallScale.customers);
    }
  }
}

TEST_F(Load, EveryCustomerHasOneRowOfHistory) {
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> customers;
  uint32_t rows = 0;
  database->transact([&](Transaction& txn) {
    customers.clear();
    rows = 0;
    SequentialCursor cursor(tables().history, txn);
    for (;;) {
      const Status status = cursor.next();
      if (status == Status::end_of_scan) return Status::ok;
      if (status != Status::ok) return status;
      HistoryRow row;
      EXPECT_EQ(cursor.payload().size(), sizeof(row));
      std::memcpy(&row, cursor.payload().data(), sizeof(row));
      ++rows;
      customers.emplace(row.c_w_id, row.c_d_id, row.c_id);
      EXPECT_EQ(row.w_id, row.c_w_id);
      EXPECT_EQ(row.d_id, row.c_d_id);
      EXPECT_EQ(row.amount, 1'000);
      expect_length(row.data.view(), 12, 24);
    }
  });
  EXPECT_EQ(rows, 3 * kDistricts * kSmallScale.customers);
  EXPECT_EQ(customers.size(), rows);
}

TEST_F(Load, TheLoadedDatabaseIsConsistent) {
  EXPECT_EQ(database->verify(), std::vector<std::string>{});
}

TEST_F(Load, PagesLieOnTheNodeOfTheirWarehouse) {
  for (uint32_t w = 1; w <= 3; ++w) {
    database->transact([&](Transaction& txn) {
      StockRow row;
      RecordRef ref;
      const Status status = tables().stock.get_for_update(
          txn, tables().stock_at<StockRow>(w, kSmallScale.items), 0, sizeof(row), &row, ref);
      EXPECT_EQ(ref.name().node(), (w - 1) % 2);
      return status;
    });
  }
}

TEST(LoadAtFullScale, CardinalitiesAreTheSpecifications) {
  const Scale scale;
  EXPECT_EQ(scale.items, 100'000u);
  EXPECT_EQ(scale.customers, 3'000u);
  EXPECT_EQ(scale.new_orders, 900u);
  EXPECT_EQ(scale.delivered_orders(), 2'100u);
  EXPECT_EQ(scale.last_names, 1'000u);
  EXPECT_EQ(JobInput().scale, scale);
}

TEST(LoadIntoASmallPool, SaysWhichPoolIsFull) {
  test::MiniCluster cluster({.pool_bytes = uint64_t{512} << 10});
  JobInput input;
  input.scale = kSmallScale;
  cluster.create(storage_specs(1, kSmallScale));
  const auto results = cluster.run_job(kLoadJob, input.to_json());
  ASSERT_FALSE(results[0].has_value());
  EXPECT_EQ(results[0].error().code, ExitCode::resources);
  EXPECT_NE(results[0].error().message.find("the volatile pool of node 0 is full"),
            std::string::npos)
      << results[0].error().message;
}

TEST(LoadIntoOtherStorages, NamesTheWrongOne) {
  JobInput input;
  input.scale = kSmallScale;
  for (const bool has_wrong_count : {false, true}) {
    test::MiniCluster cluster({});
    auto specs = storage_specs(1, kSmallScale);
    StorageSpec& spec = *std::ranges::find(specs, "tpcc_customer_data", &StorageSpec::name);
    // Larger records would be written past the end of a row.
    if (has_wrong_count) {
      ++spec.record_count;
    } else {
      ++spec.payload_bytes;
    }
    cluster.create(specs);
    for (const char* job : {kLoadJob, kRunJob, kVerifyJob}) {
      const auto results = cluster.run_job(job, input.to_json());
      ASSERT_FALSE(results[0].has_value()) << job;
      EXPECT_NE(results[0].error().message.find("storage \"tpcc_customer_data\": it"),
                std::string::npos)
          << results[0].error().message;
    }
  }
}

TEST(LoadWithoutStorages, NamesTheMissingOne) {
  test::MiniCluster cluster({});
  const auto results = cluster.run_job(kLoadJob, JobInput().to_json());
  ASSERT_FALSE(results[0].has_value());
  EXPECT_EQ(results[0].error().message,
            "tpcc: storage \"tpcc_control\": not found: use `atoll bench tpcc`");
}

}  // namespace
}  // namespace atolldb::tpcc
