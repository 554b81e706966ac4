#include "shared/network/wire.h"

#include <wire_generated.h>

#include <algorithm>

#include "shared/base/check.h"
#include "shared/base/isolation.h"

namespace atolldb {
namespace {

using flatbuffers::Offset;

/// Depth of nested tables of the schema: Frame, Requests, Request.
constexpr uint32_t kMaxWireDepth = 8;
/// Most tables of a frame: all requests, and those around them.
constexpr uint32_t kMaxWireTables = kMaxWireItems + 4;
constexpr size_t kIdentifierAt = 4;
constexpr size_t kIdentifierBytes = 4;
constexpr size_t kWriterBytes = 16u << 10;

std::unexpected<WireFault> malformed(std::string message) {
  return std::unexpected(WireFault{RefusalCode::malformed, std::move(message)});
}

std::string_view view_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->c_str(), text->size());
}

std::span<const std::byte> view_of(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr || bytes->size() == 0) return {};
  return std::as_bytes(std::span(bytes->data(), bytes->size()));
}

std::string beyond(std::string_view what, uint64_t value, uint64_t limit) {
  return std::string(what) + " has " + std::to_string(value) + " bytes, more than " +
         std::to_string(limit);
}

std::expected<void, WireFault> read_request(const wire::Request& from, WireRequest& to) {
  to.id = from.id();
  to.procedure = view_of(from.procedure());
  to.input = view_of(from.input());
  to.affinity = from.affinity();
  to.worker = from.worker();
  to.answer_at = static_cast<AnswerAt>(from.answer_at());
  to.isolation = from.isolation();
  to.snapshot = from.snapshot();
  to.start_within_ms = from.start_within_ms();
  to.input_bytes = from.input_bytes();
  const std::string name = "request " + std::to_string(to.id) + ": ";
  if (to.procedure.empty()) return malformed(name + "the procedure's name is empty");
  if (to.procedure.size() > kMaxSessionProcedureName) {
    return malformed(name +
                     beyond("the procedure's name", to.procedure.size(), kMaxSessionProcedureName));
  }
  if (to.input.size() > kSessionPartBytes) {
    return malformed(name + beyond("the input", to.input.size(), kSessionPartBytes));
  }
  if (to.input_bytes != 0 && (to.input_bytes <= kSessionPartBytes || !to.input.empty())) {
    return malformed(name + "an input of " + std::to_string(to.input_bytes) +
                     " bytes must not be sent in parts, or not only in parts");
  }
  if (from.answer_at() > static_cast<uint32_t>(AnswerAt::precommitted)) {
    return malformed(name + "answer_at " + std::to_string(from.answer_at()) +
                     " is neither durable (0) nor visible (1)");
  }
  if (to.isolation > static_cast<uint8_t>(Isolation::count_)) {
    return malformed(name + "isolation " + std::to_string(to.isolation) + " is not from 0 to 3");
  }
  return {};
}

std::expected<void, WireFault> read_answer(const wire::Answer& from, WireAnswer& to) {
  to.id = from.id();
  to.status = static_cast<Status>(from.status());
  to.answered_at = static_cast<AnswerAt>(from.answered_at());
  to.commit_epoch = from.commit_epoch();
  to.commit_version = from.commit_version();
  to.incarnation = from.incarnation();
  to.output = view_of(from.output());
  to.message = view_of(from.message());
  to.output_bytes = from.output_bytes();
  if (to.status >= Status::count_) {
    // A node of a later version. The client cannot tell whether the request had an effect.
    to.message = "the node answered with a status that this program does not know";
    to.status = Status::outcome_unknown;
  }
  if (from.answered_at() > static_cast<uint32_t>(AnswerAt::precommitted)) {
    return malformed("answered_at " + std::to_string(from.answered_at()) + " is not 0 or 1");
  }
  if (to.output.size() > kSessionPartBytes) {
    return malformed(beyond("an output", to.output.size(), kSessionPartBytes));
  }
  return {};
}

template <typename From, typename To, typename Read>
std::expected<void, WireFault> read_items(const flatbuffers::Vector<Offset<From>>& from,
                                          std::vector<To>& to, Read read) {
  if (from.size() == 0 || from.size() > kMaxWireItems) {
    return malformed("the frame has " + std::to_string(from.size()) +
                     " requests or answers, not 1 to " + std::to_string(kMaxWireItems));
  }
  to.resize(from.size());
  DCHECK(to.size() <= kMaxWireItems);
  for (uint32_t i = 0; i < from.size(); ++i) {
    if (auto done = read(*from.Get(i), to[i]); !done) return done;
  }
  return {};
}

