// The promises of the FileSystem interface, tested with every backend.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "shared/file/file_system.h"
#include "shared/file/pmem_file_system.h"
#include "tests/shared/file/faulty_calls.h"
#include "tests/shared/file/file_test_support.h"
#include "tests/support/fault_injector.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

struct Backend {
  const char* name;
  /// Returns a new file system. Its own dependencies are in static storage.
  std::function<std::unique_ptr<FileSystem>()> make;
  bool keeps = true;  ///< written data can be read back
  /// Folder of its files. Empty: in memory.
  const char* parent = "/tmp";
};

void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

FaultyCalls& calls_without_direct() {
  static FaultyCalls calls;
  calls.refuse_direct_open = true;
  return calls;
}

class EveryBackend : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (*GetParam().parent != '\0') folder_ = std::make_unique<FileFolder>(GetParam().parent);
    files_ = GetParam().make();
    root_ = folder_ ? folder_->path() : "/data";
    ASSERT_TRUE(files_->make_directory(root_));
  }

  std::string path(const std::string& name) const { return root_ + "/" + name; }

  std::unique_ptr<File> create(const std::string& name, uint64_t blocks) {
    auto file = files_->create(path(name), blocks * kIoBlockBytes);
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : nullptr;
  }

  static void expect_error(const auto& result, const std::string& part) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ExitCode::durability);
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  }

  void expect_nothing_kept() {
    const auto file = create("f", 1);
    Blocks block(1, 1);
    ASSERT_TRUE(write(*file, 0, block.bytes()));
    expect_error(file->read(0, block.bytes()), "keeps nothing, it is for measuring only");
  }

  void expect_content(const std::string& name, std::span<const std::byte> expected) {
    if (!GetParam().keeps) return;
    const auto bytes = content(*files_, path(name));
    EXPECT_TRUE(std::ranges::equal(bytes, expected)) << name;
  }

  std::unique_ptr<FileFolder> folder_;
  std::unique_ptr<FileSystem> files_;
  std::string root_;
};

TEST_P(EveryBackend, CreatesAFileOfZeros) {
  const auto file = create("f", 3);
  EXPECT_EQ(file->path(), path("f"));
  EXPECT_EQ(file->size().value(), 3U * kIoBlockBytes);
  expect_content("f", std::vector<std::byte>(3 * kIoBlockBytes));
}

TEST_P(EveryBackend, NeverCreatesAFileOverAnother) {
  ASSERT_TRUE(write(*create("f", 1), 0, Blocks(1, 7).bytes()));
  expect_error(files_->create(path("f"), kIoBlockBytes), path("f"));
  expect_content("f", Blocks(1, 7).bytes());
}

TEST_P(EveryBackend, CreatesNothingInAMissingFolderOrOfAHalfBlock) {
  expect_error(files_->create(path("none/f"), kIoBlockBytes), path("none/f"));
  expect_error(files_->create(path("f"), kIoBlockBytes + 512), "multiple of 4096");
  EXPECT_EQ(files_->list(root_).value(), std::vector<std::string>{});
}

TEST_P(EveryBackend, ReadsBackAtAnyPlaceWhatRandomWritesWrote) {
  if (!GetParam().keeps) return expect_nothing_kept();
  constexpr uint64_t kBlocks = 64;
  std::mt19937_64 random(seed());
  const auto file = create("f", kBlocks);
  std::vector<std::byte> expected(kBlocks * kIoBlockBytes);
  for (int round = 0; round < 200; ++round) {
    const uint64_t first = random() % kBlocks;
    const Blocks blocks(1 + random() % std::min<uint64_t>(kBlocks - first, 8), random);
    const uint64_t offset = first * kIoBlockBytes;
    ASSERT_TRUE(write(*file, offset, blocks.bytes()));
    std::ranges::copy(blocks.bytes(), expected.begin() + static_cast<ptrdiff_t>(offset));
    if (random() % 8 == 0) {
      ASSERT_TRUE(file->sync());
    }
    const uint64_t from = random() % expected.size();
    std::vector<std::byte> got(random() % (expected.size() - from) + 1);
    ASSERT_EQ(file->read(from, got).value(), got.size());
    ASSERT_TRUE(std::ranges::equal(got, std::span(expected).subspan(from, got.size())));
  }
  expect_content("f", expected);
}

