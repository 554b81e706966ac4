#include "coordinator/snapshots/log_volume.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "engine/format/log_block.h"
#include "engine/log/log_files.h"
#include "engine/log/log_reader.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

bool is_written(const File& file, LogBlock& block, uint64_t at) {
  const auto count = file.read(at * kLogBlockBytes, std::as_writable_bytes(std::span(&block, 1)));
  return count && *count == kLogBlockBytes && block.header.magic == kLogBlockMagic;
}

/// Returns the number of written blocks, by a binary search: blocks are written in order, so all
/// written ones come first.
uint64_t written_blocks(const File& file) {
  const auto bytes = file.size();
  if (!bytes) return 0;
  const auto block = std::make_unique<LogBlock>();
  uint64_t written = 0;                    // lower bound of the number of written blocks
  uint64_t end = *bytes / kLogBlockBytes;  // upper bound of the number of written blocks
  if (end != 0 && is_written(file, *block, end - 1)) return end;
  while (written < end) {
    const uint64_t middle = written + (end - written) / 2;
    if (is_written(file, *block, middle)) {
      written = middle + 1;
    } else {
      end = middle;
    }
  }
  CHECK(written * kLogBlockBytes <= *bytes);
  return written;
}

/// Returns the number of blocks that mappers skip, because the newest snapshot covers them.
uint64_t skipped_blocks(FileSystem& file_system, const LogStream& stream) {
  auto reader = LogReader::open(file_system, stream, CoveredBlocks::skip);
  if (!reader) return 0;
  // Reads twice: the reader first returns the header of the first file, and skips blocks only after
  // that.
  for (int block = 0; block < 2; ++block) {
    const auto next = reader->next();
    if (!next || *next == nullptr) break;
  }
  return reader->skipped_bytes() / kLogBlockBytes;
}

}  // namespace

uint64_t log_volume(FileSystem& file_system, const std::vector<PlannedStream>& streams) {
  uint64_t blocks = 0;
  for (const auto& [stream, last_epoch] : streams) {
    uint64_t written = 0;
    const auto places = log_files_in(file_system, {stream.directory});
    if (!places) continue;
    for (const LogFilePlace& place : *places) {
      const bool is_of_stream = place.node == stream.node &&
                                place.name.incarnation == stream.incarnation &&
                                place.name.logger == stream.logger;
      if (!is_of_stream) continue;
      const auto file = file_system.open_for_reading(path_of(place));
      if (file) written += written_blocks(**file);
    }
    blocks += written - std::min(written, skipped_blocks(file_system, stream));
  }
  return blocks * kLogBlockBytes;
}

uint64_t log_file_bytes(FileSystem& file_system, const Config& config) {
  std::set<std::string> directories = {config.cluster.data_dir};
  for (const std::string& directory : node_directories(config)) directories.insert(directory);
  const auto places = log_files_in(file_system, directories);
  if (!places) return 0;
  uint64_t bytes = 0;
  for (const LogFilePlace& place : *places) {
    const auto file = file_system.open_for_reading(path_of(place));
    if (file) bytes += written_blocks(**file) * kLogBlockBytes;
  }
  return bytes;
}

}  // namespace atolldb
