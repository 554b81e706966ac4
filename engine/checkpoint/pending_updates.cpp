#include "engine/checkpoint/pending_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

std::unexpected<Error> unbacked_update(uint32_t storage_id, Vid version, const char* reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("replay failed: an update of storage {} in epoch {} {}: restore a "
                                "backup, or start empty with `atoll up --discard-data`",
                                storage_id, version.epoch(), reason));
}

}  // namespace

bool PendingUpdates::covers(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset,
                            uint32_t bytes) const {
  const RecordName name(storage_id, key);
  const Shard& shard = shards_[shard_of(name.view())];
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.records.find(name.view());
  if (found == shard.records.end()) return false;
  return found->second.covers(vid.version(), offset, uint64_t{offset} + bytes);
}

Replayed PendingUpdates::add(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset,
                             Bytes bytes) {
  const RecordName name(storage_id, key);
  Shard& shard = shards_[shard_of(name.view())];
  DCHECK(vid.ordinal() != 0);
  const std::lock_guard lock(shard.mutex);
  auto found = shard.records.find(name.view());
  if (found == shard.records.end()) {
    found = shard.records.try_emplace(std::string(name.view())).first;
  }
  return found->second.add(vid.version(), offset, bytes);
}

Result<uint64_t> PendingUpdates::apply(size_t shard, RecordWriter& writer,
                                       const StorageOf& storage_of, const BlockedRecords& blocked) {
  CHECK(shard < kShards);
  uint64_t applied = 0;
  auto& records = shards_[shard].records;
  size_t ahead = 0;  // records from `at` on whose pages are prefetched
  for (auto at = records.begin(); at != records.end(); --ahead) {
    if (ahead == 0) {
      std::array<RecordWriter::Sought, RecordWriter::kBatch> sought;
      size_t count = 0;
      for (auto next = at; next != records.end() && ahead < sought.size(); ++next, ++ahead) {
        StorageControl* storage = storage_of(storage_id_in_name(next->first));
        if (storage != nullptr) sought[count++] = {storage, key_in_name(next->first)};
      }
      writer.prefetch(std::span(sought).first(count));
    }
    const Vid kept = blocked.find(at->first);
    if (kept.word() != 0 && !kept.is_deleted()) {
      ++at;
      continue;
    }
    // A tombstone that is kept there is newer than these updates.
    at->second.drop_until(kept.version());
    if (!at->second.is_empty()) {
      ATOLL_ASSIGN(const uint64_t count, apply_to(at->first, at->second, writer, storage_of));
      applied += count;
    }
    at = records.erase(at);
  }
  // An assignment of {} would keep the table.
  if (records.empty()) std::decay_t<decltype(records)>().swap(records);
  return applied;
}

Result<uint64_t> PendingUpdates::apply_to(const std::string& name, UpdateList& updates,
                                          RecordWriter& writer, const StorageOf& storage_of) {
  const uint32_t id = storage_id_in_name(name);
  StorageControl* storage = storage_of(id);
  if (storage == nullptr) return 0;
  const Vid newest(updates.newest());
  DCHECK(newest.ordinal() != 0 && storage->id == id);
  uint64_t applied = 0;
  bool fits = true;
  const auto change = [&](Vid version, std::span<std::byte> payload) {
    applied = updates.apply(version.version(), payload, fits);
    return applied == 0 || !fits ? version : newest;
  };
  bool exists = false;
  Vid vid;
  const Status status = writer.change(*storage, key_in_name(name), change, exists, vid);
  if (status != Status::ok) return replay_failed(id, status);
  if (!fits) return unbacked_update(id, newest, "ends after its record");
  // A newer deletion of the record is no defect.
  if (!exists && newest.version() > vid.version())
    return unbacked_update(id, newest, "has no record");
  return applied;
}

}  // namespace atolldb
