#include "engine/log/savepoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "engine/format/byte_stream.h"
#include "engine/format/crc32c.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/base/try.h"
#include "shared/file/directory_table.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

constexpr uint32_t kSavepointMagic = 0x50534c41;  // "ALSP"
constexpr uint32_t kSavepointVersion = 5;         // names the scheme of durability
constexpr uint32_t kVersionOfGleaned = 4;         // of the scheme `gleaned`, which it does not name
constexpr uint32_t kSavepointOfPaths = 3;         // names directories by path, not by role
constexpr uint32_t kVersionBeforeKept = 2;        // has no list of kept snapshots
constexpr uint32_t kVersionBeforeSnapshots = 1;   // has no snapshot fields
constexpr uint32_t kSameLoggers = UINT32_MAX;     // the same loggers as the previous incarnation
constexpr uint64_t kNoCut = UINT64_MAX;

struct SlotHeader {
  uint32_t magic;
  uint32_t crc;
  uint32_t version;
  uint32_t length;
  uint64_t generation;
  uint64_t ddl_records;  // 0 in slots from before the counter existed
};
static_assert(sizeof(SlotHeader) == 32);
constexpr size_t kSavepointChecked = offsetof(SlotHeader, version);

}  // namespace

// The functions `fields` list the members of a structure in the order in which a slot stores them.

template <typename Archive>
void fields(Archive& archive, Described<Archive, PinnedSnapshot>& pin) {
  archive(pin.id, pin.epoch, pin.name);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, KeptSnapshot>& kept) {
  archive(kept.id, kept.epoch);
}

template <typename Archive>
void fields(Archive& archive, Described<Archive, LoggerPlace>& place) {
  archive(place.node, place.logger, place.directory);
}

