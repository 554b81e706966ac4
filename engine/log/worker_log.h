// A worker's log buffer: a ring of blocks. Transactions fill them with log records and a logger
// writes them to files without conversion (R23, R26). Source: [FOEDUS15] section 6.
//
//     durable (blocks)      committed (position)      current
//        |                      |                       |
//   -----+----------------------+-----------------------+------------------------+----
//   free | committed, not yet   | records of the running transaction,            | free
//        | known to be durable  | not for the logger yet                         |
//
// Positions grow without end; block number n is stored at n modulo the number of blocks. A record
// does not cross blocks, and a block has records of one epoch only. So a transaction must move its
// records out of its first block if older records there have an earlier epoch than its commit
// (`publish`). The logger copies only the block that `committed` points into. Blocks before it are
// sealed: complete, with the checksum of their payload.
//
// Without a log (durability off) the buffer only holds the new payloads of a transaction. Then each
// transaction starts at the beginning of the buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/format/log_block.h"
#include "engine/format/log_record.h"
#include "shared/base/check.h"

namespace atolldb {

/// Positions and wake-up words of a worker's log buffer, in the node's `local` segment.
struct WorkerLogControl {
  /// Position (block number * kLogBlockBytes + bytes of header and payload) after the last
  /// committed record. Writer: the worker. Release: a logger that loads it sees the blocks and
  /// headers before it.
  alignas(64) std::atomic<uint64_t> committed;
  /// Number of the first block that may not be reused. Blocks before it are durable, and the logger
  /// does not read them any more. Writer: the logger.
  alignas(64) std::atomic<uint64_t> durable;
  /// The worker sleeps on this word while it waits for room. The logger changes the word after it
  /// has stored `durable`, if `waits` is set.
  std::atomic<uint32_t> signal;
  std::atomic<uint32_t> waits;  // not 0: the worker waits for room. Writer: the worker
};
static_assert(sizeof(WorkerLogControl) == 128);

/// Addresses of a worker's log buffer.
struct WorkerLogRing {
  WorkerLogControl* control;
  LogBlock* blocks;
  uint64_t block_count;

  /// Returns the addresses within `memory`. Both parameters are those of WorkerLog's constructor.
  static WorkerLogRing at(std::byte* memory, uint64_t block_bytes) {
    // The control words take a whole block, so that the blocks are aligned.
    return {reinterpret_cast<WorkerLogControl*>(memory),
            reinterpret_cast<LogBlock*>(memory + kLogBlockBytes), block_bytes / kLogBlockBytes};
  }
  LogBlock& block(uint64_t number) const {
    DCHECK(block_count != 0);
    return blocks[number % block_count];
  }
};

/// Lets a worker write log records to its buffer and hand them to the logger.
class WorkerLog {
 public:
  /// Number of blocks that a transaction cannot fill: the target for moved records, and the block
  /// that it shares with the previous transaction.
  static constexpr uint64_t kSpareBlocks = 2;
  static constexpr uint64_t kMinBlocks = 2 * kSpareBlocks;

  /// `memory`: bytes(block_bytes) zero bytes, aligned to kLogBlockBytes. `worker`: ordinal in its
  /// node. `is_logged`: a logger writes and frees the blocks.
  WorkerLog(std::byte* memory, uint64_t block_bytes, uint16_t worker, bool is_logged);

  static constexpr uint64_t bytes(uint64_t block_bytes) {
    return kLogBlockBytes + block_bytes / kLogBlockBytes * kLogBlockBytes;
  }

  bool is_logged() const { return is_logged_; }
  WorkerLogControl& control() { return *ring_.control; }

  /// Returns true if a transaction may begin (R23): a quarter of the blocks is free. If the last
  /// transaction did not fit into the free blocks, returns true only if all blocks are free.
  bool has_room() const;
  /// Starts a transaction. `current_epoch`: as known now.
  void begin(uint64_t current_epoch);
  /// Allocates a record of the running transaction. Returns null if there is no room. `length`: a
  /// multiple of 8, at most kLogBlockPayload.
  LogRecord* allocate(uint32_t length) {
    DCHECK(length != 0 && length % 8 == 0 && length <= kLogBlockPayload);
    if (length > static_cast<size_t>(end_ - cursor_)) [[unlikely]] {
      if (!go_to_next_block()) return nullptr;
    }
    std::byte* at = cursor_;
    cursor_ += length;
    // Prefetches the memory of the next records. It was last written one lap of the ring ago, so
    // this core's caches no longer have it. At the ring's end the prefetch loads lines past the
    // ring, which is harmless.
    if (is_logged_) {
      for (uint32_t line = 0; line < length; line += 64) __builtin_prefetch(at + kAhead + line, 1);
    }
    return reinterpret_cast<LogRecord*>(at);
  }
  /// Returns true if the transaction would not fit an empty buffer either. If false, the next
  /// transaction waits for an empty buffer (has_room). REQUIRES: allocate has returned null.
  bool is_too_large();

  LogRecord& at(uint32_t offset) {
    DCHECK(offset % 8 == 0 && offset < ring_.block_count * kLogBlockBytes);
    return *reinterpret_cast<LogRecord*>(reinterpret_cast<std::byte*>(ring_.blocks) + offset);
  }
  uint32_t offset_of(const LogRecord* record) const {
    DCHECK(reinterpret_cast<const std::byte*>(record) >=
           reinterpret_cast<const std::byte*>(ring_.blocks));
    return static_cast<uint32_t>(reinterpret_cast<const std::byte*>(record) -
                                 reinterpret_cast<const std::byte*>(ring_.blocks));
  }

  /// Hands the records of the running transaction, committed in `epoch`, to the logger. Copies at
  /// most one block. Seals the blocks that are complete. They cannot be sealed earlier, because the
  /// commit has just stored the VIDs in them. Does not wait.
  /// REQUIRES: the in-commit epoch is not cleared yet (R26).
  void publish(uint64_t epoch);
  /// Returns the bytes of records that the running transaction has written.
  uint64_t used_bytes() const;

 private:
  static constexpr uint32_t kAhead = 512;  // bytes from the allocated record to the prefetch

  bool go_to_next_block();
  void enter_block(uint64_t number, uint32_t used);
  uint32_t used_in_block() const {
    DCHECK(cursor_ <= end_);
    return static_cast<uint32_t>(cursor_ - ring_.block(block_).payload);
  }
  void close_block(uint64_t number, uint64_t epoch, uint32_t length);
  uint64_t durable() const;
  /// Returns the first block number whose place in the ring still holds a needed block.
  uint64_t limit() const;

  WorkerLogRing ring_;
  bool is_logged_;
  bool wants_all_ = false;  // the last transaction did not fit into the free blocks
  uint16_t worker_;

  // State of the running transaction.
  std::byte* cursor_ = nullptr;
  std::byte* end_ = nullptr;      // end of the current block's payload
  uint64_t block_ = 0;            // number of the current block
  uint32_t first_block_end_ = 0;  // bytes used in open_block_, if it is not the current block

  // The open block: the block in which the committed records end.
  uint64_t open_block_ = 0;
  uint64_t open_epoch_ = 0;
  uint32_t open_used_ = 0;  // bytes of payload used; 0: the block is empty
};

}  // namespace atolldb
