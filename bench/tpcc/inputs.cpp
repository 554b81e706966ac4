#include "bench/tpcc/inputs.h"

#include <ctime>

namespace atolldb::tpcc {

int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
}

TransactionType InputGenerator::next_type() {
  uint32_t draw = random_.uniform(1, 100);
  uint32_t type = 0;
  // The percentages add up to 100, so the last type needs no comparison.
  for (; type + 1 < kTransactionTypes && draw > workload_.mix[type]; ++type) {
    draw -= workload_.mix[type];
  }
  return static_cast<TransactionType>(type);
}

uint32_t InputGenerator::other_warehouse(uint32_t w_id) {
  if (workload_.warehouses == 1) return w_id;
  const uint32_t draw = random_.uniform(1, workload_.warehouses - 1);
  return draw < w_id ? draw : draw + 1;
}

NewOrderInput InputGenerator::new_order(uint32_t w_id) {
  NewOrderInput input;
  input.w_id = w_id;
  input.d_id = district();
  input.c_id = customer();
  input.ol_cnt = random_.uniform(kMinLines, kMaxLines);
  input.all_local = true;
  input.entry_d = now_us();
  const bool roll_back = random_.uniform(1, 100) == 1;
  for (uint32_t i = 0; i < input.ol_cnt; ++i) {
    NewOrderInput::Line& line = input.lines[i];
    line.i_id = item();
    const bool remote = random_.percent(workload_.remote_line_percent);
    line.supply_w_id = static_cast<uint16_t>(remote ? other_warehouse(w_id) : w_id);
    line.quantity = static_cast<uint8_t>(random_.uniform(1, 10));
    if (line.supply_w_id != w_id) input.all_local = false;
  }
  // Clause 2.4.1.5: the last line has an unused item number.
  if (roll_back) input.lines[input.ol_cnt - 1].i_id = workload_.scale.items + 1;
  return input;
}

CustomerChoice InputGenerator::choose_customer(uint32_t w_id, uint32_t d_id) {
  CustomerChoice choice{w_id, d_id, random_.percent(60), 0, {}};
  if (choice.by_last_name) {
    const uint32_t names = workload_.scale.last_names;
    choice.last_name = last_name(random_.nurand(255, workload_.constants.last_name, 0, names - 1));
  } else {
    choice.c_id = customer();
  }
  return choice;
}

PaymentInput InputGenerator::payment(uint32_t w_id) {
  PaymentInput input;
  input.w_id = w_id;
  input.d_id = district();
  const uint32_t customer_w =
      random_.percent(workload_.remote_payment_percent) ? other_warehouse(w_id) : w_id;
  // Clause 2.5.1.2: a customer of another warehouse may belong to any district.
  const uint32_t customer_d = customer_w == w_id ? input.d_id : district();
  input.customer = choose_customer(customer_w, customer_d);
  input.amount = static_cast<int32_t>(random_.uniform(100, 500'000));
  input.date = now_us();
  return input;
}

OrderStatusInput InputGenerator::order_status(uint32_t w_id) {
  return {choose_customer(w_id, district())};
}

DeliveryInput InputGenerator::delivery(uint32_t w_id) {
  return {w_id, static_cast<uint8_t>(random_.uniform(1, 10)), now_us()};
}

StockLevelInput InputGenerator::stock_level(uint32_t w_id) {
  return {w_id, district(), static_cast<int32_t>(random_.uniform(10, 20))};
}

}  // namespace atolldb::tpcc