namespace {

/// `previous`: the incarnation before this one in the list, or null. If both have the same loggers,
/// the file does not repeat them.
template <typename Archive>
void incarnation_fields(Archive& archive, Described<Archive, Incarnation>& incarnation,
                        const Incarnation* previous) {
  archive(incarnation.number, incarnation.start_epoch);
  uint64_t cut = incarnation.cut_epoch.value_or(kNoCut);
  archive(cut);
  auto count = static_cast<uint32_t>(incarnation.loggers.size());
  if (previous != nullptr && previous->loggers == incarnation.loggers) count = kSameLoggers;
  archive(count);
  if (count != kSameLoggers) archive.elements(incarnation.loggers, count);
  if constexpr (Archive::kReads) {
    if (cut != kNoCut) incarnation.cut_epoch = cut;
    if (count != kSameLoggers) return;
    if (previous == nullptr) return archive.fail();
    incarnation.loggers = previous->loggers;
  }
}

uint32_t version_of(const Savepoint& savepoint) {
  return savepoint.scheme == DurabilityScheme::gleaned ? kVersionOfGleaned : kSavepointVersion;
}

/// Reads or writes the body of a slot. Writers pass version_of(savepoint).
template <typename Archive>
void body_fields(Archive& archive, Described<Archive, Savepoint>& savepoint, uint32_t version) {
  CHECK(version >= kVersionBeforeSnapshots && version <= kSavepointVersion);
  archive(savepoint.cluster_uuid, savepoint.largest_epoch, savepoint.largest_incarnation,
          savepoint.durable_epoch);
  if (version > kVersionBeforeSnapshots) {
    archive(savepoint.snapshot, savepoint.snapshot_epoch, savepoint.largest_snapshot,
            savepoint.covered_incarnation, savepoint.pinned);
  }
  if (version > kVersionBeforeKept) archive(savepoint.kept);
  archive.list(savepoint.incarnations, [&](auto& incarnation) {
    const bool is_first = &incarnation == &savepoint.incarnations.front();
    incarnation_fields(archive, incarnation, is_first ? nullptr : &incarnation - 1);
  });
  if (version > kVersionOfGleaned) {
    archive.enumerator(savepoint.scheme, DurabilityScheme::gleaned, kLastDurabilityScheme);
  }
}

/// Applies `change` to each directory of the savepoint. Stops and returns false if `change` returns
/// false.
template <typename Change>
bool for_each_directory(Savepoint& savepoint, Change change) {
  return std::ranges::all_of(savepoint.incarnations, [&](Incarnation& incarnation) {
    return std::ranges::all_of(incarnation.loggers,
                               [&](LoggerPlace& place) { return change(place.directory); });
  });
}

/// Encodes the savepoint, and gives roles to directories that have none.
ByteWriter encode(Savepoint savepoint, DirectoryTable& table) {
  for_each_directory(savepoint, [&](std::string& directory) {
    CHECK(directory.size() <= kMaxLogPathBytes);
    directory = table.add(directory);
    return true;
  });
  ByteWriter body;
  body_fields(body, savepoint, version_of(savepoint));
  return body;
}

/// Returns true if the snapshot fields are consistent: ids are at most largest_snapshot, kept
/// snapshots ascend, limits hold, and pin names are unique.
bool has_sensible_snapshots(const Savepoint& savepoint) {
  if (savepoint.largest_snapshot > SnapshotPointer::kMaxSnapshot) return false;
  if (savepoint.snapshot > savepoint.largest_snapshot) return false;
  if (savepoint.snapshot_epoch > kMaxEpoch) return false;
  if (savepoint.snapshot == 0 && savepoint.snapshot_epoch != 0) return false;
  if (savepoint.scheme == DurabilityScheme::silor && !savepoint.kept.empty()) return false;
  if (savepoint.covered_incarnation > savepoint.largest_incarnation) return false;
  if (savepoint.pinned.size() > kMaxPinnedSnapshots) return false;
  KeptSnapshot before;
  for (const KeptSnapshot& kept : savepoint.kept) {
    const bool is_older = kept.id < savepoint.snapshot && kept.epoch <= savepoint.snapshot_epoch;
    if (!is_older || kept.id <= before.id || kept.epoch < before.epoch) return false;
    before = kept;
  }
  std::set<std::string_view> names;
  // A pinned snapshot may be newer than `savepoint.snapshot`: a start-up that cannot read the
  // newest snapshot goes back to an older one (R55). So this function does not compare them.
  return std::ranges::all_of(savepoint.pinned, [&](const PinnedSnapshot& pin) {
    return pin.id != 0 && pin.id <= savepoint.largest_snapshot && !pin.name.empty() &&
           pin.name.size() <= kMaxPinNameBytes && pin.epoch <= kMaxEpoch &&
           names.insert(pin.name).second;
  });
}

/// Returns true if the snapshot fields are consistent, incarnations ascend, epochs are within their
/// limits, and only the last incarnation may lack a cut.
bool is_sensible(const Savepoint& savepoint) {
  if (!has_sensible_snapshots(savepoint)) return false;
  uint64_t before = savepoint.covered_incarnation;
  for (const Incarnation& incarnation : savepoint.incarnations) {
    const bool is_last = &incarnation == &savepoint.incarnations.back();
    if (incarnation.number <= before || incarnation.number > savepoint.largest_incarnation) {
      return false;
    }
    if (incarnation.start_epoch == 0 || incarnation.start_epoch > kMaxEpoch) return false;
    if (!incarnation.cut_epoch && !is_last) return false;
    if (incarnation.cut_epoch && *incarnation.cut_epoch < incarnation.start_epoch - 1) return false;
    before = incarnation.number;
  }
  return true;
}

/// Decodes the body of a slot. Returns false if the content is invalid. Then `reason` says why, or
/// is empty if no reason is known.
bool decode(std::span<const std::byte> bytes, uint32_t version, const DirectoryTable& table,
            Savepoint& savepoint, std::string& reason) {
  ByteReader body(bytes);
  body_fields(body, savepoint, version);
  if (!body.is_at_end()) return false;
  const auto resolve = [&](std::string& directory) {
    auto path = table.path_of(directory);
    if (!path) {
      reason = fmt::format("it names directory {}, which the file `directories` does not list",
                           directory);
      return false;
    }
    directory = *std::move(path);
    return true;
  };
  if (version > kSavepointOfPaths && !for_each_directory(savepoint, resolve)) return false;
  return is_sensible(savepoint);
}

/// Returns the savepoint in the slot. If there is none, returns nothing, and `reason` says why; it
/// is empty if the slot was never written.
std::optional<Savepoint> decode_slot(std::span<const std::byte> slot, const DirectoryTable& table,
                                     std::string& reason) {
  SlotHeader header = {};
  if (slot.size() < sizeof header) {
    reason = "the file ends before it";
    return std::nullopt;
  }
  std::memcpy(&header, slot.data(), sizeof header);
  if (std::ranges::all_of(slot, [](std::byte byte) { return byte == std::byte{}; })) {
    return std::nullopt;
  }
  if (header.magic != kSavepointMagic) {
    reason =
        fmt::format("its magic number is 0x{:08x}, not 0x{:08x}", header.magic, kSavepointMagic);
  } else if (header.length > slot.size() - sizeof header) {
    reason = "its length is beyond its end";
  } else if (header.crc !=
             crc32c(slot.subspan(kSavepointChecked,
                                 sizeof header - kSavepointChecked + header.length))) {
    reason = "its checksum is wrong";
  } else if (header.version > kSavepointVersion || header.version < kVersionBeforeSnapshots) {
    reason = fmt::format("its format has version {}, this program reads up to {}", header.version,
                         kSavepointVersion);
  } else {
    Savepoint savepoint;
    savepoint.generation = header.generation;
    savepoint.ddl_records = header.ddl_records;
    const auto body = slot.subspan(sizeof header, header.length);
    if (decode(body, header.version, table, savepoint, reason)) return savepoint;
    if (reason.empty()) reason = "its content is invalid";
  }
  return std::nullopt;
}

/// Returns <data_dir> for the path <data_dir>/coordinator/<file>.
std::string data_dir_of(const std::string& path) {
  const std::string directory = path.substr(0, path.rfind('/'));
  return directory.substr(0, directory.rfind('/'));
}

}  // namespace

