// Checkpoints of the commits of an oracle, and the content that a checkpoint and the log after it
// have. Both are simple models: they use the formats of the engine, and neither its walks nor its
// replay.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/checkpoint/log_replay_files.h"
#include "shared/base/try.h"
#include "shared/config/config.h"
#include "tests/coordinator/durability/commit_oracle.h"

namespace atolldb::test {

/// Reverses the bytes of the index of an array. The log has it in the order of the machine, and the
/// oracle with the highest byte first.
inline std::string reversed(std::string index) {
  std::ranges::reverse(index);
  return index;
}

/// Writes the files of a checkpoint on all nodes. Each record is as of an epoch that `random`
/// chooses among those from the one before the replay epoch up to the end epoch, as walks amid
/// transactions find it. REQUIRES: `metadata` is complete except for files and storages.
inline Result<void> write_fuzzy_files(FileSystem& files, const Config& config,
                                      const CommitOracle& oracle, std::mt19937_64& random,
                                      CheckpointMetadata& metadata) {
  CHECK(metadata.replay_epoch <= metadata.end_epoch);
  std::vector<CommitOracle::Contents> states;
  for (uint64_t epoch = metadata.replay_epoch - 1; epoch <= metadata.end_epoch; ++epoch) {
    states.push_back(oracle.contents(epoch));
  }
  std::vector<CheckpointWriter> writers;
  for (uint16_t node = 0; node < config.nodes.size(); ++node) {
    CheckpointWriterSettings settings;
    settings.directory = log_directory(config, node, static_cast<uint32_t>(metadata.id));
    settings.node = node;
    settings.files = 2;
    settings.checkpoint = metadata.id;
    settings.replay_epoch = metadata.replay_epoch;
    settings.cluster_uuid = metadata.cluster_uuid;
    settings.sync_bytes = uint64_t{64} << 10;
    ATOLL_ASSIGN(auto writer, CheckpointWriter::create(files, settings));
    writers.push_back(std::move(writer));
  }
  for (const DdlRecord& storage : oracle.storages()) {
    metadata.storages.push_back({storage.storage_id, storage.type, storage.name});
    std::set<std::string> keys;
    for (CommitOracle::Contents& state : states) {
      for (const auto& [key, record] : state[storage.storage_id]) keys.insert(key);
    }
    const bool is_heap = storage.type == StorageType::sequential;
    for (const std::string& key : keys) {
      const auto& content = states[random() % states.size()][storage.storage_id];
      const auto found = content.find(key);
      if (found == content.end()) continue;
      const auto& [payload, version] = found->second;
      // The log has these appends as a whole (R90).
      if (is_heap && Vid(version).epoch() >= metadata.replay_epoch) continue;
      CheckpointWriter& writer = writers[std::hash<std::string>()(key) % writers.size()];
      const std::string logged = is_heap                              ? ""
                                 : storage.type == StorageType::array ? reversed(key)
                                                                      : key;
      LogRecord& record = writer.begin_record(is_heap ? LogType::append : LogType::insert,
                                              storage.storage_id, std::as_bytes(std::span(logged)),
                                              static_cast<uint32_t>(payload.size()));
      std::memcpy(record.payload(), payload.data(), payload.size());
      writer.end_record(Vid(version), static_cast<uint32_t>(payload.size()));
      ATOLL_TRY(writer.write_if_full());
    }
  }
  for (CheckpointWriter& writer : writers) {
    ATOLL_ASSIGN(const auto infos, writer.finish());
    metadata.files.insert(metadata.files.end(), infos.begin(), infos.end());
  }
  return {};
}

/// Restores the content of a checkpoint and the log after it.
class RestoredContent {
 public:
  explicit RestoredContent(const std::vector<DdlRecord>& storages) {
    for (const DdlRecord& storage : storages) types_[storage.storage_id] = storage.type;
  }

  Result<void> add_checkpoint(FileSystem& files, const CheckpointMetadata& metadata) {
    for (size_t file = 0; file < metadata.files.size(); ++file) {
      ATOLL_ASSIGN(CheckpointReader reader, CheckpointReader::open(files, metadata, file));
      for (;;) {
        ATOLL_ASSIGN(const CheckpointBlockHeader* block, reader.next());
        if (block == nullptr) break;
        CheckpointReader::for_each_record(*block, [&](const LogRecord& record) {
          const Change change = change_of(record);
          contents_[change.storage][change.key] = {change.payload, change.version};
        });
      }
    }
    return {};
  }
  Result<void> add_log(FileSystem& files, const std::vector<PlannedStream>& streams,
                       uint64_t first_epoch) {
    ATOLL_ASSIGN(const auto logs, log_files_to_replay(files, streams, first_epoch));
    for (const LogReplayFile& log : logs) {
      uint64_t bytes = 0;
      uint64_t outside = 0;
      const auto visit = [&](const LogBlock& block) -> Result<void> {
        for_each_record(block, [&](const LogRecord& record) {
          if (record.type != LogType::filler) changes_.push_back(change_of(record));
        });
        return {};
      };
      ATOLL_TRY(read_log_file(files, log, visit, bytes, outside));
    }
    return {};
  }

  /// Applies the log in the order of the commits. Returns the content, or an error if there is an
  /// update without a record.
  Result<CommitOracle::Contents> take() {
    std::ranges::sort(changes_, {}, &Change::version);
    std::set<std::pair<uint32_t, std::string>> lacking;
    for (const Change& change : changes_) {
      CommitOracle::Content& content = contents_[change.storage];
      const auto found = content.find(change.key);
      if (found != content.end() && found->second.version >= change.version) continue;
      if (change.type == LogType::erase) {
        content.erase(change.key);
        lacking.erase({change.storage, change.key});
      } else if (change.type != LogType::update) {
        content[change.key] = {change.payload, change.version};
      } else if (found != content.end()) {
        found->second.payload.replace(change.offset, change.payload.size(), change.payload);
        found->second.version = change.version;
      } else if (types_[change.storage] == StorageType::array) {
        std::string payload(CommitOracle::kArrayPayload, '\0');
        payload.replace(change.offset, change.payload.size(), change.payload);
        content[change.key] = {payload, change.version};
      } else {
        lacking.insert({change.storage, change.key});  // unless a newer deletion follows (R94)
      }
    }
    if (lacking.empty()) return std::move(contents_);
    return make_error(ExitCode::failed, "WRONG: the log has an update without a record");
  }

 private:
  struct Change {
    uint32_t storage = 0;
    LogType type = LogType::insert;
    std::string key;  // as the oracle has it
    uint64_t version = 0;
    uint16_t offset = 0;
    std::string payload;
  };

  Change change_of(const LogRecord& record) {
    auto& mutable_record = const_cast<LogRecord&>(record);
    Change change;
    change.storage = record.storage_id;
    change.type = record.type;
    change.key.assign(reinterpret_cast<const char*>(record.key()), record.key_bytes);
    change.version = Vid(record.vid).version();
    change.offset = record.payload_offset;
    change.payload.assign(reinterpret_cast<const char*>(mutable_record.payload()),
                          record.payload_bytes);
    const StorageType type = types_[change.storage];
    if (type == StorageType::array) change.key = reversed(change.key);
    if (type == StorageType::sequential) change.key = change.payload;
    return change;
  }

  std::map<uint32_t, StorageType> types_;
  CommitOracle::Contents contents_;
  std::vector<Change> changes_;
};

}  // namespace atolldb::test