std::expected<void, WireFault> read_welcome(const wire::Welcome& from, WireWelcome& to) {
  to = {from.session(),
        from.node(),
        from.incarnation(),
        from.max_in_flight(),
        from.max_in_flight_bytes(),
        from.rights(),
        view_of(from.key_name()),
        from.max_input_bytes() == 0 ? kSessionPartBytes : from.max_input_bytes(),
        from.max_output_bytes() == 0 ? kSessionPartBytes : from.max_output_bytes()};
  return {};
}

std::expected<void, WireFault> read_part(const wire::Part& from, WirePart& to) {
  to = {from.id(), from.total(), view_of(from.bytes())};
  const bool is_sound = !to.bytes.empty() && to.bytes.size() <= kMaxWirePartBytes &&
                        to.total_bytes >= to.bytes.size();
  if (is_sound) return {};
  return malformed("a part of " + std::to_string(to.bytes.size()) + " of " +
                   std::to_string(to.total_bytes) + " bytes has not 1 to " +
                   std::to_string(kMaxWirePartBytes) + " bytes, or more than all parts");
}

std::expected<void, WireFault> read_refusal(const wire::Refusal& from, WireRefusal& to) {
  to = {static_cast<RefusalCode>(from.code()), view_of(from.message())};
  return {};
}

/// Reads the identifier, which has the version of the protocol.
std::expected<void, WireFault> check_identifier(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxWireFrameBytes) {
    return malformed(beyond("the frame", bytes.size(), kMaxWireFrameBytes));
  }
  if (bytes.size() < kIdentifierAt + kIdentifierBytes) {
    return malformed("the frame has " + std::to_string(bytes.size()) + " bytes, too few");
  }
  const std::string_view identifier(reinterpret_cast<const char*>(bytes.data()) + kIdentifierAt,
                                    kIdentifierBytes);
  const std::string_view expected(wire::FrameIdentifier(), kIdentifierBytes);
  if (identifier == expected) return {};
  if (identifier.substr(0, 3) != expected.substr(0, 3)) {
    return malformed("the frame does not begin with the identifier " + std::string(expected));
  }
  return std::unexpected(WireFault{RefusalCode::version,
                                   "the frame is of another version of the protocol; this "
                                   "program has " +
                                       std::string(expected) + ": use programs of one version"});
}

}  // namespace

std::expected<void, WireFault> read_wire_frame(std::span<const std::byte> bytes, WireFrame& frame) {
  if (auto checked = check_identifier(bytes); !checked) return checked;
  DCHECK(bytes.size() <= kMaxWireFrameBytes);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
                                 kMaxWireDepth, kMaxWireTables);
  if (!wire::VerifyFrameBuffer(verifier)) return malformed("the frame does not fit its schema");
  const wire::Frame& root = *wire::GetFrame(bytes.data());
  frame.requests.clear();
  frame.answers.clear();
  switch (root.body_type()) {
    case wire::Body_Hello:
      frame.kind = WireFrame::Kind::hello;
      frame.hello.client = view_of(root.body_as_Hello()->client()).substr(0, kMaxClientNameBytes);
      frame.hello.takes_parts = root.body_as_Hello()->takes_parts();
      return {};
    case wire::Body_Welcome:
      frame.kind = WireFrame::Kind::welcome;
      return read_welcome(*root.body_as_Welcome(), frame.welcome);
    case wire::Body_Requests:
      frame.kind = WireFrame::Kind::requests;
      return read_items(*root.body_as_Requests()->requests(), frame.requests, read_request);
    case wire::Body_Answers:
      frame.kind = WireFrame::Kind::answers;
      frame.session = root.body_as_Answers()->session();
      return read_items(*root.body_as_Answers()->answers(), frame.answers, read_answer);
    case wire::Body_Refusal:
      frame.kind = WireFrame::Kind::refusal;
      return read_refusal(*root.body_as_Refusal(), frame.refusal);
    case wire::Body_Goodbye:
      frame.kind = WireFrame::Kind::goodbye;
      return {};
    case wire::Body_Probe:
      frame.kind = WireFrame::Kind::probe;
      return {};
    case wire::Body_Part:
      frame.kind = WireFrame::Kind::part;
      return read_part(*root.body_as_Part(), frame.part);
    default:
      return malformed("the frame has a body of unknown kind " +
                       std::to_string(static_cast<int>(root.body_type())));
  }
}

struct WireWriter::State {
  flatbuffers::FlatBufferBuilder builder{kWriterBytes};
  std::vector<Offset<wire::Request>> requests;
  std::vector<Offset<wire::Answer>> answers;
  bool has_finished = false;  // the builder has a complete frame, which a caller may still read

