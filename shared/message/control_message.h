// Control messages: requests between processes, off the transaction path, as versioned JSON.
//
//   request  {"v": 1, "op": "job.start", ...}
//   answer   {"v": 1, "ok": true, ...}  or  {"v": 1, "ok": false, "code": 1, "message": "..."}
//
// `code` is the exit code of a command that fails with this error.
//
// One member of the outermost object may have a binary value. A second frame carries its bytes, and
// the member "binary" of the first frame names the member:
//
//   body     {"disk_reserve": 0, "plan": <bytes>}
//   frames   {"v": 1, "op": "glean.prepare", "disk_reserve": 0, "binary": "plan"}  |  bytes
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/error.h"
#include "shared/message/control_limits.h"
#include "shared/message/control_operation.h"

namespace atolldb {

using Json = nlohmann::json;

inline constexpr int kControlVersion = 1;
inline constexpr size_t kMaxOpBytes = 64;
/// Timeout of requests that change the catalog. A drop waits for the grace period of its pages, and
/// visits all of them.
inline constexpr std::chrono::milliseconds kDdlTimeout{600'000};
/// Timeout of snapshots. Their duration is proportional to the log.
inline constexpr std::chrono::milliseconds kSnapshotTimeout{3'600'000};

struct ControlRequest {
  ControlRequest() = default;
  /// A request within this process. If `members` is no object, the request has no members.
  ControlRequest(ControlOperation known, Json members)
      : op(to_string(known)),
        operation(known),
        body(members.is_object() ? std::move(members) : Json::object()) {
    CHECK(known != ControlOperation::unknown);
  }
  /// A request from another process. If no operation has this name, `operation` is `unknown`.
  explicit ControlRequest(std::string name, Json members)
      : op(std::move(name)), operation(control_operation(op)), body(std::move(members)) {}

  std::string op;  // name of the operation, even if it is unknown
  ControlOperation operation = ControlOperation::unknown;
  Json body = Json::object();  // all members of the request
};

/// The parts of a message, as ZeroMQ sends them.
struct ControlFrames {
  std::string json;
  std::optional<std::vector<uint8_t>> binary;

  size_t bytes() const { return json.size() + (binary ? binary->size() : 0); }
};

/// Receives the answer to one request. Called once, from any thread.
using ControlReply = std::function<void(Result<Json>)>;
/// Serves requests. Must not block for long, and may answer later.
using ControlHandler = std::function<void(const ControlRequest&, ControlReply)>;

/// Binary frame of a received message, or nullopt if it has none.
using ControlPart = std::optional<std::span<const std::byte>>;

/// Returns an error if a frame is invalid, or if the message exceeds a limit of its op (R64).
Result<ControlRequest> parse_request(std::string_view frame, ControlPart binary = std::nullopt);
/// REQUIRES: at most one member of `body` is binary, and none has the name "binary".
ControlFrames encode_request(std::string_view op, const Json& body);
/// An answer above the limit becomes an error that names the limit. REQUIRES: the same as for
/// encode_request.
ControlFrames encode_answer(const Result<Json>& answer);
Result<Json> parse_answer(std::string_view frame, ControlPart binary = std::nullopt);

/// Parses JSON that a client or a node has sent in a session. Never throws: if the bytes are no
/// JSON, the result is a discarded value, which is no object.
Json parse_json(std::span<const std::byte> bytes);

/// Returns `bytes` as the value of a binary member. A message has at most one such member.
Json to_binary(std::span<const std::byte> bytes);
/// Returns the bytes of a binary member of a request or answer, or nullopt if there is no such
/// member. They live as long as `body`.
std::optional<std::span<const std::byte>> find_binary(const Json& body, const char* member);

/// Returns a member of a request, or an error that names op and member.
Result<std::string> get_text(const ControlRequest& request, const char* member);
Result<uint64_t> get_number(const ControlRequest& request, const char* member);
Result<std::span<const std::byte>> get_binary(const ControlRequest& request, const char* member);
/// Returns `fallback` if the member is missing, or an error if it is not an unsigned number.
Result<uint64_t> get_number_or(const ControlRequest& request, const char* member,
                               uint64_t fallback);
std::unexpected<Error> unknown_op(const ControlRequest& request);

}  // namespace atolldb
