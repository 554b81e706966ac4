// Snapshot files: the reader returns what the writer wrote, and names damaged content.
#include "engine/snapshot/snapshot_files.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/format/snapshot_format.h"
#include "engine/snapshot/snapshot_writer.h"
#include "tests/support/fault_injector.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr ClusterUuid kUuid = {4, 5, 6};
constexpr uint32_t kStorage = 9;

struct alignas(kPageBytes) Page {
  std::byte bytes[kPageBytes];
  PageHeader* header() { return reinterpret_cast<PageHeader*>(bytes); }
  uint64_t& mark() { return *reinterpret_cast<uint64_t*>(bytes + 200); }
};

class SnapshotFilesTest : public testing::Test {
 protected:
  static SnapshotWriterSettings settings(uint32_t node = 1) { return {"/d", node, 5, 77, kUuid}; }

  Result<void> write(FileSystem& files, uint64_t pages) {
    auto writer = SnapshotWriter::create(files, settings());
    if (!writer) return std::unexpected(writer.error());
    for (uint64_t i = 1; i <= pages; ++i) {
      auto page = writer->next(kStorage);
      if (!page) return std::unexpected(page.error());
      reinterpret_cast<Page*>(*page)->mark() = i * 3;
    }
    EXPECT_EQ(writer->page_count(), pages + 1);
    return writer->finish();
  }
  static SnapshotFilePlace place(uint64_t pages) { return {5, 1, "/d", pages + 1}; }
  std::string error_of(Result<void> result) { return result ? "" : result.error().message; }

  PowerCutFileSystem files_;
  const std::string path_ = "/d/node1/snapshot_5.atsnap";
};

TEST_F(SnapshotFilesTest, PagesAreReadAsTheyWereWrittenWithWhatMakesThemSnapshotPages) {
  constexpr uint64_t kPages = 700;  // several writes to the device
  ASSERT_EQ(error_of(write(files_, kPages)), "");
  EXPECT_EQ(*(*files_.open_for_reading(path_))->size(), (kPages + 1) * kPageBytes);
  SnapshotFiles reader(files_, kUuid);
  ASSERT_EQ(error_of(reader.open({place(kPages)})), "");
  Page page;
  for (uint32_t i = 1; i <= kPages; ++i) {
    const auto pointer = SnapshotPointer::make(5, 1, i);
    ASSERT_EQ(error_of(reader.read(pointer, page.header())), "");
    EXPECT_EQ(page.mark(), i * 3);
    EXPECT_EQ(page.header()->self, pointer.word());
    EXPECT_EQ(page.header()->is_snapshot, 1);
    EXPECT_EQ(page.header()->storage_id, kStorage);
    EXPECT_EQ(Vid(page.header()->max_removed_vid.load(std::memory_order_relaxed)),
              Vid::make(77, 0));
  }
  std::vector<Page> run(100);
  ASSERT_EQ(error_of(reader.read_run(SnapshotPointer::make(5, 1, 300), 100, run[0].bytes)), "");
  EXPECT_EQ(run[99].mark(), 399u * 3);
  ASSERT_EQ(error_of(reader.open_only({})), "");
  EXPECT_NE(error_of(reader.read(SnapshotPointer::make(5, 1, 1), page.header())), "");
}

TEST_F(SnapshotFilesTest, APointerPastTheLastPageIsAnError) {
  ASSERT_EQ(error_of(write(files_, 3)), "");
  SnapshotFiles reader(files_, kUuid);
  ASSERT_EQ(error_of(reader.open({place(3)})), "");
  std::vector<Page> run(4);
  for (const uint32_t first : {0u, 4u}) {
    EXPECT_NE(error_of(reader.read(SnapshotPointer::make(5, 1, first), run[0].header())), "");
  }
  EXPECT_NE(error_of(reader.read_run(SnapshotPointer::make(5, 1, 2), 3, run[0].bytes)), "");
}

