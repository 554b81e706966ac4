// Synthetic transactions for atoll-device-waits: computation, and reads of random pages.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "bench/common/clock.h"
#include "bench/common/latency_histogram.h"
#include "bench/common/random.h"
#include "shared/file/io_buffer.h"

namespace atolldb::bench::device_waits {

/// What all workers share.
struct Load {
  double compute_us = 3;     // computation of a transaction, half of it before the reads
  double reads = 0.11;       // mean number of reads of a transaction, one after the other
  uint32_t cpus = 2;         // number of CPUs that the workers share
  uint32_t workers = 16;     // per CPU
  int file = -1;             // descriptor of the file, open for direct I/O
  uint32_t pages = 0;        // number of pages of the file
  double rounds_per_us = 1;  // speed of `compute`
  TickClock clock;
  std::atomic<bool> stops{false};
};

/// Keeps the processor busy for a number of rounds. Returns a number that depends on all of them.
inline uint64_t compute(uint64_t rounds, uint64_t number) {
  for (uint64_t i = 0; i < rounds; ++i) number = number * 6364136223846793005u + 1;
  return number;
}

/// One worker. Thread: that of the worker.
class Worker {
 public:
  Worker(const Load& load, uint64_t seed)
      : load_(&load),
        rounds_(static_cast<uint64_t>(load.rounds_per_us * load.compute_us / 2)),
        random_(seed) {}

  /// Runs one transaction. `read(offset, page)` reads the page at this offset.
  template <typename Read>
  void run_transaction(Read&& read) {
    const uint64_t begin = load_->clock.ticks();
    number_ = compute(rounds_, number_);
    for (double left = load_->reads; left > 0; left -= 1) {
      if (left < 1 && random_.unit() >= left) break;
      read(random_.uniform(0, load_->pages - 1) * uint64_t{kIoBlockBytes}, page_.bytes().data());
    }
    number_ = compute(rounds_, number_);
    latency_.add(load_->clock.to_ns(load_->clock.ticks() - begin));
  }
  bool stops() const { return load_->stops.load(std::memory_order_relaxed); }
  int file() const { return load_->file; }
  const LatencyHistogram& latency() const { return latency_; }

 private:
  const Load* load_;
  uint64_t rounds_;
  Random random_;
  uint64_t number_ = 1;
  IoBuffer page_{kIoBlockBytes};
  LatencyHistogram latency_;
};

/// Runs all workers until `load.stops`, each on a thread. `places`: of their RunGate; 0: no gate.
void run_threads(const Load& load, std::vector<Worker>& workers, uint32_t places);
/// Does the same with one thread per CPU. Its workers are fibers: while one waits for the device,
/// the thread runs another. The thread sends the reads with io_uring.
void run_fibers(const Load& load, std::vector<Worker>& workers);
/// Returns whether the kernel permits io_uring.
bool can_run_fibers();

}  // namespace atolldb::bench::device_waits
