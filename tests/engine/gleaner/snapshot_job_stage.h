// Random logs, a snapshot job of mappers and reducers over them, and a model that knows every
// record.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/format/tree_key.h"
#include "engine/gleaner/mapper.h"
#include "engine/gleaner/reducer.h"
#include "tests/engine/gleaner/locked_file_system.h"
#include "tests/engine/gleaner/shared_inbox.h"
#include "tests/engine/log/written_log.h"

namespace atolldb::test {

/// The fields of a log record in gleaned form, independent of the code under test.
struct PlainRecord {
  uint32_t storage = 0;
  std::string key;
  uint64_t version = 0;  // VID without flags
  LogType type = LogType::filler;
  uint32_t offset = 0;
  std::string payload;

  auto order() const { return std::tie(storage, key, version); }
  bool operator==(const PlainRecord&) const = default;

  /// Returns true if the later record covers this one (R35). States the rule again, independently
  /// of the code under test.
  bool is_covered_by(const PlainRecord& later) const {
    if (storage != later.storage || key != later.key || version >= later.version) return false;
    if (type == LogType::append) return false;
    if (later.type != LogType::update) return true;
    return type == LogType::update && later.offset <= offset &&
           later.offset + later.payload.size() >= offset + payload.size();
  }
};

inline std::string big_endian(uint64_t value, uint32_t bytes = 8) {
  std::string text;
  for (uint32_t i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i));
  return text;
}

inline PlainRecord plain(const LogRecord& record) {
  return {record.storage_id,
          {reinterpret_cast<const char*>(record.key()), record.key_bytes},
          Vid(record.vid).version(),
          record.type,
          record.payload_offset,
          {reinterpret_cast<const char*>(record.payload()), record.payload_bytes}};
}

struct StageOptions {
  uint16_t nodes = 2;
  uint16_t mappers_per_node = 2;
  uint16_t reducers_per_node = 1;
  uint32_t epochs = 12;
  uint32_t keys = 40;  // keys of each storage; few, so that many records can be elided
  uint64_t half_bytes = ReducerInbox::kMinHalfBytes;
  MapperSettings mapper = {MapperSettings::kMinBucketBytes, 3 * 16384};
  uint64_t chunk_bytes = SortedRunWriter::kMinChunkBytes;
  uint64_t read_bytes = 3 * SortedRunWriter::kMinChunkBytes;
  uint32_t max_merged_runs = kMaxMergedRuns;
  bool splits_streams = false;  // two mappers read each stream, each a part of the epochs
};

class SnapshotJobStage {
 public:
  static constexpr uint64_t kStart = 100;
  static constexpr uint32_t kArray = 3;
  static constexpr uint32_t kTree = 7;
  static constexpr uint32_t kLongKeys = Mapper::kMaxDirectId - 1;
  static constexpr uint32_t kHeap = Mapper::kMaxDirectId;
  static constexpr uint32_t kDropped = 9;  // this storage is not in the plan
  static constexpr uint32_t kPayload = 60;

  SnapshotJobStage(uint64_t seed, StageOptions options)
      : files(disk), options_(options), random_(seed) {
    plan.snapshot = 5;
    plan.base_epoch = kStart + options.epochs / 4;
    plan.epoch = kStart + options.epochs * 3 / 4;
    plan.cluster_uuid = kUuid;
    for (uint16_t node = 0; node < options.nodes; ++node) {
      for (uint16_t i = 0; i < options.reducers_per_node; ++i) plan.reducers.push_back({node, i});
      for (uint16_t i = 0; i < options.mappers_per_node; ++i) plan.mappers.push_back({node, i, {}});
    }
    plan.storages = {storage(kArray, StorageType::array), storage(kTree, StorageType::mastertree),
                     storage(kLongKeys, StorageType::mastertree),
                     storage(kHeap, StorageType::sequential)};
    for (PlannedMapper& mapper : plan.mappers) {
      // Each mapper reads the logs of two loggers.
      write_stream(mapper, static_cast<uint16_t>(2 * mapper.mapper));
      write_stream(mapper, static_cast<uint16_t>(2 * mapper.mapper + 1));
    }
    if (options.splits_streams) split_streams();
  }