const Incarnation* Savepoint::uncut() const {
  if (incarnations.empty() || incarnations.back().cut_epoch) return nullptr;
  return &incarnations.back();
}

std::string savepoint_path(const std::string& data_dir) {
  return path_in(coordinator_directory(data_dir), "savepoint");
}

Result<std::optional<SavepointRead>> read_savepoint(FileSystem& file_system,
                                                    const std::string& data_dir) {
  return read_savepoint_file(file_system, savepoint_path(data_dir));
}

Result<std::array<SavepointSlot, 2>> read_savepoint_slots(FileSystem& file_system,
                                                          const std::string& path) {
  std::array<SavepointSlot, 2> slots;
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return slots;
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(path));
  const std::string data_dir = data_dir_of(path);
  IoBuffer buffer(kSavepointSlotBytes);
  for (size_t i = 0; i < slots.size(); ++i) {
    ATOLL_ASSIGN(const uint64_t count, file->read(i * kSavepointSlotBytes, buffer.bytes()));
    // The table is read after the slot, so that it has every role that the slot names.
    ATOLL_ASSIGN(auto table, DirectoryTable::read(file_system, data_dir));
    std::string& damage = slots[i].damage;
    slots[i].savepoint = decode_slot(buffer.bytes().first(count), table, damage);
    if (slots[i].savepoint && slots[i].savepoint->generation % slots.size() != i) {
      slots[i].savepoint.reset();
      damage = "it belongs to the other slot";
    }
    if (!damage.empty()) {
      damage = fmt::format("slot {} at offset {}: {}", i, i * kSavepointSlotBytes, damage);
    }
  }
  return slots;
}

