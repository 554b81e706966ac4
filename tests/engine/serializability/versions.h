// The versions of one key in the order that the log claims, and which of them a reader can have
// seen.
#pragma once

#include <cstdint>
#include <vector>

namespace atolldb::test {

/// Version 0 is the initial state: absent, by nobody.
struct Version {
  uint64_t order = 0;
  uint32_t writer = 0;  // index of the transaction; of version 0: none
  uint64_t value = 0;
  bool absent = true;
  int64_t begin_ns = 0;  // of the writer
  int64_t end_ns = 0;
};

class Versions {
 public:
  Versions() : all_(1) {}

  void add(const Version& version) { all_.push_back(version); }
  /// Once, after the last `add`. False: two versions have one place in the order.
  bool finish();

  const std::vector<Version>& all() const { return all_; }
  /// Index of the version that `writer` made; 0: none.
  uint32_t made_by(uint32_t writer) const;

  /// The earliest and the latest absent version that a reader, active between the two times, can
  /// have seen, if it is before version `limit`. False: there is none.
  bool possible_absences(int64_t begin_ns, int64_t end_ns, uint32_t limit, uint32_t& earliest,
                         uint32_t& latest) const;

  /// Whether version `index` was overwritten for good before that time.
  bool overwritten_before(uint32_t index, int64_t time_ns) const {
    return index + 1 < all_.size() && all_[index + 1].end_ns < time_ns;
  }

 private:
  std::vector<Version> all_;
  std::vector<int64_t> latest_end_;      // of versions 0 ... i
  std::vector<int64_t> earliest_begin_;  // of versions i ...
};

}  // namespace atolldb::test
