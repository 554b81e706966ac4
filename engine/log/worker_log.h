// A worker's log buffer: a ring of blocks that transactions fill with their log records and a
// logger writes to files as they are (design: durability; foedus.txt section 6; rules R23, R26).
//
//     durable (blocks)      committed (position)      current
//        |                      |                       |
//   -----+----------------------+-----------------------+------------------------+----
//   free | committed, not yet   | records of the running transaction,            | free
//        | known to be durable  | not for the logger yet                         |
//
// Positions count for ever; a block stands at its number modulo the number of blocks. Records do
// not cross blocks and a block has records of one epoch only, so a transaction that commits in a
// later epoch than the records before it in its first block moves its own out of there (`publish`).
// The logger copies the one block that `committed` points into; blocks before it are sealed: they
// are complete, their payload's checksum included.
//
// Without a log (durability off) the buffer is only where a transaction keeps its new payloads, and
// each one starts at the begin of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/log/log_block.h"
#include "engine/log/log_record.h"

namespace atolldb {

/// The markers, in the node's `local` segment.
struct WorkerLogControl {
  /// Position (block number * kLogBlockBytes + bytes of header and payload) behind the last
  /// committed record. Writer: the worker. Release: blocks and headers before it are visible.
  alignas(64) std::atomic<uint64_t> committed;
  /// Number of the first block that may not be filled anew: those before it are durable. Writer:
  /// the logger. Release: it has read them.
  alignas(64) std::atomic<uint64_t> durable;
  /// Changed by the logger after `durable` when somebody `waits`.
  std::atomic<uint32_t> signal;
  std::atomic<uint32_t> waits;  // writer: the worker
};
static_assert(sizeof(WorkerLogControl) == 128);

/// Where a worker's log is, in the memory that WorkerLog is made of.
struct WorkerLogRing {
  WorkerLogControl* control;
  LogBlock* blocks;
  uint64_t block_count;

  /// `memory`, `block_bytes`: as for WorkerLog.
  static WorkerLogRing at(std::byte* memory, uint64_t block_bytes) {
    // The markers have a block's place, so that the blocks are aligned.
    return {reinterpret_cast<WorkerLogControl*>(memory),
            reinterpret_cast<LogBlock*>(memory + kLogBlockBytes), block_bytes / kLogBlockBytes};
  }
  LogBlock& block(uint64_t number) const { return blocks[number % block_count]; }
};

/// The worker's side.
class WorkerLog {
 public:
  /// Blocks that a transaction cannot use: to move its records to, and the one that it shares with
  /// its predecessor.
  static constexpr uint64_t kSpareBlocks = 2;
  static constexpr uint64_t kMinBlocks = 2 * kSpareBlocks;

  /// `memory`: bytes(block_bytes) of zeros, aligned to kLogBlockBytes. `worker`: ordinal in its
  /// node. `is_logged`: there is a logger, which frees the blocks.
  WorkerLog(std::byte* memory, uint64_t block_bytes, uint16_t worker, bool is_logged);

  static constexpr uint64_t bytes(uint64_t block_bytes) {
    return kLogBlockBytes + block_bytes / kLogBlockBytes * kLogBlockBytes;
  }

  bool is_logged() const { return is_logged_; }
  WorkerLogControl& control() { return *ring_.control; }

  /// Whether a transaction should begin: a quarter of the blocks is free, or all of them after one
  /// that did not fit (R23).
  bool has_room() const;
  /// Starts a transaction; `current_epoch` as known now.
  void begin(uint64_t current_epoch);
  /// Room for a record in the running transaction; null: there is none. `length`: a multiple of 8,
  /// at most kLogBlockPayload.
  LogRecord* allocate(uint32_t length) {
    if (length > static_cast<size_t>(end_ - cursor_)) [[unlikely]] {
      if (!go_to_next_block()) return nullptr;
    }
    std::byte* at = cursor_;
    cursor_ += length;
    // What is written next was written a lap ago, and is out of this core's caches. Behind the
    // ring's end it loads what nobody needs.
    if (is_logged_) {
      for (uint32_t line = 0; line < length; line += 64) __builtin_prefetch(at + kAhead + line, 1);
    }
    return reinterpret_cast<LogRecord*>(at);
  }
  /// After allocate has answered null: the transaction would not fit an empty buffer either.
  /// Otherwise the next one waits for an empty buffer (has_room).
  bool is_too_large();

  LogRecord& at(uint32_t offset) {
    return *reinterpret_cast<LogRecord*>(reinterpret_cast<std::byte*>(ring_.blocks) + offset);
  }
  uint32_t offset_of(const LogRecord* record) const {
    return static_cast<uint32_t>(reinterpret_cast<const std::byte*>(record) -
                                 reinterpret_cast<const std::byte*>(ring_.blocks));
  }

  /// The running transaction has committed in `epoch`: its records are for the logger. Before the
  /// in-commit epoch is cleared (R26). Copies at most a block and takes the checksums of those that
  /// it leaves (not earlier: the commit has just put the VIDs into them); waits for nothing.
  void publish(uint64_t epoch);
  /// Bytes of records that the running transaction has written.
  uint64_t used_bytes() const;

 private:
  static constexpr uint32_t kAhead = 512;  // bytes between what is written and what is loaded

  bool go_to_next_block();
  void enter_block(uint64_t number, uint32_t used);
  uint32_t used_in_block() const {
    return static_cast<uint32_t>(cursor_ - ring_.block(block_).payload);
  }
  void close_block(uint64_t number, uint64_t epoch, uint32_t length);
  uint64_t durable() const;
  /// The first block number that must stay free for now.
  uint64_t limit() const;

  WorkerLogRing ring_;
  bool is_logged_;
  bool wants_all_ = false;  // the last transaction did not fit what was free
  uint16_t worker_;

  // Of the running transaction.
  std::byte* cursor_ = nullptr;
  std::byte* end_ = nullptr;      // of the current block
  uint64_t block_ = 0;            // the current block
  uint32_t first_block_end_ = 0;  // bytes used in open_block_, once it is not the current one

  // Of what is committed: the block that it ends in.
  uint64_t open_block_ = 0;
  uint64_t open_epoch_ = 0;
  uint32_t open_used_ = 0;  // bytes of payload; 0: the block is fresh
};

}  // namespace atolldb