  /// Gives the later epochs of all streams to further mappers.
  void split_streams() {
    const uint64_t middle = plan.base_epoch + (plan.epoch - plan.base_epoch) / 2;
    std::vector<PlannedMapper> later = plan.mappers;
    for (PlannedMapper& mapper : plan.mappers) {
      for (PlannedStream& part : mapper.streams) {
        part.last_epoch = std::min(part.last_epoch, middle);
      }
    }
    for (PlannedMapper& mapper : later) {
      mapper.mapper = static_cast<uint16_t>(mapper.mapper + options_.mappers_per_node);
      for (PlannedStream& part : mapper.streams) part.stream.covered_epoch = middle;
    }
    plan.mappers.insert(plan.mappers.end(), later.begin(), later.end());
  }

  /// Lets the mappers leave out the records of random ranges of the trees (R75). Returns the number
  /// of these records.
  uint64_t capture_ranges() {
    for (const uint32_t id : {kTree, kLongKeys}) {
      uint64_t low = 0;
      for (uint64_t i = random_() % 6; i > 0; --i) {
        const auto slice = [&] {
          const std::string key = tree_key(id);
          return slice_of(std::as_bytes(std::span(key)));
        };
        CapturedRange range{id, random_() % 3 == 0 ? low : slice(), slice() + random_() % 2,
                            random_() % 8 == 0};
        if (range.low < low || (!range.high_is_end && range.high <= range.low)) continue;
        captured.push_back(range);
        if (range.high_is_end) break;
        low = range.high;
      }
    }
    options_.mapper.captured = captured;
    return std::erase_if(written, [&](const PlainRecord& record) {
      const uint64_t slice = slice_of(std::as_bytes(std::span(record.key)));
      return std::ranges::any_of(captured, [&](const CapturedRange& range) {
        return range.storage_id == record.storage && range.contains(slice);
      });
    });
  }

  /// Runs all mappers and reducers, each in a thread. Returns their errors, one per line, or an
  /// empty text.
  std::string run() {
    inboxes.clear();
    reducers.clear();
    std::vector<ReducerInbox*> views;
    for (const ReducerPlace& place : plan.reducers) {
      inboxes.push_back(std::make_unique<SharedInbox>(options_.half_bytes));
      views.push_back(&inboxes.back()->mappers);
      reducers.push_back(std::make_unique<Reducer>(
          files, inboxes.back()->reducer,
          ReducerSettings{"/runs", place.node, place.reducer, plan.snapshot, options_.chunk_bytes,
                          options_.read_bytes, options_.max_merged_runs}));
      CHECK(inboxes.back()
                ->reducer.begin(plan.snapshot, static_cast<uint32_t>(plan.mappers.size()))
                .has_value());
    }
    std::vector<std::string> errors(plan.mappers.size() + plan.reducers.size());
    mappers.clear();
    for (const PlannedMapper& task : plan.mappers) {
      auto mapper = Mapper::create(files, plan, task, views, options_.mapper);
      CHECK(mapper.has_value());
      mappers.push_back(*std::move(mapper));
    }
    {
      std::vector<std::jthread> threads;
      for (size_t i = 0; i < mappers.size(); ++i) {
        threads.emplace_back([&, i] {
          if (auto done = mappers[i]->run(); !done) errors[i] = done.error().message + "\n";
        });
      }
      for (size_t i = 0; i < reducers.size(); ++i) {
        threads.emplace_back([&, i] {
          auto done = reducers[i]->collect();
          if (!done) errors[mappers.size() + i] = done.error().message + "\n";
        });
      }
    }
    std::string all;
    for (const std::string& error : errors) all += error;
    return all;
  }

  /// Reads all partitions of all reducers, and compares them with the written records. Returns the
  /// first error, or an empty text.
  std::string check() {
    std::map<std::pair<uint32_t, std::string>, std::vector<PlainRecord>> out;
    for (size_t i = 0; i < reducers.size(); ++i) {
      for (const PlannedStorage& storage : plan.storages) {
        std::string problem = storage.type == StorageType::sequential
                                  ? read_heap(i, storage, out)
                                  : read_partitions(i, storage, out);
        if (!problem.empty()) return problem;
      }
      if (reducers[i]->skipped() != 0) return "records were in no partition";
    }
    return compare(out);
  }

