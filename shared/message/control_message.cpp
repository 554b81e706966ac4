#include "shared/message/control_message.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Name of the member that contains the name of the binary member.
constexpr const char* kBinary = "binary";

/// Returns the message as JSON text. Replaces invalid UTF-8, which texts of users may contain, and
/// so never throws.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error garbage(const std::string& why) {
  return {ExitCode::failed, "control message: " + why + ": use version " +
                                std::to_string(kControlVersion) + " of the protocol"};
}

/// Parses an object, and checks its version. REQUIRES: the frame has been scanned (R64).
Result<Json> parse_envelope(std::string_view frame) {
  Json json = Json::parse(frame, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return std::unexpected(garbage("no JSON object"));
  const auto version = json.find("v");
  if (version == json.end() || !version->is_number_integer() || *version != kControlVersion) {
    return std::unexpected(garbage("its member v is not the version"));
  }
  return json;
}

/// Moves the value of the binary member out of the message, and names it in the member "binary".
std::optional<std::vector<uint8_t>> take_binary(Json& json) {
  CHECK(json.is_object() && !json.contains(kBinary));
  std::optional<std::vector<uint8_t>> bytes;
  std::string name;
  for (auto member = json.begin(); member != json.end(); ++member) {
    if (!member->is_binary()) continue;
    CHECK(!bytes);  // at most one member is binary
    bytes = std::move(member->get_binary());
    name = member.key();
  }
  if (!bytes) return std::nullopt;
  json.erase(name);
  json[kBinary] = name;
  return bytes;
}

/// Puts the bytes of the second frame into the member that the first one names.
Result<void> put_binary(Json& json, const ControlPart& bytes) {
  const auto named = json.find(kBinary);
  if (named == json.end() && !bytes) return {};
  if (named == json.end() || !bytes || !named->is_string()) {
    return std::unexpected(garbage("its binary part and its member binary do not match"));
  }
  const auto name = named->get<std::string>();
  json.erase(named);
  if (json.contains(name) || name == kBinary) {
    return std::unexpected(garbage("its binary part has the name of another member"));
  }
  json[name] = to_binary(*bytes);
  CHECK(!json.contains(kBinary));
  return {};
}

size_t size_of(const ControlPart& part) { return part ? part->size() : 0; }

std::unexpected<Error> wrong_member(const ControlRequest& request, const char* member,
                                    const char* expected) {
  return make_error(ExitCode::usage,
                    request.op + ": member \"" + member + "\" must be " + expected);
}

}  // namespace

Result<ControlRequest> parse_request(std::string_view frame, ControlPart binary) {
  ATOLL_ASSIGN(const ControlScan scan, scan_control_message(frame));
  const ControlOperation operation = control_operation(scan.op);
  const ControlLimits limits = control_limits(operation);
  if (binary && !entry_of(operation).takes_binary) {
    return std::unexpected(garbage("its op takes no binary part"));
  }
  const size_t bytes = frame.size() + size_of(binary);
  if (bytes > limits.bytes || scan.values > limits.values) {
    return std::unexpected(garbage(std::to_string(bytes) + " bytes and " +
                                   std::to_string(scan.values) + " values are more than the " +
                                   std::to_string(limits.bytes) + " and " +
                                   std::to_string(limits.values) + " of its op"));
  }
  ATOLL_ASSIGN(Json json, parse_envelope(frame));
  const auto op = json.find("op");
  if (op == json.end() || !op->is_string()) return std::unexpected(garbage("it has no op"));
  auto name = op->get<std::string>();
  if (name.empty() || name.size() > kMaxOpBytes) {
    return std::unexpected(
        garbage("its op is empty or longer than " + std::to_string(kMaxOpBytes) + " bytes"));
  }
  // The scan found another op than the parser, so it has checked the limits of that op. This
  // happens if the member op occurs twice or contains escapes.
  if (name != scan.op) return std::unexpected(garbage("its member op is ambiguous"));
  ATOLL_TRY(put_binary(json, binary));
  ControlRequest request(std::move(name), std::move(json));
  CHECK(request.operation == operation);
  return request;
}

