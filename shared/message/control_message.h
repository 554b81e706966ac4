// Control messages: requests between processes, off the transaction path, as versioned JSON.
//
//   request  {"v": 1, "op": "job.start", ...}
//   answer   {"v": 1, "ok": true, ...}  or  {"v": 1, "ok": false, "code": 1, "message": "..."}
//
// `code` is the exit code of a command that fails with this error.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/message/control_limits.h"

namespace atolldb {

using Json = nlohmann::json;

inline constexpr int kControlVersion = 1;
inline constexpr size_t kMaxOpBytes = 64;
/// Timeout of requests that change the catalog. A drop waits for the grace period of its pages, and
/// visits all of them.
inline constexpr std::chrono::milliseconds kDdlTimeout{600'000};
/// Timeout of snapshots: their duration is proportional to the log.
inline constexpr std::chrono::milliseconds kGleanTimeout{3'600'000};

struct ControlRequest {
  std::string op;
  Json body = Json::object();  // all members of the request
};

/// Receives the answer to one request. Called once, from any thread.
using ControlReply = std::function<void(Result<Json>)>;
/// Serves requests. Must not block for long, and may answer later.
using ControlHandler = std::function<void(const ControlRequest&, ControlReply)>;

/// Returns an error if the frame is invalid, or exceeds a limit of its op (R64).
Result<ControlRequest> parse_request(std::string_view frame);
std::string encode_request(std::string_view op, const Json& body);
/// An answer above the limit becomes an error that names the limit.
std::string encode_answer(const Result<Json>& answer);
Result<Json> parse_answer(std::string_view frame);

/// Readers for members of request bodies. The error names op and member.
Result<std::string> get_text(const ControlRequest& request, const char* member);
Result<uint64_t> get_number(const ControlRequest& request, const char* member);
/// Returns `fallback` if the member is missing, or an error if it is not an unsigned number.
Result<uint64_t> get_number_or(const ControlRequest& request, const char* member,
                               uint64_t fallback);
std::unexpected<Error> unknown_op(const ControlRequest& request);

}  // namespace atolldb
