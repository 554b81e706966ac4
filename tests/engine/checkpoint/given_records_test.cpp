// Records that processes of a replay give to each other in temporary files.
#include "engine/checkpoint/given_records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/gleaner/sorted_run.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/fault_injector.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// A record with a random key and payload. A commit may leave bytes after the payload.
struct RandomRecord {
  explicit RandomRecord(std::mt19937_64& random) {
    record().type = static_cast<LogType>(1 + random() % 4);
    record().storage_id = static_cast<uint32_t>(1 + random() % 9);
    record().key_bytes = static_cast<uint16_t>(random() % 1025);
    record().payload_offset = static_cast<uint16_t>(random());
    record().payload_bytes = static_cast<uint16_t>(random() % 2049);
    record().vid = random();
    const uint32_t least = LogRecord::bytes(record().key_bytes, record().payload_bytes);
    record().length = least + static_cast<uint32_t>(random() % 4 * 8);
    for (size_t i = sizeof(LogRecord); i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(random());
    }
  }
  LogRecord& record() { return *reinterpret_cast<LogRecord*>(bytes.data()); }
  /// Returns what the receiver must get.
  std::string text() {
    LogRecord header = record();
    header.length = LogRecord::bytes(header.key_bytes, header.payload_bytes);
    std::string text(reinterpret_cast<const char*>(bytes.data()), header.length);
    std::memcpy(text.data(), &header, sizeof header);
    return text;
  }

  alignas(LogRecord) std::array<std::byte, 3200> bytes{};
};

/// Where process `node` gives its records.
struct Place {
  Place(FileSystem& files, uint32_t node) {
    place.file_system = &files;
    place.directories = {"/data"};
    place.node = node;
    place.checkpoint = 7;
  }
  GivenPlace place;
};

std::vector<std::string> read(FileSystem& files, const GivenFile& file, std::string& problem) {
  std::vector<std::string> texts;
  const auto done = read_given_file(files, file, [&](const LogRecord& record) -> Result<void> {
    texts.emplace_back(reinterpret_cast<const char*>(&record), record.length);
    return {};
  });
  problem = done ? "" : done.error().message;
  return texts;
}

TEST(GivenRecords, ReachTheProcessToWhichTheyAreGiven) {
  std::mt19937_64 random(seed());
  for (const int count : {1, 30, 3000}) {
    MemoryFileSystem files;
    Place place(files, 1);
    std::map<uint32_t, std::vector<std::string>> expected;
    std::array<GivenRecords, 2> threads;
    std::vector<GivenFile> given;
    for (GivenRecords& thread : threads) {
      for (int i = 0; i < count; ++i) {
        RandomRecord record(random);
        const auto to = static_cast<uint32_t>(2 + random() % 3);
        ASSERT_TRUE(thread.give(place.place, to, record.record()));
        expected[to].push_back(record.text());
      }
      auto finished = thread.finish();
      ASSERT_TRUE(finished);
      given.insert(given.end(), finished->begin(), finished->end());
      EXPECT_TRUE(thread.finish()->empty()) << "nothing was given since";
    }
    const auto decoded = decode_given_files(encode_given_files(given));
    ASSERT_TRUE(decoded) << decoded.error().message;
    std::map<uint32_t, std::vector<std::string>> found;
    for (const GivenFile& file : *decoded) {
      std::string problem;
      for (std::string& text : read(files, file, problem)) found[file.to].push_back(text);
      EXPECT_EQ(problem, "");
    }
    EXPECT_EQ(found, expected);
    ASSERT_TRUE(remove_sorted_runs(files, "/data", 1));
    EXPECT_TRUE(files.paths().empty());
  }
}

TEST(GivenRecords, AreSpreadOverAllDirectoriesAndTakeLittleRoom) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  Place place(files, 0);
  place.place.directories = {"/a", "/b"};
  std::array<GivenRecords, 3> threads;
  for (GivenRecords& thread : threads) {
    for (const uint32_t to : {1u, 2u}) {
      ASSERT_TRUE(thread.give(place.place, to, RandomRecord(random).record()));
    }
    ASSERT_TRUE(thread.finish());
  }
  for (const std::string directory : {"/a", "/b"}) {
    EXPECT_EQ(list_sorted_runs(files, directory, 0)->size(), 3u) << directory;
  }
  for (const std::string& path : files.paths()) {
    EXPECT_EQ(files.bytes(path).size(), GivenRecords::kChunkBytes) << path;
  }
}