TEST_P(EveryBackend, WritesThousandsOfScatteredSlicesInTheirOrder) {
  constexpr uint64_t kSlices = 3000;
  std::mt19937_64 random(seed());
  const Blocks source(2 * kSlices, random);
  std::vector<std::span<const std::byte>> slices;
  std::vector<std::byte> expected(kIoBlockBytes);
  for (uint64_t index = 0; index < kSlices; ++index) {
    if (index % 100 == 0) slices.push_back({});
    slices.push_back(source.block(2 * kSlices - 1 - 2 * index));  // the slices are never adjacent
    expected.insert(expected.end(), slices.back().begin(), slices.back().end());
  }
  const auto file = create("f", kSlices + 1);
  ASSERT_TRUE(file->write(kIoBlockBytes, slices));
  ASSERT_TRUE(file->sync());
  expect_content("f", expected);
}

TEST_P(EveryBackend, RefusesMisalignedWritesAndGoesOn) {
  const auto file = create("f", 4);
  const Blocks blocks(4, 1);
  expect_error(write(*file, 512, blocks.block(0)), "multiples of 4096");
  expect_error(write(*file, 0, blocks.bytes().subspan(0, 100)), "multiples of 4096");
  expect_error(write(*file, 0, blocks.bytes().subspan(8, kIoBlockBytes)), "multiples of 4096");
  ASSERT_TRUE(write(*file, 0, blocks.bytes()));
  ASSERT_TRUE(file->sync());
  expect_content("f", blocks.bytes());
}

TEST_P(EveryBackend, RefusesWritesBeyondTheEndAndGoesOn) {
  const auto file = create("f", 2);
  const Blocks blocks(3, 1);
  expect_error(write(*file, 0, blocks.bytes()), "the file has 8192 bytes and does not grow");
  expect_error(write(*file, 2 * kIoBlockBytes, blocks.block(0)), "does not grow");
  expect_error(write(*file, ~uint64_t{0} - kIoBlockBytes + 1, blocks.bytes()), "does not grow");
  EXPECT_EQ(file->size().value(), 2U * kIoBlockBytes);
  ASSERT_TRUE(write(*file, kIoBlockBytes, blocks.block(0)));
}

TEST_P(EveryBackend, ReadsFewerBytesOnlyAtTheEnd) {
  if (!GetParam().keeps) return expect_nothing_kept();
  const auto file = create("f", 1);
  std::vector<std::byte> bytes(100);
  EXPECT_EQ(file->read(kIoBlockBytes - 10, bytes).value(), 10U);
  EXPECT_EQ(file->read(kIoBlockBytes, bytes).value(), 0U);
  EXPECT_EQ(file->read(10 * kIoBlockBytes, bytes).value(), 0U);
}

TEST_P(EveryBackend, OpensAgainForWritingWhatWasWritten) {
  ASSERT_TRUE(write(*create("f", 2), 0, Blocks(1, 1).bytes()));
  {
    auto file = files_->open(path("f"));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(write(**file, kIoBlockBytes, Blocks(1, 2).bytes()));
    ASSERT_TRUE((*file)->sync());
    expect_error(write(**file, kIoBlockBytes, Blocks(2, 2).bytes()), "does not grow");
  }
  Blocks expected(2, 1);
  std::ranges::fill(expected.bytes().subspan(kIoBlockBytes), std::byte{2});
  expect_content("f", expected.bytes());
}

TEST_P(EveryBackend, ReadsALiveFileWithoutEverWritingIt) {
  const auto writer = create("f", 1);
  auto reader = files_->open_for_reading(path("f"));
  ASSERT_TRUE(reader);
  ASSERT_TRUE(write(*writer, 0, Blocks(1, 9).bytes()));
  EXPECT_EQ((*reader)->size().value(), kIoBlockBytes);
  if (GetParam().keeps) {
    EXPECT_TRUE(std::ranges::equal(content(**reader), Blocks(1, 9).bytes()));
  }
  expect_error(write(**reader, 0, Blocks(1, 1).bytes()), path("f"));
  expect_error((*reader)->sync(), path("f"));
  expect_content("f", Blocks(1, 9).bytes());
}

TEST_P(EveryBackend, NamesTheFileThatIsMissing) {
  expect_error(files_->open(path("none")), path("none") + ": No such file or directory");
  expect_error(files_->open_for_reading(path("none")), path("none"));
  expect_error(files_->remove(path("none")), path("none"));
  expect_error(files_->rename(path("none"), path("f")), path("none"));
  expect_error(files_->list(path("none")), path("none"));
  expect_error(files_->sync_directory(path("none")), path("none"));
  EXPECT_FALSE(files_->exists(path("none")).value());
}

TEST_P(EveryBackend, ListsNamesInOrder) {
  for (const char* name : {"b", "a10", "a2", "c"}) create(name, 0);
  ASSERT_TRUE(files_->make_directory(path("b1/x")));
  EXPECT_EQ(files_->list(root_).value(), (std::vector<std::string>{"a10", "a2", "b", "b1", "c"}));
  EXPECT_EQ(files_->list(path("b1")).value(), std::vector<std::string>{"x"});
}

