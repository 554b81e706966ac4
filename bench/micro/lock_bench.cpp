// One lock and unlock, alone and between two threads, which hand the lock over to each other.
#include <benchmark/benchmark.h>

#include "bench/micro/loaded.h"

namespace atolldb::bench {

namespace {

McsWord contended_lock{};

void mcs_lock(benchmark::State& state) {
  // A worker of each node, so that the queue's elements are in two segments.
  WorkerContext& self =
      Loaded::of(10'000).cluster.worker(static_cast<uint32_t>(state.thread_index())).context;
  constexpr uint32_t kBlock = 1;
  const UniversalName name{};
  for ([[maybe_unused]] auto _ : state) {
    expect_ok(self.locker().lock(contended_lock, kBlock, name));
    self.locker().unlock(contended_lock, kBlock);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(mcs_lock)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    // Before the threads start: they must not load the database both.
    ->Setup([](const benchmark::State&) { Loaded::of(10'000); });

}  // namespace

}  // namespace atolldb::bench
