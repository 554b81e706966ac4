// HTTP server of the status page: GET requests only, bounded in size and time, by civetweb.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "shared/base/error.h"

struct mg_connection;
struct mg_context;

namespace atolldb {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  /// Value of the header Content-Security-Policy. The default lets a browser load nothing.
  std::string policy = "default-src 'none'; frame-ancestors 'none'";
};

/// Returns the answer to a GET request. `path` begins with "/" and is decoded. `query`: what
/// follows "?", or "". Thread: any of the server.
using HttpGet = std::function<HttpAnswer(std::string_view path, std::string_view query)>;

/// Server with its own threads; serves until its destruction. All other methods than GET get 405.
///
/// If it listens on a loopback address, it refuses requests whose header Host names another machine
/// (403). Otherwise a web page that a user of this machine visits could read the answers, by a name
/// that it rebinds to 127.0.0.1.
///
/// A client that sends or reads slowly takes a thread until its limit. With N such clients, a
/// request waits for at most N / kThreads limits.
class StatusServer {
 public:
  static constexpr uint32_t kThreads = 2;
  static constexpr uint32_t kMaxRequestBytes = 8'192;  // request line and headers
  /// Limit for the time from the first byte of a request to its last, and for each part of an
  /// answer.
  static constexpr std::chrono::milliseconds kRequestTimeout{1'000};
  /// Limit for the time in which a client takes a whole answer.
  static constexpr std::chrono::milliseconds kSendLimit{5'000};

  /// Starts the server. Port 0 takes any free port. Returns code resources if it cannot listen; the
  /// text names the config key and the address. REQUIRES: what `get` uses outlives the server.
  static Result<std::unique_ptr<StatusServer>> start(const std::string& listen, uint16_t port,
                                                     HttpGet get);
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;
  ~StatusServer();

  int port() const { return port_; }
  /// Returns the URL of the path "/".
  std::string url() const;

 private:
  StatusServer(std::string listen, HttpGet get);
  Result<void> open(uint16_t port);
  /// Answers a request and returns its status. Called by civetweb.
  static int serve(mg_connection* connection);
  HttpAnswer answer_to(const mg_connection* connection) const;

  const std::string listen_;
  const HttpGet get_;
  const bool is_loopback_;
  mg_context* context_ = nullptr;  // null: the server does not run
  int port_ = 0;
};

/// Returns whether `host`, the value of a header Host, names this machine by a loopback address or
/// as localhost. A port after the name is ignored.
bool is_loopback_host(std::string_view host);

}  // namespace atolldb
