// Measures one lock and unlock: by one thread, and by two that pass the lock to each other.
#include <benchmark/benchmark.h>

#include "bench/micro/loaded.h"

namespace atolldb::bench {

namespace {

McsWord contended_lock{};

void mcs_lock(benchmark::State& state) {
  // Each thread takes the worker of another node, so that the queue of the lock is in two segments.
  WorkerContext& self =
      Loaded::of(10'000).cluster.worker(static_cast<uint32_t>(state.thread_index())).context;
  const UniversalName name{};
  for ([[maybe_unused]] auto _ : state) {
    expect_ok(self.locker().lock(contended_lock, name));
    self.locker().unlock(contended_lock);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(mcs_lock)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime()
    // Loads the database before the threads start, so that it is loaded only once.
    ->Setup([](const benchmark::State&) { Loaded::of(10'000); });

}  // namespace

}  // namespace atolldb::bench
