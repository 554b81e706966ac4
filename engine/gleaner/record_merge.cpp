#include "engine/gleaner/record_merge.h"

#include <fmt/format.h>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

void RecordMerge::add(std::span<const std::byte> records) {
  CHECK(heads_.empty());  // the merge has not started
  CHECK(reinterpret_cast<uintptr_t>(records.data()) % alignof(LogRecord) == 0);
  inputs_.push_back({records.data(), records.data() + records.size(), nullptr});
}

void RecordMerge::add(std::unique_ptr<SortedRunReader> run) {
  CHECK(heads_.empty() && run != nullptr);
  inputs_.push_back({nullptr, nullptr, std::move(run)});
}

bool RecordMerge::comes_before(uint32_t a, uint32_t b) const {
  DCHECK(a < heads_.size() && b < heads_.size());
  const Head& left = heads_[a];
  const Head& right = heads_[b];
  if (left.storage != right.storage) return left.storage < right.storage;
  if (left.storage == kEnded) return a < b;
  if (left.key < right.key) return true;
  return !(right.key < left.key) && a < b;
}

Result<void> RecordMerge::refill(uint32_t number) {
  Input& input = inputs_[number];
  while (input.at == input.end && input.run != nullptr) {
    ATOLL_ASSIGN(auto chunk, input.run->next());
    if (chunk.empty()) break;
    input.at = chunk.data();
    input.end = chunk.data() + chunk.size();
  }
  return {};
}

/// Makes the next record of an input its head.
Result<void> RecordMerge::step(uint32_t number) {
  Input& input = inputs_[number];
  if (input.at == input.end) [[unlikely]] {
    ATOLL_TRY(refill(number));
    if (input.at == input.end) {
      heads_[number].storage = kEnded;
      return {};
    }
  }
  const auto room = static_cast<uint64_t>(input.end - input.at);
  const auto& record = *reinterpret_cast<const LogRecord*>(input.at);
  if (room < sizeof record || record.length > room || record.length % 8 != 0 ||
      record.length < LogRecord::bytes(record.key_bytes, record.payload_bytes)) [[unlikely]] {
    return make_error(
        ExitCode::corruption,
        fmt::format("inbox of a reducer: {} bytes are no log record: the shared memory "
                    "was overwritten: restart the cluster",
                    room));
  }
  const Head next = {record.storage_id, SortKey::of(record)};
  // Each input is in sort order.
  DCHECK(heads_[number].storage < next.storage ||
         (heads_[number].storage == next.storage && !(next.key < heads_[number].key)));
  heads_[number] = next;
  input.at += record.length;
  // Prefetches the cache lines of the next record, which is read after this head was returned. With
  // many inputs the hardware prefetcher does not predict them.
  __builtin_prefetch(input.at);
  __builtin_prefetch(input.at + 64);
  return {};
}

Result<void> RecordMerge::start() {
  CHECK(heads_.empty());  // called once
  const auto count = static_cast<uint32_t>(inputs_.size());
  heads_.resize(count);
  losers_.assign(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    ATOLL_TRY(step(i));
  }
  if (count == 0) return {};
  // Match n is between the winners of 2n and 2n + 1. Input i is at place count + i.
  std::vector<uint32_t> winners(2 * size_t{count});
  for (uint32_t i = 0; i < count; ++i) winners[count + i] = i;
  for (uint32_t match = count; match-- > 1;) {
    const uint32_t left = winners[2 * size_t{match}];
    const uint32_t right = winners[2 * size_t{match} + 1];
    const bool left_wins = comes_before(left, right);
    winners[match] = left_wins ? left : right;
    losers_[match] = left_wins ? right : left;
  }
  winner_ = winners[1];
  return advance();
}

/// Updates the tree after the head of `input`, the winner, has changed.
void RecordMerge::replay(uint32_t input) {
  DCHECK(input == winner_);
  uint32_t winner = input;
  for (size_t match = (inputs_.size() + input) / 2; match > 0; match /= 2) {
    if (comes_before(losers_[match], winner)) std::swap(losers_[match], winner);
  }
  winner_ = winner;
}

Result<void> RecordMerge::advance() {
  for (;;) {
    DCHECK(winner_ < heads_.size());
    const Head head = heads_[winner_];
    if (head.storage == kEnded) {
      current_ = nullptr;
      return {};
    }
    ATOLL_TRY(step(winner_));
    replay(winner_);
    // Elides the head if the next record covers it. The next record may be elided as well. The
    // record that covers the next record also covers the head, and the last such record is
    // returned.
    const Head& next = heads_[winner_];
    DCHECK(next.storage > head.storage || (next.storage == head.storage && !(next.key < head.key)));
    if (next.storage == head.storage && is_same_key(next.key, head.key) &&
        covers(*next.key.record, *head.key.record)) {
      ++elided_;
      continue;
    }
    current_ = head.key.record;
    return {};
  }
}

}  // namespace atolldb
