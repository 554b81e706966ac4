// Choice of a file system backend, and its emulated latency.
#include "shared/file/file_system.h"

#include <gtest/gtest.h>

#include "tests/shared/file/file_test_support.h"

namespace atolldb::test {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(ChoiceOfTheBackend, FollowsTheConfig) {
  Config::Durability durability;
  EXPECT_EQ(make_file_system(file_system_settings(durability))->describe(), "posix, direct I/O");
  durability.backend = FileBackend::pmem;
  EXPECT_EQ(make_file_system(file_system_settings(durability))->describe(), "pmem, no file yet");
  durability.backend = FileBackend::null;
  durability.emulated_latency = microseconds(5);
  const auto files = make_file_system(file_system_settings(durability));
  EXPECT_EQ(files->describe(),
            "null, keeps nothing: for measuring only; emulated latency in ns: read 0, write 5000, "
            "sync 5000, page read 0, block write 0");
  EXPECT_FALSE(files->is_durable());
}

/// Returns the shortest of many durations, so that other load on the machine does not count.
nanoseconds shortest(auto operation) {
  auto best = nanoseconds::max();
  for (int round = 0; round < 500; ++round) {
    const auto start = std::chrono::steady_clock::now();
    operation();
    best = std::min<nanoseconds>(best, std::chrono::steady_clock::now() - start);
  }
  return best;
}

TEST(EmulatedLatency, IsAddedToTheOperationsItIsSetFor) {
  const auto files = make_file_system(
      {.backend = FileBackend::null,
       .latency = {.read = nanoseconds(0), .write = microseconds(50), .sync = microseconds(100)},
       .warn = {}});
  const auto file = files->create("/f", kIoBlockBytes);
  ASSERT_TRUE(file);
  const Blocks block(1);
  const auto of_write = shortest([&] { ASSERT_TRUE(write(**file, 0, block.bytes())); });
  const auto of_sync = shortest([&] { ASSERT_TRUE((*file)->sync()); });
  const auto of_read = shortest([&] { ASSERT_FALSE((*file)->read(0, block.bytes())); });
  EXPECT_GE(of_write, microseconds(50));
  EXPECT_LT(of_write, microseconds(60)) << "precise";
  EXPECT_GE(of_sync, microseconds(100));
  EXPECT_LT(of_sync, microseconds(110));
  EXPECT_LT(of_read, microseconds(50));
}

TEST(EmulatedNvram, AddsATimePerPageReadPerWriteAndPerBlockWritten) {
  Config::Durability durability;
  durability.nvm_read_ns = 20'000;
  durability.nvm_write_ns = 100'000;
  durability.nvm_block_ns = 30'000;
  IoWatch watch;
  const auto files = make_file_system(file_system_settings(durability, {}, &watch));
  const FileFolder folder;
  const auto file = files->create(folder.path() + "/f", 8 * kIoBlockBytes);
  ASSERT_TRUE(file) << file.error().message;
  const DelayCounts& delays = watch.delays();
  const auto asked = [&](auto operation) {
    const uint64_t before = delays.asked_ns.load(std::memory_order_relaxed);
    operation();
    return delays.asked_ns.load(std::memory_order_relaxed) - before;
  };
  Blocks blocks(8);
  const std::span<std::byte> bytes = blocks.bytes();
  EXPECT_EQ(asked([&] { ASSERT_TRUE(write(**file, 0, bytes)); }), 100'000U + 8 * 30'000);
  EXPECT_EQ(asked([&] { ASSERT_TRUE((*file)->sync()); }), 0U);
  EXPECT_EQ(asked([&] { ASSERT_TRUE((*file)->read(0, bytes.first(kIoBlockBytes))); }), 20'000U);
  EXPECT_EQ(asked([&] { ASSERT_TRUE((*file)->read(4000, bytes.first(97))); }), 40'000U)
      << "97 bytes from there touch two pages";
  EXPECT_EQ(asked([&] { ASSERT_TRUE((*file)->read(4000, bytes.first(96))); }), 20'000U);
  EXPECT_EQ(asked([&] { ASSERT_TRUE((*file)->read(8 * kIoBlockBytes, bytes)); }), 0U)
      << "past the end there are no pages";
  EXPECT_EQ(delays.delays.load(std::memory_order_relaxed), 4U);
  EXPECT_GE(delays.taken_ns.load(std::memory_order_relaxed),
            delays.asked_ns.load(std::memory_order_relaxed));
}

}  // namespace
}  // namespace atolldb::test
