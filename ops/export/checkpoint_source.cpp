#include "ops/export/checkpoint_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/log_replay_files.h"
#include "engine/format/crc32c.h"
#include "engine/log/ddl_log.h"
#include "engine/log/log_scan.h"
#include "ops/backup/source_state.h"
#include "ops/backup/take_backup.h"
#include "ops/export/folded_storage.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/config/config_values.h"
#include "shared/file/read_ahead.h"

namespace atolldb {
namespace {

using FoldedStorages = std::map<uint32_t, FoldedStorage>;  // by id
/// Epochs up to which streams of the log were read, by incarnation, node and logger.
using ReadStreams = std::map<std::array<uint64_t, 3>, uint64_t>;

/// Greater than the epoch of each DDL record.
constexpr uint64_t kEndOfDdlLog = UINT64_MAX;

/// Returns the storage with this name at the end of the epoch, or nothing.
std::optional<ExportedStorage> storage_at(const std::vector<DdlRecord>& ddl,
                                          const std::string& name, uint64_t epoch) {
  std::optional<ExportedStorage> found;
  for (const DdlRecord& record : ddl) {
    if (record.epoch > epoch) continue;
    if (record.operation == DdlOperation::create_storage && record.name == name) {
      found = {record.storage_id, record.type, record.payload_bytes, record.record_count};
    }
    const bool is_drop = record.operation == DdlOperation::drop_storage;
    if (is_drop && found && found->id == record.storage_id) found.reset();
  }
  return found;
}

/// Returns the storage with this name that the export has, or nothing. DDL records are durable
/// before their epoch is. A start-up restores what the whole DDL log says, and so does an export of
/// a stopped cluster. In a running cluster a storage that was created after the last epoch is empty
/// in that epoch.
std::optional<ExportedStorage> exported_storage(const std::vector<DdlRecord>& ddl,
                                                const std::string& name, uint64_t last_epoch,
                                                bool is_stopped) {
  if (!is_stopped) {
    if (const auto found = storage_at(ddl, name, last_epoch)) return found;
  }
  return storage_at(ddl, name, kEndOfDdlLog);
}

/// Returns the storage with this id, or nothing.
std::optional<ExportedStorage> storage_with_id(const std::vector<DdlRecord>& ddl, uint32_t id) {
  const auto created = std::ranges::find_if(ddl, [&](const DdlRecord& record) {
    return record.operation == DdlOperation::create_storage && record.storage_id == id;
  });
  if (created == ddl.end()) return std::nullopt;
  return ExportedStorage{id, created->type, created->payload_bytes, created->record_count};
}

/// Returns the storages of the tables, in order. An export that continues has the same storages as
/// before, even if their tables have other ones now.
Result<std::vector<ExportedStorage>> find_storages(const CheckpointSourceRequest& request,
                                                   const std::vector<DdlRecord>& ddl,
                                                   uint64_t last_epoch) {
  const auto& begun = request.begun;
  CHECK(!begun || begun->storages.size() == request.tables.size());
  const bool is_stopped = !request.durable_epoch.has_value();
  std::vector<ExportedStorage> storages;
  for (size_t i = 0; i < request.tables.size(); ++i) {
    const TableSchema& table = *request.tables[i];
    const auto found = begun ? storage_with_id(ddl, begun->storages[i])
                             : exported_storage(ddl, table.storage, last_epoch, is_stopped);
    if (!found) {
      return unfit_table(table, fmt::format("there is no such storage in epoch {}: correct the "
                                            "schema, or choose tables with --table",
                                            last_epoch));
    }
    ATOLL_TRY(check_table(table, *found));
    storages.push_back(*found);
  }
  return storages;
}

/// Returns the streams of the log with epochs from `first` to `last`.
std::vector<PlannedStream> streams_between(const Savepoint& savepoint, uint64_t first,
                                           uint64_t last) {
  std::vector<PlannedStream> streams;
  for (const Incarnation& incarnation : savepoint.incarnations) {
    const uint64_t end = std::min(incarnation.cut_epoch.value_or(last), last);
    if (end < std::max(first, incarnation.start_epoch)) continue;
    for (const LoggerPlace& place : incarnation.loggers) {
      streams.push_back({stream_of(savepoint, incarnation, place), end});
    }
  }
  return streams;
}

/// Reads all records of the wanted storages.
class FilesFold {
 public:
  FilesFold(FileSystem& file_system, const CheckpointSourceRequest& request,
            FoldedStorages& storages)
      : files_(file_system, ahead_), request_(request), storages_(storages) {}

