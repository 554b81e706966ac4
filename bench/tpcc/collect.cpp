#include "bench/tpcc/collect.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "bench/job/step_scan.h"
#include "bench/job/try.h"
#include "bench/tpcc/keys.h"
#include "engine/hash/hash_key.h"

namespace atolldb::tpcc {

namespace {

/// Number of records per transaction. Each record takes one entry of the read set, whose capacity
/// is a config key of at least 16. If fewer records fit, the step shrinks.
constexpr uint32_t kStep = 8'192;

void forget_history(WarehouseFacts& warehouse) {
  warehouse.history_amount = 0;
  for (DistrictFacts& district : warehouse.districts) {
    district.history_amount = 0;
    for (CustomerFacts& customer : district.customers) customer.history_amount = 0;
  }
}

/// Maximum payload size of the trees that are scanned.
constexpr size_t kSeenPayload = 64;
using Seen = bench::ScannedRecord<kSeenPayload>;

void add_order(const Seen& seen, DistrictFacts& facts) {
  OrderRow row;
  std::memcpy(&row, seen.payload.data(), sizeof(row));
  OrderFacts& order = facts.orders.emplace_back();
  order.o_id = order_of_order_key(seen.key);
  order.c_id = row.c_id;
  order.carrier_id = row.carrier_id;
  order.ol_cnt = row.ol_cnt;
}

}  // namespace

template <typename Visit>
Status FactCollector::scan(const MasterTree& tree, uint64_t low, uint64_t high, Visit&& visit) {
  return bench::scan_in_steps<kSeenPayload>(*txn_, *backoff_, tree, low, high,
                                            std::forward<Visit>(visit));
}

Status FactCollector::collect(std::span<const uint32_t> warehouses,
                              std::vector<WarehouseFacts>& facts) {
  facts.resize(warehouses.size());
  if (tables_.scale.hash_orders) BENCH_TRY(collect_hash_orders(warehouses, facts));
  for (size_t i = 0; i < warehouses.size(); ++i) {
    facts[i].w_id = warehouses[i];
    BENCH_TRY(collect_warehouse(facts[i]));
  }
  return collect_history(facts);
}

Status FactCollector::collect_warehouse(WarehouseFacts& facts) {
  const uint32_t w = facts.w_id;
  const Status status = run(*txn_, *backoff_, kMaxEpoch, [&](Transaction& txn) {
    BENCH_TRY(tables_.warehouse_ytd.get(txn, tables_.warehouse_ytd_at(w), offsetof(YtdRow, ytd),
                                        sizeof(facts.ytd), &facts.ytd));
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      DistrictFacts& district = facts.districts[d - 1];
      BENCH_TRY(tables_.district_ytd.get(txn, tables_.district_ytd_at(w, d), offsetof(YtdRow, ytd),
                                         sizeof(district.ytd), &district.ytd));
      BENCH_TRY(tables_.district_next.get(txn, tables_.district_next_at(w, d),
                                          offsetof(DistrictNextRow, next_o_id),
                                          sizeof(district.next_o_id), &district.next_o_id));
    }
    return Status::ok;
  });
  if (status != Status::ok) return status;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    DistrictFacts& district = facts.districts[d - 1];
    BENCH_TRY(collect_customers(w, d, district));
    if (!tables_.scale.hash_orders) BENCH_TRY(collect_orders(w, d, district));
    BENCH_TRY(collect_new_orders(w, d, district));
    BENCH_TRY(collect_lines(w, d, district));
  }
  return Status::ok;
}

Status FactCollector::collect_customers(uint32_t w, uint32_t d, DistrictFacts& facts) {
  facts.customers.resize(tables_.scale.customers);
  uint32_t step = kStep;
  for (uint32_t first = 1; first <= tables_.scale.customers;) {
    const uint32_t end = std::min(tables_.scale.customers + 1, first + step);
    const Status status = run(*txn_, *backoff_, kMaxEpoch, [&](Transaction& txn) {
      for (uint32_t c = first; c < end; ++c) {
        CustomerBalanceRow row;
        BENCH_TRY(tables_.customer_dynamic.get(
            txn, tables_.customer_at<CustomerBalanceRow>(w, d, c), 0, kBalanceBytes, &row));
        CustomerFacts& customer = facts.customers[c - 1];
        customer.balance = row.balance;
        customer.ytd_payment = row.ytd_payment;
        customer.delivery_cnt = row.delivery_cnt;
      }
      return Status::ok;
    });
    if (status == Status::transaction_too_large && step > 1) {
      step /= 2;
      continue;
    }
    if (status != Status::ok) return status;
    first = end;
  }
  return Status::ok;
}

