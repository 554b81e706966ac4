#include "shared/client/connection_string.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/client/network_client.h"
#include "shared/client/session_client.h"
#include "shared/config/default_run_dir.h"

namespace atolldb {
namespace {

using ConnectClock = std::chrono::steady_clock;

/// Shortest time that a node in the network has for its answer.
constexpr std::chrono::milliseconds kShortestHandshake{100};

constexpr std::string_view kScheme = "atoll:";
constexpr std::string_view kNetworkScheme = "atoll+tcp:";
constexpr std::string_view kForms =
    "use atoll:NAME, atoll:///run/folder or "
    "atoll+tcp://HOST:PORT?server_key=KEY&key_file=FILE";
/// Longest host name of the DNS.
constexpr size_t kMaxHostBytes = 255;

std::unexpected<Error> wrong_string(std::string_view text, const std::string& why) {
  DCHECK(!why.empty());
  return make_error(ExitCode::usage, "connection string \"" + std::string(text) + "\": " + why);
}

/// Returns the value of a hexadecimal digit, or -1.
int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// Replaces %XX by one byte. Returns false for a wrong escape, or for a zero byte.
bool unescape_percent(std::string_view text, std::string& decoded) {
  CHECK(decoded.empty());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return false;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded.find('\0') == std::string::npos;
}

/// Parses digits only. Returns false for anything else, and for numbers above `most`.
bool parse_number(std::string_view text, uint64_t most, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number <= most;
}

/// Sets a parameter that only one kind of targets has. Returns what is wrong with it, or an empty
/// text.
std::string set_own_parameter(ConnectionTarget& target, std::string_view name,
                              std::string_view value) {
  if (!target.network && name == "node") {
    uint64_t number = 0;
    if (!parse_number(value, kMaxNodes - 1, number)) {
      return "node: is not a number from 0 to " + std::to_string(kMaxNodes - 1);
    }
    target.node = static_cast<uint32_t>(number);
    target.names_node = true;
    DCHECK(target.node < kMaxNodes);
    return "";
  }
  if (target.network && name == "server_key") {
    target.network->server_key = curve_key_of_hex(value);
    if (!target.network->server_key) {
      return "server_key: has not 64 hexadecimal digits: `atoll status` shows the key of a node";
    }
    return "";
  }
  if (target.network && name == "key_file") {
    std::string path;
    if (!unescape_percent(value, path) || path.empty()) return "key_file: is no path";
    target.network->key_file = std::move(path);
    return "";
  }
  return "\"" + std::string(name) + "\": is no parameter: use " +
         (target.network ? "server_key, key_file" : "node") + ", connect_timeout_ms or acknowledge";
}

/// Sets one parameter of the target. Returns what is wrong with it, or an empty text.
std::string set_parameter(ConnectionTarget& target, std::string_view name, std::string_view value) {
  uint64_t number = 0;
  if (name == "connect_timeout_ms") {
    const auto most = static_cast<uint64_t>(kMaxConnectTimeout.count());
    if (!parse_number(value, most, number)) {
      return "connect_timeout_ms: is not a number from 0 to " + std::to_string(most);
    }
    target.connect_timeout = std::chrono::milliseconds(number);
    DCHECK(target.connect_timeout <= kMaxConnectTimeout);
    return "";
  }
  if (name == "acknowledge") {
    if (value != "durable" && value != "visible") return "acknowledge: is not durable or visible";
    target.answer_at = value == "durable" ? AnswerAt::durable : AnswerAt::precommitted;
    return "";
  }
  return set_own_parameter(target, name, value);
}

/// Sets the parameters after the question mark. Returns what is wrong, or an empty text.
std::string set_parameters(ConnectionTarget& target, std::string_view query) {
  std::set<std::string_view> seen;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = parameter.find('=');
    if (equals == std::string_view::npos) {
      return "\"" + std::string(parameter) + "\": a parameter is NAME=VALUE";
    }
    const std::string_view name = parameter.substr(0, equals);
    if (!seen.insert(name).second) return "\"" + std::string(name) + "\": is given twice";
    std::string why = set_parameter(target, name, parameter.substr(equals + 1));
    if (!why.empty()) return why;
  }
  return "";
}

/// Returns whether `text` may be the name of a cluster (cluster.name).
bool is_cluster_name(std::string_view text) {
  constexpr size_t kMostBytes = 32;
  return !text.empty() && text.size() <= kMostBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

/// Returns the run folder that the part between scheme and question mark names, or an empty text if
/// that part is wrong.
std::string run_dir_of(std::string_view place) {
  if (is_cluster_name(place)) return default_run_dir(std::string(place));
  std::string decoded;
  if (!place.starts_with("///") || !unescape_percent(place.substr(2), decoded)) return "";
  return decoded;
}

/// Returns the address HOST:PORT, or nothing if it is wrong. An IPv6 address has brackets.
std::optional<NetworkAddress> address_of(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  const bool is_ipv6 = host.starts_with('[') && host.ends_with(']');
  const bool is_name = std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
  uint64_t port = 0;
  if (host.empty() || host.size() > kMaxHostBytes || !(is_name || is_ipv6)) return std::nullopt;
  if (!parse_number(text.substr(colon + 1), UINT16_MAX, port) || port == 0) return std::nullopt;
  NetworkAddress address;
  address.host = host;
  address.port = static_cast<uint16_t>(port);
  DCHECK(address.port != 0);
  return address;
}

Result<ConnectionTarget> parse_network_target(std::string_view text) {
  const std::string_view rest = text.substr(kNetworkScheme.size());
  const size_t mark = std::min(rest.find('?'), rest.size());
  ConnectionTarget target;
  const std::string_view place = rest.substr(0, mark);
  if (place.starts_with("//")) target.network = address_of(place.substr(2));
  if (!target.network) return wrong_string(text, "names no host and port: " + std::string(kForms));
  const std::string why = set_parameters(target, rest.substr(std::min(mark + 1, rest.size())));
  if (!why.empty()) return wrong_string(text, why);
  if (target.network->server_key.has_value() == target.network->key_file.empty()) {
    return wrong_string(
        text,
        "server_key and key_file belong together: `atoll status` shows the key of a node, "
        "and `atoll keys generate` makes a file");
  }
  return target;
}

/// Makes a session once, over the transport of the target.
Result<std::unique_ptr<ClientTransport>> connect_transport(const ConnectionTarget& target,
                                                           ConnectClock::time_point until) {
  if (target.network) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ConnectClock::now());
    return NetworkClient::connect(
        *target.network, std::clamp(left, kShortestHandshake, NetworkClient::kHandshakeTimeout));
  }
  return SessionClient::connect(target.run_dir, target.node);
}

}  // namespace

