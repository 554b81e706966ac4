#include "engine/gleaner/gleaned_record.h"

#include <array>

#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {
namespace {

constexpr uint32_t kArrayKeyBytes = 8;

const char* defect_in_array(const LogRecord& record, const PlannedStorage& storage) {
  if (record.type != LogType::update) return "is not an update, but belongs to an array";
  if (record.key_bytes != kArrayKeyBytes) return "has a key that is not an array index";
  uint64_t index = 0;
  std::memcpy(&index, record.key(), sizeof index);
  if (index >= storage.record_count) return "has an index beyond the end of its array";
  if (uint32_t{record.payload_offset} + record.payload_bytes > storage.payload_bytes) {
    return "writes beyond the end of its array record";
  }
  return nullptr;
}

/// Records of one key that `compact` keeps. They are added from the last one to the first one.
class KeptRecord {
 public:
  bool covers(const LogRecord& record) const {
    for (size_t i = 0; i < count_; ++i) {
      if (atolldb::covers(*records_[i], record)) return true;
    }
    return false;
  }
  void add(const LogRecord& record) {
    // A record that does not fit in the array counts as covering nothing. So `compact` may keep too
    // many records, but never too few.
    if (count_ < records_.size()) records_[count_++] = &record;
    // This record covers all earlier records of its key, so the array needs no other one.
    if (record.type == LogType::insert || record.type == LogType::erase) {
      records_[0] = &record;
      count_ = 1;
    }
  }

 private:
  std::array<const LogRecord*, 8> records_ = {};
  size_t count_ = 0;
};

}  // namespace

const char* defect_in_storage(const LogRecord& record, const PlannedStorage& storage) {
  switch (storage.type) {
    case StorageType::array:
      return defect_in_array(record, storage);
    case StorageType::mastertree:
    case StorageType::hash:
      return record.type == LogType::append ? "is an append, but belongs to a Master-tree"
                                            : nullptr;
    case StorageType::sequential:
      if (record.type != LogType::append)
        return "is not an append, but belongs to a sequential storage";
      return record.key_bytes != 0 ? "is an append with a key" : nullptr;
    case StorageType::none:
      break;
  }
  return "belongs to a storage without a type";
}

void write_gleaned_append(const LogRecord& record, const LogBlockHeader& header, std::byte* into,
                          SortKey& key) {
  auto* out = reinterpret_cast<LogRecord*>(into);
  DCHECK(record.type == LogType::append && record.key_bytes == 0);
  *out = record;
  out->key_bytes = kSequentialKeyBytes;
  out->length = LogRecord::bytes(kSequentialKeyBytes, record.payload_bytes);
  out->payload_offset = 0;
  const uint64_t epoch = __builtin_bswap64(header.epoch);
  // Bytes 8 to 15 of the key: [node 1][worker 1][ordinal 4][number of the append 2].
  const uint64_t place = __builtin_bswap64(uint64_t{header.node & 0xffu} << 56 |
                                           uint64_t{header.worker & 0xffu} << 48 |
                                           Vid(record.vid).ordinal() << 16 | record.payload_offset);
  std::memcpy(out->key(), &epoch, sizeof epoch);
  std::memcpy(out->key() + sizeof epoch, &place, sizeof place);
  copy_bytes(out->payload(), record.payload(), align8(record.payload_bytes));
  key = SortKey::of(*out);
}

std::span<SortKey> compact(std::span<SortKey> sorted) {
  DCHECK(std::is_sorted(sorted.begin(), sorted.end()));
  size_t first_kept = sorted.size();
  for (size_t end = sorted.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && is_same_key(sorted[begin - 1], sorted[end - 1])) --begin;
    if (end - begin == 1) {
      // Usual case: the key has a single record, which is kept and not read.
      if (--first_kept != begin) sorted[first_kept] = sorted[begin];
    } else {
      const size_t before = first_kept;
      KeptRecord kept;
      for (size_t i = end; i-- > begin;) {
        const LogRecord& record = *sorted[i].record;
        if (kept.covers(record)) continue;
        kept.add(record);
        DCHECK(first_kept > i);  // no key that is still to be visited is overwritten
        sorted[--first_kept] = sorted[i];
      }
      DCHECK(first_kept < before);  // the last record of each key is kept
    }
    end = begin;
  }
  return sorted.subspan(first_kept);
}

}  // namespace atolldb