ControlFrames encode_request(std::string_view op, const Json& body) {
  CHECK(!op.empty() && op.size() <= kMaxOpBytes);
  Json json = body.is_object() ? body : Json::object();
  auto binary = take_binary(json);
  json["v"] = kControlVersion;
  json["op"] = op;
  return {dump(json), std::move(binary)};
}

ControlFrames encode_answer(const Result<Json>& answer) {
  Json json = Json::object();
  if (answer) {
    if (answer->is_object()) json = *answer;
    json["ok"] = true;
  } else {
    json = {{"ok", false},
            {"code", static_cast<int>(answer.error().code)},
            {"message", answer.error().message}};
  }
  auto binary = take_binary(json);
  json["v"] = kControlVersion;
  ControlFrames frames{dump(json), std::move(binary)};
  if (frames.bytes() <= kMaxControlBytes) return frames;
  return encode_answer(make_error(
      ExitCode::failed, "answer: its " + std::to_string(frames.bytes()) + " bytes are more than " +
                            std::to_string(kMaxControlBytes) + ": ask for less at a time"));
}

Result<Json> parse_answer(std::string_view frame, ControlPart binary) {
  ATOLL_TRY(scan_control_message(frame));
  if (frame.size() + size_of(binary) > kMaxControlBytes) {
    return std::unexpected(garbage("with its binary part it has more than " +
                                   std::to_string(kMaxControlBytes) + " bytes"));
  }
  ATOLL_ASSIGN(Json json, parse_envelope(frame));
  const auto ok = json.find("ok");
  if (ok == json.end() || !ok->is_boolean()) return std::unexpected(garbage("it has no ok"));
  if (ok->get<bool>()) {
    ATOLL_TRY(put_binary(json, binary));
    return json;
  }
  const int code = json.value("code", Json(1)).is_number_integer() ? json.value("code", 1) : 1;
  const Json message = json.value("message", Json("no reason given"));
  return make_error(static_cast<ExitCode>(code),
                    message.is_string() ? message.get<std::string>() : dump(message));
}

Json parse_json(std::span<const std::byte> bytes) {
  const auto* const begin = reinterpret_cast<const char*>(bytes.data());
  return Json::parse(begin, begin + bytes.size(), nullptr, false);
}

Json to_binary(std::span<const std::byte> bytes) {
  const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
  return Json::binary(std::vector<uint8_t>(begin, begin + bytes.size()));
}

std::optional<std::span<const std::byte>> find_binary(const Json& body, const char* member) {
  const auto found = body.find(member);
  if (found == body.end() || !found->is_binary()) return std::nullopt;
  const std::vector<uint8_t>& bytes = found->get_binary();
  return std::as_bytes(std::span(bytes));
}

Result<std::string> get_text(const ControlRequest& request, const char* member) {
  const auto found = request.body.find(member);
  if (found == request.body.end() || !found->is_string()) {
    return wrong_member(request, member, "a string");
  }
  return found->get<std::string>();
}

Result<uint64_t> get_number(const ControlRequest& request, const char* member) {
  const auto found = request.body.find(member);
  // Requests within one process (thread mode) are not parsed, so a number may have a signed type.
  if (found == request.body.end() || !found->is_number_integer() ||
      (!found->is_number_unsigned() && found->get<int64_t>() < 0)) {
    return wrong_member(request, member, "an unsigned integer");
  }
  return found->get<uint64_t>();
}

Result<std::span<const std::byte>> get_binary(const ControlRequest& request, const char* member) {
  const auto bytes = find_binary(request.body, member);
  if (!bytes) return wrong_member(request, member, "the binary part of the message");
  return *bytes;
}

Result<uint64_t> get_number_or(const ControlRequest& request, const char* member,
                               uint64_t fallback) {
  if (!request.body.contains(member)) return fallback;
  return get_number(request, member);
}

std::unexpected<Error> unknown_op(const ControlRequest& request) {
  return make_error(ExitCode::usage,
                    "op \"" + request.op +
                        "\": unknown to this process: ask another one, or use programs "
                        "of one build");
}

}  // namespace atolldb
