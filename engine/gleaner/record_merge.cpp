#include "engine/gleaner/record_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

void RecordMerge::add(std::span<const std::byte> records) {
  CHECK(!has_started_);
  CHECK(reinterpret_cast<uintptr_t>(records.data()) % alignof(LogRecord) == 0);
  inputs_.push_back({.at = records.data(), .end = records.data() + records.size(), .run = nullptr});
}

void RecordMerge::add(std::unique_ptr<SortedRunReader> run) {
  CHECK(!has_started_ && run != nullptr);
  inputs_.push_back({.run = std::move(run)});
}

/// Returns whether input `a` comes before input `b`, whose head has the same prefix.
bool RecordMerge::wins_tie(uint64_t a, uint64_t b) const {
  DCHECK(a < inputs_.size() && b < inputs_.size());
  const SortKey& left = inputs_[a].head;
  const SortKey& right = inputs_[b].head;
  if (left.record == nullptr || right.record == nullptr) {
    return left.record == right.record ? a < b : left.record != nullptr;
  }
  if (left < right) return true;
  return !(right < left) && a < b;
}

/// Reads the next chunk of an input that is at its end, if there is one.
Result<void> RecordMerge::refill(Input& input) {
  while (input.at == input.end && input.run != nullptr) {
    ATOLL_ASSIGN(auto chunk, input.run->next());
    if (chunk.empty()) break;
    has_refilled_ = true;
    input.at = chunk.data();
    input.end = chunk.data() + chunk.size();
  }
  return {};
}

bool RecordMerge::has_whole_record(const Input& input) {
  const auto room = static_cast<uint64_t>(input.end - input.at);
  const auto& record = *reinterpret_cast<const LogRecord*>(input.at);
  return room >= sizeof record && record.length <= std::min<uint64_t>(room, kMaxGleanedBytes) &&
         record.length % 8 == 0 &&
         record.length >= LogRecord::bytes(record.key_bytes, record.payload_bytes);
}

std::unexpected<Error> RecordMerge::no_record(const Input& input) {
  return make_error(ExitCode::corruption,
                    fmt::format("inbox of a reducer: {} bytes are no log record: the shared memory "
                                "was overwritten: restart the cluster",
                                input.end - input.at));
}

/// Makes the next record of an input its head. If it belongs to another storage, the input waits
/// for that storage.
inline Result<void> RecordMerge::step(uint32_t number) {
  Input& input = inputs_[number];
  if (input.at == input.end) [[unlikely]] {
    ATOLL_TRY(refill(input));
    if (input.at == input.end) {
      input.head = kNoRecord;
      return {};
    }
  }
  if (!has_whole_record(input)) [[unlikely]]
    return no_record(input);
  const auto& record = *reinterpret_cast<const LogRecord*>(input.at);
  if (record.storage_id != storage_) [[unlikely]] {
    DCHECK(record.storage_id > storage_);  // each input is in sort order
    input.head = kNoRecord;
    wait(number, record.storage_id);
    return {};
  }
  const SortKey next = SortKey::of(record);
  DCHECK(input.head.record == nullptr || !(next < input.head));  // each input is in sort order
  input.head = next;
  input.at += record.length;
  // Prefetches the cache lines of the next record, which is read after the current head was
  // returned. With many inputs the hardware prefetcher does not predict these lines.
  __builtin_prefetch(input.at);
  __builtin_prefetch(input.at + 64);
  return {};
}

void RecordMerge::wait(uint32_t number, uint32_t storage) {
  DCHECK(waiting_.size() < inputs_.size());
  waiting_.push_back({storage, number});
  std::ranges::push_heap(waiting_, std::greater());
}

Result<void> RecordMerge::start() {
  CHECK(!has_started_);
  has_started_ = true;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    ATOLL_TRY(refill(input));
    if (input.at == input.end) continue;
    if (!has_whole_record(input)) return no_record(input);
    wait(i, reinterpret_cast<const LogRecord*>(input.at)->storage_id);
  }
  return load();
}

