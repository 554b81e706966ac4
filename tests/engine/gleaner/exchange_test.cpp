// Tests of the exchange between mappers and reducers: order, slow or failed mappers, and ended
// runs.
#include "engine/gleaner/exchange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/engine/gleaner/shared_inbox.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kHalf = ReducerInbox::kMinHalfBytes;

/// Sends a message of `bytes` bytes that starts with `number`. Its other bytes are the low byte of
/// `number`.
Result<void> send(ReducerInbox& inbox, uint32_t run, uint64_t number, uint32_t bytes) {
  auto room = inbox.reserve(run, static_cast<uint32_t>(number >> 32), bytes);
  if (!room) return std::unexpected(room.error());
  std::memset(room->bytes().data(), static_cast<int>(number & 0xff), bytes);
  std::memcpy(room->bytes().data(), &number, sizeof number);
  room->announce(1);
  return {};
}

/// Returns the numbers of a batch's messages, without void messages.
std::vector<uint64_t> numbers_in(const InboxBatch& batch) {
  std::vector<uint64_t> numbers;
  for (std::span<const std::byte> rest = batch.bytes; !rest.empty();) {
    auto message = take_message(rest);
    CHECK(message.has_value());
    if (message->records == 0) continue;
    uint64_t number = 0;
    std::memcpy(&number, message->bytes.data(), sizeof number);
    EXPECT_EQ(message->storage_id, number >> 32);
    for (const std::byte byte : message->bytes.subspan(sizeof number)) {
      EXPECT_EQ(byte, static_cast<std::byte>(number & 0xff));
    }
    numbers.push_back(number);
  }
  return numbers;
}

/// Waits, by polling, until mappers have asked for `swaps` swaps of the current half.
void await_swap_wanted(SharedInbox& inbox, uint32_t swaps) {
  auto* control = reinterpret_cast<InboxControl*>(inbox.memory.base(1));
  while (control->swaps_wanted.load(std::memory_order_relaxed) < swaps) std::this_thread::yield();
}

TEST(Exchange, HandsOverEveryMessageOfManyMappersOnce) {
  const uint64_t first = seed();
  constexpr uint64_t kMappers = 4;
  SharedInbox inbox(kHalf);
  for (uint32_t run = 1; run <= 3; ++run) {
    ASSERT_TRUE(inbox.reducer.begin(run, kMappers));
    constexpr uint64_t kEach = 3000;
    std::vector<std::vector<uint64_t>> last(kMappers);
    uint64_t swaps = 0;
    std::vector<std::jthread> threads;
    for (uint64_t mapper = 0; mapper < kMappers; ++mapper) {
      threads.emplace_back([&, mapper] {
        std::mt19937_64 random(first + mapper);
        for (uint64_t i = 0; i < kEach; ++i) {
          const auto bytes = static_cast<uint32_t>(8 + random() % 200 * 8);
          if (random() % 16 == 0) {
            // A mapper reserves space, and fails before it announces a message.
            ASSERT_TRUE(inbox.mappers.reserve(run, 1, bytes));
          }
          ASSERT_TRUE(send(inbox.mappers, run, (mapper << 32) + i, bytes));
        }
        ASSERT_TRUE(inbox.mappers.finish(run));
      });
    }
    std::vector<uint64_t> next(kMappers);
    for (bool is_last = false; !is_last; ++swaps) {
      const auto batch = inbox.reducer.next_batch(run);
      ASSERT_TRUE(batch) << batch.error().message;
      is_last = batch->is_last;
      for (const uint64_t number : numbers_in(*batch)) {
        // Messages of one mapper arrive in the order in which it sent them.
        ASSERT_EQ(number & 0xffffffff, next[number >> 32]++);
      }
    }
    for (const uint64_t count : next) EXPECT_EQ(count, kEach);
    EXPECT_GT(swaps, 100u);
  }
}

TEST(Exchange, TakesAMessageOfTheSizeOfAHalf) {
  SharedInbox inbox(kHalf);
  ASSERT_TRUE(inbox.reducer.begin(1, 1));
  const auto most = static_cast<uint32_t>(inbox.mappers.max_message_bytes());
  std::jthread mapper([&] {
    for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(send(inbox.mappers, 1, i, most));
    ASSERT_TRUE(inbox.mappers.finish(1));
  });
  uint64_t next = 0;
  for (bool is_last = false; !is_last;) {
    const auto batch = inbox.reducer.next_batch(1);
    ASSERT_TRUE(batch);
    is_last = batch->is_last;
    for (const uint64_t number : numbers_in(*batch)) EXPECT_EQ(number, next++);
  }
  EXPECT_EQ(next, 5u);
}

TEST(Exchange, ASwapWaitsForTheCopyUnderWayAndOthersGoOnMeanwhile) {
  SharedInbox inbox(kHalf);
  ASSERT_TRUE(inbox.reducer.begin(1, 2));
  auto slow = inbox.mappers.reserve(1, 0, 64);
  ASSERT_TRUE(slow);
  std::atomic<bool> is_taken{false};
  std::vector<uint64_t> numbers;
  std::jthread reducer([&] {
    const auto batch = inbox.reducer.next_batch(1);
    ASSERT_TRUE(batch);
    is_taken.store(true, std::memory_order_release);
    numbers = numbers_in(*batch);
  });
  // Other messages fill the rest of this half, and then the other half. The slow mapper holds up
  // only the space that it has reserved.
  const auto most = static_cast<uint32_t>(inbox.mappers.max_message_bytes());
  ASSERT_TRUE(send(inbox.mappers, 1, 1, most - 256));
  ASSERT_TRUE(send(inbox.mappers, 1, 2, most));
  EXPECT_FALSE(is_taken.load(std::memory_order_acquire));
  const uint64_t number = 3;
  std::memset(slow->bytes().data(), 3, 64);
  std::memcpy(slow->bytes().data(), &number, sizeof number);
  slow->announce(1);
  reducer.join();
  EXPECT_EQ(numbers, (std::vector<uint64_t>{3, 1}));
}

