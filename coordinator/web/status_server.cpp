#include "coordinator/web/status_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <strings.h>

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/metrics/exposer.h"

namespace atolldb {
namespace {

/// Headers of every answer, also of those that civetweb gives to malformed requests.
constexpr const char* kCommonHeaders =
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer";

constexpr size_t kSendPartBytes = 16'384;

HttpAnswer text_answer(int status, const char* text) {
  return {.status = status, .body = std::make_shared<const std::string>(text)};
}

/// Sends the text. Gives up at the deadline, or if the client takes nothing for kRequestTimeout.
void send_text(mg_connection* connection, std::string_view text,
               std::chrono::steady_clock::time_point deadline) {
  while (!text.empty() && std::chrono::steady_clock::now() < deadline) {
    const std::string_view part = text.substr(0, kSendPartBytes);
    const int sent = mg_write(connection, part.data(), part.size());
    if (sent != static_cast<int>(part.size())) return;
    text.remove_prefix(part.size());
  }
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 500:
      return "Internal Server Error";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  std::string name;
  if (host.starts_with('[')) {
    name = host.substr(1, host.find(']') - 1);
  } else {
    // A second colon belongs to an IPv6 address without brackets.
    const bool is_ipv6 = std::ranges::count(host, ':') > 1;
    name = is_ipv6 ? host : host.substr(0, host.find(':'));
  }
  if (strcasecmp(name.c_str(), "localhost") == 0) return true;
  in_addr ipv4{};
  if (inet_pton(AF_INET, name.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == 127;
  in6_addr ipv6{};
  if (inet_pton(AF_INET6, name.c_str(), &ipv6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&ipv6) != 0;
}

Result<std::unique_ptr<StatusServer>> StatusServer::start(const std::string& listen, uint16_t port,
                                                          HttpGet get) {
  CHECK(get != nullptr && !listen.empty());
  auto server = std::unique_ptr<StatusServer>(new StatusServer(listen, std::move(get)));
  if (const auto opened = server->open(port); !opened) return std::unexpected(opened.error());
  return server;
}

StatusServer::StatusServer(std::string listen, HttpGet get)
    : listen_(std::move(listen)), get_(std::move(get)), is_loopback_(is_loopback_host(listen_)) {}

StatusServer::~StatusServer() {
  if (context_ == nullptr) return;
  MetricsExposer::end_server(listen_, port_, [this] { mg_stop(context_); });
}

Result<void> StatusServer::open(uint16_t port) {
  CHECK(context_ == nullptr);
  const std::string address = MetricsExposer::endpoint_text(listen_, port);
  const std::string threads = std::to_string(kThreads);
  const std::string timeout_ms = std::to_string(kRequestTimeout.count());
  const std::string max_bytes = std::to_string(kMaxRequestBytes);
  const char* const options[] = {"listening_ports",
                                 address.c_str(),
                                 "num_threads",
                                 threads.c_str(),
                                 "request_timeout_ms",
                                 timeout_ms.c_str(),
                                 "max_request_size",
                                 max_bytes.c_str(),
                                 "enable_keep_alive",
                                 "no",
                                 "additional_header",
                                 kCommonHeaders,
                                 nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = &StatusServer::serve;
  context_ = mg_start(&callbacks, this, const_cast<const char**>(options));
  if (context_ == nullptr) {
    return make_error(
        ExitCode::resources,
        port == 0 ? fmt::format("status_page.listen: cannot listen on {}: is it an address of this "
                                "machine? Set status_page.listen to one, or status_page.enabled to "
                                "false",
                                address)
                  : fmt::format("status_page.port: cannot listen on {}: is another process using "
                                "the port? Set status_page.port to a free port, or to 0 for any "
                                "free port",
                                address));
  }
  mg_server_port bound{};
  CHECK(mg_get_server_ports(context_, 1, &bound) == 1);
  CHECK(bound.port > 0 && bound.port <= UINT16_MAX);
  port_ = bound.port;
  return {};
}

std::string StatusServer::url() const {
  CHECK(port_ > 0);
  return "http://" + MetricsExposer::endpoint_text(listen_, port_) + "/";
}

HttpAnswer StatusServer::answer_to(const mg_connection* connection) const {
  const mg_request_info& request = *mg_get_request_info(connection);
  // A browser always sends the header. Checks by load balancers may lack it.
  const char* const host = mg_get_header(connection, "Host");
  if (is_loopback_ && host != nullptr && !is_loopback_host(host)) {
    return text_answer(403, "the header Host names another machine: use 127.0.0.1 or localhost\n");
  }
  if (std::string_view(request.request_method) != "GET") {
    return text_answer(405, "only GET is served\n");
  }
  const char* const query = request.query_string == nullptr ? "" : request.query_string;
  return get_(request.local_uri == nullptr ? "" : request.local_uri, query);
}

int StatusServer::serve(mg_connection* connection) {
  const auto* server = static_cast<const StatusServer*>(mg_get_user_context_data(connection));
  // Without this, civetweb would read the body of a refused request to its end.
  mg_disable_connection_keep_alive(connection);
  const HttpAnswer answer = [&] {
    try {
      return server->answer_to(connection);
    } catch (const std::exception&) {
      // A page that cannot be built must not end the coordinator.
      return text_answer(500, "internal error: the page cannot be built: see `atoll status`\n");
    }
  }();
  CHECK(answer.body != nullptr);
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}\r\n"
      "Content-Length: {}\r\n"
      "Content-Security-Policy: {}\r\n"
      "{}{}\r\n"
      "Connection: close\r\n"
      "\r\n",
      answer.status, reason_of(answer.status), answer.type, answer.body->size(), answer.policy,
      answer.status == 405 ? "Allow: GET\r\n" : "", kCommonHeaders);
  const auto deadline = std::chrono::steady_clock::now() + kSendLimit;
  send_text(connection, head, deadline);
  const bool has_body = std::string_view(mg_get_request_info(connection)->request_method) != "HEAD";
  if (has_body) send_text(connection, *answer.body, deadline);
  return answer.status;
}

}  // namespace atolldb
