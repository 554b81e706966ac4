// The updates of parts of one record that wait for its newest whole version (R94).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/replayed_record.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

class UpdateList {
 public:
  /// Returns whether an update of at least this version has all bytes [from, to).
  bool covers(uint64_t version, uint64_t from, uint64_t to) const {
    return std::ranges::any_of(updates_, [&](const Update& update) {
      return update.version >= version && update.offset <= from && update.end() >= to;
    });
  }

  /// Adds an update, unless a newer one covers it, and drops older ones that it covers. Returns the
  /// effect: `older` if nothing was added, `overwritten` if others were dropped, else `inserted`.
  Replayed add(uint64_t version, uint32_t offset, std::span<const std::byte> bytes) {
    const uint64_t end = offset + uint64_t{bytes.size()};
    DCHECK(version != 0 && end <= UINT32_MAX);
    if (covers(version, offset, end)) return Replayed::older;
    const size_t covered = std::erase_if(updates_, [&](const Update& update) {
      return update.version < version && update.offset >= offset && update.end() <= end;
    });
    std::string copy(bytes.size(), '\0');
    copy_bytes(copy.data(), bytes.data(), bytes.size());
    updates_.push_back({version, offset, std::move(copy)});
    return covered != 0 ? Replayed::overwritten : Replayed::inserted;
  }

  /// Drops the updates up to this version.
  void drop_until(uint64_t version) {
    std::erase_if(updates_, [&](const Update& update) { return update.version <= version; });
  }
  bool is_empty() const { return updates_.empty(); }
  /// Calls `visit` with the version, the offset and the bytes of each update, in any order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Update& update : updates_) {
      visit(update.version, static_cast<uint32_t>(update.offset),
            std::as_bytes(std::span(update.bytes)));
    }
  }
  /// Returns about how much memory the updates take.
  uint64_t memory_bytes() const {
    uint64_t bytes = updates_.capacity() * sizeof(Update);
    for (const Update& update : updates_) bytes += update.bytes.size();
    return bytes;
  }
  /// Returns the newest version. REQUIRES: the list is not empty.
  uint64_t newest() const {
    CHECK(!updates_.empty());
    return std::ranges::max(updates_, {}, &Update::version).version;
  }

  /// Applies the updates that are newer than `version`, in the order of their versions. Returns
  /// their number. Sets `fits` to false, and ends, at an update that ends after the payload.
  uint64_t apply(uint64_t version, std::span<std::byte> payload, bool& fits) {
    std::ranges::sort(updates_, {}, &Update::version);
    uint64_t applied = 0;
    fits = true;
    for (const Update& update : updates_) {
      if (update.version <= version) continue;
      fits = update.end() <= payload.size();
      if (!fits) return applied;
      copy_bytes(payload.data() + update.offset, update.bytes.data(), update.bytes.size());
      ++applied;
    }
    return applied;
  }

 private:
  struct Update {
    uint64_t version;
    uint32_t offset;
    std::string bytes;

    uint64_t end() const { return offset + bytes.size(); }
  };

  std::vector<Update> updates_;
};

}  // namespace atolldb
