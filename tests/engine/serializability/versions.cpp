#include "tests/engine/serializability/versions.h"

#include <algorithm>
#include <limits>

namespace atolldb::test {

bool Versions::finish() {
  std::sort(all_.begin() + 1, all_.end(),
            [](const Version& a, const Version& b) { return a.order < b.order; });
  for (size_t i = 2; i < all_.size(); ++i) {
    if (all_[i].order == all_[i - 1].order) return false;
  }
  all_[0].begin_ns = all_[0].end_ns = std::numeric_limits<int64_t>::min();
  latest_end_.resize(all_.size());
  earliest_begin_.resize(all_.size());
  int64_t latest = all_[0].end_ns;
  for (size_t i = 0; i < all_.size(); ++i) {
    latest = std::max(latest, all_[i].end_ns);
    latest_end_[i] = latest;
  }
  int64_t earliest = std::numeric_limits<int64_t>::max();
  for (size_t i = all_.size(); i-- > 0;) {
    earliest = std::min(earliest, all_[i].begin_ns);
    earliest_begin_[i] = earliest;
  }
  return true;
}

uint32_t Versions::made_by(uint32_t writer) const {
  for (size_t i = 1; i < all_.size(); ++i) {
    if (all_[i].writer == writer) return static_cast<uint32_t>(i);
  }
  return 0;
}

bool Versions::possible_absences(int64_t begin_ns, int64_t end_ns, uint32_t limit,
                                 uint32_t& earliest, uint32_t& latest) const {
  // A reader can have seen version i if the version began before the reader's end, and the next
  // version ended after the reader's begin. Neither bound is monotonic in i, but the two bounds
  // below are. No version outside of them can have been seen.
  const auto first_alive =
      std::upper_bound(latest_end_.begin(), latest_end_.end(), begin_ns) - latest_end_.begin();
  const auto first_future =
      std::lower_bound(earliest_begin_.begin(), earliest_begin_.end(), end_ns) -
      earliest_begin_.begin();
  const auto low = static_cast<uint32_t>(std::max<std::ptrdiff_t>(first_alive - 1, 0));
  const uint32_t high = std::min(static_cast<uint32_t>(first_future), limit);
  bool found = false;
  for (uint32_t i = low; i < high; ++i) {
    if (!all_[i].absent || all_[i].begin_ns >= end_ns || overwritten_before(i, begin_ns)) continue;
    if (!found) earliest = i;
    latest = i;
    found = true;
  }
  return found;
}

}  // namespace atolldb::test