TEST_P(EveryBackend, MakesFoldersWithTheirParentsAndTwice) {
  ASSERT_TRUE(files_->make_directory(path("x/y/z")));
  ASSERT_TRUE(files_->make_directory(path("x/y/z")));
  EXPECT_TRUE(files_->exists(path("x/y/z")).value());
  ASSERT_TRUE(files_->create(path("x/y/z/f"), kIoBlockBytes));
  ASSERT_TRUE(files_->sync_directory(path("x/y/z")));
  expect_error(files_->make_directory(path("x/y/z/f")), "Not a directory");
  expect_error(files_->make_directory(path("x/y/z/f/g")), "Not a directory");
}

TEST_P(EveryBackend, RenamesOverAnExistingFile) {
  ASSERT_TRUE(write(*create("old", 1), 0, Blocks(1, 1).bytes()));
  ASSERT_TRUE(write(*create("new", 1), 0, Blocks(1, 2).bytes()));
  ASSERT_TRUE(files_->rename(path("new"), path("old")));
  ASSERT_TRUE(files_->sync_directory(root_));
  EXPECT_EQ(files_->list(root_).value(), std::vector<std::string>{"old"});
  expect_content("old", Blocks(1, 2).bytes());
}

TEST_P(EveryBackend, RenamesIntoAnotherFolder) {
  ASSERT_TRUE(write(*create("f", 1), 0, Blocks(1, 1).bytes()));
  ASSERT_TRUE(files_->make_directory(path("x")));
  ASSERT_TRUE(files_->rename(path("f"), path("x/g")));
  EXPECT_FALSE(files_->exists(path("f")).value());
  expect_content("x/g", Blocks(1, 1).bytes());
}

TEST_P(EveryBackend, RemovesFilesButNoFolders) {
  create("f", 1);
  ASSERT_TRUE(files_->make_directory(path("x")));
  ASSERT_TRUE(files_->remove(path("f")));
  EXPECT_FALSE(files_->exists(path("f")).value());
  expect_error(files_->remove(path("x")), path("x"));
  EXPECT_TRUE(files_->exists(path("x")).value());
  create("f", 1);
}

TEST_P(EveryBackend, SaysWhatItIs) {
  EXPECT_NE(files_->describe(), "");
  EXPECT_EQ(files_->is_durable(), GetParam().keeps);
}

std::unique_ptr<FileSystem> make(FileBackend backend) {
  return make_file_system({.backend = backend, .latency = {}, .warn = {}});
}

/// Maps files as if they were on persistent memory.
std::unique_ptr<FileSystem> make_forced_pmem() {
  setenv("PMEM2_FORCE_GRANULARITY", "cache_line", 1);
  return std::make_unique<PmemFileSystem>();
}

std::unique_ptr<FileSystem> make_injector() {
  static std::vector<std::unique_ptr<PowerCutFileSystem>> below;
  below.push_back(std::make_unique<PowerCutFileSystem>());
  return std::make_unique<FaultInjector>(*below.back());
}

const Backend kBackends[] = {
    {.name = "Posix", .make = [] { return make(FileBackend::posix); }},
    {.name = "PosixInMemory",
     .make = [] { return make(FileBackend::posix); },
     .parent = "/dev/shm"},
    {.name = "PosixBuffered",
     .make =
         [] { return std::make_unique<PosixFileSystem>(FileWarning(), calls_without_direct()); }},
    {.name = "Pmem",
     .make =
         [] {
           unsetenv("PMEM2_FORCE_GRANULARITY");
           return make(FileBackend::pmem);
         }},
    {.name = "PmemByCacheLine", .make = make_forced_pmem},
    {.name = "EmulatedNvm",
     .make =
         [] {
           using std::chrono::microseconds;
           return make_file_system({.backend = FileBackend::posix,
                                    .latency = {microseconds(1), microseconds(1), microseconds(1)},
                                    .warn = {}});
         },
     .parent = "/dev/shm"},
    {.name = "Null", .make = [] { return make(FileBackend::null); }, .keeps = false, .parent = ""},
    {.name = "PowerCut",
     .make = [] { return std::make_unique<PowerCutFileSystem>(); },
     .parent = ""},
    {.name = "FaultInjector", .make = make_injector, .parent = ""},
};

INSTANTIATE_TEST_SUITE_P(Files, EveryBackend, testing::ValuesIn(kBackends),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace atolldb::test
