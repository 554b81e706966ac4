#include "engine/log/worker_log.h"

#include <algorithm>
#include <cstring>

#include "engine/format/log_block.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"

namespace atolldb {

WorkerLog::WorkerLog(std::byte* memory, uint64_t block_bytes, uint16_t worker, bool is_logged)
    : ring_(WorkerLogRing::at(memory, block_bytes)), is_logged_(is_logged), worker_(worker) {
  CHECK(ring_.block_count >= kMinBlocks);
  CHECK(block_bytes <= ~uint32_t{0});  // offsets of records have 32 bits
  CHECK(reinterpret_cast<uintptr_t>(memory) % kLogBlockBytes == 0);
  enter_block(0, 0);
}

uint64_t WorkerLog::durable() const {
  // Pairs with the logger's store: the logger no longer reads the freed blocks. seq_cst, because a
  // waiting worker stores `waits` before this load (Transaction::await_log_room). On x86 the order
  // has no cost.
  return ring_.control->durable.load(std::memory_order_seq_cst);
}

uint64_t WorkerLog::limit() const {
  if (!is_logged_) return ring_.block_count;
  // The open block is the last one that the logger may have freed.
  DCHECK(durable() <= open_block_ + 1);
  // The logger may have freed the open block, but the running transaction still uses it.
  return std::min(durable(), open_block_) + ring_.block_count;
}

bool WorkerLog::has_room() const {
  if (!is_logged_) return true;
  if (wants_all_) return durable() >= open_block_ + (open_used_ != 0 ? 1 : 0);
  return limit() >= open_block_ + 1 + ring_.block_count / 4;
}

void WorkerLog::enter_block(uint64_t number, uint32_t used) {
  DCHECK(used <= kLogBlockPayload && number < limit());
  LogBlock& block = ring_.block(number);
  block_ = number;
  cursor_ = block.payload + used;
  end_ = block.payload + kLogBlockPayload;
}

void WorkerLog::begin(uint64_t current_epoch) {
  if (!is_logged_) {
    open_block_ = 0;
    open_used_ = 0;
  } else if (open_used_ != 0 && open_epoch_ < current_epoch &&
             open_block_ + kSpareBlocks < limit()) {
    // A block has records of one epoch, so a new epoch begins a new block. The epoch may still
    // change before `publish`. The logger may be copying the block while it is sealed, but it does
    // not copy the checksum.
    seal_block(ring_.block(open_block_++));
    open_used_ = 0;
  }
  enter_block(open_block_, open_used_);
}

bool WorkerLog::go_to_next_block() {
  DCHECK(block_ >= open_block_);
  // Keeps one more block free, to which `publish` may have to move records.
  if (block_ + kSpareBlocks >= limit()) return false;
  const uint32_t used = used_in_block();
  if (block_ == open_block_) {
    first_block_end_ = used;
  } else {
    ring_.block(block_).header.length = used;
  }
  enter_block(block_ + 1, 0);
  return true;
}

bool WorkerLog::is_too_large() {
  const bool had_all = open_used_ == 0 && limit() == open_block_ + ring_.block_count;
  if (!is_logged_ || had_all) return true;
  wants_all_ = true;
  return false;
}

void WorkerLog::close_block(uint64_t number, uint64_t epoch, uint32_t length) {
  DCHECK(epoch != 0 && length <= kLogBlockPayload);
  LogBlockHeader& header = ring_.block(number).header;
  header.epoch = epoch;
  header.length = length;
  header.worker = worker_;
  header.type = LogBlockType::records;
}

void WorkerLog::publish(uint64_t epoch) {
  if (!is_logged_ || used_bytes() == 0) return;
  DCHECK(epoch >= open_epoch_);
  wants_all_ = false;
  const bool is_in_one_block = block_ == open_block_;
  if (!is_in_one_block) close_block(block_, epoch, used_in_block());
  for (uint64_t number = open_block_ + 1; number < block_; ++number) {
    close_block(number, epoch, ring_.block(number).header.length);
  }
  uint32_t last_used = used_in_block();
  const uint32_t first_end = is_in_one_block ? last_used : first_block_end_;
  DCHECK(first_end >= open_used_ && first_end <= kLogBlockPayload);
  if (open_used_ != 0 && open_epoch_ != epoch && !fault::share_log_blocks) {
    // The epoch has changed since `begin`, and the logger may have written the first block by now.
    // So this transaction's records there move to a fresh block. Readers take the order of records
    // from the records themselves, not from their position.
    if (first_end != open_used_) {
      const std::byte* ours = ring_.block(open_block_).payload + open_used_;
      last_used = first_end - open_used_;
      enter_block(block_ + 1, last_used);
      std::memcpy(ring_.block(block_).payload, ours, last_used);
      close_block(block_, epoch, last_used);
    }
  } else if (open_used_ == 0) {
    close_block(open_block_, epoch, first_end);
  } else {
    // The logger may be reading the block's epoch, so only the length changes.
    ring_.block(open_block_).header.length = first_end;
  }
  for (; open_block_ < block_; ++open_block_) seal_block(ring_.block(open_block_));
  open_epoch_ = epoch;
  open_used_ = last_used;
  const uint64_t committed = block_ * kLogBlockBytes + sizeof(LogBlockHeader) + last_used;
  if (last_used == kLogBlockPayload) {
    // The block is full, so the next block becomes the open one. It is free: go_to_next_block has
    // kept one block free after the last block, and `begin` has kept one free after the open block.
    seal_block(ring_.block(open_block_++));
    open_used_ = 0;
    DCHECK(open_block_ < limit());
  }
  DCHECK(committed > ring_.control->committed.load(std::memory_order_relaxed));
  // Release pairs with the logger's acquire: blocks and headers are complete.
  ring_.control->committed.store(committed, std::memory_order_release);
}

uint64_t WorkerLog::used_bytes() const {
  if (block_ == open_block_) return used_in_block() - open_used_;
  DCHECK(block_ > open_block_ && first_block_end_ >= open_used_);
  const uint64_t whole_blocks = block_ - open_block_ - 1;
  return first_block_end_ - open_used_ + whole_blocks * kLogBlockPayload + used_in_block();
}

}  // namespace atolldb
