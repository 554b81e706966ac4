// Rows of the nine TPC-C tables as fixed-size records (clause 1.3). Columns that are written seldom
// and columns that are written often are in separate records. The comment of each row begins with
// the names of its storages.
//
// Money is in cents, taxes and discounts in 1/10000, dates in microseconds since 1970. A row in an
// array has no key columns, because its index is its key. Fields that transactions read together
// are neighbours and come first, so that a look-up touches as few cache lines as possible. A record
// is 16 bytes of head, then the row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "bench/tpcc/text.h"

namespace atolldb::tpcc {

struct Address {
  Text<20> street_1;
  Text<20> street_2;
  Text<20> city;
  Text<2> state;
  Text<9> zip;
};
static_assert(sizeof(Address) == 71);

/// warehouse_static, district_static. New-order reads only `tax`.
struct PlaceRow {
  int32_t tax;
  Text<10> name;
  Address address;
  char spare[3];
};
static_assert(sizeof(PlaceRow) == 88);

/// warehouse_ytd, district_ytd: changed by blind increments. One cache line with its head.
struct YtdRow {
  int64_t ytd;
  char spare[40];
};
static_assert(sizeof(YtdRow) == 48);

/// district_next. One cache line with its head.
struct DistrictNextRow {
  uint32_t next_o_id;
  char spare[44];
};
static_assert(sizeof(DistrictNextRow) == 48);

/// The columns that new-order and order-status read of a customer.
struct CustomerIdentity {
  int32_t discount;
  Text<2> credit;
  Text<2> middle;
  Text<16> last;
  Text<16> first;
};
static_assert(sizeof(CustomerIdentity) == 40);

/// customer_static
struct CustomerRow {
  CustomerIdentity identity;
  int64_t credit_lim;
  int64_t since;
  Text<16> phone;
  Address address;
  char spare;
};
static_assert(sizeof(CustomerRow) == 144);

/// customer_dynamic. One cache line with its head.
struct CustomerBalanceRow {
  int64_t balance;
  int64_t ytd_payment;
  uint32_t payment_cnt;
  uint32_t delivery_cnt;
  char spare[24];
};
static_assert(sizeof(CustomerBalanceRow) == 48);
inline constexpr uint32_t kBalanceBytes = 24;

/// customer_data
struct CustomerDataRow {
  Text<500> data;
  char spare[4];
};
static_assert(sizeof(CustomerDataRow) == 504);

/// item. No transaction reads `im_id`.
struct ItemRow {
  int32_t price;
  Text<24> name;
  Text<50> data;
  char spare[2];
  uint32_t im_id;
  char spare_2[28];
};
static_assert(sizeof(ItemRow) == 112);
inline constexpr uint32_t kItemReadBytes = 78;

/// stock: the columns that each sale changes. Two records per cache line.
struct StockRow {
  int32_t quantity;
  uint32_t ytd;
  uint32_t order_cnt;
  uint32_t remote_cnt;
};
static_assert(sizeof(StockRow) == 16);

/// stock_static: five cache lines with its head. A sale reads the first line and the line of its
/// district.
struct StockInfoRow {
  Text<50> data;
  char spare[14];
  Text<24> dist[10];
};
static_assert(sizeof(StockInfoRow) == 304);
/// Bytes of S_DATA in the first cache line of its record. S_DATA has 26 to 50 bytes, so the line
/// usually has all of it.
inline constexpr uint32_t kFirstDataBytes = 48;

/// order
struct OrderRow {
  int64_t entry_d;
  uint16_t c_id;
  uint16_t ol_cnt;
  uint8_t carrier_id;  // 0 = null
  uint8_t all_local;
  char spare[2];
};
static_assert(sizeof(OrderRow) == 16);

/// order_line
struct OrderLineRow {
  uint32_t i_id;
  int32_t amount;
  int64_t delivery_d;  // 0 = null
  uint16_t supply_w_id;
  uint8_t quantity;
  char spare[5];
  Text<24> dist_info;
};
static_assert(sizeof(OrderLineRow) == 48);

/// Payload of customer_by_name: enough to choose the customer without reading other records.
struct CustomerNameRow {
  Text<16> last;
  Text<16> first;
};
static_assert(sizeof(CustomerNameRow) == 32);

/// history
struct HistoryRow {
  int64_t date;
  int32_t amount;
  uint16_t c_id;
  uint16_t c_w_id;
  uint16_t w_id;
  uint8_t c_d_id;
  uint8_t d_id;
  Text<24> data;
  char spare[4];
};
static_assert(sizeof(HistoryRow) == 48);

static_assert(std::is_trivially_copyable_v<CustomerRow> && std::is_standard_layout_v<CustomerRow>);

}  // namespace atolldb::tpcc
