#include "shared/message/control_message.h"

#include <utility>

#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Text from users may be invalid UTF-8. It is repaired, and never causes an exception.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error garbage(const std::string& why) {
  return {ExitCode::failed, "control message: " + why + ": speak version " +
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

std::unexpected<Error> wrong_member(const ControlRequest& request, const char* member,
                                    const char* expected) {
  return make_error(ExitCode::usage,
                    request.op + ": member \"" + member + "\" must be " + expected);
}

}  // namespace

Result<ControlRequest> parse_request(std::string_view frame) {
  ATOLL_ASSIGN(const ControlScan scan, scan_control_message(frame));
  const ControlLimits limits = control_limits(scan.op);
  if (frame.size() > limits.bytes || scan.values > limits.values) {
    return std::unexpected(garbage(std::to_string(frame.size()) + " bytes and " +
                                   std::to_string(scan.values) + " values are more than the " +
                                   std::to_string(limits.bytes) + " and " +
                                   std::to_string(limits.values) + " of its op"));
  }
  ATOLL_ASSIGN(Json json, parse_envelope(frame));
  const auto op = json.find("op");
  if (op == json.end() || !op->is_string()) return std::unexpected(garbage("it has no op"));
  ControlRequest request{op->get<std::string>(), {}};
  if (request.op.empty() || request.op.size() > kMaxOpBytes) {
    return std::unexpected(
        garbage("its op is empty or longer than " + std::to_string(kMaxOpBytes) + " bytes"));
  }
  // The limits were those of another op, because the name was written with escapes, or twice.
  if (request.op != scan.op) return std::unexpected(garbage("its op is written ambiguously"));
  request.body = std::move(json);
  return request;
}

std::string encode_request(std::string_view op, const Json& body) {
  Json json = body.is_object() ? body : Json::object();
  json["v"] = kControlVersion;
  json["op"] = op;
  return dump(json);
}

std::string encode_answer(const Result<Json>& answer) {
  Json json = Json::object();
  if (answer) {
    if (answer->is_object()) json = *answer;
    json["ok"] = true;
  } else {
    json = {{"ok", false},
            {"code", static_cast<int>(answer.error().code)},
            {"message", answer.error().message}};
  }
  json["v"] = kControlVersion;
  std::string text = dump(json);
  if (text.size() <= kMaxControlBytes) return text;
  return encode_answer(make_error(
      ExitCode::failed, "answer: its " + std::to_string(text.size()) + " bytes are more than " +
                            std::to_string(kMaxControlBytes) + ": ask for less at a time"));
}

Result<Json> parse_answer(std::string_view frame) {
  ATOLL_TRY(scan_control_message(frame));
  ATOLL_ASSIGN(Json json, parse_envelope(frame));
  const auto ok = json.find("ok");
  if (ok == json.end() || !ok->is_boolean()) return std::unexpected(garbage("it has no ok"));
  if (ok->get<bool>()) return json;
  const int code = json.value("code", Json(1)).is_number_integer() ? json.value("code", 1) : 1;
  const Json message = json.value("message", Json("no reason given"));
  return make_error(static_cast<ExitCode>(code),
                    message.is_string() ? message.get<std::string>() : dump(message));
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
  // Within one process (thread mode), a number in range may have a signed type.
  if (found == request.body.end() || !found->is_number_integer() ||
      (!found->is_number_unsigned() && found->get<int64_t>() < 0)) {
    return wrong_member(request, member, "an unsigned integer");
  }
  return found->get<uint64_t>();
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
