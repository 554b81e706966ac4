// Measures one storage operation per transaction, on a tree and an array of `records` records.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "bench/common/random.h"
#include "bench/job/step_scan.h"
#include "bench/micro/loaded.h"
#include "engine/hash/hash.h"
#include "engine/mastertree/inspect.h"

namespace atolldb::bench {

namespace {

enum class Order { ascending, random };
constexpr uint32_t kLocal = 0;
constexpr uint32_t kRemote = 1;
constexpr uint64_t kFewRecords = 10'000;  // these records fit the cache
constexpr uint64_t kManyRecords = 1'000'000;
constexpr uint64_t kMostRecords = 10'000'000;

/// Generates numbers of [0, count), in order or at random.
class Numbers {
 public:
  Numbers(Order order, uint64_t count) : order_(order), count_(count) {}
  uint64_t next() {
    if (order_ == Order::random) return random_.uniform(0, static_cast<uint32_t>(count_ - 1));
    return at_++ % count_;
  }

 private:
  Order order_;
  uint64_t count_;
  uint64_t at_ = 0;
  Random random_{1};
};

void tree_get(benchmark::State& state, Order order, uint32_t worker) {
  Loaded& loaded = Loaded::of(static_cast<uint64_t>(state.range(0)));
  LocalCluster::Worker& self = loaded.cluster.worker(worker);
  Numbers numbers(order, loaded.records);
  Payload payload;
  for ([[maybe_unused]] auto _ : state) {
    const auto key = ordered_key(numbers.next());
    expect_ok(self.run([&](Transaction& txn) {
      uint32_t bytes = 0;
      return loaded.tree.get(txn, key, payload.data(), kPayloadBytes, bytes);
    }));
    benchmark::DoNotOptimize(payload);
  }
  self.context.leave();
  state.SetItemsProcessed(state.iterations());
}

/// Reads random records of a database of its own. Counter: bytes of pages for each record.
void point_get(benchmark::State& state, StorageType type) {
  LoadedPoints& loaded = LoadedPoints::of(type, static_cast<uint64_t>(state.range(0)));
  LocalCluster::Worker& self = loaded.cluster.worker(0);
  Numbers numbers(Order::random, loaded.records);
  const Hash hash(*loaded.storage);
  Payload payload;
  for ([[maybe_unused]] auto _ : state) {
    const auto key = ordered_key(numbers.next());
    expect_ok(self.run([&](Transaction& txn) {
      uint32_t bytes = 0;
      return loaded.is_hash() ? hash.get(txn, key, payload.data(), kPayloadBytes, bytes)
                              : hash.tree().get(txn, key, payload.data(), kPayloadBytes, bytes);
    }));
    benchmark::DoNotOptimize(payload);
  }
  self.context.leave();
  state.SetItemsProcessed(state.iterations());
  state.counters["bytes_per_record"] = loaded.bytes_per_record();
}

/// Whether a scan takes records one by one, or in batches.
enum class Take : uint8_t { one, many, many_with_keys };

/// Buffers of a batch. They outlive the scans, because they are zeroed.
struct Buffers {
  static constexpr size_t kRows = 32;
  std::array<ScanRow, kRows> rows;
  std::array<Payload, kRows> payloads;
  std::array<std::byte, kMaxTreeKeyBytes + kRows * sizeof(uint64_t)> keys;
};

Status scan_to_end(MasterTreeCursor& cursor, Take take, Buffers& buffers) {
  auto& [rows, payloads, keys] = buffers;
  const ScanBatch batch{
      .rows = rows,
      .payloads = std::as_writable_bytes(std::span(payloads)),
      .stride = kPayloadBytes,
      .keys = std::span(keys).first(take == Take::many_with_keys ? keys.size() : 0)};
  for (;;) {
    uint32_t count = 0;
    const Status status = take == Take::one ? cursor.next() : cursor.next_many(batch, count);
    if (status == Status::end_of_scan) return Status::ok;
    if (status != Status::ok) return status;
    if (take == Take::one) BENCH_TRY(cursor.get(payloads[0].data(), kPayloadBytes));
    benchmark::DoNotOptimize(payloads);
  }
}

/// Scans of as many records as the second argument says.
void tree_scan(benchmark::State& state, Order order, Take take) {
  const auto length = static_cast<uint64_t>(state.range(1));
  Loaded& loaded = Loaded::of(static_cast<uint64_t>(state.range(0)));
  LocalCluster::Worker& self = loaded.cluster.worker(kLocal);
  Numbers numbers(order, loaded.records - length);
  Buffers buffers;
  for ([[maybe_unused]] auto _ : state) {
    const uint64_t first = numbers.next();
    expect_ok(self.run([&](Transaction& txn) {
      const KeyRange keys(first, first + length - 1);
      MasterTreeCursor cursor(loaded.tree, txn, keys.range(), true);
      return scan_to_end(cursor, take, buffers);
    }));
  }
  self.context.leave();
  state.SetItemsProcessed(state.iterations() * state.range(1));
}

/// Inserts into a new tree. The number of inserts is fixed, because the tree grows with them.
void tree_insert(benchmark::State& state, Order order) {
  LocalCluster cluster(1, 1, uint64_t{256} << 20);
  const MasterTree tree(cluster.create("tree", kPayloadBytes, 0));
  const Payload payload{};
  uint64_t number = 0;
  for ([[maybe_unused]] auto _ : state) {
    ++number;
    // Multiplication by an odd factor is a bijection, so no key occurs twice.
    const auto key =
        ordered_key(order == Order::ascending ? number : number * 0x9e3779b97f4a7c15ull);
    expect_ok(
        cluster.worker(0).run([&](Transaction& txn) { return tree.insert(txn, key, payload); }));
  }
  state.SetItemsProcessed(state.iterations());
}

/// Inserts keys of `range(0)` bytes with payloads of `range(1)` bytes into a new hash storage. The
/// number of inserts is fixed. Counters: bytes of pages and directory for each record, and for each
/// byte of keys and payloads; pages that were replaced, for each insert.
void hash_insert(benchmark::State& state) {
  const auto inserts = static_cast<uint64_t>(state.max_iterations);
  const auto key_bytes = static_cast<uint64_t>(state.range(0));
  const auto payload_bytes = static_cast<uint64_t>(state.range(1));
  LocalCluster cluster(1, 1, (uint64_t{64} << 20) + inserts * 2 * (128 + payload_bytes));
  StorageControl& storage =
      cluster.create("hash", StorageType::hash, static_cast<uint32_t>(payload_bytes), 0);
  const Hash hash(storage);
  std::vector<std::byte> key(key_bytes);
  const std::vector<std::byte> payload(payload_bytes);
  uint64_t number = 0;
  for ([[maybe_unused]] auto _ : state) {
    ++number;
    std::memcpy(key.data(), &number, sizeof(number));
    expect_ok(
        cluster.worker(0).run([&](Transaction& txn) { return hash.insert(txn, key, payload); }));
  }
  state.SetItemsProcessed(state.iterations());
  TreeStatistics statistics;
  CHECK(check_tree(cluster.view(), storage, statistics).empty());
  CHECK(statistics.records == inserts && number == inserts);
  const uint64_t entries = uint64_t{1} << cluster.directory().depth_of(storage.id);
  const auto bytes =
      static_cast<double>(statistics.pages() * kPageBytes + entries * sizeof(uint64_t));
  const double per_record = bytes / static_cast<double>(inserts);
  state.counters["bytes_per_record"] = per_record;
  state.counters["times_the_data"] = per_record / static_cast<double>(key_bytes + payload_bytes);
  state.counters["pages_replaced"] =
      static_cast<double>(cluster.worker(0).metrics.pages_retired.get()) /
      static_cast<double>(inserts);
}

void array_get(benchmark::State& state, Order order, uint32_t worker) {
  Loaded& loaded = Loaded::of(static_cast<uint64_t>(state.range(0)));
  LocalCluster::Worker& self = loaded.cluster.worker(worker);
  Numbers numbers(order, loaded.records);
  Payload payload;
  for ([[maybe_unused]] auto _ : state) {
    const uint64_t index = numbers.next();
    expect_ok(
        self.run([&](Transaction& txn) { return loaded.array.get(txn, index, payload.data()); }));
    benchmark::DoNotOptimize(payload);
  }
  self.context.leave();
  state.SetItemsProcessed(state.iterations());
}

void array_update(benchmark::State& state, Order order, uint32_t worker) {
  Loaded& loaded = Loaded::of(static_cast<uint64_t>(state.range(0)));
  LocalCluster::Worker& self = loaded.cluster.worker(worker);
  Numbers numbers(order, loaded.records);
  const Payload payload{};
  for ([[maybe_unused]] auto _ : state) {
    const uint64_t index = numbers.next();
    expect_ok(self.run([&](Transaction& txn) {
      return loaded.array.update(txn, index, 0, kPayloadBytes, payload.data());
    }));
  }
  self.context.leave();
  state.SetItemsProcessed(state.iterations());
}

const std::vector<std::vector<int64_t>> kScans = {{kManyRecords}, {3, 10, 100}};

BENCHMARK_CAPTURE(tree_get, ascending, Order::ascending, kLocal)->Arg(kManyRecords);
BENCHMARK_CAPTURE(tree_get, random, Order::random, kLocal)->Arg(kFewRecords)->Arg(kManyRecords);
BENCHMARK_CAPTURE(tree_get, random_remote, Order::random, kRemote)->Arg(kManyRecords);
BENCHMARK_CAPTURE(point_get, tree, StorageType::mastertree)
    ->Arg(kFewRecords)
    ->Arg(kManyRecords)
    ->Arg(kMostRecords);
BENCHMARK_CAPTURE(point_get, hash, StorageType::hash)
    ->Arg(kFewRecords)
    ->Arg(kManyRecords)
    ->Arg(kMostRecords);
BENCHMARK_CAPTURE(tree_scan, ascending, Order::ascending, Take::one)->ArgsProduct(kScans);
BENCHMARK_CAPTURE(tree_scan, ascending_in_batches, Order::ascending, Take::many)
    ->ArgsProduct(kScans);
BENCHMARK_CAPTURE(tree_scan, ascending_in_batches_with_keys, Order::ascending, Take::many_with_keys)
    ->ArgsProduct(kScans);
BENCHMARK_CAPTURE(tree_scan, random, Order::random, Take::one)->ArgsProduct(kScans);
BENCHMARK_CAPTURE(tree_scan, random_in_batches, Order::random, Take::many)->ArgsProduct(kScans);
BENCHMARK_CAPTURE(tree_scan, random_in_batches_with_keys, Order::random, Take::many_with_keys)
    ->ArgsProduct(kScans);
BENCHMARK_CAPTURE(tree_insert, ascending, Order::ascending)->Iterations(500'000);
BENCHMARK_CAPTURE(tree_insert, random, Order::random)->Iterations(500'000);
BENCHMARK(hash_insert)->Args({8, 100})->Iterations(10'000'000);
BENCHMARK(hash_insert)->Args({16, 32})->Iterations(10'000'000);
BENCHMARK(hash_insert)->Args({8, 100})->Iterations(500'000);
BENCHMARK(hash_insert)->Args({8, 100})->Iterations(1'000'000);
BENCHMARK(hash_insert)->Args({16, 32})->Iterations(1'000'000);
BENCHMARK_CAPTURE(array_get, random, Order::random, kLocal)->Arg(kFewRecords)->Arg(kManyRecords);
BENCHMARK_CAPTURE(array_get, random_remote, Order::random, kRemote)->Arg(kManyRecords);
BENCHMARK_CAPTURE(array_update, random, Order::random, kLocal)->Arg(kFewRecords)->Arg(kManyRecords);
BENCHMARK_CAPTURE(array_update, random_remote, Order::random, kRemote)->Arg(kManyRecords);

}  // namespace

}  // namespace atolldb::bench
