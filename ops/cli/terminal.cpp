#include "ops/cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shared/config/config_values.h"

namespace atolldb::cli {
namespace {

constexpr std::chrono::milliseconds kProgressPause{1'000};

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.front() >= '0' && cell.front() <= '9';
}

}  // namespace

bool is_terminal() { return isatty(STDOUT_FILENO) == 1; }

bool use_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* terminal = std::getenv("TERM");
  return is_terminal() && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

std::string paint(Colour colour, const std::string& text) {
  if (!use_colour()) return text;
  switch (colour) {
    case Colour::red:
      return "\033[31m" + text + "\033[0m";
    case Colour::green:
      return "\033[32m" + text + "\033[0m";
    case Colour::yellow:
      return "\033[33m" + text + "\033[0m";
  }
  return text;
}

std::string format_bytes(uint64_t bytes) { return format_rounded_size(bytes); }

std::string format_count(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string format_percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "0.0 %";
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool right = is_number(row[i]);
      line += right ? fmt::format("{:>{}}  ", row[i], widths[i])
                    : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

ProgressLine::ProgressLine() : is_shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (is_open_) std::fprintf(stderr, "\r\033[K");
}

bool ProgressLine::is_due() const {
  return is_shown_ && Clock::now() - shown_at_ >= kProgressPause;
}

void ProgressLine::show(const std::string& text) {
  shown_at_ = Clock::now();
  is_open_ = true;
  std::fprintf(stderr, "\r\033[K%s", printable(text).c_str());
  std::fflush(stderr);
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begun_at_).count();
}

std::string printable(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) c = '?';
  }
  return clean;
}

}  // namespace atolldb::cli
