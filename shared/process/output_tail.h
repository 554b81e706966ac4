// The end of what a command writes: bounded in memory, and fit for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace atolldb {

/// Only so many bytes of a command's output are kept. The end says why a command has failed.
inline constexpr size_t kCommandOutputBytes = 4096;

class OutputTail {
 public:
  void add(std::string_view bytes);
  /// Returns the last kCommandOutputBytes bytes in one line of UTF-8, without blanks around it. It
  /// begins with "..." if bytes before it are dropped.
  std::string text() const;

 private:
  std::string bytes_;  // at most twice the limit, so that few calls of `add` move bytes
  bool is_cut_ = false;
};

}  // namespace atolldb