  Result<void> read_checkpoint(const CheckpointMetadata& metadata) {
    for (size_t file = 0; file < metadata.files.size(); ++file) {
      ATOLL_ASSIGN(CheckpointReader reader, CheckpointReader::open(files_, metadata, file));
      const uint64_t before = bytes_;
      for (;;) {
        ATOLL_ASSIGN(const CheckpointBlockHeader* block, reader.next());
        if (block == nullptr) break;
        CheckpointReader::for_each_record(*block, [&](const LogRecord& record) { add(record); });
        bytes_ = before + reader.bytes();
        ATOLL_TRY(check(reader.path()));
      }
    }
    return {};
  }

  Result<void> read_log(const std::vector<PlannedStream>& streams, uint64_t first) {
    ATOLL_ASSIGN(const auto files, log_files_to_replay(files_, streams, first));
    uint64_t outside = 0;
    for (const LogReplayFile& file : files) {
      const std::string path =
          path_of(LogFilePlace{file.stream.directory,
                               file.stream.node,
                               {file.stream.incarnation, file.stream.logger, file.ordinal}});
      bool has_records = false;
      const auto visit = [&](const LogBlock& block) -> Result<void> {
        has_records = true;
        for_each_record(block, [&](const LogRecord& record) {
          if (record.type != LogType::filler) add(record);
        });
        return check(path);
      };
      ATOLL_TRY(read_log_file(files_, file, visit, bytes_, outside));
      const LogStream& stream = file.stream;
      if (!has_records) continue;
      read_streams_[{stream.incarnation, stream.node, stream.logger}] = file.last_epoch;
    }
    return {};
  }

  /// Returns the streams with blocks of records of the epochs that count.
  const ReadStreams& read_streams() const { return read_streams_; }

 private:
  void add(const LogRecord& record) {
    const auto found = storages_.find(record.storage_id);
    if (found == storages_.end() || defect_ != nullptr) return;
    defect_ = found->second.add(record);
    defect_storage_ = record.storage_id;
  }

  Result<void> check(const std::string& path) {
    if (defect_ != nullptr) {
      return make_error(ExitCode::corruption, fmt::format("{}: a record of storage {} {}", path,
                                                          defect_storage_, defect_));
    }
    ATOLL_TRY(check_memory());
    return request_.on_progress ? request_.on_progress(bytes_) : Result<void>();
  }

  Result<void> check_memory() const {
    uint64_t held = 0;
    for (const auto& [id, storage] : storages_) held += storage.memory_bytes();
    if (held <= request_.memory_limit) return {};
    return make_error(
        ExitCode::resources,
        fmt::format("export: the records of the chosen tables need more than {} of memory: choose "
                    "fewer tables with --table, or a larger limit with --memory",
                    format_rounded_size(request_.memory_limit)));
  }

  ReadAhead ahead_;
  ReadAheadFileSystem files_;
  const CheckpointSourceRequest& request_;
  FoldedStorages& storages_;
  uint64_t bytes_ = 0;
  ReadStreams read_streams_;
  const char* defect_ = nullptr;
  uint32_t defect_storage_ = 0;
};

class FoldedSource final : public ExportSource {
 public:
  /// Adds a table and its storage.
  void add(const TableSchema& table, const ExportedStorage& storage) {
    tables_[table.name] = storage.id;
    storages_.try_emplace(storage.id, storage);
  }
  FoldedStorages& storages() { return storages_; }

  Result<std::vector<WalkRange>> split(const TableSchema& table, uint32_t count) const override {
    CHECK(count != 0);
    const auto rows = folded_of(table).rows();
    std::vector<WalkRange> ranges(1);
    for (uint32_t part = 1; part < count; ++part) {
      const size_t at = rows.size() * part / count;
      // Rows with the same number are in the same range.
      if (at >= rows.size() || rows[at].number <= ranges.back().low) continue;
      ranges.back().last = rows[at].number - 1;
      ranges.push_back({rows[at].number, UINT64_MAX});
    }
    return ranges;
  }

  Result<void> walk(const TableSchema& table, const WalkRange& range,
                    const RecordVisitor& visit) const override {
    const FoldedStorage& folded = folded_of(table);
    const auto rows = folded.rows();
    auto row = std::ranges::lower_bound(rows, range.low, {}, &FoldedStorage::Row::number);
    for (; row != rows.end() && row->number <= range.last; ++row) {
      ATOLL_TRY(visit({folded.walked_key(*row), std::as_bytes(std::span(row->payload)), row->vid}));
    }
    return {};
  }

 private:
  /// REQUIRES: the request has named the table.
  const FoldedStorage& folded_of(const TableSchema& table) const {
    const auto named = tables_.find(table.name);
    CHECK(named != tables_.end());
    return storages_.at(named->second);
  }

