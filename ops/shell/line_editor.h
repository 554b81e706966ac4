// Input of the shell from a terminal: line editing, history and completion, by libedit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb::shell {

/// Returns the words that may replace the last word of the line before the cursor.
using Complete = std::function<std::vector<std::string>(std::string_view line)>;

/// Thread: one. At most one editor exists in a process.
class LineEditor {
 public:
  /// Number of lines that the history keeps.
  static constexpr int kHistoryLines = 1'000;

  enum class Read : unsigned char {
    line,
    interrupted,  // the user pressed Ctrl-C: the line is discarded
    end,          // the user pressed Ctrl-D, or the terminal has closed
  };

  /// `history_file`: is read now, and written by each `remember`. Empty: no history file. A file
  /// that cannot be read or written is ignored.
  LineEditor(std::string history_file, Complete complete);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  /// Shows the prompt and reads a line, without its line end.
  Read read(const std::string& prompt, std::string& line);
  /// Returns whether the user has pressed Ctrl-C since the last line was read, or since the last
  /// call. REQUIRES: `read` does not run.
  static bool take_interrupt();
  /// Adds a line to the history.
  void remember(const std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the longest text with which all words begin.
std::string common_prefix(const std::vector<std::string>& words);

}  // namespace atolldb::shell
