// configs/schemas/tpcc.toml describes the records of bench/tpcc as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/tpcc/keys.h"
#include "bench/tpcc/tables.h"
#include "ops/export/row_format.h"

namespace atolldb::tpcc {
namespace {

constexpr uint32_t kWarehouse = 3;
constexpr uint32_t kDistrict = 7;

ExportSchema read_schema() {
  std::ifstream file(std::string(ATOLL_SOURCE_DIR) + "/configs/schemas/tpcc.toml");
  std::ostringstream text;
  text << file.rdbuf();
  const auto schema = parse_export_schema(text.str(), "tpcc.toml");
  EXPECT_TRUE(schema) << schema.error().message;
  return schema ? *schema : ExportSchema();
}

class TpccSchema : public testing::Test {
 protected:
  /// Checks place, size and type of a column of the payload.
  void expect_column(const std::string& table, const std::string& column, size_t offset,
                     size_t size, const std::string& type) {
    SCOPED_TRACE(table + "." + column);
    const TableSchema* found = schema_.find(table);
    ASSERT_NE(found, nullptr);
    const auto at = std::ranges::find(found->columns, column, &TableColumn::name);
    ASSERT_NE(at, found->columns.end());
    EXPECT_FALSE(at->is_key);
    EXPECT_EQ(at->offset, offset);
    EXPECT_EQ(at->size, size);
    EXPECT_EQ(at->type_name, type);
    ++checked_[table];
  }
  void expect_payload(const std::string& table, size_t bytes) {
    const TableSchema* found = schema_.find(table);
    ASSERT_NE(found, nullptr) << table;
    EXPECT_EQ(found->payload_bytes, bytes) << table;
  }
  /// Checks the columns of an address that begins at `offset`.
  void expect_address(const std::string& table, const std::string& prefix, size_t offset) {
    const auto at = [&](const char* name, size_t place, size_t size) {
      expect_column(table, prefix + name, offset + place, size,
                    "char(" + std::to_string(size) + ")");
    };
    at("_street_1", offsetof(Address, street_1), sizeof(Address::street_1));
    at("_street_2", offsetof(Address, street_2), sizeof(Address::street_2));
    at("_city", offsetof(Address, city), sizeof(Address::city));
    at("_state", offsetof(Address, state), sizeof(Address::state));
    at("_zip", offsetof(Address, zip), sizeof(Address::zip));
  }
  void expect_place(const std::string& table, const std::string& prefix) {
    expect_payload(table, sizeof(PlaceRow));
    expect_column(table, prefix + "_tax", offsetof(PlaceRow, tax), sizeof(PlaceRow::tax),
                  "decimal(4,4)");
    expect_column(table, prefix + "_name", offsetof(PlaceRow, name), sizeof(PlaceRow::name),
                  "char(10)");
    expect_address(table, prefix, offsetof(PlaceRow, address));
  }
  /// Checks that all columns of the payload have been checked.
  void expect_all_checked(const std::string& table) {
    const TableSchema* found = schema_.find(table);
    ASSERT_NE(found, nullptr) << table;
    const auto columns = std::ranges::count(found->columns, false, &TableColumn::is_key);
    EXPECT_EQ(checked_[table], static_cast<uint32_t>(columns)) << table;
  }
  /// Checks the key columns with a key that the benchmark makes.
  void expect_key(const std::string& table, uint64_t number, const std::string& row) {
    const TableSchema* found = schema_.find(table);
    ASSERT_NE(found, nullptr) << table;
    const uint64_t big_endian = __builtin_bswap64(number);
    const std::vector<std::byte> payload(found->payload_bytes);
    std::string text;
    const auto done =
        append_row(*found, {reinterpret_cast<const char*>(&big_endian), 8}, payload, text);
    ASSERT_TRUE(done) << table << ": " << done.error();
    EXPECT_TRUE(text.starts_with(row) && (text[row.size()] == ',' || text[row.size()] == '\n'))
        << table << ": " << text;
  }

