// Values with units, the way people write them in a config: "512MiB", "10ms".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atolldb {

/// Bytes of "512MiB"; units B, KiB, MiB, GiB, TiB. Nothing if malformed or beyond 63 bits.
std::optional<int64_t> parse_size(std::string_view text);
/// Microseconds of "10ms"; units us, ms, s, min, h. Nothing if malformed or beyond 63 bits.
std::optional<int64_t> parse_duration_us(std::string_view text);

/// In the largest unit that leaves an integer.
std::string format_size(int64_t bytes);
std::string format_duration_us(int64_t us);

/// A TOML basic string with its quotes.
std::string quote_toml(std::string_view text);

/// The candidate that somebody who typed `word` may have meant, or empty if none is near: nobody
/// means a word that differs in more than a third of its letters.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
/// The same with the number of letters in which they may differ.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates,
                              size_t max_mistakes);

}  // namespace atolldb
