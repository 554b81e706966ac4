// Measures only the commit of transactions that read or wrote `n` records. The time excludes the
// operations before the commit.
#include <benchmark/benchmark.h>

#include "bench/common/clock.h"
#include "bench/common/random.h"
#include "bench/micro/loaded.h"

namespace atolldb::bench {

namespace {

constexpr uint64_t kRecords =
    10'000;  // the records fit the cache, so that misses do not hide the cost of the commit

void commit(benchmark::State& state, bool writes) {
  Loaded& loaded = Loaded::of(kRecords);
  LocalCluster::Worker& self = loaded.cluster.worker(0);
  const auto count = static_cast<uint64_t>(state.range(0));
  const TickClock clock;
  Random random(1);
  Payload payload{};
  for ([[maybe_unused]] auto _ : state) {
    Transaction& txn = self.transaction;
    expect_ok(txn.begin());
    for (uint64_t i = 0; i < count; ++i) {
      // Each operation draws from its own part of the records, so no record occurs twice.
      const uint64_t part = kRecords / count;
      const uint64_t index = i * part + random.uniform(0, static_cast<uint32_t>(part - 1));
      expect_ok(writes ? loaded.array.update(txn, index, 0, kPayloadBytes, payload.data())
                       : loaded.array.get(txn, index, payload.data()));
    }
    const uint64_t begin = clock.ticks();
    expect_ok(txn.commit());
    state.SetIterationTime(static_cast<double>(clock.to_ns(clock.ticks() - begin)) * 1e-9);
  }
  self.context.leave();
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK_CAPTURE(commit, read_only, false)->Arg(1)->Arg(10)->Arg(100)->UseManualTime();
BENCHMARK_CAPTURE(commit, writing, true)->Arg(1)->Arg(10)->Arg(100)->UseManualTime();

}  // namespace

}  // namespace atolldb::bench
