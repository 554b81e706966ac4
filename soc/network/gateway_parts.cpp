// Long inputs and outputs of network sessions, which travel in parts.
#include <algorithm>
#include <chrono>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/epoch_stages.h"
#include "soc/network/gateway.h"
#include "soc/network/gateway_sockets.h"

namespace atolldb {
namespace {

/// Parts of long outputs that a round sends to one client.
constexpr int kPartsPerRound = 4;

}  // namespace

std::optional<Refusal> NetworkGateway::begin_input(NetworkSession& session, NetworkCall& call,
                                                   uint32_t input_bytes) {
  const uint32_t most = sink_.services().payloads.max_input_bytes;
  const bool is_built_in =
      call.procedure.starts_with("kv.") || call.procedure.starts_with(kAdministrationPrefix);
  if (is_built_in || input_bytes > most) {
    return Refusal{
        Status::invalid_argument,
        "the input has " + std::to_string(input_bytes) + " bytes, more than " +
            (is_built_in ? std::to_string(kSessionPartBytes) + ", the limit of " + call.procedure
                         : std::to_string(most) + ": raise procedures.max_input")};
  }
  if (auto refusal = sink_.expect_input(call, input_bytes)) return refusal;
  call.progress_ns = call.arrived_ns;
  session.inputs.push_back(&call);
  return std::nullopt;
}

void NetworkGateway::take_part(NetworkSession& session, const Received& received) {
  const WirePart& part = frame_.part;
  const auto found = std::ranges::find_if(
      session.inputs, [&](const NetworkCall* call) { return call->id == part.id; });
  // The request was refused before its parts arrived.
  if (found == session.inputs.end()) return;
  NetworkCall& call = **found;
  // Inputs arrive one after another in full parts. So only one of a session takes memory before it
  // is whole, and each part is progress.
  const NetworkCall& next = *session.inputs.front();
  const size_t expected = std::min<size_t>(next.input_bytes - next.input.size(), kMaxWirePartBytes);
  if (&call != &next || part.bytes.size() != expected) {
    return refuse_malformed(received, "a part of request " + std::to_string(part.id) + " has " +
                                          std::to_string(part.bytes.size()) +
                                          " bytes: the next part must be of request " +
                                          std::to_string(next.id) + " and have " +
                                          std::to_string(expected) + " bytes");
  }
  auto refusal = sink_.grow_input_memory(call, expected);
  if (!refusal) {
    // Reserves address space. The parts touch the memory one after another.
    if (call.input.empty()) call.input.reserve(call.input_bytes);
    call.input.insert(call.input.end(), part.bytes.begin(), part.bytes.end());
    call.progress_ns = monotonic_time_ns();
    if (call.input.size() < call.input_bytes) return;
  }
  session.inputs.pop_front();
  if (!session.inputs.empty()) session.inputs.front()->progress_ns = monotonic_time_ns();
  submit(session, call, std::move(refusal));
}

WireAnswer NetworkGateway::answer_of(const NetworkCall& call, uint64_t incarnation) {
  WireAnswer answer;
  answer.id = call.id;
  answer.status = call.outcome.status;
  answer.answered_at = call.answer_at;
  answer.commit_epoch = call.outcome.commit_epoch;
  answer.commit_version = call.outcome.commit_version;
  answer.incarnation = incarnation;
  answer.message = call.outcome.message;
  const std::vector<std::byte>& output = call.outcome.output;
  if (output.size() > kSessionPartBytes) {
    answer.output_bytes = static_cast<uint32_t>(output.size());
  } else {
    answer.output = output;
  }
  return answer;
}

bool NetworkGateway::send_parts() {
  if (outputs_ == 0) return false;
  bool did_something = false;
  for (const auto& [id, session] : sessions_) did_something |= send_parts(*session);
  return did_something;
}

bool NetworkGateway::send_parts(NetworkSession& session) {
  int sent = 0;
  while (sent < kPartsPerRound && !session.outputs.empty() && !session.has_ended &&
         sockets_->has_room_for_part(*session.unsent)) {
    NetworkCall& call = *session.outputs.front();
    if (!sockets_->has_room_for_parts()) {
      // Only other clients keep this one from its next part.
      call.progress_ns = monotonic_time_ns();
      break;
    }
    const std::span<const std::byte> output = call.outcome.output;
    const size_t bytes = std::min<size_t>(output.size() - call.sent_bytes, kMaxWirePartBytes);
    send(session, writer_.part({call.id, static_cast<uint32_t>(output.size()),
                                output.subspan(call.sent_bytes, bytes)}));
    ++sent;
    call.sent_bytes += bytes;
    call.progress_ns = monotonic_time_ns();
    if (call.sent_bytes < output.size() || session.has_ended) continue;
    writer_.add(answer_of(call, sink_.services().incarnation));
    send(session, writer_.finish_answers(session.number));
    ++session.answered;
    session.outputs.pop_front();
    --outputs_;
    if (!session.outputs.empty()) session.outputs.front()->progress_ns = call.progress_ns;
    release(session, call);
  }
  return sent != 0;
}

void NetworkGateway::drop_transfers(NetworkSession& session) {
  outputs_ -= session.outputs.size();
  for (NetworkCall* call : std::exchange(session.inputs, {})) release(session, *call);
  for (NetworkCall* call : std::exchange(session.outputs, {})) release(session, *call);
}

void NetworkGateway::end_stalled(uint64_t now_ns) {
  const PayloadLimits& limits = sink_.services().payloads;
  const uint64_t stalled_before_ns = limits.stalled_before_ns(now_ns);
  for (const auto& [id, session] : sessions_) {
    if (session->has_ended || !session->is_stalled(stalled_before_ns)) continue;
    metrics_.dropped.fetch_add(1, std::memory_order_relaxed);
    logger_->warn(
        "network session {} of {}: ends: no part of an input or output was transferred for {} ms: "
        "see procedures.transfer_timeout",
        session->number, session->peer.address, limits.transfer_timeout.count());
    const int fd = session->peer.fd;
    end(*session, "its client neither sends nor takes the next part");
    guard_->shut_down(fd);
  }
}

}  // namespace atolldb
