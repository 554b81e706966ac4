#include "shared/process/line_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "shared/base/check.h"

namespace atolldb {

Result<std::pair<UniqueFd, UniqueFd>> make_channel() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
    return make_error(ExitCode::resources, std::string("channel to a process: socketpair: ") +
                                               std::strerror(errno) + ": raise `ulimit -n`");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

bool send_line(int fd, std::string_view line) {
  CHECK(fd >= 0);
  std::string text(line.substr(0, kMaxChannelLine));
  std::replace(text.begin(), text.end(), '\n', ' ');
  text += '\n';
  const ssize_t sent =
      uninterrupted([&] { return send(fd, text.data(), text.size(), MSG_NOSIGNAL); });
  return sent == static_cast<ssize_t>(text.size());
}

std::vector<std::string> LineReader::read() {
  std::array<char, 4096> buffer;
  while (!closed_) {
    const ssize_t got = uninterrupted([&] { return recv(fd_, buffer.data(), buffer.size(), 0); });
    if (got < 0 && errno == EAGAIN) break;  // no more data for now
    if (got <= 0) {
      closed_ = true;
      break;
    }
    partial_.append(buffer.data(), static_cast<size_t>(got));
  }
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', start)) {
    lines.push_back(partial_.substr(start, end - start));
    start = end + 1;
  }
  partial_.erase(0, start);
  CHECK(partial_.find('\n') == std::string::npos);
  return lines;
}

}  // namespace atolldb