  std::map<std::string, uint32_t> tables_;  // ids of the storages, by name of the table
  FoldedStorages storages_;
};

/// Returns the last epoch that counts. `end_epoch`: that of the checkpoint, or 0.
Result<uint64_t> last_epoch_of(FileSystem& file_system, const CheckpointSourceRequest& request,
                               uint64_t end_epoch) {
  Savepoint savepoint = request.savepoint;
  savepoint.durable_epoch = std::max(savepoint.durable_epoch, end_epoch);
  uint64_t last = end_epoch;
  for (const Incarnation& incarnation : savepoint.incarnations) {
    ATOLL_ASSIGN(const uint64_t durable,
                 durable_epoch_of(file_system, savepoint, incarnation, request.durable_epoch));
    last = std::max(last, durable);
  }
  return last;
}

/// Streams without records do not count, because a start-up may remove their incarnations.
uint32_t crc_of_input(const FoldedStorages& storages, const ReadStreams& streams) {
  std::vector<uint64_t> words;
  for (const auto& [id, storage] : storages) words.push_back(id);
  for (const auto& [stream, last_epoch] : streams) {
    words.insert(words.end(), stream.begin(), stream.end());
    words.push_back(last_epoch);
  }
  return crc32c(std::as_bytes(std::span(words)));
}

/// Returns the last epoch of the export. `end_epoch`: that of the checkpoint, or 0.
Result<uint64_t> exported_epoch(FileSystem& file_system, const CheckpointSourceRequest& request,
                                uint64_t end_epoch) {
  ATOLL_ASSIGN(const uint64_t last, last_epoch_of(file_system, request, end_epoch));
  if (!request.begun) return last;
  const uint64_t epoch = request.begun->epoch;
  if (epoch >= end_epoch && epoch <= last) return epoch;
  return make_error(ExitCode::identity,
                    fmt::format("export: {} has the commits up to epoch {} now, but the export is "
                                "of epoch {}: export into a new directory",
                                request.data_dir, last, epoch));
}

Result<CheckpointSource> fold_files(FileSystem& file_system,
                                    const CheckpointSourceRequest& request) {
  std::optional<CheckpointMetadata> checkpoint;
  if (request.checkpoint != 0) {
    ATOLL_ASSIGN(checkpoint,
                 read_checkpoint_metadata(file_system, request.data_dir, request.checkpoint));
  }
  const uint64_t first = checkpoint ? checkpoint->replay_epoch : 1;
  ATOLL_ASSIGN(const uint64_t last,
               exported_epoch(file_system, request, checkpoint ? checkpoint->end_epoch : 0));
  const Savepoint& savepoint = request.savepoint;
  ATOLL_ASSIGN(auto ddl, read_ddl_log(file_system, request.data_dir, savepoint.cluster_uuid,
                                      savepoint.ddl_records));
  ATOLL_ASSIGN(const auto storages, find_storages(request, ddl.records, last));
  auto source = std::make_unique<FoldedSource>();
  std::vector<uint32_t> ids;
  for (size_t i = 0; i < storages.size(); ++i) {
    source->add(*request.tables[i], storages[i]);
    ids.push_back(storages[i].id);
  }
  const auto streams = streams_between(savepoint, first, last);
  FilesFold fold(file_system, request, source->storages());
  if (checkpoint) ATOLL_TRY(fold.read_checkpoint(*checkpoint));
  if (last >= first) ATOLL_TRY(fold.read_log(streams, first));
  const uint32_t input_crc32c = crc_of_input(source->storages(), fold.read_streams());
  if (request.begun && request.begun->input_crc32c != input_crc32c) {
    return make_error(ExitCode::identity,
                      fmt::format("export: {}: storages or logs differ from those with which the "
                                  "export has begun: export into a new directory",
                                  request.data_dir));
  }
  for (auto& [id, storage] : source->storages()) {
    const char* defect = storage.finish();
    if (defect == nullptr) continue;
    return make_error(ExitCode::corruption,
                      fmt::format("{}: the log of storage {} {}: restore a backup",
                                  request.data_dir, id, defect));
  }
  return CheckpointSource{std::move(source), last, input_crc32c, std::move(ids)};
}

}  // namespace

Result<CheckpointSource> read_checkpoint_source(FileSystem& file_system,
                                                const CheckpointSourceRequest& request) {
  CHECK(request.savepoint.scheme == DurabilityScheme::silor);
  ATOLL_TRY(refuse_unkept(request.savepoint, request.data_dir, request.checkpoint));
  auto folded = fold_files(file_system, request);
  if (folded) return folded;
  // If the cluster has given up the pin meanwhile, deleted files look like damage.
  const auto now = read_live_savepoint(file_system, request.data_dir);
  if (now) ATOLL_TRY(refuse_unkept(*now, request.data_dir, request.checkpoint));
  return folded;
}

}  // namespace atolldb
