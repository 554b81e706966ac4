// The Payment transaction (clause 2.5).
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "bench/job/try.h"
#include "bench/tpcc/transactions.h"
#include "engine/transaction/cold_batch.h"

namespace atolldb::tpcc {

namespace {

/// Inserts the payment at the beginning of C_DATA. Cuts off bytes past the end of C_DATA (clause
/// 2.5.2.2).
void prepend_history(const PaymentInput& input, uint32_t c_id, Text<500>& data) {
  std::array<char, 96> entry;
  char* to = entry.data();
  char* const end = entry.data() + entry.size();
  for (const int64_t value :
       {int64_t{c_id}, int64_t{input.customer.d_id}, int64_t{input.customer.w_id},
        int64_t{input.d_id}, int64_t{input.w_id}, int64_t{input.amount / 100}}) {
    to = std::to_chars(to, end, value).ptr;
    *to++ = ' ';
  }
  to[-1] = '.';
  *to++ = static_cast<char>('0' + input.amount % 100 / 10);
  *to++ = static_cast<char>('0' + input.amount % 10);
  *to++ = '|';
  const auto count = static_cast<size_t>(to - entry.data());
  std::memmove(data.bytes + count, data.bytes, sizeof(data.bytes) - count);
  std::memcpy(data.bytes, entry.data(), count);
}

/// Subtracts the amount from the customer's balance and reads the customer.
Status pay(Transaction& txn, const Tables& tables, const PaymentInput& input,
           PaymentOutput& output) {
  const uint32_t w = input.customer.w_id;
  const uint32_t d = input.customer.d_id;
  const uint64_t identity_at = tables.customer_at<CustomerRow>(w, d, output.c_id);
  const uint64_t balance_at = tables.customer_at<CustomerBalanceRow>(w, d, output.c_id);
  RecordRef identity;
  RecordRef balance;
  {
    ColdBatch cold(txn.worker());
    tables.customer_static.add_cold(txn, {&identity_at, 1}, cold);
    tables.customer_dynamic.add_cold(txn, {&balance_at, 1}, cold);
  }
  BENCH_TRY(tables.customer_static.find_many(txn, {&identity_at, 1}, {&identity, 1}));
  Array::prefetch(identity, 0, sizeof(output.customer));
  BENCH_TRY(tables.customer_dynamic.find_many_for_update(txn, {&balance_at, 1}, {&balance, 1}));
  Array::prefetch(balance, 0, kBalanceBytes);
  BENCH_TRY(
      tables.customer_static.get(txn, identity, 0, sizeof(output.customer), &output.customer));
  CustomerBalanceRow row;
  BENCH_TRY(tables.customer_dynamic.get(txn, balance, 0, kBalanceBytes, &row));
  row.balance -= input.amount;
  row.ytd_payment += input.amount;
  ++row.payment_cnt;
  output.balance = row.balance;
  return tables.customer_dynamic.update(txn, balance, balance_at, 0, kBalanceBytes, &row);
}

Status note_bad_credit(Transaction& txn, const Tables& tables, const PaymentInput& input,
                       PaymentOutput& output) {
  const uint64_t at =
      tables.customer_at<CustomerDataRow>(input.customer.w_id, input.customer.d_id, output.c_id);
  Text<500> data;
  RecordRef ref;
  BENCH_TRY(tables.customer_data.get_for_update(txn, at, offsetof(CustomerDataRow, data),
                                                sizeof(data), &data, ref));
  prepend_history(input, output.c_id, data);
  std::memcpy(output.data.bytes, data.bytes, sizeof(output.data.bytes));
  return tables.customer_data.update(txn, ref, at, offsetof(CustomerDataRow, data), sizeof(data),
                                     &data);
}

Status append_history(Transaction& txn, const Tables& tables, const PaymentInput& input,
                      const PaymentOutput& output) {
  HistoryRow row{};
  row.date = input.date;
  row.amount = input.amount;
  row.c_id = static_cast<uint16_t>(output.c_id);
  row.c_w_id = static_cast<uint16_t>(input.customer.w_id);
  row.w_id = static_cast<uint16_t>(input.w_id);
  row.c_d_id = static_cast<uint8_t>(input.customer.d_id);
  row.d_id = static_cast<uint8_t>(input.d_id);
  // H_DATA consists of W_NAME, four spaces and D_NAME.
  const std::string_view warehouse = output.warehouse.name.view();
  const std::string_view district = output.district.name.view();
  char* to = row.data.bytes;
  std::memcpy(to, warehouse.data(), warehouse.size());
  to += warehouse.size();
  std::memset(to, ' ', 4);
  std::memcpy(to + 4, district.data(), district.size());
  return tables.history.append(txn, std::as_bytes(std::span(&row, 1)));
}

}  // namespace

Status payment(Transaction& txn, const Tables& tables, const PaymentInput& input,
               PaymentOutput& output) {
  const int64_t amount = input.amount;
  BENCH_TRY(tables.warehouse_static.get(txn, tables.warehouse_at(input.w_id), &output.warehouse));
  BENCH_TRY(tables.district_static.get(txn, tables.district_at(input.w_id, input.d_id),
                                       &output.district));
  BENCH_TRY(tables.warehouse_ytd.increment(txn, tables.warehouse_ytd_at(input.w_id),
                                           offsetof(YtdRow, ytd), IncrementType::i64, &amount));
  BENCH_TRY(tables.district_ytd.increment(txn, tables.district_ytd_at(input.w_id, input.d_id),
                                          offsetof(YtdRow, ytd), IncrementType::i64, &amount));
  const Status found = find_customer(txn, tables, input.customer, output.c_id);
  if (found != Status::ok) return found;
  BENCH_TRY(pay(txn, tables, input, output));
  if (output.customer.identity.credit.view() == "BC") {
    BENCH_TRY(note_bad_credit(txn, tables, input, output));
  }
  return append_history(txn, tables, input, output);
}

}  // namespace atolldb::tpcc
