#include "engine/gleaner/compaction.h"

#include <array>

namespace atolldb {
namespace {

/// Later records of a key that are kept.
class KeptRecord {
 public:
  bool covers(const LogRecord& record) const {
    for (size_t i = 0; i < count_; ++i) {
      if (atolldb::covers(*records_[i], record)) return true;
    }
    return false;
  }
  void add(const LogRecord& record) {
    // A record that does not fit here covers nothing. So too many records are kept, but never too
    // few.
    if (count_ < records_.size()) records_[count_++] = &record;
    // From here on only this record matters: it covers all earlier ones.
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

std::span<SortKey> compact(std::span<SortKey> sorted) {
  size_t first_kept = sorted.size();
  for (size_t end = sorted.size(); end > 0;) {
    size_t begin = end - 1;
    while (begin > 0 && is_same_key(sorted[begin - 1], sorted[end - 1])) --begin;
    if (end - begin == 1) {
      sorted[--first_kept] = sorted[begin];  // the usual case, which does not read the record
    } else {
      KeptRecord kept;
      for (size_t i = end; i-- > begin;) {
        const LogRecord& record = *sorted[i].record;
        if (kept.covers(record)) continue;
        kept.add(record);
        sorted[--first_kept] = sorted[i];
      }
    }
    end = begin;
  }
  return sorted.subspan(first_kept);
}

}  // namespace atolldb
