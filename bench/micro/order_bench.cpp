// Measures an order of ten items, which reads and writes eleven records and inserts ten: through
// the public API of procedures with calls for many records, with single calls, and through the
// engine's own API.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "bench/common/random.h"
#include "bench/job/try.h"
#include "bench/micro/loaded.h"
#include "bench/micro/order_library.h"
#include "engine/api/procedure_attempt.h"

namespace atolldb::bench {

namespace {

constexpr uint32_t kBranches = 10;
constexpr uint32_t kLines = 10;
constexpr int64_t kOrders = 100'000;  // fixed, because the tree grows with them

/// A cluster with the storages of the example, and inputs of orders.
struct Shop {
  explicit Shop(uint64_t items)
      : cluster(1, 1, uint64_t{1} << 30),
        branches(cluster.create("branches", StorageType::array, 8, kBranches)),
        stock(cluster.create("stock", StorageType::array, 8, items)),
        orders(cluster.create("orders", StorageType::mastertree, 16, 0)) {
    constexpr uint64_t kAtOnce = 1000;
    const int64_t pieces = 1'000'000'000;
    for (uint64_t first = 0; first < items; first += kAtOnce) {
      expect_ok(cluster.worker(0).run([&](Transaction& txn) {
        for (uint64_t i = first; i < std::min(items, first + kAtOnce); ++i) {
          BENCH_TRY(stock.update(txn, i, 0, sizeof(pieces), &pieces));
        }
        return Status::ok;
      }));
    }
    Random random(1);
    for (std::string& input : inputs) {
      input = std::to_string(random.uniform(0, kBranches - 1));
      for (uint32_t i = 0; i < kLines; ++i) {
        input += " " + std::to_string(random.uniform(0, static_cast<uint32_t>(items - 1))) + ":1";
      }
    }
    LibraryLoad load(*cluster.view().control, message);
    atoll_api::Library library(node_functions(), load.number());
    expect_ok(static_cast<Status>(load_orders(library)));
  }

  LocalCluster cluster;
  Array branches;
  Array stock;
  MasterTree orders;
  std::array<std::string, 4096> inputs;
  std::vector<std::byte> output;
  std::string message;
};

/// Does the same as the example, as code of the tree does.
Status order_by_engine(Transaction& txn, Shop& shop, const std::string& input) {
  ParsedOrder order;
  if (!parse_order(input, order)) return Status::invalid_argument;
  std::array<RecordRef, kLines> refs;
  BENCH_TRY(shop.stock.find_many_for_update(txn, {order.items.data(), order.count}, refs));
  for (size_t i = 0; i < order.count; ++i) Array::prefetch(refs[i], 0, sizeof(int64_t));
  for (size_t i = 0; i < order.count; ++i) {
    int64_t left = 0;
    BENCH_TRY(shop.stock.get(txn, refs[i], 0, sizeof(left), &left));
    left -= order.pieces[i];
    if (left < 0) return Status::user_abort;
    BENCH_TRY(shop.stock.update(txn, refs[i], order.items[i], 0, sizeof(left), &left));
  }
  uint64_t number = 0;
  RecordRef next;
  BENCH_TRY(shop.branches.get_for_update(txn, order.branch, 0, sizeof(number), &number, next));
  const uint64_t following = number + 1;
  BENCH_TRY(shop.branches.update(txn, next, order.branch, 0, sizeof(following), &following));
  std::array<std::array<uint64_t, 2>, kLines> lines;
  std::array<Bytes8, kLines> keys;
  std::array<Bytes, kLines> key_bytes;
  std::array<Bytes, kLines> line_bytes;
  for (size_t i = 0; i < order.count; ++i) {
    lines[i] = {order.items[i], static_cast<uint64_t>(order.pieces[i])};
    keys[i] = ordered_key(order.branch << 48 | number << 8 | i);
    key_bytes[i] = keys[i];
    line_bytes[i] = std::as_bytes(std::span(lines[i]));
  }
  BENCH_TRY(shop.orders.insert_many(txn, {key_bytes.data(), order.count},
                                    {line_bytes.data(), order.count}));
  const std::string text = std::to_string(number);
  const auto bytes = std::as_bytes(std::span(text));
  shop.output.assign(bytes.begin(), bytes.end());
  return Status::ok;
}

using LibraryFunction = atoll_api::Status (*)(atoll_api::Context&);

/// `function`: of the library; null: the engine's own API.
void order_of_ten(benchmark::State& state, LibraryFunction function) {
  Shop shop(static_cast<uint64_t>(state.range(0)));
  size_t next = 0;
  for ([[maybe_unused]] auto _ : state) {
    const std::string& input = shop.inputs[next++ % shop.inputs.size()];
    expect_ok(shop.cluster.worker(0).run([&](Transaction& txn) {
      if (function == nullptr) return order_by_engine(txn, shop, input);
      const ProcedureAttempt attempt(txn, shop.output, shop.message);
      atoll_api::Context context(node_functions(), attempt.number(), input);
      return static_cast<Status>(function(context));
    }));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(order_of_ten, many_records, order_by_example)
    ->Arg(10'000)
    ->Arg(1'000'000)
    ->Iterations(kOrders);
BENCHMARK_CAPTURE(order_of_ten, single_calls, order_by_single_calls)
    ->Arg(10'000)
    ->Arg(1'000'000)
    ->Iterations(kOrders);
BENCHMARK_CAPTURE(order_of_ten, in_the_tree, nullptr)
    ->Arg(10'000)
    ->Arg(1'000'000)
    ->Iterations(kOrders);

}  // namespace

}  // namespace atolldb::bench
