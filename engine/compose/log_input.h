// Input of a composer: log records one by one, their count, and errors that name their keys.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/compose/compose.h"
#include "engine/compose/page_output.h"
#include "engine/format/vid.h"
#include "engine/gleaner/gleaned_record.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

/// Returns bytes as hexadecimal digits, for messages.
inline std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// Order of held records: key, then VID.
inline bool comes_before(const HeldRecord& a, const HeldRecord& b) {
  const int order = a.key().compare(b.key());
  return order != 0 ? order < 0 : a.version() < b.version();
}

class LogInput {
 public:
  LogInput(LogSource& source, const PageOutput& pages, uint32_t storage_id)
      : source_(source), pages_(pages), storage_id_(storage_id), keys_(source.batch()) {
    choose();
  }

  /// Merges held records (R56) into the order of the source's records.
  /// REQUIRES: no held record sorts before the current record.
  void add_held(std::vector<HeldRecord> held) {
    for (HeldRecord& record : held) held_.push_back(std::move(record));
    // Descending order: the next record is the last element.
    std::ranges::sort(held_, [](const auto& a, const auto& b) { return comes_before(b, a); });
    choose();
  }

  /// Returns the current record, or null at the end.
  const LogRecord* current() const { return current_; }
  /// Returns the first-layer slice of the current record's key.
  uint64_t first_slice() const {
    DCHECK(current_ != nullptr);
    return is_held_ ? SortKey::of(*current_).first : keys_[0].first;
  }
  Result<void> advance() {
    DCHECK(current_ != nullptr);
    if (keys_.size() < 2 || !held_.empty() || (count_ + 1) % kRecordsPerCheck == 0) [[unlikely]] {
      return advance_slowly();
    }
    DCHECK(!is_held_ && current_ == keys_[0].record);
    ++count_;
    const bool is_sorted = !(keys_[1] < keys_[0]);
    keys_ = keys_.subspan(1);
    current_ = keys_[0].record;
    return is_sorted ? Result<void>() : unsorted();
  }
  uint64_t count() const { return count_; }
  /// Returns the coming records that are known already: the rest of the source's batch, in sort
  /// order. It includes the current record, unless that is a held record. It has no held records.
  std::span<const SortKey> coming() const { return keys_; }

  static std::string_view key_of(const LogRecord& log) {
    return {reinterpret_cast<const char*>(log.key()), log.key_bytes};
  }
  std::unexpected<Error> wrong(std::string_view key, const std::string& reason) const {
    return make_error(ExitCode::corruption,
                      fmt::format("storage {}: log records of the key 0x{}: {}: the log is damaged "
                                  "or incomplete: restore it from a backup",
                                  storage_id_, hex_of(key), reason));
  }
  std::unexpected<Error> unbacked(std::string_view key) const {
    return wrong(key, "an update changes a record that does not exist, or bytes beyond its end");
  }
  /// Checks that no record is left. Call it after the last record of the partition.
  Result<void> check_end() const {
    if (current_ == nullptr) return {};
    return wrong(key_of(*current_), "they are outside the partition");
  }

 private:
  static constexpr uint64_t kRecordsPerCheck = 1024;

  std::unexpected<Error> unsorted() const {
    return wrong(key_of(*current_), "they are not sorted");
  }

  /// Slow path of `advance`, which also handles the end of a batch and held records.
  Result<void> advance_slowly() {
    if (++count_ % kRecordsPerCheck == 0) {
      ATOLL_TRY(pages_.check_cancelled());
    }
    const std::string last_key(key_of(*current_));
    const uint64_t last_version = Vid(current_->vid).version();
    if (is_held_) {
      held_.pop_back();
    } else {
      keys_ = keys_.subspan(1);
      if (keys_.empty()) {
        ATOLL_TRY(source_.advance());
        keys_ = source_.batch();
      }
    }
    choose();
    if (current_ == nullptr) return {};
    const int order = key_of(*current_).compare(last_key);
    if (order > 0 || (order == 0 && Vid(current_->vid).version() >= last_version)) return {};
    return unsorted();
  }

  void choose() {
    current_ = keys_.empty() ? nullptr : keys_[0].record;
    is_held_ = false;
    if (held_.empty()) return;
    if (current_ != nullptr) {
      const int order = held_.back().key().compare(key_of(*current_));
      if (order > 0 || (order == 0 && held_.back().version() > Vid(current_->vid).version())) {
        return;
      }
    }
    current_ = &held_.back().log();
    is_held_ = true;
  }

  LogSource& source_;
  const PageOutput& pages_;
  uint32_t storage_id_;
  std::span<const SortKey> keys_;  // rest of the source's current batch
  const LogRecord* current_ = nullptr;
  std::vector<HeldRecord> held_;
  bool is_held_ = false;  // true: `current_` is the last element of `held_`
  uint64_t count_ = 0;
};

/// Returns the result of a task whose log records are all applied.
ComposedPartition composed_partition(const ComposeTask& task, std::vector<ComposedPage> pages,
                                     const PageOutput& output, const LogInput& logs);

}  // namespace atolldb
