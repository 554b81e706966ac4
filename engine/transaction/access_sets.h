// Access sets: the reads and writes that a transaction records until its commit. Their capacity is
// fixed, and they are private to the worker.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// A record that was read, with the VID seen (R11). Private to the process, so it may hold an
/// address.
struct ReadEntry {
  RecordHead* record;
  Vid seen;
};

/// A planned write. It lies in the node's `local` segment. It names its record, because writes are
/// sorted by their names (R22). No process completes the commit of a dead worker.
struct WriteEntry {
  UniversalName record;
  uint32_t log_offset;  // position of the LogRecord in the worker's log buffer
  uint16_t payload_at;  // bytes from the record head to its payload
  uint8_t increment;    // IncrementType; 0: none. The payload holds a delta until the commit.
  uint8_t spare;
};
static_assert(sizeof(WriteEntry) == 16);

/// Returns whether `left` comes before `right` in universal order (R22).
inline bool by_record(const WriteEntry& left, const WriteEntry& right) {
  return left.record < right.record;
}

/// Payload offset of array records, which have only a RecordHead. Master-tree records have a longer
/// header, so their payload begins later.
inline constexpr uint16_t kArrayPayloadAt = sizeof(RecordHead);
inline bool is_array_write(const WriteEntry& entry) { return entry.payload_at == kArrayPayloadAt; }

/// A null volatile word that decided a read (R4). The snapshot word beside it may be null, too.
struct PointerEntry {
  const DualPointer* pointer;
  uint64_t seen;
};

/// A page version that was read by a scan, or by a look-up that found nothing (R6, R12).
struct PageVersionEntry {
  PageHeader* page;
  PageVersion seen;
};

/// A border page in which a look-up has not found a key, and the key. If other keys were inserted
/// into the page, the commit searches for the key again (R108).
struct AbsenceEntry {
  static constexpr size_t kMaxKeyBytes = 38;

  PageHeader* page;
  PageVersion seen;
  Vid below;  // version of the snapshot's record of the key; 0 if the snapshot lacks the key
  uint16_t key_bytes;
  std::array<std::byte, kMaxKeyBytes> key;  // from the layer of the page on

  std::span<const std::byte> key_span() const { return {key.data(), key_bytes}; }
};
static_assert(sizeof(AbsenceEntry) == 64);

/// A version or directory word of a sequential storage that a scan depends on (R17).
struct WordEntry {
  const std::atomic<uint64_t>* word;
  uint64_t seen;
};

/// Array of fixed capacity. Allocates nothing after construction; `push` fails when it is full.
template <typename T>
class FixedSet {
 public:
  explicit FixedSet(uint32_t capacity)
      : entries_(std::make_unique_for_overwrite<T[]>(capacity)), capacity_(capacity) {}

  [[nodiscard]] bool push(const T& entry) {
    if (size_ == capacity_) return false;
    entries_[size_++] = entry;
    return true;
  }
  void clear() { size_ = 0; }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](uint32_t i) {
    DCHECK(i < size_);
    return entries_[i];
  }
  const T& operator[](uint32_t i) const {
    DCHECK(i < size_);
    return entries_[i];
  }
  T* begin() { return entries_.get(); }
  T* end() { return entries_.get() + size_; }
  const T* begin() const { return entries_.get(); }
  const T* end() const { return entries_.get() + size_; }
  /// Removes entry i. Other entries may change places.
  void remove(uint32_t i) {
    DCHECK(i < size_);
    entries_[i] = entries_[--size_];
  }

 private:
  std::unique_ptr<T[]> entries_;
  uint32_t capacity_;
  uint32_t size_ = 0;
};

}  // namespace atolldb
