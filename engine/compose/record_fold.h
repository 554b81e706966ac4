// Applies the log records of one record, in the order of their VIDs, to its state in the base.
// Rules R35, R36.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/increment.h"
#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"

namespace atolldb {

class RecordFold {
 public:
  static constexpr uint32_t kMaxPayloadBytes = 4096;

  /// Starts with a record that the base does not have.
  void begin_absent() {
    exists_ = is_unbacked_ = false;
    base_version_ = 0;
    vid_ = Vid();
    payload_bytes_ = 0;
  }
  void begin(Vid vid, std::span<const std::byte> payload) {
    CHECK(payload.size() <= kMaxPayloadBytes);
    exists_ = true;
    is_unbacked_ = false;
    base_version_ = vid.version();
    vid_ = Vid(base_version_);
    payload_bytes_ = static_cast<uint32_t>(payload.size());
    copy_bytes(payload_.data(), payload.data(), payload.size());
  }

  void apply(const LogRecord& log) {
    const uint64_t version = Vid(log.vid).version();
    if (version <= base_version_) return;  // the base has this change
    DCHECK(version >= vid_.version());
    switch (log.type) {
      case LogType::insert:
        if (log.payload_bytes > kMaxPayloadBytes) return mark_unbacked();
        payload_bytes_ = log.payload_bytes;
        copy_bytes(payload_.data(), log.payload(), payload_bytes_);
        exists_ = true;
        is_unbacked_ = false;
        break;
      case LogType::update:
        // The insert of the record may have been elided. Then a later log record covers this
        // update, too (R35), and clears the mark.
        if (!exists_ || log.payload_offset + uint32_t{log.payload_bytes} > payload_bytes_) {
          return mark_unbacked();
        }
        copy_bytes(payload_.data() + log.payload_offset, log.payload(), log.payload_bytes);
        break;
      case LogType::add: {
        const auto type = static_cast<IncrementType>(log.number);
        const uint32_t bytes = increment_bytes(type);
        if (bytes == 0 || bytes != log.payload_bytes ||
            log.payload_offset + bytes > kMaxPayloadBytes) {
          return mark_unbacked();
        }
        if (!exists_) payload_bytes_ = 0;
        payload_bytes_ = add_to_payload(payload_.data(), payload_bytes_, log.payload_offset, type,
                                        log.payload());
        exists_ = true;
        DCHECK(payload_bytes_ <= kMaxPayloadBytes);
        break;
      }
      case LogType::erase:
        exists_ = false;
        is_unbacked_ = false;
        break;
      default:
        return mark_unbacked();
    }
    vid_ = Vid(version);
  }

  /// Returns whether there was an update of a missing record that no later log record covers. The
  /// log is then damaged.
  bool is_unbacked() const { return is_unbacked_; }
  bool exists() const { return exists_; }
  /// Returns the VID of the last log record that was applied, or the VID in the base. It has no
  /// flags.
  Vid vid() const { return vid_; }
  std::span<const std::byte> payload() const {
    DCHECK(payload_bytes_ <= kMaxPayloadBytes);
    return {payload_.data(), payload_bytes_};
  }

 private:
  void mark_unbacked() { is_unbacked_ = true; }

  bool exists_ = false;
  bool is_unbacked_ = false;
  uint64_t base_version_ = 0;
  Vid vid_;
  uint32_t payload_bytes_ = 0;
  std::array<std::byte, kMaxPayloadBytes> payload_;
};

}  // namespace atolldb
