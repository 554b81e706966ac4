// Short text lines over a socket pair: how launcher and children talk about the life cycle.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/error.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

/// Both ends: close-on-exec and non-blocking.
Result<std::pair<UniqueFd, UniqueFd>> make_channel();

/// Longest line; longer ones are cut.
inline constexpr size_t kMaxChannelLine = 16'384;

/// Sends one line (line feeds in it become spaces). False when nobody reads any more, or when the
/// other side has not read for so long that the channel is full. Never raises SIGPIPE.
bool send_line(int fd, std::string_view line);

/// Gathers lines from one end of a channel. One thread.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}
  /// All complete lines that have arrived.
  std::vector<std::string> read();
  /// The other side has gone.
  bool is_closed() const { return closed_; }

 private:
  int fd_;
  bool closed_ = false;
  std::string partial_;
};

}  // namespace atolldb
