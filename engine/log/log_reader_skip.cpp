// Skips blocks that a snapshot covers. File headers and a binary search find them, so only a few
// blocks are read, whatever the length of the files. Damage to skipped blocks does no harm: the
// snapshot has their records. If damage misleads the search, the reader begins at an earlier block.
#include <algorithm>
#include <cstring>

#include "engine/log/log_owner.h"
#include "engine/log/log_reader.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// The search for a marker goes back at most this far; otherwise the blocks are read.
constexpr uint64_t kMostBlocksBack = 4096;

}  // namespace

Result<uint32_t> LogReader::find_first_file() const {
  if (!may_skip_) return ordinals_.front();
  for (auto at = ordinals_.rbegin(); at != ordinals_.rend(); ++at) {
    const LogFilePlace place = {
        stream_.directory, stream_.node, {stream_.incarnation, stream_.logger, *at}};
    ATOLL_ASSIGN(auto begin, begin_of(*file_system_, place));
    if (!begin || (stream_.cluster_uuid && begin->cluster_uuid != *stream_.cluster_uuid)) {
      continue;
    }
    // The conditions of chain_first_header.
    if (begin->last_epoch_before >= begin->closed_epoch &&
        begin->last_epoch_before <= stream_.covered_epoch) {
      return *at;
    }
  }
  return ordinals_.front();
}

bool LogReader::is_covered(const LogBlock& block, uint64_t position) const {
  const LogBlockHeader& header = block.header;
  return header.type != LogBlockType::file_header && header.epoch <= stream_.covered_epoch &&
         header.file_ordinal == ordinal_ &&
         header.sequence == ordinal_ * blocks_per_file_ + position && defect_of(block) == nullptr;
}

Result<void> LogReader::skip_covered_blocks() {
  skipped_blocks_ = (first_ordinal_ - ordinals_.front()) * blocks_per_file_;
  const auto read = [&](uint64_t first, uint64_t count) -> Result<uint64_t> {
    buffer_offset_ = first * kLogBlockBytes;
    auto bytes = file_->read(buffer_offset_, buffer_.bytes().first(count * kLogBlockBytes));
    buffer_bytes_ = bytes.value_or(0);
    if (!bytes) return bytes;
    return *bytes / kLogBlockBytes;
  };
  const auto block_at = [&](uint64_t index) -> const LogBlock& {
    return reinterpret_cast<const LogBlock*>(buffer_.bytes().data())[index];
  };
  // Epochs do not descend, so a binary search finds the last covered block.
  uint64_t last = 0;
  for (uint64_t end = blocks_per_file_; end - last > 1;) {
    const uint64_t middle = last + (end - last) / 2;
    ATOLL_ASSIGN(auto count, read(middle, 1));
    const bool is_before = count == 1 && is_covered(block_at(0), middle);
    (is_before ? last : end) = middle;
  }
  // Only a marker tells which epochs are closed: find the last one up to that block.
  for (uint64_t end = last + 1; end > 1 && last + 1 - end <= kMostBlocksBack;) {
    const uint64_t first = end > kBlocksAtOnce ? end - kBlocksAtOnce : 1;
    ATOLL_ASSIGN(auto count, read(first, end - first));
    for (uint64_t index = std::min(count, end - first); index-- > 0;) {
      const LogBlockHeader& header = block_at(index).header;
      if (header.type != LogBlockType::marker || !is_covered(block_at(index), first + index)) {
        continue;
      }
      // next() reads the marker as the next block of the chain.
      position_ = first + index;
      skipped_blocks_ += position_ - 1;
      next_sequence_ = header.sequence;
      closed_epoch_ = std::max(closed_epoch_, header.epoch - 1);
      last_epoch_ = std::max(last_epoch_, closed_epoch_);
      return {};
    }
    end = first;
  }
  return {};
}

}  // namespace atolldb
