#include <liburing.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <cerrno>
#include <deque>
#include <span>
#include <thread>
#include <utility>

#include "bench/device_waits/workload.h"
#include "shared/base/check.h"

namespace atolldb::bench::device_waits {
namespace {

using boost::context::fiber;

/// Returns false if the kernel refuses.
bool open_ring(unsigned entries, io_uring& ring) {
  // Reads complete in calls of this thread, and do not interrupt it. Linux before 6.1 lacks this.
  constexpr unsigned kFlags =
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  return io_uring_queue_init(entries, &ring, kFlags) == 0 ||
         io_uring_queue_init(entries, &ring, 0) == 0;
}

/// A thread that runs fibers in turn. Each fiber is a worker.
class FiberThread {
 public:
  /// A fiber gives the thread to the next one after so many transactions without a read.
  static constexpr uint32_t kTransactionsPerTurn = 256;

  explicit FiberThread(std::span<Worker> workers) {
    constexpr unsigned kEntries = 256;  // a fiber has at most one read in flight
    CHECK(workers.size() <= kEntries);
    CHECK(open_ring(kEntries, ring_));
    for (Worker& worker : workers) {
      const size_t number = fibers_.size();
      ready_.push_back(number);
      fibers_.emplace_back([this, &worker, number](fiber&& thread) {
        return run_worker(worker, number, std::move(thread));
      });
    }
  }
  FiberThread(const FiberThread&) = delete;
  FiberThread& operator=(const FiberThread&) = delete;
  ~FiberThread() { io_uring_queue_exit(&ring_); }

  void run() {
    while (!ready_.empty() || reads_ != 0) {
      if (ready_.empty()) {
        const int count = io_uring_submit_and_wait(&ring_, 1);
        CHECK(count >= 0 || count == -EINTR);
      } else if (reads_ != 0) {
        CHECK(io_uring_submit(&ring_) >= 0);  // also completes reads, if the ring has the flag
      }
      collect_reads();
      if (ready_.empty()) continue;
      const size_t number = ready_.front();
      ready_.pop_front();
      fibers_[number] = std::move(fibers_[number]).resume();
    }
  }

 private:
  fiber run_worker(Worker& worker, size_t number, fiber&& thread) {
    uint32_t since_turn = 0;
    while (!worker.stops()) {
      worker.run_transaction([&](uint64_t offset, std::byte* page) {
        io_uring_sqe* const read = io_uring_get_sqe(&ring_);
        CHECK(read != nullptr);
        io_uring_prep_read(read, worker.file(), page, kIoBlockBytes, offset);
        io_uring_sqe_set_data64(read, number);
        ++reads_;
        thread = std::move(thread).resume();
        since_turn = 0;
      });
      if (++since_turn >= kTransactionsPerTurn) {
        since_turn = 0;
        ready_.push_back(number);
        thread = std::move(thread).resume();
      }
    }
    return std::move(thread);
  }

  void collect_reads() {
    std::array<io_uring_cqe*, 64> done;
    const unsigned count = io_uring_peek_batch_cqe(&ring_, done.data(), done.size());
    for (const io_uring_cqe* read : std::span(done).first(count)) {
      CHECK(read->res == int{kIoBlockBytes});
      ready_.push_back(io_uring_cqe_get_data64(read));
    }
    io_uring_cq_advance(&ring_, count);
    CHECK(reads_ >= count);
    reads_ -= count;
  }

  io_uring ring_{};
  std::vector<fiber> fibers_;
  std::deque<size_t> ready_;  // numbers of the fibers that can run
  size_t reads_ = 0;          // reads that have not ended
};

}  // namespace

bool can_run_fibers() {
  io_uring ring{};
  if (!open_ring(1, ring)) return false;
  io_uring_queue_exit(&ring);
  return true;
}

void run_fibers(const Load& load, std::vector<Worker>& workers) {
  CHECK(workers.size() == size_t{load.cpus} * load.workers);
  std::vector<std::jthread> threads;
  for (uint32_t cpu = 0; cpu < load.cpus; ++cpu) {
    const auto own = std::span(workers).subspan(size_t{cpu} * load.workers, load.workers);
    threads.emplace_back([own] { FiberThread(own).run(); });
  }
}

}  // namespace atolldb::bench::device_waits
