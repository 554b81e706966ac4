#include "ops/backup/backup_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr uint64_t kMsPerSecond = 1000;
/// The end of the year 9999: later times have more digits.
constexpr int64_t kLastSecond = 253402300799;

/// Converts a time to UTC. Times after the year 9999 come from damaged input only; they give the
/// last second of that year.
std::tm utc_of(uint64_t unix_seconds) {
  const auto seconds =
      static_cast<std::time_t>(std::min(unix_seconds, static_cast<uint64_t>(kLastSecond)));
  std::tm parts{};
  CHECK(gmtime_r(&seconds, &parts) != nullptr);
  return parts;
}

std::string id_of(uint64_t unix_seconds) {
  const std::tm parts = utc_of(unix_seconds);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// Takes digits from the front of a text.
class TimeParser {
 public:
  explicit TimeParser(std::string_view text) : rest_(text) {}

  /// Returns a number of exactly `digits` digits that is at most `most`.
  std::optional<int> number(size_t digits, int least, int most) {
    if (rest_.size() < digits) return std::nullopt;
    int value = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + digits, value);
    if (problem != std::errc{} || end != rest_.data() + digits) return std::nullopt;
    if (rest_.front() == '-' || value < least || value > most) return std::nullopt;
    rest_.remove_prefix(digits);
    return value;
  }
  bool take(std::string_view any_of) {
    if (rest_.empty() || !any_of.contains(rest_.front())) return false;
    taken_ = rest_.front();
    rest_.remove_prefix(1);
    return true;
  }
  char taken() const { return taken_; }
  bool is_at_end() const { return rest_.empty(); }
  size_t digits() const { return std::min(rest_.find_first_not_of("0123456789"), rest_.size()); }

 private:
  std::string_view rest_;
  char taken_ = 0;
};

/// Returns the seconds since 1970 of a date and a time with these separators, or nothing. Rejects
/// days that the month does not have.
std::optional<int64_t> parse_seconds(TimeParser& parser, std::string_view date_mark,
                                     std::string_view middle, std::string_view time_mark) {
  const auto mark = [&](std::string_view any_of) { return any_of.empty() || parser.take(any_of); };
  std::tm parts{};
  const auto year = parser.number(4, 1970, 9999);
  if (!year || !mark(date_mark)) return std::nullopt;
  const auto month = parser.number(2, 1, 12);
  if (!month || !mark(date_mark)) return std::nullopt;
  const auto day = parser.number(2, 1, 31);
  if (!day || !mark(middle)) return std::nullopt;
  const auto hour = parser.number(2, 0, 23);
  if (!hour || !mark(time_mark)) return std::nullopt;
  const auto minute = parser.number(2, 0, 59);
  if (!minute || !mark(time_mark)) return std::nullopt;
  const auto second = parser.number(2, 0, 59);
  if (!second) return std::nullopt;
  parts.tm_year = *year - 1900;
  parts.tm_mon = *month - 1;
  parts.tm_mday = *day;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  parts.tm_sec = *second;
  const int64_t seconds = timegm(&parts);
  if (parts.tm_mday != *day) return std::nullopt;  // timegm changed the day: the month is shorter
  return seconds;
}

std::optional<int64_t> seconds_of_id(std::string_view id) {
  TimeParser parser(id);
  const auto seconds = parse_seconds(parser, "", "T", "");
  if (!seconds || !parser.take("Z") || !parser.is_at_end()) return std::nullopt;
  return seconds;
}

/// Returns the offset in seconds, 0 if there is none, or nothing if it is malformed.
std::optional<int64_t> parse_offset(TimeParser& parser) {
  if (parser.is_at_end()) return 0;
  if (parser.take("Zz")) return 0;
  if (!parser.take("+-")) return std::nullopt;
  const int64_t sign = parser.taken() == '-' ? -1 : 1;
  const auto hours = parser.number(2, 0, 23);
  if (!hours || !parser.take(":")) return std::nullopt;
  const auto minutes = parser.number(2, 0, 59);
  if (!minutes) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

/// Returns the milliseconds of a fraction, 0 if there is none, or nothing if it is malformed.
std::optional<int64_t> parse_fraction(TimeParser& parser) {
  if (!parser.take(".")) return 0;
  const size_t digits = parser.digits();
  if (digits == 0 || digits > 3) return std::nullopt;
  constexpr std::array<int, 4> kUnits = {0, 100, 10, 1};
  const auto value = parser.number(digits, 0, 999);
  if (!value) return std::nullopt;
  return int64_t{*value} * kUnits[digits];
}

std::optional<uint64_t> parse_time_text(std::string_view text) {
  if (text.starts_with('@')) {
    int64_t seconds = 0;
    const char* end = text.data() + text.size();
    const auto [last, problem] = std::from_chars(text.data() + 1, end, seconds);
    if (problem != std::errc{} || last != end || seconds < 0 || seconds > kLastSecond) {
      return std::nullopt;
    }
    return static_cast<uint64_t>(seconds) * kMsPerSecond;
  }
  TimeParser parser(text);
  const auto seconds = parse_seconds(parser, "-", "Tt ", ":");
  if (!seconds) return std::nullopt;
  const auto fraction = parse_fraction(parser);
  if (!fraction) return std::nullopt;
  const auto offset = parse_offset(parser);
  if (!offset || !parser.is_at_end() || *seconds < *offset) return std::nullopt;
  return static_cast<uint64_t>(*seconds - *offset) * kMsPerSecond +
         static_cast<uint64_t>(*fraction);
}

}  // namespace

uint64_t unix_ms_now() {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return static_cast<uint64_t>(std::max<int64_t>(now.count(), 0));
}

std::string next_backup_id(uint64_t unix_ms, const std::vector<std::string>& existing) {
  uint64_t seconds = unix_ms / kMsPerSecond;
  for (const std::string& id : existing) {
    const auto other = seconds_of_id(id);
    if (other) seconds = std::max(seconds, static_cast<uint64_t>(*other) + 1);
  }
  std::string id = id_of(seconds);
  CHECK(is_backup_id(id));
  return id;
}

bool is_backup_id(std::string_view text) { return unix_ms_of_id(text).has_value(); }

std::optional<uint64_t> unix_ms_of_id(std::string_view id) {
  const auto seconds = seconds_of_id(id);
  if (!seconds) return std::nullopt;
  CHECK(id.size() == kBackupIdBytes && *seconds >= 0);
  return static_cast<uint64_t>(*seconds) * kMsPerSecond;
}

std::string utc_text(uint64_t unix_ms) {
  const std::tm parts = utc_of(unix_ms / kMsPerSecond);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     unix_ms % kMsPerSecond);
}

Result<uint64_t> parse_utc(const std::string& text) {
  if (const auto time = parse_time_text(text)) return *time;
  return make_error(ExitCode::usage,
                    fmt::format("time \"{}\": is not understood: write it as "
                                "2026-11-23T04:05:06Z, with an offset like +01:00 instead of Z, or "
                                "as @SECONDS since 1970",
                                text));
}

}  // namespace atolldb
