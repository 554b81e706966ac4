// The posix backend when the kernel refuses a call, interrupts it, does less than asked, or fails.
#include "shared/file/posix_file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>

#include "tests/shared/file/faulty_calls.h"
#include "tests/shared/file/file_test_support.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

class PosixFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::unique_ptr<File> create(uint64_t blocks) {
    auto file = files_.create(path("f"), blocks * kIoBlockBytes);
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : nullptr;
  }
  size_t count_of_files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  FileFolder folder_;
  FaultyCalls calls_;
  std::vector<std::string> warnings_;
  PosixFileSystem files_{[this](const std::string& text) { warnings_.push_back(text); }, calls_};
};

TEST_F(PosixFiles, TellWhichBlocksWereNeverWritten) {
  constexpr uint64_t kFar = 300 * kIoBlockBytes;
  auto file = create(1000);
  ASSERT_TRUE(file);
  Blocks block(1, 7);
  ASSERT_TRUE(write(*file, kFar, block.bytes()));
  // The answer may be too early, but everything before it must read as zeros.
  const auto first = file->next_data(0);
  ASSERT_TRUE(first);
  EXPECT_LE(*first, kFar);
  const auto at = file->next_data(kFar);
  ASSERT_TRUE(at);
  EXPECT_EQ(*at, kFar);
  const auto after = file->next_data(kFar + kIoBlockBytes);
  ASSERT_TRUE(after);
  EXPECT_LE(*after, 1000 * kIoBlockBytes);
  EXPECT_GE(*after, kFar + kIoBlockBytes);
  EXPECT_EQ(file->next_data(1000 * kIoBlockBytes).value(), 1000 * kIoBlockBytes);
  // With EINVAL the file system cannot tell, so the answer is the offset itself.
  calls_.seek_error = EINVAL;
  EXPECT_EQ(file->next_data(kIoBlockBytes).value(), kIoBlockBytes);
  // ENXIO means that there is no data up to the end.
  calls_.seek_error = ENXIO;
  EXPECT_EQ(file->next_data(kIoBlockBytes).value(), 1000 * kIoBlockBytes);
  // An answer before the offset is wrong. A file system in user space may give such an answer.
  calls_.seek_answer = 0;
  EXPECT_EQ(file->next_data(kIoBlockBytes).value(), kIoBlockBytes);
}

TEST_F(PosixFiles, HaveSecondNamesUnlessTheKernelRefuses) {
  ASSERT_TRUE(create(1));
  EXPECT_EQ(files_.link(path("f"), path("g")).value(), true);
  EXPECT_TRUE(std::filesystem::equivalent(path("f"), path("g")));
  EXPECT_FALSE(files_.link(path("f"), path("g"))) << "no name is overwritten";
  EXPECT_FALSE(files_.link(path("missing"), path("h")));
  // The names are on different file systems, so `link` returns false, and the caller copies.
  const auto other = files_.link("/proc/self/status", path("h"));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(*other);
  ASSERT_TRUE(files_.remove(path("f")));
  EXPECT_EQ(std::filesystem::file_size(path("g")), kIoBlockBytes);
}

TEST_F(PosixFiles, LieInDirectoriesThatAreRemovedWhenTheyAreEmpty) {
  ASSERT_TRUE(files_.make_directory(path("d")));
  ASSERT_TRUE(files_.create(path("d/f"), kIoBlockBytes));
  EXPECT_FALSE(files_.remove_directory(path("d")));
  ASSERT_TRUE(files_.remove(path("d/f")));
  EXPECT_TRUE(files_.remove_directory(path("d")));
  EXPECT_FALSE(files_.remove_directory(path("d")));
}

TEST_F(PosixFiles, AreWrittenDirectlyWhereThatIsAllowedAndSayWhichItIs) {
  ASSERT_TRUE(write(*create(1), 0, Blocks(1).bytes()));
  if (warnings_.empty()) {
    EXPECT_EQ(calls_.opens_direct, 1U);
    EXPECT_EQ(files_.describe(), "posix, direct I/O");
  } else {
    EXPECT_EQ(files_.describe().find("posix, buffered I/O ("), 0U) << files_.describe();
  }
}

