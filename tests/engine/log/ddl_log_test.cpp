// Tests of the DDL log: syncs, damage, torn records and errors.
#include "engine/log/ddl_log.h"

#include <gtest/gtest.h>

#include "tests/engine/format/hex.h"
#include "tests/engine/log/memory_file_system.h"

namespace atolldb::test {
namespace {

constexpr ClusterUuid kDdlUuid = {1, 2};
const std::string kFile = "/data/coordinator/ddl_000000.atlog";

DdlRecord record(uint32_t id) {
  if (id % 3 == 0) return {DdlOperation::drop_storage, id, id + 5, "", StorageType::none, 0, 0};
  return {DdlOperation::create_storage, id,  uint64_t{id} << 30, std::string(id % 64, 'n'),
          StorageType::array,           100, uint64_t{1} << 40};
}

void append(FileSystem& files, uint32_t first, uint32_t last) {
  auto log = DdlLog::open(files, "/data", kDdlUuid);
  CHECK(log.has_value());
  CHECK(log->records().size() == first);
  for (uint32_t id = first; id < last; ++id) CHECK(log->append(record(id)).has_value());
}

void expect_records(FileSystem& files, uint32_t count) {
  auto content = read_ddl_log(files, "/data", kDdlUuid);
  ASSERT_TRUE(content) << content.error().message;
  ASSERT_EQ(content->records.size(), count);
  for (uint32_t id = 0; id < count; ++id) EXPECT_EQ(content->records[id], record(id));
}

TEST(DdlLog, IsReadBackAcrossFilesAndRuns) {
  MemoryFileSystem files;
  expect_records(files, 0);
  append(files, 0, 3);
  expect_records(files, 3);
  append(files, 3, 600);  // 256 records per file
  expect_records(files, 600);
  EXPECT_EQ(files.paths().size(), 3u);
  append(files, 600, 601);
  expect_records(files, 601);
}

TEST(DdlLog, HasTheseBytes) {
  MemoryFileSystem files;
  auto log = DdlLog::open(files, "/data", kDdlUuid);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(
      {DdlOperation::create_storage, 7, 0x102, "st", StorageType::mastertree, 100, 1000}));
  const std::span<const std::byte> file = files.bytes(kFile);
  EXPECT_EQ(hex_of(file.first(4)), "4144444c");
  EXPECT_EQ(hex_of(file.subspan(8, 32)),
            "0100000022000000"
            "0000000000000000"
            "01020000000000000000000000000000");
  EXPECT_EQ(hex_of(file.subspan(40, 34)),
            "010207000000"
            "02010000000000006400000000000000"
            "e803000000000000"
            "02007374");
}

TEST(DdlLog, SyncsEachRecord) {
  MemoryFileSystem files;
  append(files, 0, 1);
  auto log = DdlLog::open(files, "/data", kDdlUuid);
  ASSERT_TRUE(log);
  EXPECT_GE(files.syncs, 1u) << "what a killed coordinator wrote may not be synced yet";
  files.syncs = 0;
  ASSERT_TRUE(log->append(record(1)));
  EXPECT_EQ(files.syncs, 1u);
}

TEST(DdlLog, IgnoresATornLastRecordAndTakesItsPlace) {
  for (uint32_t count : {1u, 5u, 257u}) {  // the last of 257 records is the only one of its file
    MemoryFileSystem files;
    append(files, 0, count);
    const std::string path = count == 257 ? "/data/coordinator/ddl_000001.atlog" : kFile;
    files.bytes(path)[(count - 1) % 256 * kIoBlockBytes + 50] ^= std::byte{1};
    auto content = read_ddl_log(files, "/data", kDdlUuid);
    ASSERT_TRUE(content) << content.error().message;
    EXPECT_EQ(content->records.size(), count - 1);
    EXPECT_NE(content->torn.find(path), std::string::npos);
    append(files, count - 1, count + 2);
    expect_records(files, count + 2);
  }
}

TEST(DdlLog, CallsDamageBeforeTheLastRecordCorruptionAndNamesThePlace) {
  MemoryFileSystem files;
  append(files, 0, 5);
  for (uint32_t at = 0; at < 4; ++at) {
    for (uint32_t byte = 0; byte < 60; ++byte) {
      auto& damaged = files.bytes(kFile)[at * kIoBlockBytes + byte];
      damaged ^= std::byte{32};
      auto content = read_ddl_log(files, "/data", kDdlUuid);
      damaged ^= std::byte{32};
      ASSERT_FALSE(content) << at << ' ' << byte;
      EXPECT_EQ(content.error().code, ExitCode::corruption);
      EXPECT_NE(content.error().message.find(kFile + ", offset " + std::to_string(at * 4096)),
                std::string::npos);
    }
  }
}

TEST(DdlLog, TakesNoRecordForTornThatIsKnownToBeDurable) {
  for (const bool is_lost : {false, true}) {
    MemoryFileSystem files;
    append(files, 0, 5);
    auto& bytes = files.bytes(kFile);
    const auto last = bytes.begin() + 4 * kIoBlockBytes;
    if (is_lost) std::fill(last, last + kIoBlockBytes, std::byte{});
    if (!is_lost) *(last + 50) ^= std::byte{1};
    EXPECT_TRUE(read_ddl_log(files, "/data", kDdlUuid, 4));
    const auto content = read_ddl_log(files, "/data", kDdlUuid, 5);
    ASSERT_FALSE(content);
    EXPECT_EQ(content.error().code, ExitCode::corruption);
    EXPECT_TRUE(content.error().message.contains(kFile + ", offset 16384: "))
        << content.error().message;
    EXPECT_TRUE(content.error().message.contains("5 records were durable, of which 4 are intact"));
  }
  MemoryFileSystem none;
  EXPECT_FALSE(read_ddl_log(none, "/data", kDdlUuid, 1));
}

TEST(DdlLog, MissesNoFileAndTakesNoneOfAnotherCluster) {
  MemoryFileSystem files;
  append(files, 0, 600);
  EXPECT_EQ(read_ddl_log(files, "/data", ClusterUuid{7}).error().code, ExitCode::corruption);
  ASSERT_TRUE(files.remove("/data/coordinator/ddl_000001.atlog"));
  auto content = read_ddl_log(files, "/data", kDdlUuid);
  ASSERT_FALSE(content);
  EXPECT_NE(content.error().message.find("ddl_000001.atlog: the file is missing"),
            std::string::npos);
}

TEST(DdlLog, AnswersItsFirstErrorForEver) {
  MemoryFileSystem files;
  auto log = DdlLog::open(files, "/data", kDdlUuid);
  ASSERT_TRUE(log && log->append(record(0)));
  files.changes_left = 1;  // the write succeeds, its sync fails
  const auto first = log->append(record(1));
  ASSERT_FALSE(first);
  files.changes_left = UINT64_MAX;
  const auto second = log->append(record(1));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, first.error().message);
  EXPECT_EQ(log->records().size(), 1u);
}

}  // namespace
}  // namespace atolldb::test