Result<std::unique_ptr<ClientTransport>> connect_to(const ConnectionTarget& target,
                                                    std::chrono::milliseconds patience,
                                                    Isolation isolation) {
  CHECK(patience.count() >= 0);
  CHECK(target.network.has_value() == target.run_dir.empty());
  const std::string what = target.network ? "session: " + target.network->host + ":" +
                                                std::to_string(target.network->port)
                                          : "session: node " + std::to_string(target.node);
  const auto until = ConnectClock::now() + patience;
  return connect_until_running([&] { return connect_transport(target, until); }, patience, {},
                               isolation, what);
}

std::string escape_percent(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::string_view kPlain = "/._-";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || kPlain.contains(c)) {
      escaped += c;
    } else {
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

Result<ConnectionTarget> parse_connection_string(std::string_view text) {
  if (text.starts_with(kNetworkScheme)) return parse_network_target(text);
  if (!text.starts_with(kScheme))
    return wrong_string(text, "has another scheme: " + std::string(kForms));
  const std::string_view rest = text.substr(kScheme.size());
  const size_t mark = std::min(rest.find('?'), rest.size());
  ConnectionTarget target;
  target.run_dir = run_dir_of(rest.substr(0, mark));
  if (target.run_dir.empty()) {
    return wrong_string(text, "names no cluster: " + std::string(kForms));
  }
  const std::string why = set_parameters(target, rest.substr(std::min(mark + 1, rest.size())));
  if (!why.empty()) return wrong_string(text, why);
  CHECK(target.run_dir.starts_with('/'));
  CHECK(target.connect_timeout.count() >= 0);
  return target;
}

}  // namespace atolldb