TEST(Exchange, AFailingMapperIsNotWaitedFor) {
  SharedInbox inbox(kHalf);
  ASSERT_TRUE(inbox.reducer.begin(1, 2));
  ASSERT_TRUE(send(inbox.mappers, 1, 1, 64));
  auto room = std::make_unique<Result<InboxReservation>>(inbox.mappers.reserve(1, 0, 64));
  ASSERT_TRUE(*room);
  ASSERT_TRUE(send(inbox.mappers, 1, 2, 64));
  std::jthread other([&] {
    ASSERT_TRUE(
        send(inbox.mappers, 1, 3, static_cast<uint32_t>(inbox.mappers.max_message_bytes())));
  });
  std::jthread reducer([&] {
    const auto batch = inbox.reducer.next_batch(1);
    ASSERT_TRUE(batch);
    EXPECT_FALSE(batch->is_last);
    EXPECT_EQ(numbers_in(*batch), (std::vector<uint64_t>{1, 2}));
  });
  other.join();  // the swap has happened, and the reducer waits for the reservation
  room.reset();  // the mapper ends without an announcement
}

TEST(Exchange, EndsEveryWaitWhenTheRunIsGivenUp) {
  for (const bool by_cluster : {false, true}) {
    SharedInbox inbox(kHalf);
    ASSERT_TRUE(inbox.reducer.begin(1, 3));
    auto room = inbox.mappers.reserve(1, 0, 64);  // the reducer waits for this reservation
    ASSERT_TRUE(room);
    const auto most = static_cast<uint32_t>(inbox.mappers.max_message_bytes());
    std::atomic<uint32_t> errors{0};
    std::vector<std::jthread> waiting;
    for (uint64_t i = 0; i < 3; ++i) {
      waiting.emplace_back([&, i] {
        // One sender fills the other half. The other senders wait for a swap that never comes.
        while (send(inbox.mappers, 1, i, most)) continue;
        errors.fetch_add(1, std::memory_order_relaxed);
      });
    }
    waiting.emplace_back([&] {
      while (inbox.reducer.next_batch(1)) continue;
      errors.fetch_add(1, std::memory_order_relaxed);
    });
    await_swap_wanted(inbox, 2);  // now the reducer waits for the reservation in the first half
    if (by_cluster) {
      inbox.is_over.store(true, std::memory_order_relaxed);
    } else {
      inbox.mappers.give_up(1);
    }
    waiting.clear();
    EXPECT_EQ(errors.load(std::memory_order_relaxed), 4u);
  }
}

TEST(Exchange, RefusesMappersOfAnotherRun) {
  SharedInbox inbox(kHalf);
  EXPECT_FALSE(inbox.mappers.reserve(1, 0, 64));  // no run has begun
  ASSERT_TRUE(inbox.reducer.begin(1, 1));
  ASSERT_TRUE(send(inbox.mappers, 1, 7, 64));
  ASSERT_TRUE(inbox.reducer.begin(2, 1));
  const auto late = inbox.mappers.reserve(1, 0, 64);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "snapshot 1: its job has ended: the inbox serves job 2");
  EXPECT_FALSE(inbox.mappers.finish(1));
  inbox.mappers.give_up(1);  // run 1 has ended; must not affect run 2
  ASSERT_TRUE(send(inbox.mappers, 2, 8, 64));
  ASSERT_TRUE(inbox.mappers.finish(2));
  const auto batch = inbox.reducer.next_batch(2);
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->is_last);
  EXPECT_EQ(numbers_in(*batch), std::vector<uint64_t>{8});
  // After the last batch, mappers and reducer get an error.
  EXPECT_FALSE(inbox.mappers.reserve(2, 0, 64));
  EXPECT_FALSE(inbox.reducer.next_batch(2));
}

TEST(Exchange, ARunBeginsWhenTheLastCopyOfTheOneBeforeIsOver) {
  SharedInbox inbox(kHalf);
  ASSERT_TRUE(inbox.reducer.begin(1, 1));
  auto room = std::make_unique<Result<InboxReservation>>(inbox.mappers.reserve(1, 0, 64));
  ASSERT_TRUE(*room);
  inbox.reducer.give_up(1);
  std::atomic<bool> has_begun{false};
  std::jthread owner([&] {
    ASSERT_TRUE(inbox.reducer.begin(2, 1));
    has_begun.store(true, std::memory_order_release);
  });
  // Waits until `begin` has closed the half. Then `begin` waits for the reservation, so it cannot
  // have returned.
  auto* control = reinterpret_cast<InboxControl*>(inbox.memory.base(1));
  const uint64_t open = control->halves[0].status.load(std::memory_order_relaxed);
  while (control->halves[0].status.load(std::memory_order_relaxed) == open &&
         (open >> 39 & 1) == 0) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(has_begun.load(std::memory_order_acquire));
  room.reset();
  owner.join();
  EXPECT_TRUE(send(inbox.mappers, 2, 1, 64));
}

TEST(Exchange, TellsBytesThatAreNoMessage) {
  alignas(64) std::byte bytes[128] = {};
  std::memset(bytes, 0xff, sizeof bytes);
  std::span<const std::byte> batch(bytes);
  const auto message = take_message(batch);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, ExitCode::corruption);
}

}  // namespace
}  // namespace atolldb::test
