#include "shared/config/config_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <vector>

#include "shared/base/check.h"

namespace atolldb {
namespace {

using namespace config_limits;

struct Unit {
  std::string_view name;
  int64_t factor;
};

// Ascending: formatting searches from the end, and so finds the largest unit that fits.
constexpr std::array<Unit, 5> kSizeUnits{
    {{"B", 1}, {"KiB", kKiB}, {"MiB", kMiB}, {"GiB", kGiB}, {"TiB", kTiB}}};
constexpr std::array<Unit, 5> kDurationUnits{
    {{"us", 1}, {"ms", kMillisecondUs}, {"s", kSecondUs}, {"min", kMinuteUs}, {"h", kHourUs}}};

std::optional<int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  CHECK(rest > text.data() && number >= 0);
  const std::string_view name(rest, static_cast<size_t>(end - rest));
  const auto* unit = std::ranges::find(units, name, &Unit::name).base();
  if (unit == units.data() + units.size()) return std::nullopt;
  if (number > std::numeric_limits<int64_t>::max() / unit->factor) return std::nullopt;
  return number * unit->factor;
}

std::string format_with_unit(int64_t value, std::span<const Unit> units) {
  size_t index = units.size() - 1;
  while (index > 0 && (value == 0 || value % units[index].factor != 0)) --index;
  CHECK(value % units[index].factor == 0);
  return std::to_string(value / units[index].factor) + std::string(units[index].name);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  CHECK(row[b.size()] <= std::max(a.size(), b.size()));
  return row[b.size()];
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) {
  return parse_with_unit(text, kSizeUnits);
}

std::optional<int64_t> parse_duration_us(std::string_view text) {
  return parse_with_unit(text, kDurationUnits);
}

std::string format_size(int64_t bytes) { return format_with_unit(bytes, kSizeUnits); }

std::string format_rounded_size(uint64_t bytes) {
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kSizeUnits.size()) {
    value /= 1024;
    ++unit;
  }
  CHECK(unit < kSizeUnits.size());
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.1f} {}", value, kSizeUnits[unit].name);
}

std::string format_duration_us(int64_t us) { return format_with_unit(us, kDurationUnits); }

std::string quote_toml(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04X", static_cast<unsigned>(byte));
      quoted += escaped;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  return nearest_word(word, candidates, std::max<size_t>(1, word.size() / 3));
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates,
                              size_t max_mistakes) {
  // The time is quadratic in the length, so very long words get no suggestion.
  constexpr size_t kMaxWordBytes = 64;
  if (word.size() > kMaxWordBytes) return {};
  std::string_view nearest;
  size_t best = max_mistakes + 1;
  for (const std::string_view candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace atolldb
