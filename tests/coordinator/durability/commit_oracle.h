// Oracle of a cluster's commits, kept outside of its files. It makes random commits to storages of
// all types, as log records, and knows what a snapshot of any epoch must contain.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/format/vid.h"
#include "engine/hash/hash_key.h"
#include "engine/log/ddl_log.h"
#include "ops/verify/snapshot_walk.h"
#include "shared/base/check.h"
#include "tests/engine/compose/gleaned_log.h"
#include "tests/engine/log/log_blocks.h"

namespace atolldb::test {

class CommitOracle {
 public:
  struct Record {
    std::string payload;
    uint64_t version = 0;
    bool operator==(const Record&) const = default;
  };
  /// Records by key in gleaned form. Records of sequential storages: by payload, which is unique.
  using Content = std::map<std::string, Record>;
  using Contents = std::map<uint32_t, Content>;  // by storage

  static constexpr uint32_t kArrayPayload = 40;
  static constexpr uint64_t kArrayRecords = 600;

  explicit CommitOracle(uint64_t seed) : random_(seed) {}

  /// Adds a storage whose creation is durable. Later commits write to it.
  void add_storage(const DdlRecord& storage) { storages_.push_back(storage); }
  const std::vector<DdlRecord>& storages() const { return storages_; }

  /// Adds one more commit, of one record, to the block. Returns false if the block is full.
  bool commit(LogBlock& block) {
    constexpr uint32_t kMostBytes = 400;
    if (block.header.length + kMostBytes > kLogBlockPayload) return false;
    Write write = any_write(block.header.epoch);
    CHECK(add_record(block, write.type, write.storage, write.vid,
                     std::as_bytes(std::span(write.key)), std::as_bytes(std::span(write.payload)),
                     write.offset));
    apply(write, now_);
    history_.push_back(std::move(write));
    return true;
  }

  /// Returns the content of all commits up to this epoch.
  Contents contents(uint64_t epoch) const {
    Contents contents;
    for (const Write& write : history_) {
      if (Vid(write.vid).epoch() <= epoch) apply(write, contents);
    }
    return contents;
  }
  /// Removes commits of later epochs, which a cut has discarded.
  void forget_after(uint64_t epoch) {
    std::erase_if(history_, [&](const Write& write) { return Vid(write.vid).epoch() > epoch; });
    now_ = contents(epoch);
  }
  /// Returns the latest epoch up to this one that has a commit, or 0 if none has.
  uint64_t latest(uint64_t epoch) const {
    uint64_t latest = 0;
    for (const Write& write : history_) {
      if (Vid(write.vid).epoch() <= epoch) latest = std::max(latest, Vid(write.vid).epoch());
    }
    return latest;
  }

  /// Returns the key of a hash storage as the log has it.
  static std::string stored_key(const std::string& key) {
    const HashKey hashed(std::as_bytes(std::span(key)));
    return {reinterpret_cast<const char*>(hashed.stored().data()), hashed.stored().size()};
  }

 private:
  struct Write {
    uint32_t storage = 0;
    StorageType storage_type = StorageType::none;
    LogType type = LogType::insert;
    std::string key;  // as in the log
    uint16_t offset = 0;
    std::string payload;
    uint64_t vid = 0;
  };

  std::string bytes(uint64_t count) {
    std::string text(count, '\0');
    for (char& byte : text) byte = static_cast<char>(random_());
    return text;
  }

  Write any_write(uint64_t epoch) {
    if (epoch != std::exchange(epoch_, epoch)) ordinal_ = 0;
    Write write;
    const DdlRecord& storage = storages_[random_() % storages_.size()];
    write.storage = storage.storage_id;
    write.storage_type = storage.type;
    write.vid = Vid::make(epoch, ++ordinal_).word();
    if (write.storage_type == StorageType::sequential) {
      write.type = LogType::append;
      write.payload =
          std::to_string(epoch) + "." + std::to_string(ordinal_) + "." + bytes(random_() % 80);
    } else if (write.storage_type == StorageType::array) {
      write.type = LogType::update;
      const uint64_t index = random_() % kArrayRecords;
      write.key.assign(reinterpret_cast<const char*>(&index), sizeof index);
      write.offset = static_cast<uint16_t>(random_() % kArrayPayload);
      write.payload = bytes(random_() % (kArrayPayload - write.offset + 1));
    } else {
      write_to_tree(write);
    }
    return write;
  }

  void write_to_tree(Write& write) {
    const Content& content = now_[write.storage];
    const uint64_t number = random_() % 3000;
    write.key = number % 3 == 0 ? std::string(31, 'p') + std::to_string(number)
                                : big_endian(number << 40).substr(0, 3 + number % 6);
    if (write.storage_type == StorageType::hash) write.key = stored_key(write.key);
    auto found = content.find(write.key);
    if (random_() % 2 == 0 && found == content.end() && !content.empty()) {
      found = content.lower_bound(write.key);
      if (found == content.end()) found = content.begin();
      write.key = found->first;
    }
    if (found == content.end()) {
      write.payload = bytes(random_() % 200);
      return;
    }
    if (random_() % 3 == 0) {
      write.type = LogType::erase;
      return;
    }
    write.type = LogType::update;
    const uint64_t size = found->second.payload.size();
    write.offset = static_cast<uint16_t>(random_() % (size + 1));
    write.payload = bytes(random_() % (size - write.offset + 1));
  }

  static void apply(const Write& write, Contents& contents) {
    Content& content = contents[write.storage];
    const uint64_t version = Vid(write.vid).version();
    if (write.type == LogType::append) {
      content[write.payload] = {write.payload, version};
      return;
    }
    std::string key = write.key;
    if (write.storage_type == StorageType::array) {
      uint64_t index = 0;
      std::memcpy(&index, key.data(), sizeof index);
      key = big_endian(index);
      content[key].payload.resize(kArrayPayload);
    }
    if (write.type == LogType::erase) {
      content.erase(key);
    } else if (write.type == LogType::insert) {
      content[key] = {write.payload, version};
    } else {
      content[key].payload.replace(write.offset, write.payload.size(), write.payload);
      content[key].version = version;
    }
  }

  std::mt19937_64 random_;
  std::vector<DdlRecord> storages_;
  std::vector<Write> history_;  // in the order of their VIDs
  Contents now_;
  uint64_t epoch_ = 0;
  uint64_t ordinal_ = 0;
};

}  // namespace atolldb::test
