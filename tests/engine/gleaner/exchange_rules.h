// Body for R40 (void reservations). It returns an error text, or an empty text if all is right.
#pragma once

#include <string>

#include "tests/engine/gleaner/shared_inbox.h"

namespace atolldb::test {

/// R40: a mapper fails between its reservation and its announcement. Everything runs on one thread.
/// With the rule, the reducer finds a half without writers and does not wait. Without the rule, the
/// reducer waits until its callback says that the run is over.
inline std::string a_reservation_that_is_not_announced_is_void() {
  SharedInbox inbox(ReducerInbox::kMinHalfBytes);
  uint32_t asked = 0;  // calls of the callback, at the reducer's start and before each wait
  ReducerInbox reducer(inbox.memory.base(0), [&] { return ++asked > 1; });
  if (!reducer.begin(1, 1)) return "no run begins";
  {
    const auto room = inbox.mappers.reserve(1, 7, 64);
    if (!room) return "no room: " + room.error().message;
  }
  if (!inbox.mappers.finish(1)) return "the mapper is not told that it has finished";
  asked = 0;
  const auto batch = reducer.next_batch(1);
  if (!batch) return "the reducer waits for a mapper that has finished";
  auto rest = batch->bytes;
  const auto message = take_message(rest);
  if (!message || message->records != 0 || !rest.empty()) return "the reservation is not void";
  return batch->is_last ? "" : "the reducer expects more";
}

}  // namespace atolldb::test
