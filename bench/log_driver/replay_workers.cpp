#include "bench/log_driver/replay_workers.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "engine/format/log_block.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"

namespace atolldb::log_bench {
namespace {

/// Changes the block as if its worker had just committed it in `epoch`. Returns its number of
/// records.
uint64_t commit_block(LogBlock& block, uint64_t epoch) {
  block.header.epoch = epoch;
  uint64_t records = 0;
  for (uint32_t offset = 0; offset < block.header.length;) {
    auto& record = *reinterpret_cast<LogRecord*>(block.payload + offset);
    offset += record.length;
    if (record.type == LogType::filler) continue;
    const Vid vid(record.vid);
    record.vid = Vid::make(epoch, vid.ordinal(), vid.word() & Vid::kFlagsMask).word();
    ++records;
  }
  return records;
}

}  // namespace

Mapping::Mapping(uint64_t bytes) : size_(bytes) {
  // Calls mmap, because Boost.Interprocess has only shared anonymous memory. The system counts such
  // memory as shared, and has a separate setting for its huge pages.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  bytes_ = static_cast<std::byte*>(memory);
}

Mapping::Mapping(Mapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_) {}

Mapping::~Mapping() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

ReplayWorkers::ReplayWorkers(const Recording& recording, uint32_t workers, uint64_t buffer_bytes)
    : control_(sizeof(ControlSegment)), slots_(workers * sizeof(WorkerSlot)) {
  CHECK(!recording.blocks.empty());
  view_.control = reinterpret_cast<ControlSegment*>(control_.bytes());
  size_t from = 0;
  for (uint32_t ordinal = 0; ordinal < workers; ++ordinal) {
    Mapping memory(WorkerLog::bytes(buffer_bytes));
    const WorkerLogRing ring = WorkerLogRing::at(memory.bytes(), buffer_bytes);
    for (uint64_t number = 0; number < ring.block_count; ++number) {
      LogBlock& block = ring.block(number);
      std::memcpy(&block, &recording.blocks[from++ % recording.blocks.size()], sizeof block);
      // Keeps only those fields of the header that a worker fills.
      const uint32_t length = block.header.length;
      block.header = {};
      block.header.length = length;
      block.header.worker = static_cast<uint16_t>(ordinal);
      block.header.type = LogBlockType::records;
    }
    workers_.push_back({std::move(memory), ring});
  }
}

uint64_t ReplayWorkers::commit(uint64_t epoch, uint64_t blocks) {
  uint64_t records = 0;
  for (Worker& worker : workers_) {
    CHECK(blocks != 0 && blocks < worker.ring.block_count);
    CHECK(worker.ring.control->durable.load(std::memory_order_acquire) == worker.next);
    for (uint64_t i = 0; i < blocks; ++i) {
      records += commit_block(worker.ring.block(worker.next++), epoch);
    }
    // The position lies within the last block, as if the worker continued there after its last
    // commit.
    const uint64_t last = worker.next - 1;
    const uint64_t position =
        last * kLogBlockBytes + sizeof(LogBlockHeader) + worker.ring.block(last).header.length;
    // Release: the logger that loads this position also sees the blocks before it. They are
    // complete (WorkerLogControl), or seal_blocks completes them before they are written.
    worker.ring.control->committed.store(position, std::memory_order_release);
  }
  return records;
}

void ReplayWorkers::seal_blocks() {
  for (Worker& worker : workers_) {
    for (; worker.sealed < worker.next; ++worker.sealed)
      seal_block(worker.ring.block(worker.sealed));
  }
}

std::vector<EpochLogger::Source> ReplayWorkers::sources() const {
  const auto* slots = reinterpret_cast<const WorkerSlot*>(slots_.bytes());
  std::vector<EpochLogger::Source> sources;
  for (size_t i = 0; i < workers_.size(); ++i) sources.push_back({slots + i, workers_[i].ring});
  return sources;
}

}  // namespace atolldb::log_bench