  const ExportSchema schema_ = read_schema();
  std::map<std::string, uint32_t> checked_;
};

#define EXPECT_COLUMN(table, column, Row, member, type) \
  expect_column(table, column, offsetof(Row, member), sizeof(Row::member), type)

TEST_F(TpccSchema, HasEveryStorageOfTpccWithItsTypeAndPayload) {
  for (const bench::StorageSpec& spec : storage_specs(kWarehouse, Scale())) {
    if (spec.name == "tpcc_control") continue;  // a flag of the benchmark, not a table
    const TableSchema* table = schema_.find(spec.name);
    ASSERT_NE(table, nullptr) << spec.name;
    EXPECT_EQ(table->storage, spec.name);
    EXPECT_EQ(table->type, spec.type) << spec.name;
    if (spec.type != StorageType::sequential) {
      EXPECT_EQ(table->payload_bytes, spec.payload_bytes) << spec.name;
    }
  }
  EXPECT_EQ(schema_.tables.size(), storage_specs(kWarehouse, Scale()).size() - 1);
}

TEST_F(TpccSchema, HasTheColumnsOfWarehousesAndDistricts) {
  expect_place("tpcc_warehouse_static", "w");
  expect_place("tpcc_district_static", "d");
  EXPECT_COLUMN("tpcc_warehouse_ytd", "w_ytd", YtdRow, ytd, "decimal(18,2)");
  EXPECT_COLUMN("tpcc_district_ytd", "d_ytd", YtdRow, ytd, "decimal(18,2)");
  EXPECT_COLUMN("tpcc_district_next", "d_next_o_id", DistrictNextRow, next_o_id, "u32");
  for (const char* table : {"tpcc_warehouse_static", "tpcc_warehouse_ytd", "tpcc_district_static",
                            "tpcc_district_ytd", "tpcc_district_next"}) {
    expect_all_checked(table);
  }
}

TEST_F(TpccSchema, HasTheColumnsOfCustomers) {
  const std::string fixed = "tpcc_customer_static";
  const size_t identity = offsetof(CustomerRow, identity);
  expect_column(fixed, "c_discount", identity + offsetof(CustomerIdentity, discount),
                sizeof(CustomerIdentity::discount), "decimal(4,4)");
  expect_column(fixed, "c_credit", identity + offsetof(CustomerIdentity, credit), 2, "char(2)");
  expect_column(fixed, "c_middle", identity + offsetof(CustomerIdentity, middle), 2, "char(2)");
  expect_column(fixed, "c_last", identity + offsetof(CustomerIdentity, last), 16, "char(16)");
  expect_column(fixed, "c_first", identity + offsetof(CustomerIdentity, first), 16, "char(16)");
  EXPECT_COLUMN(fixed, "c_credit_lim", CustomerRow, credit_lim, "decimal(12,2)");
  EXPECT_COLUMN(fixed, "c_since", CustomerRow, since, "timestamp");
  EXPECT_COLUMN(fixed, "c_phone", CustomerRow, phone, "char(16)");
  expect_address(fixed, "c", offsetof(CustomerRow, address));
  const std::string dynamic = "tpcc_customer_dynamic";
  EXPECT_COLUMN(dynamic, "c_balance", CustomerBalanceRow, balance, "decimal(18,2)");
  EXPECT_COLUMN(dynamic, "c_ytd_payment", CustomerBalanceRow, ytd_payment, "decimal(18,2)");
  EXPECT_COLUMN(dynamic, "c_payment_cnt", CustomerBalanceRow, payment_cnt, "u32");
  EXPECT_COLUMN(dynamic, "c_delivery_cnt", CustomerBalanceRow, delivery_cnt, "u32");
  EXPECT_COLUMN("tpcc_customer_data", "c_data", CustomerDataRow, data, "char(500)");
  const std::string names = "tpcc_customer_by_name";
  EXPECT_COLUMN(names, "c_last", CustomerNameRow, last, "char(16)");
  EXPECT_COLUMN(names, "c_first", CustomerNameRow, first, "char(16)");
  expect_all_checked(fixed);
  expect_all_checked(dynamic);
  expect_all_checked("tpcc_customer_data");
  expect_all_checked(names);
}

TEST_F(TpccSchema, HasTheColumnsOfItemsAndStock) {
  EXPECT_COLUMN("tpcc_item", "i_price", ItemRow, price, "decimal(5,2)");
  EXPECT_COLUMN("tpcc_item", "i_name", ItemRow, name, "char(24)");
  EXPECT_COLUMN("tpcc_item", "i_data", ItemRow, data, "char(50)");
  EXPECT_COLUMN("tpcc_item", "i_im_id", ItemRow, im_id, "u32");
  EXPECT_COLUMN("tpcc_stock", "s_quantity", StockRow, quantity, "i32");
  EXPECT_COLUMN("tpcc_stock", "s_ytd", StockRow, ytd, "u32");
  EXPECT_COLUMN("tpcc_stock", "s_order_cnt", StockRow, order_cnt, "u32");
  EXPECT_COLUMN("tpcc_stock", "s_remote_cnt", StockRow, remote_cnt, "u32");
  const std::string info = "tpcc_stock_static";
  EXPECT_COLUMN(info, "s_data", StockInfoRow, data, "char(50)");
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    const std::string name = d < 10 ? "s_dist_0" + std::to_string(d) : "s_dist_10";
    expect_column(info, name, offsetof(StockInfoRow, dist) + (d - 1) * sizeof(Text<24>),
                  sizeof(Text<24>), "char(24)");
  }
  for (const char* table : {"tpcc_item", "tpcc_stock", "tpcc_stock_static"}) {
    expect_all_checked(table);
  }
}

TEST_F(TpccSchema, HasTheColumnsOfOrdersAndHistory) {
  EXPECT_COLUMN("tpcc_order", "o_entry_d", OrderRow, entry_d, "timestamp");
  EXPECT_COLUMN("tpcc_order", "o_c_id", OrderRow, c_id, "u16");
  EXPECT_COLUMN("tpcc_order", "o_ol_cnt", OrderRow, ol_cnt, "u16");
  EXPECT_COLUMN("tpcc_order", "o_carrier_id", OrderRow, carrier_id, "u8");
  EXPECT_COLUMN("tpcc_order", "o_all_local", OrderRow, all_local, "u8");
  const std::string line = "tpcc_order_line";
  EXPECT_COLUMN(line, "ol_i_id", OrderLineRow, i_id, "u32");
  EXPECT_COLUMN(line, "ol_amount", OrderLineRow, amount, "decimal(9,2)");
  EXPECT_COLUMN(line, "ol_delivery_d", OrderLineRow, delivery_d, "timestamp");
  EXPECT_COLUMN(line, "ol_supply_w_id", OrderLineRow, supply_w_id, "u16");
  EXPECT_COLUMN(line, "ol_quantity", OrderLineRow, quantity, "u8");
  EXPECT_COLUMN(line, "ol_dist_info", OrderLineRow, dist_info, "char(24)");
  const std::string history = "tpcc_history";
  expect_payload(history, sizeof(HistoryRow));
  EXPECT_COLUMN(history, "h_date", HistoryRow, date, "timestamp");
  EXPECT_COLUMN(history, "h_amount", HistoryRow, amount, "decimal(9,2)");
  EXPECT_COLUMN(history, "h_c_id", HistoryRow, c_id, "u16");
  EXPECT_COLUMN(history, "h_c_w_id", HistoryRow, c_w_id, "u16");
  EXPECT_COLUMN(history, "h_w_id", HistoryRow, w_id, "u16");
  EXPECT_COLUMN(history, "h_c_d_id", HistoryRow, c_d_id, "u8");
  EXPECT_COLUMN(history, "h_d_id", HistoryRow, d_id, "u8");
  EXPECT_COLUMN(history, "h_data", HistoryRow, data, "char(24)");
  for (const char* table : {"tpcc_order", "tpcc_order_line", "tpcc_history"}) {
    expect_all_checked(table);
  }
}

TEST_F(TpccSchema, HasTheKeysOfAllTables) {
  // Only index arithmetic is used, so the handles need no storages.
  StorageControl array{};
  StorageControl tree{};
  StorageControl heap{};
  array.type = StorageType::array;
  tree.type = StorageType::mastertree;
  heap.type = StorageType::sequential;
  const Array records(array);
  const MasterTree keys(tree);
  const Tables tables{.control = records,
                      .warehouse_static = records,
                      .warehouse_ytd = records,
                      .district_static = records,
                      .district_ytd = records,
                      .district_next = records,
                      .customer_static = records,
                      .customer_dynamic = records,
                      .customer_data = records,
                      .stock = records,
                      .stock_static = records,
                      .item = records,
                      .order = keys,
                      .order_by_customer = keys,
                      .new_order = keys,
                      .order_line = keys,
                      .customer_by_name = keys,
                      .history = Sequential(heap),
                      .scale = Scale()};
  expect_key("tpcc_warehouse_static", tables.warehouse_at(kWarehouse), "3");
  expect_key("tpcc_warehouse_ytd", tables.warehouse_ytd_at(kWarehouse), "3");
  expect_key("tpcc_district_static", tables.district_at(kWarehouse, kDistrict), "3,7");
  expect_key("tpcc_district_ytd", tables.district_ytd_at(kWarehouse, kDistrict), "3,7");
  expect_key("tpcc_district_next", tables.district_next_at(kWarehouse, kDistrict), "3,7");
  expect_key("tpcc_customer_static", tables.customer_at<CustomerRow>(kWarehouse, kDistrict, 2'999),
             "3,7,2999");
  expect_key("tpcc_customer_dynamic",
             tables.customer_at<CustomerBalanceRow>(kWarehouse, kDistrict, 3'000), "3,7,3000");
  expect_key("tpcc_customer_data", tables.customer_at<CustomerDataRow>(kWarehouse, kDistrict, 1),
             "3,7,1");
  expect_key("tpcc_stock", tables.stock_at<StockRow>(kWarehouse, 99'999), "3,99999");
  expect_key("tpcc_stock_static", tables.stock_at<StockInfoRow>(kWarehouse, 100'000), "3,100000");
  expect_key("tpcc_item", tables.item_at(100'000), "100000");
  expect_key("tpcc_order", order_key(kWarehouse, kDistrict, 4'000'000'000), "3,7,4000000000");
  expect_key("tpcc_new_order", order_key(kWarehouse, kDistrict, 1), "3,7,1");
  expect_key("tpcc_order_line", order_line_key(kWarehouse, kDistrict, 77, kLastLine),
             "3,7,77,4095");
  expect_key("tpcc_order_by_customer", customer_order_key(kWarehouse, kDistrict, 4'095, 12),
             "3,7,4095,12");
  expect_key("tpcc_customer_by_name", customer_name_key(kWarehouse, kDistrict, 0xffffffff, 4'095),
             "3,7,4294967295,4095");
}

}  // namespace
}  // namespace atolldb::tpcc
