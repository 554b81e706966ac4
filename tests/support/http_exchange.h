// Sends raw HTTP requests to a server on 127.0.0.1, also wrong and incomplete ones.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "shared/base/unique_fd.h"

namespace atolldb::test {

/// Connects to the port. Returns an invalid descriptor if no server listens.
inline UniqueFd connect_to_port(int port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return UniqueFd();
  }
  return fd;
}

/// Returns false if the other side has closed the connection.
inline bool send_bytes(const UniqueFd& fd, std::string_view bytes) {
  return send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

/// Returns what the server sends until it closes the connection.
inline std::string receive_all(const UniqueFd& fd) {
  std::string answer;
  char buffer[65'536];
  for (ssize_t got = 0; (got = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  return answer;
}

/// Sends a whole request. Returns the answer with its headers, or "" if there is none.
inline std::string http_exchange(int port, std::string_view request) {
  const UniqueFd fd = connect_to_port(port);
  if (!fd.is_open() || !send_bytes(fd, request)) return "";
  return receive_all(fd);
}

/// Returns the answer to a request without a body.
inline std::string request_of(int port, const std::string& method, const std::string& path,
                              const std::string& host = "localhost") {
  return http_exchange(port, method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
}

/// Returns the status of an answer, or 0 if it is none.
inline int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
}

inline std::string body_of(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace atolldb::test
