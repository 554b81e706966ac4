// Minimal HTTP client for the tests of the metrics.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <string>

#include "shared/base/unique_fd.h"

namespace atolldb::test {

inline sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Returns a port that was free at the time of the call.
inline uint16_t free_port() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return 0;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

/// Returns the first of `count` successive ports that were free at the time of the call, or 0. They
/// are below the ports that the system gives to other sockets.
inline uint16_t free_ports(uint16_t count) {
  for (uint16_t first = 20'000; first < 29'000; first += count) {
    uint16_t free = 0;
    while (free < count) {
      const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
      const sockaddr_in address = loopback(static_cast<uint16_t>(first + free));
      if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) break;
      ++free;
    }
    if (free == count) return first;
  }
  return 0;
}

/// Returns the body of an answer with status 200 from 127.0.0.1, or an empty text.
inline std::string http_get(uint16_t port, const std::string& path) {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return "";
  }
  const std::string request = "GET " + path + " HTTP/1.0\r\nHost: localhost\r\n\r\n";
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char buffer[65536];
  for (ssize_t got = 0; (got = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  const size_t body = answer.find("\r\n\r\n");
  const bool good = answer.starts_with("HTTP/1.") && answer.substr(9, 3) == "200";
  return good && body != std::string::npos ? answer.substr(body + 4) : "";
}

/// Percent-encodes everything but letters and digits.
inline std::string url_encode(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

/// Returns the path of a program of Prometheus's package, on the PATH or where ops/setup unpacks
/// it. Empty if there is none.
inline std::string find_program(const std::string& name) {
  const std::string unpacked =
      std::string(ATOLL_SOURCE_DIR) + "/build/tools/prometheus/usr/bin/" + name;
  for (const std::string& path : {"/usr/bin/" + name, "/usr/local/bin/" + name, unpacked}) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

/// Returns the port of "host:port".
inline uint16_t port_of(const std::string& endpoint) {
  return static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

}  // namespace atolldb::test
