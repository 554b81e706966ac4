// Versions of one key in the order of the log's VIDs, and which of them a reader can have seen.
#pragma once

#include <cstdint>
#include <vector>

namespace atolldb::test {

/// Version 0 is the initial state: absent, without a writer.
struct Version {
  uint64_t order = 0;
  uint32_t writer = 0;  // index of the transaction; unused for version 0
  uint64_t value = 0;
  bool absent = true;
  int64_t begin_ns = 0;  // of the writer
  int64_t end_ns = 0;
};

class Versions {
 public:
  Versions() : all_(1) {}

  void add(const Version& version) { all_.push_back(version); }
  /// Sorts the versions. REQUIRES: called once, after the last `add`. Returns false if two versions
  /// have the same position in the order.
  bool finish();

  const std::vector<Version>& all() const { return all_; }
  /// Returns the index of the version that `writer` made, or 0 if it made none.
  uint32_t made_by(uint32_t writer) const;

  /// Finds the earliest and the latest absent version before version `limit` that a reader, active
  /// between the two times, can have seen. Returns false if there is none.
  bool possible_absences(int64_t begin_ns, int64_t end_ns, uint32_t limit, uint32_t& earliest,
                         uint32_t& latest) const;

  /// Returns true if the transaction that overwrote version `index` had ended before that time.
  bool overwritten_before(uint32_t index, int64_t time_ns) const {
    return index + 1 < all_.size() && all_[index + 1].end_ns < time_ns;
  }

 private:
  std::vector<Version> all_;
  std::vector<int64_t> latest_end_;      // maximum of end_ns over versions 0 ... i
  std::vector<int64_t> earliest_begin_;  // minimum of begin_ns over versions i and later
};

}  // namespace atolldb::test
