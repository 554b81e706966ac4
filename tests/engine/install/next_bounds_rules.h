// Body of a test of bounds between partitions of the next snapshot (R85). It returns an error text,
// or an empty text if all is right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/install/same_tree.h"

namespace atolldb::test {

/// R85: an install drops no page across a bound of the next snapshot. Later installs drop it.
inline std::string pages_across_next_bounds_are_kept(uint32_t installers, uint64_t order) {
#ifdef ATOLL_STRESS
  constexpr uint64_t kManyKeys = 4'000;  // pages are tiny
#else
  constexpr uint64_t kManyKeys = 20'000;  // so many that there are interior pages below the root
#endif
  std::mt19937_64 random(order);
  std::vector<uint64_t> all(kManyKeys);
  for (uint64_t i = 0; i < kManyKeys; ++i) all[i] = i;
  std::ranges::shuffle(all, random);
  SameTree same(false, installers);
  if (same.write(all, true) != Status::ok) return "the load fails";
  std::string problem = same.take(all, LogType::insert);
  if (!problem.empty()) return problem;
  // As in a job, bounds lie where no cold pointer leads to both sides.
  std::set<uint64_t> bounds;
  for (int i = 0; i < 20; ++i) bounds.insert(same.warm.cut(1 + random() % kManyKeys));
  bounds.erase(0);
  const auto count_of_cuts = [&] {
    return static_cast<size_t>(std::ranges::count_if(
        bounds, [&](uint64_t bound) { return same.warm.cut(bound) == bound; }));
  };
  same.warm.next_bounds.assign(bounds.begin(), bounds.end());
  const InstallOutcome with = same.install(drop_all);
  if (count_of_cuts() != bounds.size()) return "a cold pointer leads to both sides of a bound";
  if (with.dropped == 0 || with.kept == 0) return "no page is dropped, or none is kept";
  same.warm.next_bounds.clear();
  problem = same.take({}, LogType::insert);
  if (!problem.empty()) return problem;
  if (same.install(drop_all).dropped == 0) return "later installs do not drop the pages";
  return count_of_cuts() == bounds.size() ? "no bound lies within a page" : "";
}

}  // namespace atolldb::test
