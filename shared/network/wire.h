// Encoding and decoding of the frames of network sessions (wire.fbs, PROTOCOL.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/status.h"
#include "shared/session/session_layout.h"

namespace atolldb {

/// Largest frame in bytes. A longer one ends the connection.
inline constexpr uint32_t kMaxWireFrameBytes = 512u << 10;
/// Most requests, or answers, of one frame.
inline constexpr uint32_t kMaxWireItems = 256;
/// Most requests in flight of one network session.
inline constexpr uint32_t kMaxNetworkInFlight = 256;
/// Most bytes of the inputs of these requests together.
inline constexpr uint32_t kMaxNetworkInFlightBytes = 4u << 20;
/// A frame is sent when it has this many bytes. One more request or answer still fits.
inline constexpr uint32_t kFullWireFrameBytes = 256u << 10;
static_assert(kFullWireFrameBytes + 2 * kSessionPartBytes < kMaxWireFrameBytes);
/// Most bytes of a Part.
inline constexpr uint32_t kMaxWirePartBytes = 256u << 10;
/// Longest name of a client's program in a Hello. The rest of a longer one is cut off.
inline constexpr uint32_t kMaxClientNameBytes = 64;

/// What a client may do. The values are bits of `rights`.
enum NetworkRight : uint32_t {
  kMayRead = 1,
  kMayWrite = 2,
  kMayCallProcedures = 4,
  kMayAdminister = 8,
};
inline constexpr uint32_t kAllNetworkRights = 15;
/// Begin of the names of requests that are control requests (PROTOCOL.md).
inline constexpr std::string_view kAdministrationPrefix = "atoll.";

enum class RefusalCode : uint8_t {
  malformed = 1,   // the frame breaks the rules of PROTOCOL.md
  version = 2,     // the frame is of another version of the protocol
  limit = 3,       // the node has too many sessions
  no_session = 4,  // the frame needs a session, and there is none
  killed = 5,      // `atoll session kill`
  stopping = 6,    // the node stops
  revoked = 7,     // the key is no longer authorised
};

/// The views in these structs point into the frame that was read.
struct WireHello {
  std::string_view client;
  bool takes_parts = false;
};
struct WireWelcome {
  uint32_t session = 0;
  uint32_t node = 0;
  uint64_t incarnation = 0;
  uint32_t max_in_flight = 0;
  uint32_t max_in_flight_bytes = 0;
  uint32_t rights = 0;
  std::string_view key_name{};
  uint32_t max_input_bytes = kSessionPartBytes;
  uint32_t max_output_bytes = kSessionPartBytes;
};
struct WireRequest {
  uint64_t id = 0;
  std::string_view procedure{};
  std::span<const std::byte> input{};
  uint64_t affinity = 0;
  uint32_t worker = kAnyWorker;
  AnswerAt answer_at = AnswerAt::durable;
  uint8_t isolation = 0;  // 1 + Isolation; 0: that of the procedure's entry
  uint32_t snapshot = 0;
  uint32_t start_within_ms = 0;  // 0: no limit
  uint32_t input_bytes = 0;      // of an input that follows in parts; 0: `input` is all of it
};
struct WireAnswer {
  uint64_t id = 0;
  Status status = Status::ok;
  AnswerAt answered_at = AnswerAt::durable;
  uint64_t commit_epoch = 0;
  uint64_t commit_version = 0;
  uint64_t incarnation = 0;
  std::span<const std::byte> output{};
  std::string_view message{};
  uint32_t output_bytes = 0;  // of an output that came in parts; 0: `output` is all of it
};
struct WirePart {
  uint64_t id = 0;
  uint32_t total_bytes = 0;
  std::span<const std::byte> bytes{};
};
struct WireRefusal {
  RefusalCode code = RefusalCode::malformed;
  std::string_view message;
};

/// A frame that was read. Only the member of its kind has a meaning.
struct WireFrame {
  enum class Kind : uint8_t { hello, welcome, requests, answers, refusal, goodbye, probe, part };

  Kind kind = Kind::probe;
  WireHello hello;
  WireWelcome welcome;
  uint32_t session = 0;  // of answers
  std::vector<WireRequest> requests;
  std::vector<WireAnswer> answers;
  WireRefusal refusal;
  WirePart part;
};

struct WireFault {
  RefusalCode code = RefusalCode::malformed;
  std::string message;
};

/// Reads and checks a frame. `frame` keeps its memory for the next frame. An error says what is
/// wrong. Enumerations have valid values, and lengths are within the limits, if it returns no
/// error.
std::expected<void, WireFault> read_wire_frame(std::span<const std::byte> bytes, WireFrame& frame);

/// Builds frames, one after the other, and keeps its memory. Thread: one.
class WireWriter {
 public:
  WireWriter();
  WireWriter(const WireWriter&) = delete;
  WireWriter& operator=(const WireWriter&) = delete;
  ~WireWriter();

  /// Each of these returns a complete frame. It is valid until the next call of any function.
  std::span<const std::byte> hello(std::string_view client, bool takes_parts = true);
  std::span<const std::byte> welcome(const WireWelcome& welcome);
  std::span<const std::byte> refusal(RefusalCode code, std::string_view message);
  std::span<const std::byte> goodbye();
  std::span<const std::byte> probe();
  std::span<const std::byte> part(const WirePart& part);

  /// Adds to the frame of requests, or of answers, that `finish_...` returns. A frame has only one
  /// of both kinds. REQUIRES: the frame is not full.
  /// A request or an answer with parts has no `input` or `output`.
  void add(const WireRequest& request);
  void add(const WireAnswer& answer);
  /// Returns whether the frame must be sent before another request or answer is added.
  bool is_full() const;
  bool is_empty() const;
  std::span<const std::byte> finish_requests();
  std::span<const std::byte> finish_answers(uint32_t session);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace atolldb
