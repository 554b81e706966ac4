// Reads all records of a checkpoint.
#pragma once

#include <functional>
#include <string>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/checkpoint/checkpoint_reader.h"

namespace atolldb::test {

inline std::string text_of(const std::byte* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

/// Calls `use` for each record of all files. Returns an empty text, or the error of the first
/// damaged file.
inline std::string read_checkpoint_files(FileSystem& files, const CheckpointMetadata& metadata,
                                         const std::function<void(const LogRecord&)>& use) {
  for (size_t file = 0; file < metadata.files.size(); ++file) {
    auto reader = CheckpointReader::open(files, metadata, file);
    if (!reader) return reader.error().message;
    for (;;) {
      auto block = reader->next();
      if (!block) return block.error().message;
      if (*block == nullptr) break;
      CheckpointReader::for_each_record(**block, use);
    }
  }
  return {};
}

}  // namespace atolldb::test