TEST_F(SnapshotFilesTest, AnyFlippedBitIsNamedWithFileAndPage) {
  std::mt19937_64 random(seed());
  constexpr uint64_t kPages = 5;
  ASSERT_EQ(error_of(write(files_, kPages)), "");
  for (int i = 0; i < 300; ++i) {
    const auto page_number = static_cast<uint32_t>(1 + random() % kPages);
    // Covers every byte of the header sooner or later, and some bytes of the rest.
    const uint64_t byte = i % 2 == 0 ? random() % sizeof(PageHeader) : random() % kPageBytes;
    const auto mask = static_cast<uint8_t>(1 << random() % 8);
    ASSERT_TRUE(files_.corrupt(path_, page_number * kPageBytes + byte, mask));
    SnapshotFiles reader(files_, kUuid);
    ASSERT_EQ(error_of(reader.open({place(kPages)})), "");
    Page page;
    for (uint32_t at = 1; at <= kPages; ++at) {
      auto read = reader.read(SnapshotPointer::make(5, 1, at), page.header());
      ASSERT_EQ(bool(read), at != page_number) << byte;
      if (read) continue;
      EXPECT_EQ(read.error().code, ExitCode::corruption);
      EXPECT_NE(read.error().message.find(path_ + ": page " + std::to_string(page_number)),
                std::string::npos)
          << read.error().message;
    }
    ASSERT_TRUE(files_.corrupt(path_, page_number * kPageBytes + byte, mask));
  }
}

/// Reads pages in any order, close together or not, up to the last one. Each read returns the
/// requested page. Only the damaged page gives an error, whatever lies beside it.
TEST_F(SnapshotFilesTest, AReaderOfPagesThatLieCloseGivesTheOneAskedFor) {
  const uint64_t seed = test::seed();
  constexpr uint64_t kPages = 90;
  constexpr uint32_t kDamaged = 41;
  ASSERT_EQ(error_of(write(files_, kPages)), "");
  ASSERT_TRUE(files_.corrupt(path_, kDamaged * kPageBytes + 300, 1));
  SnapshotFiles files(files_, kUuid);
  ASSERT_EQ(error_of(files.open({place(kPages)})), "");
  EXPECT_EQ(files.pages_from(SnapshotPointer::make(5, 1, 1)), kPages);
  EXPECT_EQ(files.pages_from(SnapshotPointer::make(5, 1, kPages)), 1u);
  EXPECT_EQ(files.pages_from(SnapshotPointer::make(5, 1, kPages + 1)), 0u);
  EXPECT_EQ(files.pages_from(SnapshotPointer::make(6, 1, 1)), 0u);
  for (uint64_t round = 0; round < rounds(200, 5'000); ++round) {
    std::mt19937_64 random(seed + round);
    PageReader reader(files);
    const uint64_t stride = 1 + random() % 20;
    uint32_t at = 1;
    for (int i = 0; i < 100; ++i) {
      Page page;
      const auto pointer = SnapshotPointer::make(5, 1, at);
      ASSERT_EQ(bool(reader.read(pointer, page.header())), at != kDamaged)
          << "page " << at << ", ATOLL_SEED=" << seed + round;
      if (at != kDamaged) {
        ASSERT_EQ(page.mark(), at * 3) << "ATOLL_SEED=" << seed + round;
        ASSERT_EQ(page.header()->self, pointer.word());
      }
      const bool jumps = random() % 8 == 0;
      at = static_cast<uint32_t>(1 + (jumps ? random() : at - 1 + random() % stride) % kPages);
    }
  }
}

TEST_F(SnapshotFilesTest, AFlippedBitOfTheHeaderIsNamedWithTheFile) {
  ASSERT_EQ(error_of(write(files_, 2)), "");
  for (uint64_t byte = 0; byte < sizeof(SnapshotFileHeader); ++byte) {
    ASSERT_TRUE(files_.corrupt(path_, byte, 16));
    SnapshotFiles reader(files_, kUuid);
    auto opened = reader.open({place(2)});
    ASSERT_FALSE(opened) << byte;
    EXPECT_EQ(opened.error().code, ExitCode::corruption);
    EXPECT_NE(opened.error().message.find(path_), std::string::npos);
    ASSERT_TRUE(files_.corrupt(path_, byte, 16));
  }
}

TEST_F(SnapshotFilesTest, AFileOfAnotherClusterOrLengthIsRefused) {
  ASSERT_EQ(error_of(write(files_, 2)), "");
  SnapshotFiles stranger(files_, ClusterUuid{1});
  EXPECT_NE(error_of(stranger.open({place(2)})).find("another cluster"), std::string::npos);
  SnapshotFiles reader(files_, kUuid);
  EXPECT_NE(error_of(reader.open({place(3)})).find("3 pages, not 4"), std::string::npos);
  EXPECT_NE(error_of(reader.open({{6, 1, "/d", 2}})).find("missing"), std::string::npos);
}

/// Such a file is intact, so it does not count as damaged: a salvage would give its data up.
TEST_F(SnapshotFilesTest, AFileOfAnotherFormatIsRefusedButNotAsDamaged) {
  ASSERT_EQ(error_of(write(files_, 2)), "");
  SnapshotFileHeader header;
  const auto bytes = std::as_writable_bytes(std::span(&header, 1));
  ASSERT_TRUE((*files_.open_for_reading(path_))->read(0, bytes));
  SnapshotFileHeader other = header;
  other.version ^= 1;
  other.crc = crc_of(other);
  for (size_t at = 0; at < sizeof header; ++at) {
    const auto before = reinterpret_cast<const uint8_t*>(&header)[at];
    const auto after = reinterpret_cast<const uint8_t*>(&other)[at];
    if (before == after) continue;
    ASSERT_TRUE(files_.corrupt(path_, at, static_cast<uint8_t>(before ^ after)));
  }
  SnapshotFiles reader(files_, kUuid);
  const auto opened = reader.open_readable({place(2)});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().code, ExitCode::corruption);
  EXPECT_NE(opened.error().message.find("its format has version"), std::string::npos);
  EXPECT_NE(opened.error().message.find("export the data there"), std::string::npos);
}

