// Keeps the last bytes of a command's output, in bounded memory, as a text for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace atolldb {

/// Kept bytes of a command's output. The last ones usually say why the command has failed.
inline constexpr size_t kCommandOutputBytes = 4096;

class OutputTail {
 public:
  void add(std::string_view bytes);
  /// Returns the last kCommandOutputBytes bytes as one line of UTF-8, without blanks at its ends.
  /// The text begins with "..." if earlier bytes were dropped.
  std::string text() const;

 private:
  std::string bytes_;  // at most twice the limit: most calls of `add` only append
  bool is_cut_ = false;
};

}  // namespace atolldb
