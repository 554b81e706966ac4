// The fault injector counts every call, and fails the selected one.
#include "tests/support/fault_injector.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/shared/file/file_test_support.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {
namespace {

class Injected : public testing::Test {
 protected:
  std::unique_ptr<File> create(uint64_t blocks) {
    auto file = files_.create("/f", blocks * kIoBlockBytes);
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : nullptr;
  }

  PowerCutFileSystem below_;
  FaultInjector files_{below_};
};

/// Makes one call of each kind, in the order of the enumeration. Returns the first error.
std::optional<Error> one_of_each(FileSystem& files) {
  const auto error_of = [](const auto& result) -> std::optional<Error> {
    return result ? std::nullopt : std::optional(result.error());
  };
  auto file = files.create("/f", kIoBlockBytes);
  if (!file) return file.error();
  if (auto error = error_of(files.open("/f"))) return error;
  if (auto error = error_of(files.open_for_reading("/f"))) return error;
  if (auto error = error_of(write(**file, 0, Blocks(1, 1).bytes()))) return error;
  if (auto error = error_of((*file)->grow(2 * kIoBlockBytes))) return error;
  if (auto error = error_of((*file)->sync())) return error;
  Blocks block(1);
  if (auto error = error_of((*file)->read(0, block.bytes()))) return error;
  if (auto error = error_of((*file)->size())) return error;
  if (auto error = error_of(files.sync_directory("/"))) return error;
  if (auto error = error_of(files.make_directory("/d"))) return error;
  if (auto error = error_of(files.list("/"))) return error;
  if (auto error = error_of(files.exists("/f"))) return error;
  if (auto error = error_of(files.rename("/f", "/g"))) return error;
  return error_of(files.remove("/g"));
}

TEST_F(Injected, CallsAreCountedByKindAndFailNever) {
  EXPECT_FALSE(one_of_each(files_));
  EXPECT_EQ(files_.calls(), kIoCallCount);
  for (uint32_t call = 0; call < kIoCallCount; ++call) {
    EXPECT_EQ(files_.calls(static_cast<IoCall>(call)), 1U);
  }
  EXPECT_EQ(files_.failures(), 0U);
  EXPECT_EQ(files_.trace().size(), kIoCallCount);
  EXPECT_EQ(files_.trace()[3], "write of 4096 bytes at 0 to /f");
}

TEST(FaultInjection, FailsTheCallOfEachNumberAndOfEachKind) {
  for (const bool by_kind : {false, true}) {
    for (uint64_t number = 1; number <= kIoCallCount; ++number) {
      for (const Fault fault : {Fault::disk_full, Fault::io_error}) {
        PowerCutFileSystem below;
        FaultInjector files(below);
        if (by_kind) {
          files.fail(static_cast<IoCall>(number - 1), 1, fault);
        } else {
          files.fail(number, fault);
        }
        const auto error = one_of_each(files);
        ASSERT_TRUE(error) << number;
        EXPECT_EQ(error->code,
                  fault == Fault::disk_full ? ExitCode::disk_full : ExitCode::durability);
        EXPECT_NE(error->message.find("(injected)"), std::string::npos) << error->message;
        EXPECT_EQ(files.calls(), number) << "the scenario ends with it";
        EXPECT_EQ(files.failures(), 1U);
        EXPECT_TRUE(files.trace().back().ends_with(" (fails)"));
        EXPECT_EQ(below.exists("/f").value(), number > 1 && number < kIoCallCount)
            << "a failed call does nothing below";
      }
    }
  }
}

TEST_F(Injected, ShortWriteDoesTheFirstHalfOfTheBlocks) {
  files_.fail(IoCall::write, 2, Fault::short_write);
  const auto file = create(8);
  ASSERT_TRUE(write(*file, 0, Blocks(1, 1).bytes()));
  const Blocks blocks(5, 2);
  const std::vector<std::span<const std::byte>> slices{blocks.block(0),
                                                       blocks.bytes().subspan(4096)};
  const auto written = file->write(kIoBlockBytes, slices);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ExitCode::disk_full);
  const auto bytes = content(below_, "/f");
  for (uint64_t block = 0; block < 8; ++block) {
    const auto expected =
        std::byte{block == 0 ? uint8_t{1} : uint8_t{block < 3 ? uint8_t{2} : uint8_t{0}}};
    EXPECT_EQ(bytes[block * kIoBlockBytes], expected) << block;
  }
}

TEST_F(Injected, FailuresOfWritesAndSyncsAreFinalForTheirFile) {
  for (const IoCall call : {IoCall::write, IoCall::sync}) {
    PowerCutFileSystem below;
    FaultInjector files(below);
    files.fail(call, 1, Fault::io_error);
    auto file = files.create("/f", kIoBlockBytes);
    auto other = files.create("/g", kIoBlockBytes);
    ASSERT_TRUE(file && other);
    const auto written = write(**file, 0, Blocks(1, 1).bytes());
    const auto synced = (*file)->sync();
    ASSERT_EQ(written.has_value(), call == IoCall::sync);
    ASSERT_FALSE(synced);
    const std::string first = written ? synced.error().message : written.error().message;
    files.heal();
    const uint64_t calls = files.calls();
    EXPECT_EQ((*file)->sync().error().message, first);
    EXPECT_EQ(write(**file, 0, Blocks(1, 2).bytes()).error().message, first);
    EXPECT_EQ(files.calls(), calls) << "refused, not counted";
    EXPECT_TRUE(write(**other, 0, Blocks(1, 2).bytes()));
    EXPECT_TRUE((*other)->sync());
  }
}

TEST_F(Injected, FailedSyncLeavesTheContentToThePowerCut) {
  const auto file = create(1);
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(files_.sync_directory("/"));
  ASSERT_TRUE(write(*file, 0, Blocks(1, 1).bytes()));
  files_.fail(IoCall::sync, 2, Fault::io_error);
  ASSERT_FALSE(file->sync());
  EXPECT_EQ(content(*below_.cut_losing_all(), "/f")[0], std::byte{0});
}

TEST_F(Injected, DeviceThatIsGoneStaysGone) {
  const auto file = create(1);
  files_.fail_from(3, Fault::io_error);
  ASSERT_TRUE(write(*file, 0, Blocks(1, 1).bytes()));
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(files_.list("/"));
  EXPECT_FALSE(files_.exists("/f"));
  EXPECT_EQ(files_.failures(), 3U);
  files_.heal();
  EXPECT_TRUE(files_.list("/"));
}

}  // namespace
}  // namespace atolldb::test
