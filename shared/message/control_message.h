// Control messages: cold requests between processes, as versioned JSON.
//
//   request  {"v": 1, "op": "job.start", ...}
//   answer   {"v": 1, "ok": true, ...}  or  {"v": 1, "ok": false, "code": 1, "message": "..."}
//
// `code` is the exit code that a command ends with for this error.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "shared/error.h"
#include "shared/message/control_limits.h"

namespace atolldb {

using Json = nlohmann::json;

inline constexpr int kControlVersion = 1;
inline constexpr size_t kMaxOpBytes = 64;
/// Patience with requests that change the catalog: a drop waits for the grace of its pages and
/// walks them all.
inline constexpr std::chrono::milliseconds kDdlTimeout{600'000};
/// A snapshot takes as long as its log is.
inline constexpr std::chrono::milliseconds kGleanTimeout{3'600'000};

struct ControlRequest {
  std::string op;
  Json body = Json::object();  // all members of the request
};

/// Takes the answer to one request; called once, from any thread.
using ControlReply = std::function<void(Result<Json>)>;
/// Serves requests: must not block for long, may answer later.
using ControlHandler = std::function<void(const ControlRequest&, ControlReply)>;

/// An error says why the frame is garbage, or which limit of its op it exceeds (R64).
Result<ControlRequest> parse_request(std::string_view frame);
std::string encode_request(std::string_view op, const Json& body);
/// An answer that would be too long becomes an error that names the limit.
std::string encode_answer(const Result<Json>& answer);
Result<Json> parse_answer(std::string_view frame);

/// Members of request bodies; the error names op and member.
Result<std::string> get_text(const ControlRequest& request, const char* member);
Result<uint64_t> get_number(const ControlRequest& request, const char* member);
/// `fallback` when the member is missing; an error when it is no unsigned number.
Result<uint64_t> get_number_or(const ControlRequest& request, const char* member,
                               uint64_t fallback);
std::unexpected<Error> unknown_op(const ControlRequest& request);

}  // namespace atolldb