TEST_F(SnapshotFilesTest, WithoutAPageThereIsNoFileAndALeftoverIsGone) {
  ASSERT_EQ(error_of(write(files_, 2)), "");
  auto writer = SnapshotWriter::create(files_, settings());
  ASSERT_TRUE(writer);
  ASSERT_EQ(error_of(writer->finish()), "");
  EXPECT_EQ(writer->page_count(), 1u);
  EXPECT_FALSE(*files_.exists(path_));
}

TEST_F(SnapshotFilesTest, ADiscardedFileIsGone) {
  auto writer = SnapshotWriter::create(files_, settings());
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(writer->next(kStorage));
  EXPECT_TRUE(*files_.exists(path_));
  writer->discard();
  EXPECT_FALSE(*files_.exists(path_));
}

TEST_F(SnapshotFilesTest, AFinishedFileSurvivesAPowerCutAndAnUnfinishedOneIsNoSnapshot) {
  ASSERT_EQ(error_of(write(files_, 300)), "");
  const auto after = files_.cut_losing_all();
  SnapshotFiles reader(*after, kUuid);
  ASSERT_EQ(error_of(reader.open({place(300)})), "");
  Page page;
  EXPECT_EQ(error_of(reader.read(SnapshotPointer::make(5, 1, 300), page.header())), "");

  auto writer = SnapshotWriter::create(files_, settings(2));
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(writer->next(kStorage));
  SnapshotFiles early(files_, kUuid);
  EXPECT_NE(error_of(early.open({{5, 2, "/d", 513}})).find("never finished"), std::string::npos);
}

TEST_F(SnapshotFilesTest, WhateverCallFailsTheWriterSaysSo) {
  PowerCutFileSystem counted;
  FaultInjector counter(counted);
  ASSERT_EQ(error_of(write(counter, 600)), "");
  for (uint64_t call = 1; call <= counter.calls(); ++call) {
    PowerCutFileSystem below;
    FaultInjector faulty(below);
    faulty.fail(call, Fault::disk_full);
    auto written = write(faulty, 600);
    ASSERT_FALSE(written) << counter.trace()[call - 1];
    EXPECT_EQ(written.error().code, ExitCode::disk_full);
  }
}

}  // namespace
}  // namespace atolldb::test
