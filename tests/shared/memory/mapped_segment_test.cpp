// Mappings of segment files: shared memory, read-only access, errors.
#include "shared/memory/mapped_segment.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "shared/memory/segment_file.h"

namespace atolldb {
namespace {

constexpr uint64_t kSegmentBytes = uint64_t{2} << 20;

/// Returns the access rights in /proc/self/maps of the mapping that begins at `base`, like "rw-s",
/// or "" if no mapping begins there.
std::string access_at(const std::byte* base) {
  std::ostringstream start;
  start << std::hex << reinterpret_cast<uintptr_t>(base) << '-';
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(start.str())) return line.substr(line.find(' ') + 1, 4);
  }
  return "";
}

TEST(MappedSegmentTest, MappingsOfOneFileShareItsMemory) {
  Result<UniqueFd> file = create_segment_file("node3.pool", kSegmentBytes, false);
  ASSERT_TRUE(file) << file.error().message;
  const Result<MappedSegment> writer = MappedSegment::map(file->get(), kSegmentBytes, true);
  const Result<MappedSegment> reader = MappedSegment::map(file->get(), kSegmentBytes, false);
  file->reset();
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(writer->bytes(), kSegmentBytes);
  EXPECT_NE(writer->base(), reader->base());
  writer->base()[kSegmentBytes - 1] = std::byte{42};
  EXPECT_EQ(reader->base()[kSegmentBytes - 1], std::byte{42});
  EXPECT_EQ(access_at(writer->base()), "rw-s");
  EXPECT_EQ(access_at(reader->base()), "r--s");
}

TEST(MappedSegmentTest, MovesKeepTheMappingAndTheLastOwnerUnmapsIt) {
  const Result<UniqueFd> file = create_segment_file("node3.pool", kSegmentBytes, false);
  ASSERT_TRUE(file) << file.error().message;
  std::byte* base = nullptr;
  {
    Result<MappedSegment> first = MappedSegment::map(file->get(), kSegmentBytes, true);
    ASSERT_TRUE(first) << first.error().message;
    base = first->base();
    const MappedSegment second = *std::move(first);
    EXPECT_EQ(second.base(), base);
    EXPECT_EQ(access_at(base), "rw-s");
  }
  EXPECT_NE(access_at(base), "rw-s");
}

TEST(MappedSegmentTest, AnAddressInUseIsAnErrorAndKeepsItsMemory) {
  const Result<UniqueFd> file = create_segment_file("node3.pool", kSegmentBytes, false);
  const Result<UniqueFd> other = create_segment_file("node4.pool", kSegmentBytes, false);
  ASSERT_TRUE(file && other);
  const Result<MappedSegment> mapped = MappedSegment::map(file->get(), kSegmentBytes, true);
  ASSERT_TRUE(mapped) << mapped.error().message;
  mapped->base()[0] = std::byte{42};
  EXPECT_FALSE(MappedSegment::map(other->get(), kSegmentBytes, true, mapped->base()));
  EXPECT_EQ(mapped->base()[0], std::byte{42});
}

TEST(MappedSegmentTest, AnErrorHasTheTextOfTheErrorNumber) {
  const Result<MappedSegment> mapped = MappedSegment::map(-1, kSegmentBytes, true);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, ExitCode::resources);
  EXPECT_EQ(mapped.error().message, std::strerror(EBADF));
}

}  // namespace
}  // namespace atolldb