Status FactCollector::collect_orders(uint32_t w, uint32_t d, DistrictFacts& facts) {
  return scan(tables_.order, order_key(w, d, 0), order_key(w, d, ~uint32_t{0}),
              [&](const Seen& seen) { add_order(seen, facts); });
}

Status FactCollector::collect_hash_orders(std::span<const uint32_t> warehouses,
                                          std::vector<WarehouseFacts>& facts) {
  std::unordered_map<uint32_t, WarehouseFacts*> facts_of;
  for (size_t i = 0; i < warehouses.size(); ++i) facts_of[warehouses[i]] = &facts[i];
  const auto number_of = [](Bytes stored) { return bench::key_value(OriginalKey(stored)); };
  BENCH_TRY(bench::scan_range_in_steps<kSeenPayload>(
      *txn_, *backoff_, tables_.order, ScanRange{}, number_of, [&](const Seen& seen) {
        const auto found = facts_of.find(warehouse_of_order_key(seen.key));
        const uint32_t district = district_of_order_key(seen.key);
        if (found == facts_of.end() || district < 1 || district > kDistricts) return;
        add_order(seen, found->second->districts[district - 1]);
      }));
  for (WarehouseFacts& warehouse : facts) {
    for (DistrictFacts& district : warehouse.districts) {
      std::ranges::sort(district.orders, {}, &OrderFacts::o_id);
    }
  }
  return Status::ok;
}

Status FactCollector::collect_new_orders(uint32_t w, uint32_t d, DistrictFacts& facts) {
  return scan(tables_.new_order, order_key(w, d, 0), order_key(w, d, ~uint32_t{0}),
              [&](const Seen& seen) { facts.new_orders.push_back(order_of_order_key(seen.key)); });
}

Status FactCollector::collect_lines(uint32_t w, uint32_t d, DistrictFacts& facts) {
  OrderFacts* order = nullptr;
  return scan(tables_.order_line, order_line_key(w, d, 0, 0),
              order_line_key(w, d, ~uint32_t{0}, kLastLine), [&](const Seen& seen) {
                OrderLineRow row;
                std::memcpy(&row, seen.payload.data(), sizeof(row));
                ++facts.lines;
                const uint32_t o_id = order_of_line_key(seen.key);
                if (order == nullptr || order->o_id != o_id) order = facts.find_order(o_id);
                if (order == nullptr) return;
                ++order->lines;
                if (row.delivery_d == 0) {
                  ++order->undelivered_lines;
                } else if (order->c_id >= 1 && order->c_id <= facts.customers.size()) {
                  facts.customers[order->c_id - 1].delivered_amount += row.amount;
                }
              });
}

Status FactCollector::collect_history(std::vector<WarehouseFacts>& facts) {
  // Maps a warehouse to its facts; null for warehouses of other workers.
  std::vector<WarehouseFacts*> by_warehouse(kMaxWarehouses + 1);
  for (WarehouseFacts& warehouse : facts) by_warehouse[warehouse.w_id] = &warehouse;
  return run(*txn_, *backoff_, kMaxEpoch, [&](Transaction& txn) {
    // A retry discards what the failed attempt read.
    for (WarehouseFacts& warehouse : facts) forget_history(warehouse);
    SequentialCursor cursor(tables_.history, txn);
    for (;;) {
      const Status status = cursor.next();
      if (status == Status::end_of_scan) return Status::ok;
      if (status != Status::ok) return status;
      HistoryRow row;
      // A shorter record is not of this benchmark. If it were, the sums of the conditions differ.
      if (cursor.payload().size() < sizeof(row)) continue;
      std::memcpy(&row, cursor.payload().data(), sizeof(row));
      if (WarehouseFacts* warehouse = by_warehouse[row.w_id]) {
        warehouse->history_amount += row.amount;
        if (row.d_id >= 1 && row.d_id <= kDistricts) {
          warehouse->districts[row.d_id - 1].history_amount += row.amount;
        }
      }
      WarehouseFacts* payer = by_warehouse[row.c_w_id];
      if (payer == nullptr || row.c_d_id < 1 || row.c_d_id > kDistricts) continue;
      std::vector<CustomerFacts>& customers = payer->districts[row.c_d_id - 1].customers;
      if (row.c_id >= 1 && row.c_id <= customers.size()) {
        customers[row.c_id - 1].history_amount += row.amount;
      }
    }
  });
}

}  // namespace atolldb::tpcc
