// Output for people: colours only on a terminal and without NO_COLOR, sizes and counts to read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb::cli {

enum class Colour { red, green, yellow };

bool is_terminal();
/// Decided once per call from standard output, NO_COLOR and TERM.
bool use_colour();
std::string paint(Colour colour, const std::string& text);

/// "1.5 GiB"
std::string format_bytes(uint64_t bytes);
/// "1,234,567"
std::string format_count(uint64_t count);
std::string format_percent(double part, double whole);

/// Columns as wide as their widest cell, two spaces apart; the first row is the heading. Numbers
/// stand to the right.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// Text of others on its way to a terminal: control characters but line feed and tab become "?".
std::string printable(std::string_view text);

}  // namespace atolldb::cli
