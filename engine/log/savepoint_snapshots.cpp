#include "engine/log/savepoint_snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Writes `next`, and assigns it to `savepoint` once it is durable.
Result<void> replace(FileSystem& file_system, const std::string& data_dir, Savepoint& savepoint,
                     Savepoint next) {
  CHECK(next.generation == savepoint.generation);
  ATOLL_TRY(write_savepoint(file_system, data_dir, next));
  CHECK(next.generation == savepoint.generation + 1);
  savepoint = std::move(next);
  return {};
}

/// Writes `next` to both slots, so that damage to one slot cannot undo an acknowledged change.
Result<void> replace_both(FileSystem& file_system, const std::string& data_dir,
                          Savepoint& savepoint, Savepoint next) {
  ATOLL_TRY(replace(file_system, data_dir, savepoint, std::move(next)));
  return replace(file_system, data_dir, savepoint, savepoint);
}

/// Returns the epoch of the snapshot if it is the newest, kept or pinned. Returns nothing for other
/// ids, even if there is metadata with such an id. A failed snapshot job may have left that
/// metadata, or it may be deleted at any time.
std::optional<uint64_t> epoch_of(const Savepoint& savepoint, uint32_t id) {
  if (id != 0 && id == savepoint.snapshot) return savepoint.snapshot_epoch;
  const auto kept = std::ranges::find(savepoint.kept, id, &KeptSnapshot::id);
  if (kept != savepoint.kept.end()) return kept->epoch;
  const auto pin = std::ranges::find(savepoint.pinned, id, &PinnedSnapshot::id);
  if (pin == savepoint.pinned.end()) return std::nullopt;
  return pin->epoch;
}

/// Returns the savepoint with another newest snapshot. See store_snapshot.
Savepoint with_snapshot(const Savepoint& savepoint, uint32_t id, uint64_t epoch, uint32_t keep,
                        bool may_forget) {
  CHECK(id > savepoint.snapshot && id <= savepoint.largest_snapshot);
  CHECK(epoch >= savepoint.snapshot_epoch && epoch <= kMaxEpoch);
  CHECK(keep > 0);
  Savepoint next = savepoint;
  if (savepoint.snapshot != 0) next.kept.push_back({savepoint.snapshot, savepoint.snapshot_epoch});
  const size_t excess = next.kept.size() - std::min<size_t>(next.kept.size(), keep - 1);
  next.kept.erase(next.kept.begin(), next.kept.begin() + static_cast<ptrdiff_t>(excess));
  next.snapshot = id;
  next.snapshot_epoch = epoch;
  next.largest_epoch = std::max(next.largest_epoch, epoch);
  // Cuts ascend, so the incarnations to remove are the first ones.
  const auto first_needed = [&next] {
    const uint64_t oldest = fault::forget_kept_log ? next.snapshot_epoch : next.oldest_epoch();
    return std::ranges::find_if(next.incarnations, [&](const Incarnation& incarnation) {
      return !incarnation.cut_epoch || *incarnation.cut_epoch > oldest;
    });
  };
  const auto are_too_many = [&] {
    return next.incarnations.end() - first_needed() > ptrdiff_t{kMaxListedIncarnations};
  };
  while (!next.kept.empty() && are_too_many()) next.kept.erase(next.kept.begin());
  if (are_too_many()) remove_backup_pins(next);
  const auto kept =
      may_forget || fault::forget_unstored_log ? first_needed() : next.incarnations.begin();
  if (kept != next.incarnations.begin()) next.covered_incarnation = std::prev(kept)->number;
  next.incarnations.erase(next.incarnations.begin(), kept);
  CHECK(next.kept.size() < keep && next.oldest_epoch() >= savepoint.oldest_epoch());
  CHECK(next.covered_incarnation >= savepoint.covered_incarnation);
  return next;
}

}  // namespace

Result<uint32_t> take_snapshot_id(FileSystem& file_system, const std::string& data_dir,
                                  Savepoint& savepoint) {
  if (savepoint.largest_snapshot == SnapshotPointer::kMaxSnapshot) {
    return make_error(ExitCode::resources,
                      fmt::format("{}: all {} ids of snapshots are used up: export the data and "
                                  "load it into a new cluster",
                                  data_dir, SnapshotPointer::kMaxSnapshot));
  }
  Savepoint next = savepoint;
  ++next.largest_snapshot;
  ATOLL_TRY(replace(file_system, data_dir, savepoint, std::move(next)));
  CHECK(savepoint.largest_snapshot > savepoint.snapshot);
  return savepoint.largest_snapshot;
}

Result<void> store_snapshot(FileSystem& file_system, const std::string& data_dir,
                            Savepoint& savepoint, uint32_t id, uint64_t epoch, uint32_t keep,
                            bool may_forget) {
  CHECK(savepoint.scheme == DurabilityScheme::gleaned);
  return replace(file_system, data_dir, savepoint,
                 with_snapshot(savepoint, id, epoch, keep, may_forget));
}