TEST_F(PosixFiles, HaveTheirBlocksBeforeTheyAreWritten) {
  create(256);
  struct stat status;
  ASSERT_EQ(::stat(path("f").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 256 * kIoBlockBytes);
  EXPECT_EQ(calls_.allocations, 1U);
  EXPECT_EQ(calls_.writes, 0U);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(PosixFiles, GetZerosWhereTheFileSystemCannotAllocate) {
  calls_.allocation_error = EOPNOTSUPP;
  const auto file = create(600);
  struct stat status;
  ASSERT_EQ(::stat(path("f").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 600 * kIoBlockBytes);
  EXPECT_TRUE(std::ranges::equal(content(*file), Blocks(600).bytes()));
}

TEST_F(PosixFiles, GoThroughThePageCacheWhereDirectOpeningIsRefusedAndSaySoOnce) {
  calls_.refuse_direct_open = true;
  for (const char* name : {"a", "b"}) {
    auto file = files_.create(path(name), kIoBlockBytes);
    ASSERT_TRUE(file);
    ASSERT_TRUE(write(**file, 0, Blocks(1, 5).bytes()));
    ASSERT_TRUE((*file)->sync());
    EXPECT_TRUE(std::ranges::equal(content(**file), Blocks(1, 5).bytes()));
  }
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("direct I/O is refused for " + path("a")), std::string::npos);
  EXPECT_EQ(files_.describe(),
            "posix, buffered I/O (direct I/O is refused for " + path("a") + ": Invalid argument)");
}

TEST_F(PosixFiles, GoThroughThePageCacheWhereADirectWriteIsRefused) {
  calls_.refuse_direct_write = true;
  const auto file = create(2);
  ASSERT_TRUE(write(*file, 0, Blocks(1, 5).bytes()));
  ASSERT_TRUE(write(*file, kIoBlockBytes, Blocks(1, 5).bytes()));
  ASSERT_TRUE(file->sync());
  EXPECT_TRUE(std::ranges::equal(content(*file), Blocks(2, 5).bytes()));
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(PosixFiles, AreReadDirectlyByWholeBlocksAndElseThroughThePageCache) {
  ASSERT_TRUE(write(*create(3), 0, Blocks(3, 5).bytes()));
  if (!warnings_.empty()) GTEST_SKIP() << warnings_[0];
  ASSERT_EQ(::truncate(path("f").c_str(), 2 * kIoBlockBytes + 700), 0);
  const Blocks expected(3, 5);
  const auto file = files_.open_for_reading(path("f")).value();
  Blocks into(4);
  const auto read = [&](uint64_t offset, std::span<std::byte> bytes) {
    calls_.reads_direct = calls_.reads_buffered = 0;
    const uint64_t count = file->read(offset, bytes).value();
    const auto same = expected.bytes().subspan(offset, count);
    EXPECT_TRUE(std::ranges::equal(bytes.first(count), same)) << offset;
    return count;
  };
  EXPECT_EQ(read(0, into.bytes().first(2 * kIoBlockBytes)), 2 * kIoBlockBytes);
  EXPECT_EQ(calls_.reads_direct, 1U);
  EXPECT_EQ(calls_.reads_buffered, 0U);
  // The file ends in the middle of a block, and these reads extend past its end.
  EXPECT_EQ(read(0, into.bytes()), 2 * kIoBlockBytes + 700);
  EXPECT_EQ(calls_.reads_direct, 1U) << "the next one would not be aligned";
  EXPECT_EQ(read(2 * kIoBlockBytes, into.bytes()), 700U);
  EXPECT_EQ(read(3 * kIoBlockBytes, into.bytes()), 0U);
  // Reads with an unaligned offset, length or address are not direct.
  EXPECT_EQ(read(512, into.bytes().first(kIoBlockBytes)), kIoBlockBytes);
  EXPECT_EQ(read(0, into.bytes().first(kIoBlockBytes + 512)), kIoBlockBytes + 512);
  EXPECT_EQ(read(0, into.bytes().subspan(64, kIoBlockBytes)), kIoBlockBytes);
  EXPECT_EQ(calls_.reads_direct, 0U);
  // A read that is short for another reason continues where it ended.
  calls_.cut_direct_reads = kIoBlockBytes;
  EXPECT_EQ(read(0, into.bytes().first(2 * kIoBlockBytes)), 2 * kIoBlockBytes);
  EXPECT_EQ(calls_.reads_direct, 2U);
  calls_.cut_direct_reads = 512;
  EXPECT_EQ(read(0, into.bytes().first(2 * kIoBlockBytes)), 2 * kIoBlockBytes);
  EXPECT_EQ(calls_.reads_buffered, 1U);
}

TEST_F(PosixFiles, AreReadThroughThePageCacheWhereDirectReadsAreRefused) {
  ASSERT_TRUE(write(*create(2), 0, Blocks(2, 5).bytes()));
  if (!warnings_.empty()) GTEST_SKIP() << warnings_[0];
  calls_.refuse_direct_read = true;
  const auto file = files_.open_for_reading(path("f")).value();
  calls_.reads_direct = 0;
  for (int round = 0; round < 2; ++round) {
    Blocks into(2);
    EXPECT_EQ(file->read(0, into.bytes()).value(), 2 * kIoBlockBytes);
    EXPECT_TRUE(std::ranges::equal(into.bytes(), Blocks(2, 5).bytes()));
  }
  EXPECT_EQ(calls_.reads_direct, 1U) << "not tried again";
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(PosixFiles, ContinueShortWrites) {
  std::mt19937_64 random(seed());
  calls_.cut_writes = &random;
  const auto file = create(64);
  std::vector<std::byte> expected(64 * kIoBlockBytes);
  for (int round = 0; round < 100; ++round) {
    const Blocks blocks(16, random);
    std::vector<std::span<const std::byte>> slices;
    const uint64_t first = random() % 48;
    for (uint64_t index = 0; index < 16; ++index) {
      slices.push_back(blocks.block(index ^ 1));
      std::ranges::copy(slices.back(),
                        expected.begin() + static_cast<ptrdiff_t>((first + index) * kIoBlockBytes));
    }
    const uint64_t calls = calls_.writes;
    const auto written = file->write(first * kIoBlockBytes, slices);
    ASSERT_TRUE(written) << written.error().message;
    ASSERT_GE(calls_.writes, calls + 1);
    ASSERT_TRUE(std::ranges::equal(content(*file), expected));
  }
  EXPECT_GT(calls_.writes, 150U) << "most of the cut ones took more than one call";
}

TEST_F(PosixFiles, GiveUpAWriteThatMakesNoProgress) {
  for (const int64_t answer : {0, 511}) {
    calls_.futile_write = answer;
    const auto file = create(1);
    const auto written = write(*file, 0, Blocks(1).bytes());
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ExitCode::durability);
    std::filesystem::remove(path("f"));
  }
}

TEST_F(PosixFiles, RepeatWhatASignalInterrupts) {
  calls_.interrupt_every_second = true;
  for (int round = 0; round < 2; ++round) {
    const auto file = create(8);
    ASSERT_TRUE(write(*file, 0, Blocks(8, 3).bytes()));
    ASSERT_TRUE(file->sync());
    EXPECT_TRUE(std::ranges::equal(content(*file), Blocks(8, 3).bytes()));
    ASSERT_TRUE((*file).sync());
    ASSERT_TRUE(files_.sync_directory(folder_.path()));
    ASSERT_TRUE(files_.remove(path("f")));
    calls_.calls = 1;  // the next round interrupts the other half of the calls
  }
  EXPECT_GT(calls_.syncs, 4U) << "a sync that was interrupted was not made again";
}

TEST_F(PosixFiles, SyncAgainWhatASignalInterruptsAndOnlyThat) {
  const auto file = create(2);
  ASSERT_TRUE(write(*file, 0, Blocks(1).bytes()));
  calls_.error = EINTR;
  calls_.fail_sync = calls_.syncs + 1;
  EXPECT_TRUE(file->sync());
  EXPECT_EQ(calls_.syncs, 2U);
}

std::atomic<uint64_t> alarms{0};

/// Signals arrive constantly, and their handler does not request a restart of calls.
TEST_F(PosixFiles, AreWrittenSyncedAndReadInAStormOfSignals) {
  struct sigaction handler{};
  handler.sa_handler = [](int) { alarms.fetch_add(1, std::memory_order_relaxed); };
  struct sigaction before{};
  ASSERT_EQ(sigaction(SIGALRM, &handler, &before), 0);
  itimerval often{{0, 200}, {0, 200}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  uint64_t done = 0;
  std::string problem;
  while (problem.empty() && (done < 20 || alarms.load(std::memory_order_relaxed) < 200)) {
    const auto file = create(64);
    const auto blocks = Blocks(64, 3);
    if (!write(*file, 0, blocks.bytes())) problem = "write";
    if (!file->sync()) problem = "sync";
    if (!std::ranges::equal(content(*file), blocks.bytes())) problem = "read";
    if (!files_.sync_directory(folder_.path())) problem = "sync of the directory";
    if (!files_.remove(path("f"))) problem = "removal";
    ++done;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(problem, "");
}

TEST_F(PosixFiles, MergeNeighboursAndSplitByTheKernelsLimit) {
  const Blocks blocks(6000);
  std::vector<std::span<const std::byte>> slices;
  for (uint64_t index = 0; index < 3000; ++index) slices.push_back(blocks.block(index));
  const auto file = create(3000);
  ASSERT_TRUE(file->write(0, slices));
  EXPECT_EQ(calls_.writes, 1U);
  EXPECT_EQ(calls_.most_parts, 1U);
  for (uint64_t index = 0; index < 3000; ++index) slices[index] = blocks.block(2 * index);
  ASSERT_TRUE(file->write(0, slices));
  EXPECT_EQ(calls_.writes, 1U + (3000 + IOV_MAX - 1) / IOV_MAX);
  EXPECT_EQ(calls_.most_parts, static_cast<uint64_t>(IOV_MAX));
}

TEST_F(PosixFiles, AnswerAFailedWriteEverAfter) {
  struct Case {
    int error;
    ExitCode code;
  };
  for (const Case& test : {Case{ENOSPC, ExitCode::disk_full}, Case{EDQUOT, ExitCode::disk_full},
                           Case{EIO, ExitCode::durability}, Case{EFBIG, ExitCode::durability}}) {
    calls_.error = test.error;
    calls_.fail_write = calls_.writes + 2;
    const auto file = create(4);
    ASSERT_TRUE(write(*file, 0, Blocks(1, 1).bytes()));
    const auto written = write(*file, kIoBlockBytes, Blocks(2, 2).bytes());
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, test.code);
    const std::string start =
        "write of 8192 bytes at 4096 to " + path("f") + ": " + std::strerror(test.error);
    EXPECT_EQ(written.error().message.find(start), 0U) << written.error().message;
    EXPECT_GT(written.error().message.size(), start.size() + 10) << "the way out";
    const uint64_t calls = calls_.calls;
    EXPECT_EQ(write(*file, 0, Blocks(1).bytes()).error().message, written.error().message);
    EXPECT_EQ(file->sync().error().message, written.error().message);
    EXPECT_EQ(file->sync().error().code, test.code);
    EXPECT_EQ(calls_.calls, calls) << "the kernel is not asked again";
    EXPECT_EQ(content(*file)[0], std::byte{1}) << "reading goes on";
    std::filesystem::remove(path("f"));
  }
}

TEST_F(PosixFiles, NeverSyncAgainAfterAFailedSync) {
  for (const int error : {EIO, ENOSPC}) {
    calls_.error = error;
    calls_.fail_sync = calls_.syncs + 1;
    const auto file = create(2);
    ASSERT_TRUE(write(*file, 0, Blocks(1).bytes()));
    const auto synced = file->sync();
    ASSERT_FALSE(synced);
    EXPECT_EQ(synced.error().code, error == ENOSPC ? ExitCode::disk_full : ExitCode::durability);
    EXPECT_NE(synced.error().message.find("sync of " + path("f") + " (0 to 8192): "),
              std::string::npos)
        << synced.error().message;
    const uint64_t calls = calls_.calls;
    EXPECT_EQ(file->sync().error().message, synced.error().message);
    EXPECT_EQ(write(*file, 0, Blocks(1).bytes()).error().message, synced.error().message);
    EXPECT_EQ(calls_.calls, calls) << "the kernel is not asked again";
    std::filesystem::remove(path("f"));
  }
}

/// Returns the number of pages of the file that are in the page cache.
size_t cached_pages(const std::string& path, size_t pages) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  void* mapped = ::mmap(nullptr, pages * kIoBlockBytes, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (mapped == MAP_FAILED) return 0;
  std::vector<unsigned char> resident(pages);
  ::mincore(mapped, pages * kIoBlockBytes, resident.data());
  ::munmap(mapped, pages * kIoBlockBytes);
  return static_cast<size_t>(std::ranges::count_if(resident, [](auto page) { return page & 1; }));
}

TEST_F(PosixFiles, ForgetWhatThePageCacheKeptThoughASyncFails) {
  constexpr size_t kPages = 16;
  struct statfs place{};
  ASSERT_EQ(::statfs(folder_.path().c_str(), &place), 0);
  if (place.f_type == TMPFS_MAGIC) GTEST_SKIP() << "the page cache is all that this file has";
  std::ofstream(path("f")) << std::string(kPages * kIoBlockBytes, 'x');
  ASSERT_EQ(cached_pages(path("f"), kPages), kPages);
  ASSERT_TRUE(files_.forget_cached(path("f")));
  EXPECT_EQ(cached_pages(path("f"), kPages), 0u) << "dirty pages were written, and dropped";
  // The device has refused some pages before, and the kernel regards them as clean. The pages must
  // be dropped, although the sync fails.
  std::ifstream(path("f")).get();
  ASSERT_NE(cached_pages(path("f"), kPages), 0u);
  calls_.error = EIO;
  calls_.fail_sync = calls_.syncs + 1;
  ASSERT_TRUE(files_.forget_cached(path("f")));
  EXPECT_EQ(cached_pages(path("f"), kPages), 0u);
  EXPECT_TRUE(files_.forget_cached(path("missing")));
}

/// Makes all calls that the log makes with files, up to the first error. `created`: set to true if
/// the file was made.
Result<void> scenario(FileSystem& files, const std::string& root, bool* created) {
  *created = false;
  if (auto made = files.make_directory(root + "/a/b"); !made) return made;
  auto file = files.create(root + "/a/b/f", 8 * kIoBlockBytes);
  if (!file) return std::unexpected(file.error());
  *created = true;
  for (uint64_t index = 0; index < 3; ++index) {
    if (auto written = write(**file, index * kIoBlockBytes, Blocks(1, 1).bytes()); !written) {
      return written;
    }
    if (auto synced = (*file)->sync(); !synced) return synced;
  }
  if (auto synced = files.sync_directory(root + "/a/b"); !synced) return synced;
  if (auto renamed = files.rename(root + "/a/b/f", root + "/a/b/g"); !renamed) return renamed;
  auto reader = files.open_for_reading(root + "/a/b/g");
  if (!reader) return std::unexpected(reader.error());
  Blocks got(3);
  if (auto read = (*reader)->read(0, got.bytes()); !read) return std::unexpected(read.error());
  EXPECT_TRUE(std::ranges::equal(got.bytes(), Blocks(3, 1).bytes()));
  if (auto opened = files.open(root + "/a/b/g"); !opened) return std::unexpected(opened.error());
  return files.remove(root + "/a/b/g");
}

TEST(PosixCalls, EachMayFailAndIsAnsweredWithoutALeak) {
  uint64_t total = 0;
  bool created = false;
  {
    const FileFolder folder;
    FaultyCalls calls;
    PosixFileSystem files({}, calls);
    ASSERT_TRUE(scenario(files, folder.path(), &created));
    total = calls.calls;
  }
  ASSERT_GT(total, 15U);
  const size_t descriptors = open_descriptors();
  for (const int error : {ENOSPC, EIO, EMFILE}) {
    for (const bool can_allocate : {true, false}) {
      for (uint64_t number = 1; number <= total; ++number) {
        const FileFolder folder("/dev/shm");  // syncs cost nothing there
        FaultyCalls calls;
        calls.fail_call = number;
        calls.error = error;
        calls.allocation_error = can_allocate ? 0 : EOPNOTSUPP;
        PosixFileSystem files({}, calls);
        const auto done = scenario(files, folder.path(), &created);
        ASSERT_FALSE(done) << "call " << number << " of " << total;
        EXPECT_EQ(done.error().code, error == ENOSPC ? ExitCode::disk_full : ExitCode::durability);
        EXPECT_NE(done.error().message.find(std::strerror(error)), std::string::npos);
        EXPECT_NE(done.error().message.find("/dev/shm"), std::string::npos);
        EXPECT_EQ(open_descriptors(), descriptors) << "call " << number;
        // A file that could not be created must not exist. Anything else that is left can be
        // deleted.
        calls.fail_call = 0;
        if (!created) {
          EXPECT_FALSE(files.exists(folder.path() + "/a/b/f").value());
        }
        std::filesystem::remove_all(folder.path() + "/a");
        EXPECT_TRUE(scenario(files, folder.path(), &created)) << "after call " << number;
      }
    }
  }
}

TEST_F(PosixFiles, LeaveNothingBehindWhenSpaceIsShort) {
  calls_.error = ENOSPC;
  calls_.allocation_error = ENOSPC;
  auto file = files_.create(path("f"), 1 << 20);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::disk_full);
  EXPECT_NE(file.error().message.find("creation of " + path("f") + " with 1048576 bytes: No space"),
            std::string::npos)
      << file.error().message;
  EXPECT_EQ(count_of_files(), 0U);
  calls_.allocation_error = EOPNOTSUPP;  // then zeros are written, 1 MiB per call
  calls_.fail_write = 3;
  file = files_.create(path("f"), 4 << 20);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::disk_full);
  EXPECT_EQ(calls_.writes, 3U);
  EXPECT_EQ(count_of_files(), 0U);
}

TEST(PosixSpace, ThatIsReallyShortIsAnsweredAsDiskFull) {
  const FileFolder folder;
  if (mount("none", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "a small tmpfs cannot be mounted: " << std::strerror(errno)
                 << " (run as root to test a full disk)";
  }
  for (const bool can_allocate : {true, false}) {
    FaultyCalls calls;
    calls.allocation_error = can_allocate ? 0 : EOPNOTSUPP;
    PosixFileSystem files({}, calls);
    EXPECT_TRUE(files.create(folder.path() + "/small", 512 << 10));
    const auto large = files.create(folder.path() + "/large", 768 << 10);
    EXPECT_TRUE(!large && large.error().code == ExitCode::disk_full);
    EXPECT_EQ(files.list(folder.path()).value(), std::vector<std::string>{"small"});
    EXPECT_TRUE(files.create(folder.path() + "/small2", 256 << 10)) << "the space is free again";
    for (const char* name : {"/small", "/small2"}) EXPECT_TRUE(files.remove(folder.path() + name));
  }
  EXPECT_EQ(umount(folder.path().c_str()), 0);
}

TEST(PosixSpace, BeyondTheUsersLimitIsAnErrorThatNamesIt) {
  const FileFolder folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{1 << 20, 1 << 20};
    std::signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    PosixFileSystem files;
    if (!files.create(folder.path() + "/small", 1 << 20)) _exit(2);
    const auto large = files.create(folder.path() + "/large", 2 << 20);
    if (large) _exit(3);
    if (large.error().code != ExitCode::durability) _exit(4);
    if (large.error().message.find("ulimit -f") == std::string::npos) _exit(5);
    _exit(files.exists(folder.path() + "/large").value() ? 6 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(PosixFiles, SyncTheEntryOfEachNewFolderAndOfTheDeepestOldOne) {
  ASSERT_TRUE(files_.make_directory(folder_.path()));
  EXPECT_EQ(calls_.directory_syncs, 1U) << "the parent of a folder that was there";
  ASSERT_TRUE(files_.make_directory(path("a/b/c")));
  EXPECT_EQ(calls_.directory_syncs, 5U);
}

TEST_F(PosixFiles, AreClosedInChildProcesses) {
  const auto file = create(1);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry, ignored) != path("f")) continue;
    const int flags = fcntl(std::stoi(entry.path().filename()), F_GETFD);
    EXPECT_NE(flags & FD_CLOEXEC, 0);
  }
}

}  // namespace
}  // namespace atolldb::test
