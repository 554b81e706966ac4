#include "coordinator/snapshots/rewrite_policy.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Collects victims within the limits.
class VictimList {
 public:
  explicit VictimList(const RewriteLimits& limits) : limits_(limits) {}

  bool has(uint32_t snapshot) const {
    return std::ranges::find(choice_.victims, snapshot) != choice_.victims.end();
  }
  /// Takes a victim if its live pages fit in both limits. The first victim may exceed
  /// `limits.pages`. Without this exception, a large file could never be rewritten.
  bool take(const SnapshotSpace& victim) {
    CHECK(!has(victim.snapshot));
    const uint64_t pages = choice_.pages + victim.live_pages;
    if (!choice_.victims.empty() && pages > limits_.pages) return false;
    if (pages > limits_.room_pages) {
      lacked_room_ = true;
      return false;
    }
    add(victim);
    return true;
  }
  /// Takes a victim, even if it exceeds `limits.pages`. REQUIRES: it fits in `limits.room_pages`.
  void add(const SnapshotSpace& victim) {
    CHECK(!has(victim.snapshot) && has_room(victim.live_pages));
    choice_.pages += victim.live_pages;
    choice_.victims.push_back(victim.snapshot);
  }
  bool has_room(uint64_t more) const { return choice_.pages + more <= limits_.room_pages; }
  bool fits(uint64_t more) const { return has_room(more) && choice_.pages + more <= limits_.pages; }
  RewriteChoice finish() {
    std::ranges::sort(choice_.victims);
    choice_.lacks_room = lacked_room_ && choice_.victims.empty();
    return std::move(choice_);
  }

 private:
  const RewriteLimits& limits_;
  RewriteChoice choice_;
  bool lacked_room_ = false;
};

/// Takes the snapshots with the largest share of garbage, until the garbage of the others is within
/// the target.
void take_garbage(std::vector<SnapshotSpace> space, const RewriteLimits& limits,
                  VictimList& victims) {
  const SpaceSums sums = sums_of(space);
  const uint64_t percent = limits.space_percent;
  const uint64_t allowed_garbage = sums.live_pages * (percent - 100) / 100;
  uint64_t stored =
      sums.stored_pages + std::min(limits.coming_pages, allowed_garbage / kComingShare);
  const auto is_too_much = [&] {
    return stored > sums.live_pages + kLittleGarbagePages &&
           stored * 100 > sums.live_pages * percent;
  };
  std::ranges::stable_sort(space, std::ranges::greater(), [](const SnapshotSpace& each) {
    const auto stored_pages = static_cast<double>(std::max<uint64_t>(1, each.stored_pages));
    return static_cast<double>(each.garbage_pages()) / stored_pages;
  });
  for (const SnapshotSpace& each : space) {
    if (!is_too_much() || each.garbage_pages() == 0) return;
    const bool is_taken = victims.has(each.snapshot) || victims.take(each);
    if (is_taken) stored -= each.garbage_pages();  // the job stores its live pages again
  }
}

/// Merges the smallest snapshots if there are kManySnapshots or more. Takes at most half of them,
/// and only as many as fit in the limits. From kMostSnapshots on, it may exceed `limits.pages`, but
/// then takes only as many as necessary to have fewer snapshots.
///
/// The largest victim is never larger than all smaller ones together. So each copied page is then
/// in files at least twice as large as before, and is copied a logarithmic number of times.
void take_smallest(std::vector<SnapshotSpace> space, VictimList& victims) {
  std::erase_if(space, [&](const SnapshotSpace& each) { return victims.has(each.snapshot); });
  if (space.size() < kManySnapshots) return;
  std::ranges::stable_sort(space, {}, &SnapshotSpace::live_pages);
  size_t count = 0;
  uint64_t pages = 0;  // live pages of space[0] to space[i - 1]
  // The number of victims after which there are fewer than kMostSnapshots, with some to spare,
  // because not every job has victims.
  const size_t due =
      space.size() < kMostSnapshots ? 0 : space.size() - kMostSnapshots + kLeastMerged;
  for (size_t i = 0; i < space.size() / 2; ++i) {
    const uint64_t more = pages + space[i].live_pages;
    if (!victims.fits(more) && !(count < due && victims.has_room(more))) break;
    if (i + 1 >= kLeastMerged && space[i].live_pages <= pages) count = i + 1;
    pages += space[i].live_pages;
  }
  for (size_t i = 0; i < count; ++i) victims.add(space[i]);
}

}  // namespace

std::vector<SnapshotSpace> space_of(const SnapshotMetadata& snapshot) {
  std::vector<SnapshotSpace> space;
  for (const uint32_t id : snapshots_of(snapshot.files)) {
    space.push_back(
        {.snapshot = id, .is_counted = !std::ranges::binary_search(snapshot.uncounted, id)});
  }
  const auto of = [&](uint32_t id) {
    const auto found = std::ranges::lower_bound(space, id, {}, &SnapshotSpace::snapshot);
    CHECK(found != space.end() && found->snapshot == id);
    return found;
  };
  for (const SnapshotFilePlace& file : snapshot.files) {
    of(file.snapshot)->stored_pages += file.page_count - std::min<uint64_t>(1, file.page_count);
  }
  for (const LivePages& live : snapshot.live) of(live.snapshot)->live_pages += live.all();
  for (SnapshotSpace& each : space) {
    // A file cannot have more live pages than pages. If the counts say so, they are wrong.
    each.live_pages =
        each.is_counted ? std::min(each.live_pages, each.stored_pages) : each.stored_pages;
  }
  return space;
}

SpaceSums sums_of(const std::vector<SnapshotSpace>& space) {
  SpaceSums sums;
  for (const SnapshotSpace& each : space) {
    CHECK(each.live_pages <= each.stored_pages);
    sums.stored_pages += each.stored_pages;
    sums.live_pages += each.live_pages;
  }
  return sums;
}

uint64_t SpaceSums::amplification_percent() const {
  if (stored_pages == 0) return 100;
  return stored_pages * 100 / std::max<uint64_t>(1, live_pages);
}

RewriteChoice choose_victims(const std::vector<SnapshotSpace>& space, const RewriteLimits& limits) {
  CHECK(limits.space_percent >= 100);
  CHECK(std::ranges::is_sorted(space, {}, &SnapshotSpace::snapshot));
  VictimList victims(limits);
  for (const SnapshotSpace& each : space) {
    if (!each.is_counted) victims.take(each);
  }
  take_garbage(space, limits, victims);
  take_smallest(space, victims);
  return victims.finish();
}

}  // namespace atolldb