Result<void> store_checkpoint(FileSystem& file_system, const std::string& data_dir,
                              Savepoint& savepoint, uint32_t id, uint64_t replay_epoch,
                              uint64_t end_epoch, bool may_forget) {
  CHECK(savepoint.scheme == DurabilityScheme::silor);
  CHECK(replay_epoch != 0 && replay_epoch <= end_epoch && end_epoch <= kMaxEpoch);
  Savepoint next = with_snapshot(savepoint, id, replay_epoch - 1, 1, may_forget);
  if (next.uncut() != nullptr && end_epoch >= next.uncut()->start_epoch) {
    next.durable_epoch = std::max(next.durable_epoch, end_epoch);
  }
  return replace(file_system, data_dir, savepoint, std::move(next));
}

void remove_backup_pins(Savepoint& savepoint) {
  std::erase_if(savepoint.pinned, [](const PinnedSnapshot& pin) { return pin.is_of_backup(); });
  CHECK(!savepoint.has_backup_pins());
}

Result<size_t> give_up_backup_pins(FileSystem& file_system, const std::string& data_dir,
                                   Savepoint& savepoint) {
  if (!savepoint.has_backup_pins()) return 0;
  Savepoint next = savepoint;
  remove_backup_pins(next);
  const size_t removed = savepoint.pinned.size() - next.pinned.size();
  ATOLL_TRY(replace_both(file_system, data_dir, savepoint, std::move(next)));
  return removed;
}

Result<PinnedSnapshot> choose_pin(const Savepoint& savepoint, uint32_t id, std::string name) {
  if (id == 0) id = savepoint.snapshot;
  if (id == 0) {
    return make_error(
        ExitCode::failed,
        "there is no snapshot or checkpoint yet: take one with `atoll snapshot take` or "
        "`atoll checkpoint take`");
  }
  if (name.empty()) name = fmt::format("snapshot-{}", id);
  return PinnedSnapshot{id, epoch_of(savepoint, id).value_or(0), std::move(name)};
}

Result<PinnedSnapshot> find_pin(const Savepoint& savepoint, const std::string& name_or_id) {
  const auto named = std::ranges::find(savepoint.pinned, name_or_id, &PinnedSnapshot::name);
  if (named != savepoint.pinned.end()) return *named;
  std::optional<PinnedSnapshot> found;
  std::string names;
  for (const PinnedSnapshot& pin : savepoint.pinned) {
    if (fmt::format("{}", pin.id) != name_or_id) continue;
    if (found) {
      names += ", " + pin.name;
      continue;
    }
    found = pin;
    names = pin.name;
  }
  if (!found) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: is neither the name of a pin nor the id of a pinned "
                                  "snapshot: `atoll snapshot ls` lists the pins",
                                  name_or_id));
  }
  if (names != found->name) {
    return make_error(ExitCode::failed,
                      fmt::format("snapshot {}: has several pins ({}): choose one by its name",
                                  name_or_id, names));
  }
  return *found;
}

Result<void> pin_snapshot(FileSystem& file_system, const std::string& data_dir,
                          Savepoint& savepoint, uint32_t id, const std::string& name) {
  if (name.empty() || name.size() > kMaxPinNameBytes) {
    return make_error(ExitCode::failed,
                      fmt::format("snapshot {}: the name of a pin has {} bytes, allowed are 1 to "
                                  "{}: choose another name",
                                  id, name.size(), kMaxPinNameBytes));
  }
  const auto same_name = std::ranges::find(savepoint.pinned, name, &PinnedSnapshot::name);
  if (same_name != savepoint.pinned.end()) {
    return make_error(ExitCode::failed,
                      fmt::format("snapshot {}: a pin has the name {} already: choose another "
                                  "name, or remove that pin",
                                  id, name));
  }
  if (savepoint.pinned.size() >= kMaxPinnedSnapshots) {
    return make_error(ExitCode::resources,
                      fmt::format("snapshot {}: there are {} pins, which is the limit: remove "
                                  "one",
                                  id, kMaxPinnedSnapshots));
  }
  const std::optional<uint64_t> epoch = epoch_of(savepoint, id);
  if (!epoch) {
    return make_error(
        ExitCode::failed,
        fmt::format("snapshot {}: is neither the newest one of {}, which is {}, nor "
                    "kept, nor pinned: pin one of those that `atoll snapshot ls` lists",
                    id, data_dir, savepoint.snapshot));
  }
  Savepoint next = savepoint;
  next.pinned.push_back({id, *epoch, name});
  CHECK(next.pinned.size() <= kMaxPinnedSnapshots);
  return replace_both(file_system, data_dir, savepoint, std::move(next));
}

Result<void> unpin_snapshot(FileSystem& file_system, const std::string& data_dir,
                            Savepoint& savepoint, const std::string& name) {
  Savepoint next = savepoint;
  const auto is_pin = [&](const PinnedSnapshot& pin) { return pin.name == name; };
  if (std::erase_if(next.pinned, is_pin) == 0) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: no pin of a snapshot has the name {}: `atoll snapshot ls` "
                                  "lists the pins",
                                  data_dir, name));
  }
  return replace_both(file_system, data_dir, savepoint, std::move(next));
}

}  // namespace atolldb
