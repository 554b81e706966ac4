#include "bench/driver/session_transport.h"

namespace atolldb::bench {

Status SessionTransport::submit(std::string_view procedure, std::span<const std::byte> input,
                                bool is_durable, Reply reply) {
  SessionOptions options;
  options.answer_at = is_durable ? AnswerAt::durable : AnswerAt::precommitted;
  options.waits_for_room = false;
  const auto ticket =
      session_->submit(procedure, input, options,
                       [reply = std::move(reply)](SessionTicket, const SessionReply& answer) {
                         reply(answer.status, answer.output);
                       });
  return ticket ? Status::ok : ticket.error();
}

}  // namespace atolldb::bench
