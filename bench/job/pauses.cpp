#include "bench/job/pauses.h"

#include <algorithm>

namespace atolldb::bench {

Pauses common_pauses(const Pauses& a, const Pauses& b) {
  Pauses common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Pause both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) common.push_back(both);
    // The one that ends first has no part in common with later ones of the other list.
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

uint64_t longest_pause(const Pauses& pauses) {
  uint64_t longest = 0;
  for (const Pause& pause : pauses) {
    CHECK(pause.begin <= pause.end);
    longest = std::max(longest, pause.end - pause.begin);
  }
  return longest;
}

}  // namespace atolldb::bench
