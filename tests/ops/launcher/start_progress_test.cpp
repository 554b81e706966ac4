// Progress of a start-up: step, percentage, rate and remaining time.
#include "ops/launcher/start_progress.h"

#include <gtest/gtest.h>

#include "ops/cli/status_report.h"

namespace atolldb {
namespace {

using std::chrono::milliseconds;
using Time = StartProgress::Clock::time_point;

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(StartProgressTest, TheRateIsOfTheStepAndTellsTheTimeThatIsLeft) {
  StartProgress progress;
  const Time begin{};
  progress.begin(begin);
  progress.note("starting", "preparing memory and files", 0, 0, begin);
  ASSERT_TRUE(progress.note_line("recovering 104857600 1048576000 reading the logs",
                                 begin + milliseconds(10'000)));
  // Bytes that were done before the first report of the step do not count.
  ASSERT_TRUE(progress.note_line("recovering 314572800 1048576000 reading the logs",
                                 begin + milliseconds(12'000)));
  const StartReport report = progress.report(begin + milliseconds(12'000));
  EXPECT_EQ(report.state, "recovering");
  EXPECT_EQ(report.step, "reading the logs");
  EXPECT_EQ(report.percent(), 30u);
  EXPECT_EQ(report.bytes_per_second, 100 * kMiB);
  EXPECT_EQ(report.eta_seconds, 7u);
  EXPECT_EQ(report.elapsed_seconds, 12u);
  EXPECT_EQ(cli::progress_text(report),
            "reading the logs, 30 % (300.0 MiB of 1000.0 MiB), 100.0 MiB/s, about 7 s left");
}

TEST(StartProgressTest, AStepOfUnknownLengthHasNeitherPercentNorTime) {
  StartProgress progress;
  progress.begin({});
  progress.note("recovering", "writing pages", 0, 0, Time{});
  progress.note("recovering", "writing pages", 4 * kMiB, 0, Time{milliseconds(2'000)});
  const StartReport report = progress.report(Time{milliseconds(2'000)});
  EXPECT_FALSE(report.percent());
  EXPECT_FALSE(report.eta_seconds);
  EXPECT_EQ(cli::progress_text(report), "writing pages, 4.0 MiB, 2.0 MiB/s");
  progress.note("starting", "opening", 0, 0, Time{milliseconds(2'000)});
  EXPECT_EQ(cli::progress_text(progress.report(Time{milliseconds(3'000)})), "opening");
}

TEST(StartProgressTest, MoreBytesThanThereWereToBeAreAllOfThem) {
  StartProgress progress;
  progress.begin({});
  progress.note("starting", "checking the logs", 0, 10, Time{});
  progress.note("starting", "checking the logs", 20, 10, Time{milliseconds(1'000)});
  const StartReport report = progress.report(Time{milliseconds(1'000)});
  EXPECT_EQ(report.percent(), 100u);
  EXPECT_EQ(report.eta_seconds, 0u);
}

TEST(StartProgressTest, TheNoteIsReadAsItWasWritten) {
  StartReport report{"recovering", "reading the logs", 3, 9, 1, 6, 2};
  for (const std::optional<uint64_t> eta :
       {std::optional<uint64_t>(6), std::optional<uint64_t>()}) {
    report.eta_seconds = eta;
    const auto read = parse_start_report(to_json_line(report));
    ASSERT_TRUE(read);
    EXPECT_EQ(to_json_line(*read), to_json_line(report));
  }
  for (const char* text : {"", "{}", "[]", "{\"state\":1,\"step\":\"x\"}", "{\"state\":\"s\"}"}) {
    EXPECT_FALSE(parse_start_report(text)) << text;
  }
}

TEST(StartProgressTest, LinesOfAnotherFormAreRefused) {
  StartProgress progress;
  for (const char* line : {"", "recovering", "recovering x 3 step", "recovering 1 2"}) {
    EXPECT_FALSE(progress.note_line(line, Time{})) << line;
  }
}

}  // namespace
}  // namespace atolldb