/// A file that grew by a constant would take as many calls as it has megabytes, times 16.
TEST(GivenRecords, GrowTheirFileRarelyAndTakeLittleMoreRoomThanTheyNeed) {
  std::mt19937_64 random(seed());
  for (const uint64_t bytes : {uint64_t{100} << 10, uint64_t{1} << 20, uint64_t{24} << 20}) {
    MemoryFileSystem memory;
    FaultInjector files(memory);
    Place place(files, 0);
    GivenRecords thread;
    RandomRecord record(random);
    uint64_t given_bytes = 0;
    while (given_bytes < bytes) {
      ASSERT_TRUE(thread.give(place.place, 1, record.record()));
      given_bytes += record.text().size();
    }
    const auto given = thread.finish();
    ASSERT_TRUE(given && given->size() == 1u);
    const SortedRun& run = given->front().run;
    const uint64_t written = run.chunks * run.chunk_bytes;
    EXPECT_LE(files.calls(IoCall::grow), 8 + written / SortedRunWriter::kGrowth.most);
    const uint64_t unused = memory.bytes(run.path).size() - written;
    EXPECT_LE(unused,
              std::clamp(written, SortedRunWriter::kGrowth.least, SortedRunWriter::kGrowth.most));
    std::string problem;
    EXPECT_EQ(read(files, given->front(), problem).size(), run.records);
    EXPECT_EQ(problem, "");
  }
}

TEST(GivenRecords, OfADamagedFileAreRefused) {
  std::mt19937_64 random(seed());
  MemoryFileSystem files;
  Place place(files, 0);
  GivenRecords thread;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(thread.give(place.place, 1, RandomRecord(random).record()));
  }
  const auto given = thread.finish();
  ASSERT_TRUE(given && given->size() == 1u);
  const GivenFile& file = given->front();
  std::string problem;
  EXPECT_EQ(read(files, file, problem).size(), 50u);
  auto& bytes = files.bytes(file.run.path);
  bytes[GivenRecords::kChunkBytes + 100] ^= std::byte{1};
  read(files, file, problem);
  EXPECT_TRUE(problem.starts_with(file.run.path)) << problem;
  EXPECT_TRUE(problem.ends_with("start the cluster again")) << problem;
  bytes[GivenRecords::kChunkBytes + 100] ^= std::byte{1};
  GivenFile shorter = file;
  --shorter.run.records;
  read(files, shorter, problem);
  EXPECT_NE(problem.find("50 records, 49 were written"), std::string::npos) << problem;
  std::vector<GivenFile> wrong = *given;
  wrong[0].run.chunk_bytes = 0;
  EXPECT_FALSE(decode_given_files(encode_given_files(wrong)));
  EXPECT_FALSE(decode_given_files({}));
}

TEST(GivenRecords, OnAFullDiskAreAnErrorThatNamesTheFile) {
  std::mt19937_64 random(seed());
  for (const IoCall call : {IoCall::create, IoCall::grow, IoCall::write}) {
    MemoryFileSystem memory;
    FaultInjector files(memory);
    files.fail(call, 1, Fault::disk_full);
    Place place(files, 0);
    GivenRecords thread;
    Result<void> given;
    for (int i = 0; i < 100 && given; ++i) {
      given = thread.give(place.place, 1, RandomRecord(random).record());
    }
    ASSERT_FALSE(given) << static_cast<int>(call);
    EXPECT_EQ(given.error().code, ExitCode::disk_full) << given.error().message;
    EXPECT_NE(given.error().message.find("/data/node0/run_7_0_1.tmp"), std::string::npos)
        << given.error().message;
  }
}

}  // namespace
}  // namespace atolldb::test
