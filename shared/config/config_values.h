// Parses and formats values with units, as in a config: "512MiB", "10ms". Also defines the units,
// and limits that several files need. config_keys.cpp has the limits of single keys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace atolldb {

namespace config_limits {

constexpr int64_t kKiB = 1LL << 10;
constexpr int64_t kMiB = 1LL << 20;
constexpr int64_t kGiB = 1LL << 30;
constexpr int64_t kTiB = 1LL << 40;
constexpr int64_t kMillisecondUs = 1'000;
constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kMinuteUs = 60 * kSecondUs;
constexpr int64_t kHourUs = 60 * kMinuteUs;

constexpr int64_t kMaxFileBytes = 1 * kMiB;
constexpr int64_t kMaxListEntries = 256;
/// sockaddr_un::sun_path holds 108 bytes with the terminating zero.
constexpr int64_t kMaxSocketPathBytes = 107;
/// Leaves room for "/" and the longest name of a socket in run_dir.
constexpr int64_t kMaxRunDirBytes = kMaxSocketPathBytes - 24;
constexpr int64_t kMaxNumaNode = 1'023;
constexpr int64_t kLogFileStepBytes = 4 * kKiB;
constexpr int64_t kMaxPort = 65'535;

}  // namespace config_limits

/// Returns the number of bytes of a text like "512MiB". Units: B, KiB, MiB, GiB, TiB. Returns
/// nothing if the text is malformed or the value exceeds 63 bits.
std::optional<int64_t> parse_size(std::string_view text);
/// Returns the number of microseconds of a text like "10ms". Units: us, ms, s, min, h. Returns
/// nothing if the text is malformed or the value exceeds 63 bits.
std::optional<int64_t> parse_duration_us(std::string_view text);

/// Formats a value in the largest unit that gives an integer.
std::string format_size(int64_t bytes);
std::string format_duration_us(int64_t us);
/// Returns a text like "1.5 GiB" for people.
std::string format_rounded_size(uint64_t bytes);

/// Returns a TOML basic string, with its quotes.
std::string quote_toml(std::string_view text);

/// Returns the candidate that is most similar to `word`, or an empty view if none is similar.
/// Similar words differ in at most a third of the letters of `word`, or in one letter.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);
/// Does the same with a given maximum number of differing letters.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates,
                              size_t max_mistakes);

}  // namespace atolldb
