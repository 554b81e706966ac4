// Power cuts and kills at any change of any file, while a cluster logs, takes snapshots or
// checkpoints, pins them, deletes unneeded files, or starts. Also flipped bits in the remaining
// files. A seed repeats commits and steps. It does not determine which of the gleaner's threads
// makes the last change.
#include <gtest/gtest.h>

#include "tests/coordinator/durability/cut_history.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

class SnapshotPowerCut : public testing::TestWithParam<DurabilityScheme> {
 protected:
  /// Expects that clusters with the faults lose something.
  static void expect_loss(uint64_t count, const FileFaults& faults) {
    const std::string problem = cut_clusters(1, count, faults, GetParam());
    EXPECT_TRUE(problem.starts_with("ATOLL_SEED="))
        << faults.skips_directory_sync_after << ": nothing was lost: " << problem;
  }
};
class FailingDevice : public testing::TestWithParam<DurabilityScheme> {};
class FlippedBits : public testing::TestWithParam<DurabilityScheme> {};
INSTANTIATE_TEST_SUITE_P(Schemes, SnapshotPowerCut, all_schemes(), name_of_scheme);
INSTANTIATE_TEST_SUITE_P(Schemes, FailingDevice, all_schemes(), name_of_scheme);
INSTANTIATE_TEST_SUITE_P(Schemes, FlippedBits, all_schemes(), name_of_scheme);

TEST_P(SnapshotPowerCut, LosesNothingThatWasAcknowledgedAndNoPageThatIsNeeded) {
  EXPECT_EQ(cut_clusters(seed(), rounds(10, 3000), {}, GetParam()), "");
}

TEST_P(FailingDevice, EndsWhatWasToBeAcknowledgedAndTheNextStartHasAllThatWas) {
  const uint64_t first = seed();
  uint64_t failures = 0;
  for (uint64_t round = 0; round < rounds(6, 1000); ++round) {
    CutHistory history(first + round, {}, GetParam());
    ASSERT_EQ(history.run_on_failing_device(6), "") << "ATOLL_SEED=" << first + round;
    failures += history.failures;
  }
  EXPECT_GT(failures, 10u) << "the device hardly failed: this has not shown much";
}

TEST_P(SnapshotPowerCut, IsSeenToLoseDataWhenSyncsDoNothing) {
  expect_loss(30, {.skips_sync = true});
}

TEST_P(SnapshotPowerCut, IsSeenToLoseFilesWhenSyncsOfDirectoriesDoNothing) {
  expect_loss(30, {.skips_directory_sync = true});
}

/// Omits the syncs of directories after one kind of file at a time. Without these syncs data is
/// lost. The savepoint is not among the kinds: the sync after the DDL log, in the same directory,
/// makes its name durable before anything is acknowledged.
TEST_P(SnapshotPowerCut, IsSeenToLoseFilesWhenTheSyncAfterOneKindOfFileDoesNothing) {
  const char* content = GetParam() == DurabilityScheme::silor ? ".atcp" : ".atsnap";
  for (const char* kind : {".atlog", content, ".meta", "ddl_"}) {
    expect_loss(40, {.skips_directory_sync_after = kind});
  }
}

/// Returns the offset of a byte of the file: any byte, one that was written to, or one of the bytes
/// that are the header in a log file.
Result<uint64_t> any_offset(FileSystem& files, const std::string& path, std::mt19937_64& random) {
  auto file = files.open_for_reading(path);
  if (!file) return std::unexpected(file.error());
  std::vector<std::byte> bytes((*file)->size().value_or(0));
  if (auto read = (*file)->read(0, bytes); !read) return std::unexpected(read.error());
  std::vector<uint64_t> written;
  for (uint64_t offset = 0; offset < bytes.size(); ++offset) {
    if (bytes[offset] != std::byte{}) written.push_back(offset);
  }
  constexpr uint64_t kHeaderBytes = sizeof(LogBlockHeader) + sizeof(LogFileHeader);
  const uint64_t choice = random() % 8;
  if (choice == 0) return random() % std::min<uint64_t>(bytes.size(), kHeaderBytes);
  const bool is_any = written.empty() || choice <= 2;
  return is_any ? random() % bytes.size() : written[random() % written.size()];
}

