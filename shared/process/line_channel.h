// Short text lines over a socket pair, between launcher and children, about the life cycle.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// Returns both ends of a new channel. They are close-on-exec and non-blocking.
Result<std::pair<UniqueFd, UniqueFd>> make_channel();

/// Limit for the length of a line. Longer lines are truncated.
inline constexpr size_t kMaxChannelLine = 16'384;

/// Sends one line, with line feeds replaced by spaces. Returns false if the other end is closed, or
/// if the channel is full because the peer does not read. Never raises SIGPIPE.
bool send_line(int fd, std::string_view line);

/// Collects lines from one end of a channel. Thread: a single one.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) { CHECK(fd >= 0); }
  /// Returns all complete lines that have arrived.
  std::vector<std::string> read();
  /// Returns whether the other end is closed.
  bool is_closed() const { return closed_; }

 private:
  int fd_;
  bool closed_ = false;
  std::string partial_;
};

}  // namespace atolldb
