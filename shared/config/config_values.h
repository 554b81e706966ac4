// Values with units, as written in a config: "512MiB", "10ms".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atolldb {

/// Returns the bytes of "512MiB". Units: B, KiB, MiB, GiB, TiB. Returns nothing if the text is
/// malformed or the value exceeds 63 bits.
std::optional<int64_t> parse_size(std::string_view text);
/// Returns the microseconds of "10ms". Units: us, ms, s, min, h. Returns nothing if the text is
/// malformed or the value exceeds 63 bits.
std::optional<int64_t> parse_duration_us(std::string_view text);

/// Formats a value in the largest unit that gives an integer.
std::string format_size(int64_t bytes);
std::string format_duration_us(int64_t us);

/// Returns a TOML basic string, with its quotes.
std::string quote_toml(std::string_view text);

/// Returns the candidate that is most similar to `word`, or an empty view if none is similar.
/// Similar words differ in at most a third of their letters.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
/// As above, with the maximum number of differing letters.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates,
                              size_t max_mistakes);

}  // namespace atolldb
