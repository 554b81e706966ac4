// Human-readable output: colours (only on a terminal, and without NO_COLOR), tables, sizes and
// counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb::cli {

enum class Colour { red, green, yellow };

bool is_terminal();
/// Evaluates standard output, NO_COLOR and TERM at each call.
bool use_colour();
std::string paint(Colour colour, const std::string& text);

/// Returns "1.5 GiB" for example.
std::string format_bytes(uint64_t bytes);
/// Returns "1,234,567" for example.
std::string format_count(uint64_t count);
std::string format_percent(double part, double whole);

/// Columns are as wide as their widest cell and two spaces apart. The first row is the heading.
/// Numbers are right-aligned.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// Makes foreign text safe for a terminal: control characters except line feed and tab become "?".
std::string printable(std::string_view text);

}  // namespace atolldb::cli
