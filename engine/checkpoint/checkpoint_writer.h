// Writes the files of one checkpoint thread: blocks of records, dealt to its files in turn. Source:
// [SILOR14] section 4.2.
//
// In a turn, a file gets as many bytes as it has already, but at least kCheckpointBlockBytes. It
// gets at most a quarter of `sync_bytes`, or kCheckpointTurnBytes if that is less. The turn ends
// with the block that reaches this limit, so a file may get nearly a block more. So the files of a
// small checkpoint have similar sizes. In a large one, few files have bytes that are not synced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/file/io_buffer.h"

namespace atolldb {

struct CheckpointWriterSettings {
  std::string directory;
  uint16_t node = 0;
  uint16_t writer = 0;  // number of the writer within its node
  uint32_t files = 1;   // so many threads can read the writer's part in a recovery
  uint64_t checkpoint = 0;
  uint64_t replay_epoch = 0;
  ClusterUuid cluster_uuid = {};
  uint64_t sync_bytes = kCheckpointSyncBytes;  // written between two syncs; 0: one at the end
  /// Called after each `pause_bytes` written, for example to sleep. The thread holds no page then.
  /// Null: nothing.
  std::function<void()> pause = nullptr;
  uint64_t pause_bytes = kCheckpointPauseBytes;
};

struct CheckpointWriterCounters {
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  uint64_t records = 0;
  uint64_t syncs = 0;  // number of file syncs
};

/// Thread: one at a time. The caller adds the records of a page without I/O. Between pages, when it
/// holds no page, it lets the writer write.
class CheckpointWriter {
 public:
  /// Creates the files. Replaces files of the same names, which a failed earlier attempt may have
  /// left. REQUIRES: `file_system` outlives the writer. Errors: those of the file system. On an
  /// error the function removes what it has created, as far as the file system allows.
  static Result<CheckpointWriter> create(FileSystem& file_system,
                                         CheckpointWriterSettings settings);

  /// Begins a record with room for `payload_bytes`. The caller fills its payload and calls
  /// `end_record`. If the caller begins another record instead, this one does not count. REQUIRES:
  /// `has_room` for the key and the payload (CHECK).
  LogRecord& begin_record(LogType type, uint32_t storage_id, Bytes key, uint32_t payload_bytes);
  /// `payload_bytes`: the final length, at most that of begin_record.
  void end_record(Vid vid, uint32_t payload_bytes);
  bool has_room(size_t key_bytes, uint32_t payload_bytes) const {
    return length_ + LogRecord::bytes(static_cast<uint32_t>(key_bytes), payload_bytes) <=
           kMaxCheckpointPayload;
  }

  /// Returns whether the block is large enough to be written.
  bool is_full() const { return length_ >= kCheckpointBlockBytes; }
  /// Writes the block if it is full, and pauses if that is due. The caller holds no page, and no
  /// begin epoch.
  Result<void> write_if_full();
  /// Writes the last block, and syncs all files and their directory. Returns the files.
  Result<std::vector<CheckpointFileInfo>> finish();
  /// Removes the files, as far as the file system allows.
  void discard();

  const CheckpointWriterCounters& counters() const { return counters_; }

 private:
  struct OpenFile {
    std::unique_ptr<File> file;
    CheckpointFileInfo info;
    uint64_t size = 0;      // bytes that the file system has allocated
    uint64_t sequence = 0;  // number of the next block
    bool is_synced = true;
  };

  CheckpointWriter(FileSystem& file_system, CheckpointWriterSettings settings)
      : file_system_(&file_system), settings_(std::move(settings)) {}

  std::string directory() const;
  std::string path_of(uint32_t number) const;
  Result<void> create_file(uint32_t number);
  void begin_turn(size_t number);
  Result<void> write_block();
  Result<void> write(OpenFile& file, CheckpointBlockType type);
  Result<void> sync_all();
  std::byte* payload() { return buffer_.bytes().data() + sizeof(CheckpointBlockHeader); }

  FileSystem* file_system_;
  CheckpointWriterSettings settings_;
  IoBuffer buffer_{kMaxCheckpointBlockBytes};
  std::vector<OpenFile> files_;
  size_t current_ = 0;        // number of the file that gets the next block
  uint64_t turn_end_ = 0;     // size of that file at which the next file takes its turn
  uint32_t length_ = 0;       // bytes of finished records in the buffer
  uint32_t records_ = 0;      // number of finished records in the buffer
  uint64_t unsynced_ = 0;     // bytes written since the last sync
  uint64_t unpaused_ = 0;     // bytes written since the last pause
  uint32_t begun_bytes_ = 0;  // room of the record that begin_record has begun
  CheckpointWriterCounters counters_;
};

}  // namespace atolldb
