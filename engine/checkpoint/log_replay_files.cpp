#include "engine/checkpoint/log_replay_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

LogFilePlace replay_place(const LogStream& stream, uint32_t ordinal) {
  return {stream.directory, stream.node, {stream.incarnation, stream.logger, ordinal}};
}

std::unexpected<Error> damaged_log_file(const std::string& file, const std::string& reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("{}: {}: restore a backup, or start without the damaged log with "
                                "`atoll up --salvage`",
                                file, reason));
}

/// The error of a file whose header cannot be read, and whose epochs up to last_epoch count.
std::unexpected<Error> damaged_header(const std::string& file, uint64_t last_epoch) {
  return damaged_log_file(file, fmt::format("offset 0: the file is missing or has a damaged "
                                            "header, and the log up to epoch {} counts",
                                            last_epoch));
}

/// Returns the ordinals of the stream's files, ascending.
Result<std::vector<uint32_t>> ordinals_of(FileSystem& file_system, const LogStream& stream) {
  std::vector<uint32_t> ordinals;
  const std::string directory = node_directory(stream.directory, stream.node);
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) return ordinals;
  ATOLL_ASSIGN(const auto names, file_system.list(directory));
  for (const std::string& name : names) {
    const auto parsed = parse_log_file_name(name);
    if (parsed && parsed->incarnation == stream.incarnation && parsed->logger == stream.logger) {
      ordinals.push_back(parsed->ordinal);
    }
  }
  std::ranges::sort(ordinals);
  return ordinals;
}

/// Appends the needed files of one stream, ascending.
Result<void> add_files_of(FileSystem& file_system, const PlannedStream& planned,
                          uint64_t first_epoch, std::vector<LogReplayFile>& files) {
  const LogStream& stream = planned.stream;
  ATOLL_ASSIGN(const auto ordinals, ordinals_of(file_system, stream));
  const size_t begin = files.size();
  uint64_t reached = stream.start_epoch.value_or(1) - 1;  // all log up to this epoch is there
  std::string missing = path_of(replay_place(stream, 0));
  for (const uint32_t ordinal : ordinals) {
    const bool follows = files.size() == begin || files.back().ordinal + 1 == ordinal;
    if (!follows) break;
    ATOLL_ASSIGN(const auto header, begin_of(file_system, replay_place(stream, ordinal)));
    missing = path_of(replay_place(stream, ordinal));
    if (!header) break;
    if (header->last_epoch_before < first_epoch) {
      // All earlier files have epochs that do not count.
      files.resize(begin);
    } else if (files.size() == begin && ordinal != 0) {
      return damaged_log_file(path_of(replay_place(stream, ordinal - 1)),
                              "the file is missing, and held epochs that no checkpoint covers");
    }
    files.push_back(
        {stream, ordinal, first_epoch, planned.last_epoch, header->closed_epoch, false});
    reached = planned.last_epoch;  // read_log_file checks the rest
    missing.clear();
  }
  if (reached < planned.last_epoch) {
    return damaged_header(missing, planned.last_epoch);
  }
  if (files.size() != begin) files.back().is_last = true;
  return {};
}

}  // namespace

Result<std::vector<LogReplayFile>> log_files_to_replay(FileSystem& file_system,
                                                       const std::vector<PlannedStream>& streams,
                                                       uint64_t first_epoch, ReplayOrder order) {
  CHECK(first_epoch != 0);
  std::vector<LogReplayFile> files;
  for (const PlannedStream& stream : streams) {
    CHECK(stream.last_epoch >= first_epoch);
    ATOLL_TRY(add_files_of(file_system, stream, first_epoch, files));
  }
  std::ranges::stable_sort(files, {}, &LogReplayFile::closed_before);
  if (order == ReplayOrder::newest_first) std::ranges::reverse(files);
  return files;
}

Result<void> read_log_file(FileSystem& file_system, const LogReplayFile& file,
                           const LogBlockVisit& visit, uint64_t& bytes, uint64_t& outside) {
  ATOLL_ASSIGN(LogReader reader, LogReader::open_one_file(file_system, file.stream, file.ordinal));
  const std::string path = reader.file();
  for (;;) {
    ATOLL_ASSIGN(const LogBlock* block, reader.next());
    if (block == nullptr) break;
    bytes += kLogBlockBytes;
    if (block->header.type != LogBlockType::records) continue;
    const uint64_t epoch = block->header.epoch;
    const bool is_early = epoch < file.first_epoch && !fault::replay_covered_epochs;
    const bool is_late = epoch > file.last_epoch && !fault::replay_beyond_cut;
    if (is_early || is_late) {
      ++outside;
      continue;
    }
    ATOLL_TRY(visit(*block));
  }
  const LogEnd& end = reader.end();
  CHECK(file.first_epoch <= file.last_epoch);
  const bool is_complete = end.file != path && !end.is_defect;
  // After the last epoch that counts, a defect is the torn tail of a crash. A complete file that is
  // not the last of its stream ends anywhere.
  if (reader.closed_epoch() >= file.last_epoch || (is_complete && !file.is_last)) return {};
  if (is_complete) return damaged_header(end.file, file.last_epoch);
  return damaged_log_file(path, fmt::format("offset {}: {}, and the log up to epoch {} counts",
                                            end.offset, end.reason, file.last_epoch));
}

}  // namespace atolldb
