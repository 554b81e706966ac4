// Inputs of the five transactions (clauses 2.4.1 - 2.8.1). They are generated before the
// transaction and stay the same through its retries.
#pragma once

#include <array>
#include <cstdint>

#include "bench/tpcc/random.h"
#include "bench/tpcc/scale.h"
#include "bench/tpcc/text.h"

namespace atolldb::tpcc {

enum class TransactionType : uint8_t {
  new_order = 0,
  payment,
  order_status,
  delivery,
  stock_level
};
inline constexpr uint32_t kTransactionTypes = 5;
inline constexpr std::array<const char*, kTransactionTypes> kTransactionNames = {
    "new_order", "payment", "order_status", "delivery", "stock_level"};

struct NewOrderInput {
  struct Line {
    uint32_t i_id;
    uint16_t supply_w_id;
    uint8_t quantity;
  };
  uint32_t w_id;
  uint32_t d_id;
  uint32_t c_id;
  uint32_t ol_cnt;
  bool all_local;
  int64_t entry_d;
  std::array<Line, kMaxLines> lines;
};

/// A customer, by number or by last name.
struct CustomerChoice {
  uint32_t w_id;
  uint32_t d_id;
  bool by_last_name;
  uint32_t c_id;       // unless by_last_name
  Text<16> last_name;  // if by_last_name
};

struct PaymentInput {
  uint32_t w_id;
  uint32_t d_id;
  CustomerChoice customer;
  int32_t amount;
  int64_t date;
};

struct OrderStatusInput {
  CustomerChoice customer;
};

struct DeliveryInput {
  uint32_t w_id;
  uint8_t carrier_id;
  int64_t delivery_d;
};

struct StockLevelInput {
  uint32_t w_id;
  uint32_t d_id;
  int32_t threshold;
};

/// Parameters of the inputs, equal for all workers of a run.
struct Workload {
  Scale scale;
  uint32_t warehouses = 1;
  uint32_t remote_line_percent = 1;      // order lines supplied by another warehouse
  uint32_t remote_payment_percent = 15;  // payments of customers of another warehouse
  std::array<uint32_t, kTransactionTypes> mix = {45, 43, 4, 4, 4};  // percent of each type
  NurandConstants constants;
};

/// Returns microseconds since 1970, in steps of the kernel's tick. This is precise enough for dates
/// of orders.
int64_t now_us();

class InputGenerator {
 public:
  InputGenerator(const Workload& workload, uint64_t seed) : workload_(workload), random_(seed) {}

  TransactionType next_type();
  /// Returns the index of one of `count` home warehouses, drawn uniformly.
  uint32_t next_home(uint32_t count) { return count == 1 ? 0 : random_.uniform(0, count - 1); }
  NewOrderInput new_order(uint32_t w_id);
  PaymentInput payment(uint32_t w_id);
  OrderStatusInput order_status(uint32_t w_id);
  DeliveryInput delivery(uint32_t w_id);
  StockLevelInput stock_level(uint32_t w_id);

 private:
  uint32_t district() { return random_.uniform(1, kDistricts); }
  uint32_t customer() {
    return random_.nurand(1023, workload_.constants.customer_id, 1, workload_.scale.customers);
  }
  uint32_t item() {
    return random_.nurand(8191, workload_.constants.item_id, 1, workload_.scale.items);
  }
  uint32_t other_warehouse(uint32_t w_id);
  CustomerChoice choose_customer(uint32_t w_id, uint32_t d_id);

  Workload workload_;
  Random random_;
};

}  // namespace atolldb::tpcc
