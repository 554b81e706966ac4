// Ids of backups, which sort by time, and times as text. All times are UTC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"

namespace atolldb {

/// Returns the milliseconds since 1970.
uint64_t unix_ms_now();

/// Returns an id like "20261123T040506Z": the second of the time, or the second after the largest
/// existing id if that is later. So ids ascend even if the clock is set back. After the last second
/// of the year 9999 there is no further id; the function then returns that last id again.
std::string next_backup_id(uint64_t unix_ms, const std::vector<std::string>& existing);

/// The length of every id.
inline constexpr size_t kBackupIdBytes = 16;

/// Returns whether the text has exactly the form of an id.
bool is_backup_id(std::string_view text);
/// Returns the time that the id names, in milliseconds since 1970, or nothing if it is no id.
std::optional<uint64_t> unix_ms_of_id(std::string_view id);

/// "2026-11-23T04:05:06.789Z"
std::string utc_text(uint64_t unix_ms);

/// Parses "2026-11-23T04:05:06", with a fraction of up to three digits, and "Z" or an offset like
/// "+01:00". A space may replace the T. Without an offset it is UTC. Also takes seconds since 1970
/// as "@1795406706". Returns code usage for any other text.
Result<uint64_t> parse_utc(const std::string& text);

}  // namespace atolldb