  MemoryFileSystem disk;
  LockedFileSystem files;
  SnapshotPlan plan;
  std::vector<PlainRecord> written;  // all records in the plan's epochs and storages
  std::vector<CapturedRange> captured;
  std::vector<std::unique_ptr<SharedInbox>> inboxes;
  std::vector<std::unique_ptr<Reducer>> reducers;
  std::vector<std::unique_ptr<Mapper>> mappers;

 private:
  using Output = std::map<std::pair<uint32_t, std::string>, std::vector<PlainRecord>>;

  PlannedStorage storage(uint32_t id, StorageType type) {
    PlannedStorage made;
    made.id = id;
    made.type = type;
    if (type == StorageType::array) {
      made.payload_bytes = kPayload;
      made.record_count = options_.keys;
    }
    if (type == StorageType::sequential) return made;
    std::vector<std::string> bounds;
    for (size_t i = 0; i < 1 + random_() % 4; ++i) {
      bounds.push_back(type == StorageType::array ? big_endian(1 + random_() % options_.keys)
                                                  : tree_key(id).substr(0, 8));
    }
    std::ranges::sort(bounds);
    bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());
    bounds.insert(bounds.begin(), "");
    for (const std::string& low : bounds) {
      made.partitions.push_back({low, plan.reducers[random_() % plan.reducers.size()]});
    }
    return made;
  }

  std::string tree_key(uint32_t id) {
    const uint64_t number = random_() % options_.keys;
    std::string key = big_endian(number * 0x0101010101010101u);
    // Makes keys with common prefixes, keys that are prefixes of others, and keys that end in
    // zeros.
    if (id == kLongKeys) key = std::string(12, 'x') + big_endian(number % 7, 4) + key;
    return key.substr(0, key.size() - number % 8);
  }

  /// Adds a record of a random storage to the block. Returns false if the block is full.
  bool add_random(LogBlock& block, PlannedMapper& mapper, bool counts) {
    const uint64_t epoch = block.header.epoch;
    const uint32_t ids[] = {kArray, kTree, kTree, kLongKeys, kHeap, kDropped};
    PlainRecord record;
    record.storage = ids[random_() % 6];
    record.version = Vid::make(epoch, ++ordinals_[epoch]).word();
    const uint64_t vid = record.version | (random_() & Vid::kFlagsMask);
    record.offset = static_cast<uint32_t>(random_() % 4 * 8);
    record.payload.resize(random_() % (kPayload - record.offset));
    for (char& byte : record.payload) byte = static_cast<char>(random_());
    std::string key;
    if (record.storage == kArray) {
      record.type = LogType::update;
      const uint64_t index = random_() % options_.keys;
      key.assign(reinterpret_cast<const char*>(&index), sizeof index);
      record.key = big_endian(index);
    } else if (record.storage == kHeap) {
      record.type = LogType::append;
      record.offset = static_cast<uint32_t>(random_() % 32);
      record.key = big_endian(epoch) + big_endian(mapper.node, 1) +
                   big_endian(block.header.worker, 1) + big_endian(ordinals_[epoch], 4) +
                   big_endian(record.offset, 2);
    } else {
      record.type = static_cast<LogType>(1 + random_() % 3);
      if (record.type != LogType::update) record.offset = 0;
      if (record.type == LogType::erase) record.payload.clear();
      record.key = key = tree_key(record.storage);
    }
    if (!add_record(block, record.type, record.storage, vid, std::as_bytes(std::span(key)),
                    std::as_bytes(std::span(record.payload)),
                    static_cast<uint16_t>(record.offset))) {
      return false;
    }
    if (record.type == LogType::append) record.offset = 0;
    if (counts && record.storage != kDropped) written.push_back(std::move(record));
    // Adds a filler, as for a record that was superseded within the transaction.
    if (random_() % 8 == 0) {
      add_record(block, LogType::filler, static_cast<uint32_t>(random_()), random_(), {}, {});
    }
    return true;
  }

  void write_stream(PlannedMapper& mapper, uint16_t logger) {
    LogWriter writer = make_writer(files, {mapper.node, logger, "/data"}, 2, kStart, 6);
    // The stream ends before the last epoch of the plan, with it, or after it.
    const uint64_t last_epoch = plan.epoch - 2 + random_() % 5;
    mapper.streams.push_back({{"/data", mapper.node, logger, 2, kStart, kUuid}, last_epoch});
    for (uint64_t epoch = kStart; epoch < kStart + options_.epochs; ++epoch) {
      const bool counts = epoch > plan.base_epoch && epoch <= std::min(plan.epoch, last_epoch);
      BlockBuffer buffer(random_() % 5);
      for (LogBlock& block : buffer.all()) {
        begin_block(block, epoch, static_cast<uint16_t>(random_() % 3));
        const uint64_t most = 1 + random_() % 60;
        for (uint64_t i = 0; i < most && add_random(block, mapper, counts); ++i) continue;
      }
      CHECK(writer.append(std::array{buffer.all()}, kStart - 1).has_value());
      // Loggers close different epochs: not each epoch gets a marker, and a marker may stand for
      // several.
      if (random_() % 3 != 0 || epoch + 1 == kStart + options_.epochs) {
        CHECK(writer.close_epoch(epoch, kStart - 1).has_value());
      }
    }
  }

  std::string drain(size_t reducer, uint32_t storage, const std::string& low,
                    std::optional<std::string> high, std::vector<PlainRecord>& into) {
    auto source = reducers[reducer]->open(storage, low, high);
    if (!source) return source.error().message;
    while (!(*source)->batch().empty()) {
      for (const SortKey& key : (*source)->batch()) into.push_back(plain(*key.record));
      if (auto advanced = (*source)->advance(); !advanced) return advanced.error().message;
    }
    return "";
  }

  std::string read_heap(size_t reducer, const PlannedStorage& storage, Output& out) {
    auto& records = out[{storage.id, fmt::format("reducer {}", reducer)}];
    std::string problem = drain(reducer, storage.id, "", std::nullopt, records);
    for (const PlainRecord& record : records) {
      const auto node = static_cast<uint8_t>(record.key[8]);
      if (node != plan.reducers[reducer].node || plan.reducers[reducer].reducer != 0) {
        return "an append of another node";
      }
    }
    return problem;
  }

  std::string read_partitions(size_t reducer, const PlannedStorage& storage, Output& out) {
    for (size_t p = 0; p < storage.partitions.size(); ++p) {
      if (storage.partitions[p].owner != plan.reducers[reducer]) continue;
      std::optional<std::string> high;
      if (p + 1 < storage.partitions.size()) high = storage.partitions[p + 1].low;
      const std::string& low = storage.partitions[p].low;
      auto& records = out[{storage.id, low}];
      std::string problem = drain(reducer, storage.id, low, high, records);
      if (!problem.empty()) return problem;
      for (const PlainRecord& record : records) {
        // Partitions begin at slices, so a key counts as if zeros followed its last byte.
        std::string key = record.key;
        key.resize(std::max(key.size(), sizeof(uint64_t)), '\0');
        if (key < low || (high && key >= *high)) return "a key of another partition";
      }
    }
    return "";
  }

  std::string compare(const Output& out) {
    std::vector<PlainRecord> all;
    for (const auto& [partition, records] : out) {
      for (size_t i = 0; i < records.size(); ++i) {
        if (records[i].storage != partition.first) return "a record of another storage";
        if (i > 0 && !(records[i - 1].order() < records[i].order())) return "not in sort order";
      }
      all.insert(all.end(), records.begin(), records.end());
    }
    const auto by_order = [](const auto& a, const auto& b) { return a.order() < b.order(); };
    std::ranges::sort(all, by_order);
    std::ranges::sort(written, by_order);
    size_t next = 0;
    for (size_t i = 0; i < written.size(); ++i) {
      if (next < all.size() && all[next] == written[i]) {
        ++next;
        continue;
      }
      // A record may be elided only if a later record of the same key covers it.
      const bool is_covered =
          std::any_of(all.begin() + static_cast<ptrdiff_t>(next), all.end(),
                      [&](const PlainRecord& later) { return written[i].is_covered_by(later); });
      if (!is_covered) {
        return fmt::format("record {} of {}, of storage {}, is missing", i, written.size(),
                           written[i].storage);
      }
      ++elided;
    }
    return next == all.size() ? "" : "there are records that were never written";
  }

 public:
  uint64_t elided = 0;

 private:
  StageOptions options_;
  std::mt19937_64 random_;
  std::map<uint64_t, uint64_t> ordinals_;  // last ordinal used, by epoch
};

}  // namespace atolldb::test