  /// Frees the previous frame.
  flatbuffers::FlatBufferBuilder& begin() {
    if (has_finished) {
      builder.Clear();
      has_finished = false;
    }
    return builder;
  }
  Offset<flatbuffers::Vector<uint8_t>> bytes(std::span<const std::byte> from) {
    if (from.empty()) return 0;
    return builder.CreateVector(reinterpret_cast<const uint8_t*>(from.data()), from.size());
  }
  Offset<flatbuffers::String> text(std::string_view from) {
    if (from.empty()) return 0;
    return builder.CreateString(from.data(), from.size());
  }
  template <typename Table>
  std::span<const std::byte> finish(wire::Body type, Offset<Table> body) {
    wire::FinishFrameBuffer(builder, wire::CreateFrame(builder, type, body.Union()));
    has_finished = true;
    requests.clear();
    answers.clear();
    CHECK(builder.GetSize() <= kMaxWireFrameBytes);
    return std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  }
};

WireWriter::WireWriter() : state_(std::make_unique<State>()) {}
WireWriter::~WireWriter() = default;

std::span<const std::byte> WireWriter::hello(std::string_view client, bool takes_parts) {
  CHECK(is_empty());
  auto& builder = state_->begin();
  const auto name = state_->text(client.substr(0, kMaxClientNameBytes));
  return state_->finish(wire::Body_Hello, wire::CreateHello(builder, name, takes_parts));
}

std::span<const std::byte> WireWriter::welcome(const WireWelcome& from) {
  CHECK(is_empty());
  auto& builder = state_->begin();
  const auto key_name = state_->text(from.key_name);
  return state_->finish(
      wire::Body_Welcome,
      wire::CreateWelcome(builder, from.session, from.node, from.incarnation, from.max_in_flight,
                          from.max_in_flight_bytes, from.rights, key_name, from.max_input_bytes,
                          from.max_output_bytes));
}

std::span<const std::byte> WireWriter::refusal(RefusalCode code, std::string_view message) {
  CHECK(is_empty());
  auto& builder = state_->begin();
  const auto text = state_->text(message.substr(0, kMaxSessionMessageBytes));
  return state_->finish(wire::Body_Refusal,
                        wire::CreateRefusal(builder, static_cast<uint8_t>(code), text));
}

std::span<const std::byte> WireWriter::goodbye() {
  CHECK(is_empty());
  return state_->finish(wire::Body_Goodbye, wire::CreateGoodbye(state_->begin()));
}

std::span<const std::byte> WireWriter::probe() {
  CHECK(is_empty());
  return state_->finish(wire::Body_Probe, wire::CreateProbe(state_->begin()));
}

std::span<const std::byte> WireWriter::part(const WirePart& from) {
  CHECK(is_empty());
  CHECK(!from.bytes.empty() && from.bytes.size() <= kMaxWirePartBytes);
  auto& builder = state_->begin();
  const auto bytes = state_->bytes(from.bytes);
  return state_->finish(wire::Body_Part,
                        wire::CreatePart(builder, from.id, from.total_bytes, bytes));
}

void WireWriter::add(const WireRequest& request) {
  DCHECK(!is_full() && state_->answers.empty());
  DCHECK(request.input.size() <= kSessionPartBytes);
  auto& builder = state_->begin();
  const auto procedure = builder.CreateString(request.procedure.data(), request.procedure.size());
  const auto input = state_->bytes(request.input);
  state_->requests.push_back(
      wire::CreateRequest(builder, request.id, procedure, input, request.affinity, request.worker,
                          static_cast<uint32_t>(request.answer_at), request.isolation,
                          request.snapshot, request.start_within_ms, request.input_bytes));
}

void WireWriter::add(const WireAnswer& answer) {
  DCHECK(!is_full() && state_->requests.empty());
  DCHECK(answer.output.size() <= kSessionPartBytes);
  auto& builder = state_->begin();
  const auto output = state_->bytes(answer.output);
  const auto message = state_->text(answer.message.substr(0, kMaxSessionMessageBytes));
  state_->answers.push_back(wire::CreateAnswer(
      builder, answer.id, static_cast<uint8_t>(answer.status),
      static_cast<uint32_t>(answer.answered_at), answer.commit_epoch, answer.commit_version,
      answer.incarnation, output, message, answer.output_bytes));
}

bool WireWriter::is_full() const {
  if (is_empty()) return false;
  return std::max(state_->requests.size(), state_->answers.size()) >= kMaxWireItems ||
         state_->builder.GetSize() >= kFullWireFrameBytes;
}

bool WireWriter::is_empty() const { return state_->requests.empty() && state_->answers.empty(); }

std::span<const std::byte> WireWriter::finish_requests() {
  CHECK(!state_->requests.empty());
  auto& builder = state_->begin();
  const auto requests = builder.CreateVector(state_->requests);
  return state_->finish(wire::Body_Requests, wire::CreateRequests(builder, requests));
}

std::span<const std::byte> WireWriter::finish_answers(uint32_t session) {
  CHECK(!state_->answers.empty());
  auto& builder = state_->begin();
  const auto answers = builder.CreateVector(state_->answers);
  return state_->finish(wire::Body_Answers, wire::CreateAnswers(builder, session, answers));
}

}  // namespace atolldb
