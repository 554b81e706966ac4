// Human-readable output: colours (only on a terminal, and without NO_COLOR), tables, sizes and
// counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb::cli {

enum class Colour { red, green, yellow };

bool is_terminal();
/// Returns whether to print colours. Checks standard output, NO_COLOR and TERM at each call.
bool use_colour();
std::string paint(Colour colour, const std::string& text);

/// Returns "1.5 GiB" for example.
std::string format_bytes(uint64_t bytes);
/// Returns "1,234,567" for example.
std::string format_count(uint64_t count);
std::string format_percent(double part, double whole);

/// Returns a table. Columns are as wide as their widest cell and two spaces apart. The first row is
/// the heading. Numbers are right-aligned.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// Shows a line of progress on standard error if that is a terminal. The destructor erases the
/// line. Thread: one.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Returns whether the line should be shown again: once per second.
  bool is_due() const;
  void show(const std::string& text);
  /// Returns the seconds since the construction.
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  const bool is_shown_;
  bool is_open_ = false;
  const Clock::time_point begun_at_ = Clock::now();
  Clock::time_point shown_at_ = begun_at_;
};

/// Makes foreign text safe for a terminal: control characters except line feed and tab become "?".
std::string printable(std::string_view text);

}  // namespace atolldb::cli
