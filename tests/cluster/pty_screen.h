// A program on a terminal of kind vt100 that the test controls, and the characters on its screen.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace atolldb::test {

/// Knows the escape sequences of a vt100 that ncurses uses without scrolling.
class PtyScreen {
 public:
  /// `home`: folder of the test, for XDG_RUNTIME_DIR, HOME and the like.
  PtyScreen(const std::string& home, std::vector<std::string> words, uint16_t width = 80,
            uint16_t height = 24) {
    winsize size{height, width, 0, 0};
    reset(width, height);
    pid_ = forkpty(&master_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    setenv("TERM", "vt100", 1);
    // As CliRunner sets them.
    setenv("XDG_RUNTIME_DIR", home.c_str(), 1);
    setenv("XDG_STATE_HOME", (home + "/state").c_str(), 1);
    setenv("XDG_DATA_HOME", (home + "/data").c_str(), 1);
    setenv("HOME", home.c_str(), 1);
    unsetenv("LINES");
    unsetenv("COLUMNS");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers.front(), pointers.data());
    _exit(127);
  }
  ~PtyScreen() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
  }
  PtyScreen(const PtyScreen&) = delete;
  PtyScreen& operator=(const PtyScreen&) = delete;

  pid_t pid() const { return pid_; }
  void type(const std::string& text) const {
    EXPECT_EQ(write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Changes the size of the terminal. The program gets SIGWINCH.
  void resize(uint16_t width, uint16_t height) {
    winsize size{height, width, 0, 0};
    reset(width, height);
    EXPECT_EQ(ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  /// Waits until the condition holds for the text of the screen. Returns false after a minute.
  template <typename Condition>
  bool until(Condition condition) {
    for (int i = 0; i < 600; ++i) {
      if (condition(text())) return true;
      pollfd ready{master_, POLLIN, 0};
      if (poll(&ready, 1, 100) > 0 && !take_output()) break;
    }
    if (condition(text())) return true;
    ADD_FAILURE() << "the screen is\n" << text();
    return false;
  }
  bool shows(const std::string& part) {
    const bool found = until([&](const std::string& screen) { return screen.contains(part); });
    if (!found) ADD_FAILURE() << "expected \"" << part << "\"";
    return found;
  }
  /// Returns the lines of the screen, without blanks at their ends.
  std::string text() const {
    std::string all;
    for (std::string line : screen_) {
      line.erase(line.find_last_not_of(' ') + 1);
      all += line + "\n";
    }
    return all;
  }
  /// Returns whether lines are edited and characters are echoed, as before the program.
  bool is_restored() const {
    termios mode{};
    return tcgetattr(master_, &mode) == 0 && (mode.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO);
  }
  /// Returns the exit code, or 128 + signal. Reads the rest of the output first.
  int wait() {
    while (take_output()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  void reset(size_t width, size_t height) {
    screen_.assign(height, std::string(width, ' '));
    row_ = column_ = 0;
  }
  /// Takes a few characters, so that `until` sees each state of the screen, also if the test is
  /// late.
  bool take_output() {
    char buffer[32];
    const ssize_t got = read(master_, buffer, sizeof(buffer));
    for (ssize_t i = 0; i < got; ++i) take(buffer[i]);
    return got > 0;
  }
  size_t width() const { return screen_.front().size(); }

  void take(char c) {
    if (!escape_.empty() || c == '\033') {
      escape_ += c;
      if (is_sequence_complete()) {
        if (escape_[1] == '[') obey();
        escape_.clear();
      }
      return;
    }
    if (c == '\r') column_ = 0;
    if (c == '\b' && column_ > 0) --column_;
    if (c == '\t') column_ = std::min(width() - 1, (column_ / 8 + 1) * 8);
    if (c == '\n') next_row();
    if (c < ' ') return;
    if (column_ >= width()) {  // the line goes on in the next row
      column_ = 0;
      next_row();
    }
    screen_[row_][column_++] = c;
  }
  void next_row() {
    if (row_ + 1 < screen_.size()) {
      ++row_;
    } else {  // the screen scrolls, for example after ncurses has ended
      screen_.erase(screen_.begin());
      screen_.emplace_back(std::string(width(), ' '));
    }
  }
  bool is_sequence_complete() const {
    if (escape_.size() < 2) return false;
    if (escape_[1] == '[') return escape_.size() > 2 && escape_.back() >= '@';
    return escape_[1] == '(' || escape_[1] == ')' ? escape_.size() == 3 : true;
  }
  /// Returns parameter `index` of the sequence, or 1.
  size_t parameter(size_t index) const {
    size_t at = 2;
    for (; index > 0; --index) {
      at = escape_.find(';', at);
      if (at == std::string::npos) return 1;
      ++at;
    }
    const auto value = static_cast<size_t>(std::strtoul(escape_.c_str() + at, nullptr, 10));
    return std::max<size_t>(value, 1);
  }
  void obey() {
    const auto clear = [this](size_t row, size_t from) {
      std::fill(screen_[row].begin() + static_cast<std::ptrdiff_t>(std::min(from, width())),
                screen_[row].end(), ' ');
    };
    const size_t count = parameter(0);
    switch (escape_.back()) {
      case 'H':
        row_ = std::min(count, screen_.size()) - 1;
        column_ = std::min(parameter(1), width()) - 1;
        return;
      case 'A':
        row_ -= std::min(row_, count);
        return;
      case 'B':
        row_ = std::min(row_ + count, screen_.size() - 1);
        return;
      case 'C':
        column_ = std::min(column_ + count, width() - 1);
        return;
      case 'D':
        column_ -= std::min(column_, count);
        return;
      case 'K':
        if (escape_ == "\033[1K") {
          std::fill_n(screen_[row_].begin(), std::min(column_ + 1, width()), ' ');
        } else {
          clear(row_, column_);
        }
        return;
      case 'J':
        clear(row_, column_);
        for (size_t row = row_ + 1; row < screen_.size(); ++row) clear(row, 0);
        return;
      default:
        return;  // attributes and modes
    }
  }

  int master_ = -1;
  pid_t pid_ = 0;
  std::vector<std::string> screen_;
  size_t row_ = 0;
  size_t column_ = 0;
  std::string escape_;  // the beginning of a sequence
};

}  // namespace atolldb::test
