#include "engine/gleaner/fold_table.h"

#include <algorithm>

namespace atolldb {
namespace {

bool has_same_key(const LogRecord& a, const LogRecord& b) {
  if (a.key_bytes != b.key_bytes) return false;
  if (a.key_bytes != sizeof(uint64_t)) return key_of(a) == key_of(b);
  // The usual case, without a call.
  return std::memcmp(a.key(), b.key(), sizeof(uint64_t)) == 0;
}

}  // namespace

FoldTable::FoldTable(uint64_t bytes)
    : bytes_(bytes),
      max_count_(max_records(bytes)),
      mask_(slots(bytes) - 1),
      memory_(footprint(bytes)),
      index_(reinterpret_cast<uint32_t*>(memory_.bytes().data())),
      records_(memory_.bytes().data() + slots(bytes) * sizeof(uint32_t)) {
  CHECK(bytes % 8 == 0 && bytes >= kMaxGleanedBytes && bytes / 8 < UINT32_MAX);
  CHECK(max_count_ > 0 && max_count_ <= mask_);  // a search always finds a free slot
}

bool FoldTable::fold(LogRecord& old, const LogRecord& added) {
  const uint64_t old_version = Vid(old.vid).version();
  const uint64_t version = Vid(added.vid).version();
  // Streams are read one after the other, so the added record may be the older one.
  if (version < old_version) return covers(old, added);
  if (version == old_version || added.length != old.length || !covers(added, old)) return false;
  copy_record(reinterpret_cast<std::byte*>(&old), added, added.length);
  return true;
}

void FoldTable::add(const LogRecord& record, StorageType type, uint64_t hash) {
  DCHECK(has_room(gleaned_bytes(record)) && read_ == 0);
  DCHECK(record.type != LogType::append);
  const SortKey key = write_gleaned(record, type, records_ + used_);
  const LogRecord& added = *key.record;
  const auto place = static_cast<uint32_t>(used_ / 8 + 1);
  uint64_t slot = hash & mask_;
  for (; index_[slot] != 0; slot = (slot + 1) & mask_) {
    LogRecord& old = *at(index_[slot]);
    if (!has_same_key(old, added)) continue;
    if (fold(old, added)) {
      ++folded_;
      return;
    }
    if (Vid(added.vid).version() > Vid(old.vid).version()) index_[slot] = place;
    break;
  }
  if (index_[slot] == 0) index_[slot] = place;
  used_ += added.length;
  ++count_;
}

std::span<SortKey> FoldTable::read(std::span<SortKey> room) {
  size_t count = 0;
  for (; count < room.size() && read_ < used_; ++count) {
    const auto& record = *reinterpret_cast<const LogRecord*>(records_ + read_);
    room[count] = SortKey::of(record);
    read_ += record.length;
  }
  CHECK(read_ <= used_);
  return room.first(count);
}

void FoldTable::clear() {
  CHECK(read_ == used_);
  if (count_ != 0) std::fill_n(index_, mask_ + 1, 0);
  used_ = count_ = folded_ = read_ = 0;
}

uint64_t RepeatSampler::count_repeats(uint32_t storage_id, std::span<const SortKey> keys) {
  uint64_t repeats = 0;
  for (const SortKey& key : keys) {
    const uint64_t hash = (hash_of(key) ^ storage_id) * 0x9e3779b97f4a7c15u;
    if (hash >> 32 & (kKeysPerSample - 1)) continue;
    const auto tag = static_cast<uint32_t>(hash >> 38) | 1;
    uint32_t& seen = seen_[hash >> 51];
    static_assert(uint64_t{1} << (64 - 51) == std::tuple_size_v<decltype(seen_)>);
    if (seen == tag) ++repeats;
    seen = tag;
  }
  DCHECK(repeats <= keys.size());
  return repeats * kKeysPerSample;
}

}  // namespace atolldb
