// Snapshots made by the product's composers from log records that a test makes up, one on top of
// the other, in a file system in memory.
#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/snapshot/combine_roots.h"
#include "engine/snapshot/compose.h"
#include "shared/check.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

/// Records in gleaned form, in the order in which they are added: the caller sorts.
class MadeLogs : public LogSource {
 public:
  void add(LogType type, uint32_t storage_id, const std::string& key, const std::string& payload,
           Vid vid, uint16_t payload_offset = 0) {
    const uint32_t bytes =
        LogRecord::bytes(static_cast<uint32_t>(key.size()), static_cast<uint32_t>(payload.size()));
    std::vector<uint64_t>& words = records_.emplace_back(bytes / 8);
    auto* record = reinterpret_cast<LogRecord*>(words.data());
    record->type = type;
    record->key_bytes = static_cast<uint16_t>(key.size());
    record->length = bytes;
    record->storage_id = storage_id;
    record->payload_offset = payload_offset;
    record->payload_bytes = static_cast<uint16_t>(payload.size());
    record->vid = vid.word();
    std::memcpy(record->key(), key.data(), key.size());
    std::memcpy(record->payload(), payload.data(), payload.size());
  }

  const LogRecord* current() const override {
    return at_ < records_.size() ? reinterpret_cast<const LogRecord*>(records_[at_].data())
                                 : nullptr;
  }
  Result<void> advance() override {
    ++at_;
    return {};
  }

 private:
  std::vector<std::vector<uint64_t>> records_;
  size_t at_ = 0;
};

/// Of one storage, which has one partition.
class SnapshotSeries {
 public:
  SnapshotSeries(uint32_t storage_id, StorageType type, uint32_t payload_bytes = 0,
                 uint64_t record_count = 0) {
    plan_.storages.resize(1);
    GleanStorage& storage = plan_.storages[0];
    storage.id = storage_id;
    storage.type = type;
    storage.payload_bytes = payload_bytes;
    storage.record_count = record_count;
    if (type != StorageType::sequential) storage.partitions = {{"", {0, 0}}};
  }

  SnapshotPointer root() const { return plan_.storages[0].base_root; }
  uint64_t epoch() const { return plan_.epoch; }
  SnapshotFiles& files() { return files_; }
  PowerCutFileSystem& file_system() { return file_system_; }

  /// The next snapshot. Empty, or what went wrong.
  std::string take(MadeLogs& logs, uint64_t epoch) {
    plan_.base = plan_.snapshot++;
    plan_.base_epoch = plan_.epoch;
    plan_.epoch = epoch;
    auto pages = writer(0);
    auto roots = writer(kCoordinator);
    if (!pages || !roots) return "no writer";
    auto composed = compose({plan_, 0, 0, logs, files_, *pages, mutex_});
    if (!composed) return composed.error().message;
    auto root = combine_roots(plan_, 0, {&*composed, 1}, files_, *roots);
    if (!root) return root.error().message;
    for (SnapshotWriter* each : {&*pages, &*roots}) {
      if (auto done = each->finish(); !done) return done.error().message;
    }
    std::vector<SnapshotFilePlace> places;
    if (pages->page_count() > 1) places.push_back(place(0, *pages));
    if (roots->page_count() > 1) places.push_back(place(kCoordinator, *roots));
    if (auto opened = files_.open(places); !opened) return opened.error().message;
    plan_.storages[0].base_root = root->root;
    return {};
  }

 private:
  static constexpr const char* kDirectory = "/data";

  Result<SnapshotWriter> writer(uint32_t node) {
    return SnapshotWriter::create(file_system_,
                                  {kDirectory, node, plan_.snapshot, plan_.epoch, {}});
  }
  SnapshotFilePlace place(uint32_t node, const SnapshotWriter& writer) const {
    return {plan_.snapshot, node, kDirectory, writer.page_count()};
  }

  PowerCutFileSystem file_system_;
  SnapshotFiles files_{file_system_, ClusterUuid{}};
  GleanPlan plan_;
  std::mutex mutex_;
};

/// What changes `before` into `now`, as gleaned records of one epoch.
inline MadeLogs changes_between(uint32_t storage_id,
                                const std::map<std::string, std::string>& before,
                                const std::map<std::string, std::string>& now, uint64_t epoch) {
  MadeLogs logs;
  std::map<std::string, const std::string*> changes;  // null: erased
  for (const auto& [key, payload] : before) {
    if (!now.contains(key)) changes[key] = nullptr;
  }
  for (const auto& [key, payload] : now) {
    const auto old = before.find(key);
    if (old == before.end() || old->second != payload) changes[key] = &payload;
  }
  uint64_t ordinal = 0;
  for (const auto& [key, payload] : changes) {
    logs.add(payload == nullptr ? LogType::erase : LogType::insert, storage_id, key,
             payload == nullptr ? std::string() : *payload, Vid::make(epoch, ++ordinal));
  }
  return logs;
}

}  // namespace atolldb::test
