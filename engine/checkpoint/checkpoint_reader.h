// Reads one file of a checkpoint and verifies every block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_metadata.h"
#include "shared/base/check.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

/// Returns the blocks of records of one file, in file order.
class CheckpointReader {
 public:
  /// Opens file number `file` of `metadata.files`. REQUIRES: `file_system` and `metadata` outlive
  /// the reader. Errors: those of the file system; code corruption if the file is missing.
  static Result<CheckpointReader> open(FileSystem& file_system, const CheckpointMetadata& metadata,
                                       size_t file);

  /// Returns the header of the next block of records, or null after the last one. The block is
  /// fully verified and valid until the next call. Error: code corruption, with file, offset and
  /// reason, for a block or a file that is not as the metadata says.
  Result<const CheckpointBlockHeader*> next();

  /// Calls `visit(const LogRecord&)` for each record of a block that next() has returned.
  template <typename Visit>
  static void for_each_record(const CheckpointBlockHeader& block, Visit visit) {
    const auto* payload = reinterpret_cast<const std::byte*>(&block + 1);
    DCHECK(block.type == CheckpointBlockType::records);
    for (uint32_t offset = 0; offset < block.length;) {
      const auto& record = *reinterpret_cast<const LogRecord*>(payload + offset);
      DCHECK(record.length != 0 && record.length <= block.length - offset);
      visit(record);
      offset += record.length;
    }
  }

  const std::string& path() const { return path_; }
  /// Returns the number of bytes that were read and verified.
  uint64_t bytes() const { return position_; }

 private:
  CheckpointReader(const CheckpointMetadata& metadata, const CheckpointFileInfo& info)
      : metadata_(&metadata), info_(&info) {}

  Result<const CheckpointBlockHeader*> read_block();
  /// Reads so that at least `bytes` bytes from `position_` on are in the buffer. Returns false if
  /// the file ends before.
  Result<bool> fill(uint64_t bytes);
  const CheckpointBlockHeader& header_at_position() {
    DCHECK(position_ >= buffer_offset_ && position_ < buffer_offset_ + buffer_bytes_);
    return *reinterpret_cast<const CheckpointBlockHeader*>(buffer_.bytes().data() +
                                                           (position_ - buffer_offset_));
  }
  /// Returns why the block at `position_` is damaged, or null if it is good.
  const char* defect_of(const CheckpointBlockHeader& block) const;
  std::unexpected<Error> damaged(const std::string& reason) const;

  static constexpr uint64_t kBufferBytes = uint64_t{2} << 20;
  static_assert(kBufferBytes >= 2 * kMaxCheckpointBlockBytes);

  const CheckpointMetadata* metadata_;
  const CheckpointFileInfo* info_;
  std::unique_ptr<File> file_;
  std::string path_;
  IoBuffer buffer_{kBufferBytes};
  uint64_t buffer_offset_ = 0;
  uint64_t buffer_bytes_ = 0;
  uint64_t position_ = 0;  // of the next block
  uint64_t sequence_ = 0;
  uint64_t records_ = 0;
  uint32_t checksum_ = 0;
};

}  // namespace atolldb
