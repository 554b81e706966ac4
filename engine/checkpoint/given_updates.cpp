#include "engine/checkpoint/given_updates.h"

#include <array>

#include "engine/checkpoint/given_records.h"
#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

bool GivenUpdates::covers(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset,
                          uint32_t bytes) const {
  if (records_.empty()) return false;
  const RecordName name(storage_id, key);
  const auto found = records_.find(name.view());
  if (found == records_.end()) return false;
  return found->second.covers(vid.version(), offset, uint64_t{offset} + bytes);
}

Replayed GivenUpdates::add(uint32_t storage_id, Bytes key, Vid vid, uint32_t offset, Bytes bytes) {
  DCHECK(storage_id != 0 && vid.ordinal() != 0);
  const RecordName name(storage_id, key);
  auto found = records_.find(name.view());
  if (found == records_.end()) {
    found = records_.try_emplace(std::string(name.view())).first;
    bytes_ += kEntryBytes + found->first.size();
  }
  UpdateList& updates = found->second;
  const uint64_t before = updates.memory_bytes();
  const Replayed result = updates.add(vid.version(), offset, bytes);
  CHECK(bytes_ >= before);
  bytes_ = bytes_ - before + updates.memory_bytes();
  return result;
}

Result<void> GivenUpdates::take_all(const Visit& visit) {
  CHECK(visit != nullptr);
  GivenRecord record;
  Result<void> visited;
  for (const auto& [name, updates] : records_) {
    const uint32_t id = storage_id_in_name(name);
    updates.for_each([&](uint64_t version, uint32_t offset, Bytes bytes) {
      if (!visited) return;
      record.set(LogType::update, id, key_in_name(name), version, bytes);
      record.record().payload_offset = static_cast<uint16_t>(offset);
      visited = visit(record.record());
    });
    if (!visited) return visited;
  }
  records_.clear();
  bytes_ = 0;
  return {};
}

}  // namespace atolldb