/// Returns true if the message names the place of the damage. For the savepoint, the message need
/// not name the path: its other slot is older than the logs, so a message may name such a log.
bool is_named(const std::string& message, const std::string& path, uint64_t offset) {
  if (path.ends_with("/savepoint")) return message.contains("savepoint");
  if (!message.contains(path)) return false;
  if (path.ends_with(".atlog")) {
    static_assert(kLogBlockBytes == kIoBlockBytes, "one block has one record of DDL");
    const uint64_t block = offset / kLogBlockBytes * kLogBlockBytes;
    return message.contains(fmt::format("offset {}:", block));
  }
  // A block of a checkpoint is larger than a page. The message has the offset of its begin.
  if (!path.ends_with(".atsnap") || offset < kPageBytes) return true;
  return message.contains(fmt::format("page {}:", offset / kPageBytes));
}

std::string kind_of(const std::string& path) {
  if (path.contains("/ddl_")) return "ddl";
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "savepoint" : path.substr(dot + 1);
}

/// Returns the newest log file of each logger. A pinned checkpoint keeps many files before these,
/// which no start reads.
std::vector<std::string> newest_logs(FileSystem& files) {
  const auto logs = log_files_in(files, {"/data", "/fast/one", "/fast/two"});
  std::map<std::pair<uint32_t, uint32_t>, LogFilePlace> newest;  // by node and logger
  const auto age = [](const LogFilePlace& log) {
    return std::pair(log.name.incarnation, log.name.ordinal);
  };
  for (const LogFilePlace& log : logs.value()) {
    LogFilePlace& place = newest[{log.node, log.name.logger}];
    if (age(log) >= age(place)) place = log;
  }
  std::vector<std::string> paths;
  for (const auto& [logger, place] : newest) paths.push_back(path_of(place));
  return paths;
}

TEST_P(FlippedBits, AreNamedOrChangeNothingInEveryFileOfADirectory) {
  std::mt19937_64 random(seed());
  const char* content = GetParam() == DurabilityScheme::silor ? "atcp" : "atsnap";
  const std::array<std::string, 4> needed = {"atlog", content, "meta", "ddl"};
  std::map<std::string, uint64_t> named;  // number of damages that were named, by kind of file
  // A checkpoint at the end leaves few logs that a start reads. Other directories have more.
  const auto has_shown_little = [&] {
    return std::ranges::any_of(needed, [&](const std::string& kind) { return named[kind] == 0; });
  };
  const uint64_t directories = rounds(2, 200);
  for (uint64_t i = 0; i < directories || (has_shown_little() && i < 10 * directories); ++i) {
    const uint64_t number = random();
    CutHistory history(number, {}, GetParam());
    ASSERT_EQ(history.run_undisturbed(), "");
    std::map<std::string, std::vector<std::string>> kinds;
    for (const std::string& path : files_of(history.disk())) kinds[kind_of(path)].push_back(path);
    const std::vector<std::string> newest = newest_logs(history.disk());
    ASSERT_FALSE(newest.empty());
    for (uint64_t flip = 0; flip < 60; ++flip) {
      // Takes the kinds of files in turn, and a random file of the kind. Half of the logs are new.
      auto kind = kinds.begin();
      std::advance(kind, flip % kinds.size());
      const bool is_newest_log = kind->first == "atlog" && random() % 2 == 0;
      const std::vector<std::string>& paths = is_newest_log ? newest : kind->second;
      const std::string& path = paths[random() % paths.size()];
      const auto offset = any_offset(history.disk(), path, random);
      ASSERT_TRUE(offset) << offset.error().message;
      const auto mask = static_cast<uint8_t>(1 << random() % 8);
      const auto started = history.start_with_damage(path, *offset, mask);
      if (started) continue;
      const std::string& message = started.error().message;
      EXPECT_TRUE(is_named(message, path, *offset))
          << path << ", byte " << *offset << ", mask " << int{mask} << ": " << message;
      EXPECT_EQ(started.error().code, ExitCode::corruption) << message;
      ++named[kind->first];
    }
  }
  for (const std::string& kind : needed) {
    EXPECT_GT(named[kind], 0u) << kind << ": no damage was found: this has not shown much";
  }
}

}  // namespace
}  // namespace atolldb::test
