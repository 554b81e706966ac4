#include "engine/log/epoch_logger.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "engine/format/log_block.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t ns_between(Clock::time_point from, Clock::time_point to) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(to - from).count());
}

}  // namespace

EpochLogger::EpochLogger(const ClusterView& view, LogWriter writer, std::vector<Source> workers)
    : view_(&view),
      writer_(std::move(writer)),
      copies_(std::make_unique<OwnBlock[]>(workers.size())) {
  for (const Source& source : workers) {
    CHECK(source.slot != nullptr && source.ring.control != nullptr);
    CHECK(source.ring.block_count != 0);
    workers_.push_back({source});
  }
}

Result<void> EpochLogger::close(uint64_t epoch) {
  // seq_cst: this load must come before the loads of the in-commit epochs (R21, R26).
  CHECK(view_->control->epochs.current.load(std::memory_order_seq_cst) > epoch);
  CHECK(epoch > durable_epoch());
  const auto asked = Clock::now();
  if (fault::committed_before_closed) load_committed();
  await_closed(epoch);
  if (!fault::committed_before_closed) load_committed();
  const LogWriterCounters before = writer_.counters();
  const auto began = Clock::now();
  Result<void> done = write_up_to(epoch);
  if (done) done = writer_.close_epoch(epoch, durable_epoch_to_name(), runs_);
  latest_.written_bytes = writer_.counters().bytes - before.bytes;
  latest_.close_ns = ns_between(asked, began);
  latest_.sync_ns = writer_.counters().sync_ns - before.sync_ns;
  latest_.write_ns = ns_between(began, Clock::now()) - latest_.sync_ns;
  if (!done) return done;
  CHECK(durable_epoch() == epoch);
  free_blocks();
  return {};
}

void EpochLogger::await_closed(uint64_t epoch) const {
  for (const Worker& worker : workers_) {
    uint32_t turns = 0;
    for (;;) {
      const uint64_t in_commit =
          worker.source.slot->in_commit_epoch.load(std::memory_order_seq_cst);
      if (in_commit == 0 || in_commit > epoch) break;
      reach(SyncPoint::awaiting_closed);
      // Spins: the commit ends soon, because its worker has all locks and waits for nothing (R23).
      spin_or_yield(turns);
    }
  }
}

void EpochLogger::load_committed() {
  for (Worker& worker : workers_) {
    const WorkerLogRing& ring = worker.source.ring;
    // Acquire pairs with WorkerLog::publish: the blocks before the position are complete.
    const uint64_t committed = ring.control->committed.load(std::memory_order_acquire);
    CHECK(committed >= worker.committed);
    CHECK(committed / kLogBlockBytes <= worker.next + ring.block_count);
    worker.committed = committed;
  }
}

/// Returns the epoch of the first unwritten block, or kNoEpoch if no record in it is committed.
uint64_t EpochLogger::epoch_of_next(const Worker& worker) {
  const uint64_t begin = worker.next * kLogBlockBytes + sizeof(LogBlockHeader);
  if (worker.committed <= begin) return kNoEpoch;
  return worker.source.ring.block(worker.next).header.epoch;
}

Result<void> EpochLogger::write_up_to(uint64_t epoch) {
  runs_.clear();
  copies_used_ = 0;
  for (;;) {
    // Writes the blocks in the order of epochs (R26). Usually there is only one epoch, because the
    // logger closes every epoch.
    uint64_t oldest = kNoEpoch;
    for (const Worker& worker : workers_) oldest = std::min(oldest, epoch_of_next(worker));
    if (oldest > epoch) return {};
    if (!runs_.empty()) {
      ATOLL_TRY(writer_.append(runs_, durable_epoch_to_name()));
      runs_.clear();
      copies_used_ = 0;
    }
    for (Worker& worker : workers_) take_blocks(worker, oldest);
  }
}

void EpochLogger::take_blocks(Worker& worker, uint64_t epoch) {
  const WorkerLogRing& ring = worker.source.ring;
  bool extends = false;
  while (epoch_of_next(worker) == epoch) {
    LogBlock& block = ring.block(worker.next);
    const bool may_be_in_use = worker.next == worker.committed / kLogBlockBytes;
    ++worker.next;
    if (may_be_in_use) {
      // Copies the block, because a transaction may be writing past its committed part.
      runs_.push_back({&copy_of(block), 1});
      return;
    }
    if (extends && &block != ring.blocks) {
      runs_.back() = {runs_.back().data(), runs_.back().size() + 1};
    } else {
      runs_.push_back({&block, 1});
      extends = true;
    }
  }
}

LogBlock& EpochLogger::copy_of(const LogBlock& block) {
  CHECK(copies_used_ < workers_.size());
  LogBlock& copy = copies_[copies_used_++].block;
  const uint32_t length = block.header.length;
  CHECK(length <= kLogBlockPayload);
  // Copies the header without its checksum, because the worker may be sealing the block.
  std::memcpy(&copy.header.incarnation, &block.header.incarnation,
              sizeof(LogBlockHeader) - kChecksumEnd);
  std::memcpy(copy.payload, block.payload, length);
  std::memset(copy.payload + length, 0, kLogBlockPayload - length);
  seal_block(copy);
  return copy;
}

void EpochLogger::free_blocks() {
  for (Worker& worker : workers_) {
    WorkerLogControl& control = *worker.source.ring.control;
    const uint64_t durable = control.durable.load(std::memory_order_relaxed);
    CHECK(durable <= worker.next);
    if (durable == worker.next) continue;
    // Both accesses are seq_cst. If the load of `waits` returns 0, the worker stores `waits` later,
    // and its check for room after that sees the freed blocks (R24).
    control.durable.store(worker.next, std::memory_order_seq_cst);
    if (control.waits.load(std::memory_order_seq_cst) == 0) continue;
    control.signal.fetch_add(1, std::memory_order_seq_cst);
    wake(control.signal, 1);
  }
}

/// Returns the durable epoch that block headers name. Every logger has closed this epoch, so
/// recovery may rely on it (R29).
uint64_t EpochLogger::durable_epoch_to_name() const {
  const uint64_t global = view_->control->epochs.durable.load(std::memory_order_acquire);
  return std::min(global, durable_epoch());
}

}  // namespace atolldb