/// Begins with the lowest storage for which an input waits. Returns false if there is none.
Result<bool> RecordMerge::begin_storage() {
  players_ = 0;
  if (waiting_.empty()) return false;
  storage_ = waiting_.front().storage;
  // Match n is between the winners of 2n and 2n + 1. Player i is at place players_ + i.
  std::vector<Player> places;
  while (!waiting_.empty() && waiting_.front().storage == storage_) {
    const uint32_t number = waiting_.front().input;
    std::ranges::pop_heap(waiting_, std::greater());
    waiting_.pop_back();
    ATOLL_TRY(step(number));
    Input& input = inputs_[number];
    input.player = static_cast<uint32_t>(places.size());
    places.push_back({prefix_of(input.head), number});
  }
  players_ = places.size();
  CHECK(players_ > 0 && players_ <= inputs_.size());
  losers_.resize(players_);
  places.insert(places.begin(), players_, Player{});
  for (size_t match = players_; match-- > 1;) {
    const bool left_wins = wins(places[2 * match], places[2 * match + 1]);
    places[match] = places[2 * match + (left_wins ? 0 : 1)];
    losers_[match] = places[2 * match + (left_wins ? 1 : 0)];
  }
  winner_ = places[1];
  bound_ = 0;
  return true;
}

/// Updates the tree after the head of the winner has changed.
inline void RecordMerge::replay() {
  const Input& input = inputs_[winner_.input];
  const size_t first = (players_ + input.player) / 2;
  Player winner = {prefix_of(input.head), winner_.input};
  for (size_t match = first; match > 0; match /= 2) {
    Player& place = losers_[match];
    const Player loser = place;
    bool swaps = loser.prefix < winner.prefix;
    if (loser.prefix == winner.prefix) [[unlikely]]
      swaps = wins_tie(loser.input, winner.input);
    // Swaps without a branch, because the outcome is unpredictable.
    const Prefix prefix_change = (loser.prefix ^ winner.prefix) & -Prefix{swaps};
    const uint64_t input_change = (loser.input ^ winner.input) & -uint64_t{swaps};
    place = {loser.prefix ^ prefix_change, loser.input ^ input_change};
    winner = {winner.prefix ^ prefix_change, winner.input ^ input_change};
  }
  // An input that wins twice in a row stays ahead while its prefix is below those of all players
  // that it has beaten. These do not change; `bound_` is their lowest prefix.
  bound_ = 0;
  if (winner.input == winner_.input) {
    bound_ = ~Prefix{0};
    for (size_t match = first; match > 0; match /= 2) {
      bound_ = std::min(bound_, losers_[match].prefix);
    }
  }
  winner_ = winner;
}

/// Loads the next batch. The batch ends before an input could need a second new chunk. That chunk
/// would overwrite the one before the last, and the batch may have records of it.
Result<void> RecordMerge::load() {
  DCHECK(batch_.empty());
  has_refilled_ = false;
  size_t count = 0;
  while (count == 0 || (count < kMaxBatch && !has_refilled_)) {
    if (players_ == 0 || inputs_[winner_.input].head.record == nullptr) [[unlikely]] {
      if (count != 0) break;  // a batch has records of one storage
      ATOLL_ASSIGN(const bool has_more, begin_storage());
      if (!has_more) break;
    }
    const Input& input = inputs_[winner_.input];
    const SortKey head = input.head;
    ATOLL_TRY(step(static_cast<uint32_t>(winner_.input)));
    if (!(prefix_of(input.head) < bound_)) replay();
    // Elides the head if the next record covers it. The next record may be elided as well. The
    // record that covers the next record also covers the head, and the last such record is
    // returned.
    const SortKey& next = inputs_[winner_.input].head;
    DCHECK(next.record == nullptr || !(next < head));
    if (next.first == head.first && next.second == head.second && next.record != nullptr &&
        is_same_key(next, head) && covers(*next.record, *head.record)) {
      ++elided_;
      continue;
    }
    keys_[count++] = head;
  }
  DCHECK(count <= kMaxBatch);
  batch_ = std::span<const SortKey>(keys_).first(count);
  return {};
}

}  // namespace atolldb
