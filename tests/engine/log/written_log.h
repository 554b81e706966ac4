// In-memory log with known content, which tests damage.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/log/log_scan.h"
#include "engine/log/log_writer.h"
#include "engine/recovery/checkpoint_start.h"
#include "engine/recovery/log_start.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb::test {

inline constexpr ClusterUuid kUuid = {9, 8, 7};

inline LogWriter make_writer(FileSystem& files, const LoggerPlace& place, uint64_t incarnation,
                             uint64_t start_epoch, uint64_t blocks_per_file = 8,
                             const ClusterUuid& uuid = kUuid) {
  auto writer = LogWriter::create(files, {place.directory, place.node, place.logger, incarnation,
                                          start_epoch, uuid, blocks_per_file * kLogBlockBytes});
  CHECK(writer.has_value());
  return *std::move(writer);
}

/// Appends `blocks` blocks with random records of `epoch`, and closes the epoch.
inline void write_epoch(LogWriter& writer, uint64_t epoch, size_t blocks, uint64_t durable_epoch,
                        std::mt19937_64& random) {
  BlockBuffer buffer(blocks);
  for (LogBlock& block : buffer.all()) fill_block(block, epoch, 1, random);
  CHECK(writer.append(std::array{buffer.all()}, durable_epoch).has_value());
  CHECK(writer.close_epoch(epoch, durable_epoch).has_value());
}

/// Random records (fill_block) belong to storages 1 ... kStorages. create_storages appends the DDL
/// records of those storages that the DDL log does not yet have.
inline constexpr uint32_t kStorages = 9;
inline void create_storages(FileSystem& files, const ClusterUuid& uuid,
                            const std::string& data_dir = "/data", uint32_t last = kStorages) {
  auto ddl = DdlLog::open(files, data_dir, uuid);
  CHECK(ddl.has_value());
  for (auto id = static_cast<uint32_t>(ddl->records().size()) + 1; id <= last; ++id) {
    const std::string name = "s" + std::to_string(id);
    CHECK(ddl->append({DdlOperation::create_storage, id, 1, name, StorageType::mastertree, 8, 0})
              .has_value());
  }
}

/// A data directory whose last incarnation has ended, as a start-up finds it.
struct DataDirectory {
  MemoryFileSystem files;
  LogStart start;
  std::vector<LogWriter> writers;
  std::mt19937_64 random{1};
  DurabilityScheme scheme = DurabilityScheme::gleaned;

  /// Runs a start-up. Returns its error, or an empty text.
  std::string begin(std::vector<LoggerPlace> places, uint64_t blocks_per_file = 8) {
    writers.clear();
    auto examined = examine(files, "/data");
    if (!examined) return examined.error().message;
    start = *std::move(examined);
    if (auto chosen = choose_scheme(start, "/data", scheme); !chosen) return chosen.error().message;
    if (auto stored = store_cut(files, "/data", start); !stored) return stored.error().message;
    if (start.is_new) create_storages(files, start.savepoint.cluster_uuid);
    for (const LoggerPlace& place : places) {
      writers.push_back(make_writer(files, place, start.incarnation, start.start_epoch,
                                    blocks_per_file, start.savepoint.cluster_uuid));
    }
    auto begun = begin_incarnation(files, "/data", start, std::move(places));
    return begun ? "" : begun.error().message;
  }
  uint64_t durable_epoch() const {
    uint64_t least = UINT64_MAX;
    for (const LogWriter& writer : writers) least = std::min(least, writer.last_closed_epoch());
    return least;
  }
  void write(size_t writer, uint64_t epoch) {
    write_epoch(writers[writer], epoch, 2, durable_epoch(), random);
  }
  /// All loggers write the epochs first ... last, in sequence.
  void write_all(uint64_t first, uint64_t last) {
    for (uint64_t epoch = first; epoch <= last; ++epoch) {
      for (size_t i = 0; i < writers.size(); ++i) write(i, epoch);
    }
  }
};

inline const LoggerPlace kFirst = {0, 0, "/data"};
inline const LoggerPlace kSecond = {1, 0, "/fast"};

}  // namespace atolldb::test
