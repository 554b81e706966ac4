#include "soc/node/pool_memory.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/segment_file.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Bytes per request to the kernel. The thread ends within the time that one request takes.
constexpr uint64_t kStepBytes = uint64_t{8} << 20;
/// Pause between two checks whether the thread may continue. In this time workers use far fewer
/// pages than kPoolBytesAhead.
constexpr std::chrono::milliseconds kCheckPause{20};
/// The thread allocates memory that is not needed soon if so many processors would be idle without
/// it. A thread that shares its processor with a worker gets less than this.
constexpr double kLeastSpareCpus = 0.75;
/// If idle processors are unknown, the thread rests this many times as long as a request took.
constexpr int kRestPerWork = 9;

std::chrono::nanoseconds thread_cpu_time() {
  timespec time{};
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

PoolMemory::PoolMemory(PoolMemorySettings settings, Logger logger)
    : settings_(std::move(settings)),
      logger_(std::move(logger)),
      allocated_(std::min(settings_.bytes, kPoolBytesAtStart)),
      idle_cpus_(settings_.cpus) {
  CHECK(settings_.base != nullptr && settings_.bytes != 0);
  CHECK(settings_.used_bytes && settings_.on_failure);
  if (settings_.bytes <= kPoolBytesAtStart) return;
  thread_ = std::thread([this] {
    name_thread("pool-memory");
    become_batch_thread();
    work();
  });
}

void PoolMemory::stop() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool PoolMemory::ends_within(Clock::duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return ends_; });
}

void PoolMemory::work() {
  const auto began = Clock::now();
  uint64_t at = kPoolBytesAtStart;
  Clock::duration rest{0};
  while (at < settings_.bytes) {
    if (ends_within(rest)) return;
    const auto now = Clock::now();
    if (must_wait(now)) {
      rest = kCheckPause;
      continue;
    }
    const uint64_t step = std::min(kStepBytes, settings_.bytes - at);
    if (const auto done = prefault_memory(settings_.segment, settings_.base + at, step, 1); !done) {
      logger_->critical("{}", done.error().message);
      return settings_.on_failure(done.error());
    }
    at += step;
    allocated_.store(at, std::memory_order_relaxed);
    rest = settings_.cpus.empty() ? kRestPerWork * (Clock::now() - now) : Clock::duration{0};
  }
  logger_->info("segment {}: all of its {} MiB are allocated, after {:.3f} s in the background",
                settings_.segment, settings_.bytes >> 20,
                std::chrono::duration<double>(Clock::now() - began).count());
}

/// Returns whether the memory ahead of the workers is enough, and no processor is idle.
bool PoolMemory::must_wait(Clock::time_point now) {
  const double spare = spare_cpus(now);  // also if it is not needed, so that its window goes on
  const uint64_t allocated = settings_.bytes - unallocated_bytes();
  if (allocated < settings_.used_bytes() + kPoolBytesAhead) return false;
  return !settings_.cpus.empty() && spare < kLeastSpareCpus;
}

/// Returns how many processors would be idle without this thread.
double PoolMemory::spare_cpus(Clock::time_point now) {
  if (now - window_begin_ >= IdleCpus::kPause) {
    const auto cpu = thread_cpu_time();
    own_cpus_ = std::chrono::duration<double>(cpu - cpu_before_) / (now - window_begin_);
    window_begin_ = now;
    cpu_before_ = cpu;
  }
  return idle_cpus_.measure(now) + own_cpus_;
}

}  // namespace atolldb