Result<std::optional<SavepointRead>> read_savepoint_file(FileSystem& file_system,
                                                         const std::string& path) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return std::nullopt;
  ATOLL_ASSIGN(auto slots, read_savepoint_slots(file_system, path));
  auto& [first, second] = slots;
  if (!first.savepoint && !second.savepoint) {
    return make_error(
        ExitCode::corruption,
        fmt::format("{}: no slot of the savepoint is intact: {}: {}: restore a backup, "
                    "or start empty with `atoll up --discard-data`",
                    path, first.damage.empty() ? "slot 0 is empty" : first.damage,
                    second.damage.empty() ? "slot 1 is empty" : second.damage));
  }
  const bool is_second = !first.savepoint || (second.savepoint && second.savepoint->generation >
                                                                      first.savepoint->generation);
  return is_second ? SavepointRead{*std::move(second.savepoint), std::move(first.damage)}
                   : SavepointRead{*std::move(first.savepoint), std::move(second.damage)};
}

Result<void> write_savepoint(FileSystem& file_system, const std::string& data_dir,
                             Savepoint& savepoint) {
  CHECK(is_sensible(savepoint));
  ATOLL_ASSIGN(DirectoryTable table, DirectoryTable::read(file_system, data_dir));
  const ByteWriter body = encode(savepoint, table);
  const std::string directory = coordinator_directory(data_dir);
  const std::string path = savepoint_path(data_dir);
  if (body.bytes().size() > kSavepointSlotBytes - sizeof(SlotHeader)) {
    return make_error(
        ExitCode::resources,
        fmt::format("{}: the savepoint would have {} bytes for its {} incarnations, a slot has {}: "
                    "configure fewer loggers",
                    path, body.bytes().size() + sizeof(SlotHeader), savepoint.incarnations.size(),
                    kSavepointSlotBytes));
  }
  SlotHeader header = {kSavepointMagic,          0,
                       version_of(savepoint),    static_cast<uint32_t>(body.bytes().size()),
                       savepoint.generation + 1, savepoint.ddl_records};
  IoBuffer buffer(sizeof header + body.bytes().size());
  const std::span<std::byte> bytes = buffer.bytes();
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(body.bytes(), bytes.begin() + sizeof header);
  header.crc =
      crc32c(bytes.subspan(kSavepointChecked, sizeof header - kSavepointChecked + header.length));
  std::memcpy(bytes.data(), &header, sizeof header);
  CHECK(bytes.size() <= kSavepointSlotBytes);
  std::string reason;
  CHECK(decode_slot(bytes, table, reason).has_value());

  const bool is_new = savepoint.generation == 0;
  const std::string target = is_new ? path + ".new" : path;
  if (is_new) {
    ATOLL_TRY(file_system.make_directory(directory));
    // Removes a file that a crash during an earlier write has left.
    ATOLL_ASSIGN(const bool exists, file_system.exists(target));
    if (exists) {
      ATOLL_TRY(file_system.remove(target));
    }
  }
  // The table must be durable before the slot that names its roles.
  ATOLL_TRY(table.write(file_system));
  ATOLL_ASSIGN(const auto file, is_new ? file_system.create(target, 2 * kSavepointSlotBytes)
                                       : file_system.open(path));
  if (!is_new) {
    // Syncs the slot that is not overwritten now. A process may have been killed after it wrote
    // that slot and before it synced it. Without this sync a power cut could damage both slots.
    ATOLL_TRY(file->sync());
    ATOLL_TRY(file_system.sync_directory(directory));
    // Grows the file if damage has cut it short. The remaining slot is intact.
    ATOLL_ASSIGN(const uint64_t size, file->size());
    if (size < 2 * kSavepointSlotBytes) {
      ATOLL_TRY(file->grow(2 * kSavepointSlotBytes));
    }
  }
  const std::array<std::span<const std::byte>, 1> slices = {bytes};
  const uint64_t slot = fault::savepoint_same_slot_always ? 0 : header.generation % 2;
  const uint64_t offset = slot * kSavepointSlotBytes;
  ATOLL_TRY(file->write(offset, slices));
  ATOLL_TRY(file->sync());
  if (is_new) {
    ATOLL_TRY(file_system.rename(target, path));
    ATOLL_TRY(file_system.sync_directory(directory));
  }
  savepoint.generation = header.generation;
  return {};
}

}  // namespace atolldb
