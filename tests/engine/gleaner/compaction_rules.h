// Compaction of one record's changes by mappers and merges, and a check that the result is
// equivalent (R35).
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/format/log_block.h"
#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/record_merge.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/support/seed.h"

namespace atolldb::test::compaction {

struct Change {
  LogType type;
  uint16_t offset = 0;
  uint16_t bytes = 0;
  uint64_t key = 1;
};
inline constexpr Change kInsert = {LogType::insert, 0, 16};
inline constexpr Change kErase = {LogType::erase};
constexpr Change update(uint16_t offset, uint16_t bytes) {
  return {LogType::update, offset, bytes};
}

/// Log records of changes in the order of their VIDs. The ordinal of a VID is the index of its
/// change.
struct Records {
  explicit Records(const std::vector<Change>& changes, size_t key_bytes = 8) : memory(1) {
    LogBlock& block = memory.all()[0];
    begin_block(block, 1, 0);
    for (size_t i = 0; i < changes.size(); ++i) {
      std::string key(key_bytes, 'k');
      key += static_cast<char>(changes[i].key);
      const std::string payload(changes[i].bytes, 'p');
      CHECK(add_record(block, changes[i].type, 4, Vid::make(1, i, i % 64).word(),
                       std::as_bytes(std::span(key)), std::as_bytes(std::span(payload)),
                       changes[i].offset));
    }
  }
  std::span<const std::byte> bytes() {
    const LogBlock& block = memory.all()[0];
    return {block.payload, block.header.length};
  }
  BlockBuffer memory;
};

/// Returns the ordinals of the records that a mapper keeps.
inline std::vector<uint64_t> kept(const std::vector<Change>& changes, size_t key_bytes = 8) {
  Records records(changes, key_bytes);
  std::vector<SortKey> keys;
  for_each_record(records.memory.all()[0],
                  [&](const LogRecord& record) { keys.push_back(SortKey::of(record)); });
  std::sort(keys.begin(), keys.end());
  std::vector<uint64_t> ordinals;
  for (const SortKey& key : compact(keys)) ordinals.push_back(Vid(key.record->vid).ordinal());
  return ordinals;
}

/// Returns the ordinals of the records that a merge of one input keeps. A merge compares a record
/// only with the next one.
inline std::vector<uint64_t> merged(const std::vector<Change>& changes) {
  Records records(changes);
  RecordMerge merge;
  merge.add(records.bytes());
  CHECK(merge.start().has_value());
  std::vector<uint64_t> ordinals;
  while (!merge.batch().empty()) {
    for (const SortKey& key : merge.batch()) ordinals.push_back(Vid(key.record->vid).ordinal());
    CHECK(merge.take(merge.batch().size()).has_value());
  }
  CHECK(merge.elided() + ordinals.size() == changes.size());
  return ordinals;
}

/// State of a record after some changes: its existence and its bytes.
struct State {
  std::optional<bool> exists;  // nullopt: not known before the first insert or erase
  // for each byte, the ordinal of the change that wrote it
  std::vector<uint64_t> bytes = std::vector<uint64_t>(24);

  void apply(const Change& change, uint64_t ordinal) {
    if (change.type != LogType::update) {
      exists = change.type == LogType::insert;
      std::ranges::fill(bytes, 0);
    }
    for (uint32_t i = 0; i < change.bytes; ++i) bytes[change.offset + i] = ordinal + 1;
  }
  bool operator==(const State&) const = default;
};

/// In `count` rounds of random changes, compares the state after all changes with the state after
/// the records that compaction keeps. Returns the first round with a difference, or an empty text.
inline std::string leaves_records_as_their_changes_do(uint64_t count) {
  const uint64_t first = seed();
  std::mt19937_64 random(first);
  for (uint64_t round = 0; round < count; ++round) {
    std::vector<Change> changes;
    for (uint64_t i = 0; i < 1 + random() % 12; ++i) {
      const auto offset = static_cast<uint16_t>(random() % 16);
      changes.push_back(random() % 6 == 0   ? kInsert
                        : random() % 6 == 0 ? kErase
                                            : update(offset, static_cast<uint16_t>(random() % 8)));
    }
    State all;
    for (size_t i = 0; i < changes.size(); ++i) all.apply(changes[i], i);
    for (const std::vector<uint64_t>& ordinals : {kept(changes), merged(changes)}) {
      State some;
      for (const uint64_t ordinal : ordinals) some.apply(changes[ordinal], ordinal);
      if (some != all) {
        return "ATOLL_SEED=" + std::to_string(first) + ", round " + std::to_string(round) +
               ": a record is not what its changes make of it";
      }
    }
  }
  return {};
}

/// R83: an update before an addition and one after it, of which the second covers only a part of
/// the number. The sum depends on the first one, so it must be kept.
inline std::string keeps_what_additions_need() {
  const uint64_t far = kAddDistanceEpochs;
  for (const bool is_near : {false, true}) {
    BlockBuffer memory(1);
    LogBlock& block = memory.all()[0];
    begin_block(block, 1, 0);
    const std::string key(8, 'k');
    const std::string half(4, 'p');
    std::vector<uint64_t> epochs = {1, is_near ? far : 1 + far};
    for (const uint64_t epoch : epochs) {
      CHECK(add_record(block, LogType::update, 4, Vid::make(epoch, 1).word(),
                       std::as_bytes(std::span(key)), std::as_bytes(std::span(half)), 0));
    }
    std::vector<SortKey> keys;
    for_each_record(block, [&](const LogRecord& record) { keys.push_back(SortKey::of(record)); });
    const size_t kept_count = compact(keys).size();
    if (is_near && kept_count != 1) return "updates without room for an addition are both kept";
    if (!is_near && kept_count != 2) return "an update was elided that an addition may depend on";
  }
  return {};
}

}  // namespace atolldb::test::compaction
