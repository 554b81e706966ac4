// The report of `atoll status`: text, JSON and detected problems.
#include "ops/cli/status_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/cli/left_pins.h"

namespace atolldb::cli {
namespace {

Json pool(uint64_t total, uint64_t free) {
  return {{"total", total}, {"free", free}, {"page_bytes", 4096}};
}

Json node(uint32_t index, const std::string& state = "running") {
  return {{"node", index},
          {"state", state},
          {"pid", 100 + index},
          {"workers", 2},
          {"numa", 0},
          {"commits", 1'000},
          {"read_only_commits", 400},
          {"aborts", {{"phantom", 3}, {"user_abort", 4}}},
          {"local_accesses", 3'000},
          {"remote_accesses", 1'000},
          {"real_page_bytes", 2 << 20},
          {"pool", pool(1'000, 500)}};
}

Json healthy_status() {
  return {{"v", 1},
          {"ok", true},
          {"name", "bank"},
          {"state", "running"},
          {"durability", "off"},
          {"throughput_tps", 12'345.6},
          {"throughput_seconds", 0.25},
          {"epochs", {{"current", 9}, {"durable", 7}, {"oldest_begin", 8}}},
          {"nodes", Json::array({node(0), node(1)})},
          {"processes",
           Json::array({{{"role", "coordinator"}, {"pid", 99}, {"metrics", "127.0.0.1:9101"}},
                        {{"role", "node0"}, {"pid", 100}, {"metrics", nullptr}}})},
          {"storages", Json::array()}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(StatusReportTest, AHealthyClusterHasNoProblemsAndSaysSoFirst) {
  EXPECT_TRUE(find_problems(healthy_status()).empty());
  const std::string text = status_text(healthy_status());
  EXPECT_TRUE(text.starts_with("cluster \"bank\" is healthy\n")) << text;
  EXPECT_FALSE(has(text, "what is wrong")) << text;
}

TEST(StatusReportTest, AClusterThatRecoversSaysHowFarItIsAndWhatItReads) {
  Json status = healthy_status();
  status["state"] = "recovering";
  status["snapshots"] = {{"run", {{"snapshot", 5}, {"phase", "gleaning"}}}};
  status["recovery"] = {{"log_bytes", 3 << 20}, {"percent_read", 41}, {"reads", nullptr}};
  ASSERT_EQ(find_problems(status).size(), 1u);
  EXPECT_EQ(
      find_problems(status)[0].what,
      "the cluster recovers: 41 % of 3.0 MiB of log read, phase gleaning of the new snapshot");
  EXPECT_EQ(find_problems(status)[0].what_to_do, "wait until it runs");
  status["recovery"]["eta_seconds"] = nullptr;
  EXPECT_TRUE(find_problems(status)[0].what.ends_with("of the new snapshot"));
  status["recovery"]["eta_seconds"] = 25u;
  EXPECT_TRUE(find_problems(status)[0].what.ends_with("of the new snapshot, about 25 s left"))
      << find_problems(status)[0].what;
  status["recovery"]["reads"] = {{"snapshot", 4}, {"epoch", 120}, {"others", {1}}};
  EXPECT_TRUE(has(status_text(status), "on snapshot 4 (epoch 120)")) << status_text(status);
  EXPECT_FALSE(status_json(status).at("healthy"));
  // The recovery has ended between two status requests.
  status["recovery"] = nullptr;
  EXPECT_EQ(find_problems(status)[0].what_to_do, "wait until it runs");
}

TEST(StatusReportTest, ShowsTheNewestCheckpointAndWhyTheLastAttemptFailed) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "  checkpoint ")) << status_text(status);
  status["checkpoints"] = {{"newest", 0}, {"taken", 0}, {"is_running", true}, {"error", ""}};
  EXPECT_TRUE(has(status_text(status), "  checkpoint     none yet; the next one is being taken\n"))
      << status_text(status);
  status["checkpoints"] = {
      {"newest", 7}, {"replay_epoch", 1500}, {"records", 12'000},   {"bytes", 2 << 20},
      {"taken", 3},  {"last_ms", 250},       {"is_running", false}, {"error", "the disk is full"}};
  EXPECT_TRUE(has(status_text(status),
                  "  checkpoint     7: 12,000 records, 2.0 MiB, replay epoch "
                  "1,500; the last one took 250 ms; the last attempt failed: "
                  "the disk is full\n"))
      << status_text(status);
  EXPECT_FALSE(has(status_text(status), "  replay ")) << status_text(status);
  status["checkpoints"]["replay"] = {
      {"ms", 1'500}, {"records", 90'000}, {"overwritten", 2'000}, {"older", 70'000}};
  EXPECT_TRUE(has(status_text(status),
                  "  replay         1,500 ms: 90,000 records, 2,000 of them overwrote older ones, "
                  "70,000 were older\n"))
      << status_text(status);
}

TEST(StatusReportTest, SaysWhichPartOfTheMemoryShouldGetMore) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "  memory ")) << status_text(status);
  const auto set = [&](uint64_t total, const char* first, const char* second) {
    status["nodes"][0]["memory"] = {{"total_bytes", total}, {"more", first}};
    status["nodes"][1]["memory"] = {{"total_bytes", total}, {"more", second}};
    return status_text(status);
  };
  EXPECT_FALSE(has(set(0, "none", "either"), "  memory "));
  const std::string budget = "  memory         a budget of 1.0 GiB per node";
  EXPECT_TRUE(has(set(1 << 30, "none", "none"), budget + "\n")) << status_text(status);
  EXPECT_TRUE(has(set(1 << 30, "cache", "none"),
                  budget + "; more for the snapshot cache would save most waits\n"))
      << status_text(status);
  EXPECT_TRUE(has(set(0, "none", "pool"), "  memory         more for the pool would save most"))
      << status_text(status);
  EXPECT_FALSE(has(set(0, "cache", "pool"), "  memory ")) << "the nodes disagree";
}

TEST(StatusReportTest, PinsOfABackupThatHasEndedAreAProblem) {
  Json status = healthy_status();
  status["snapshots"] = {
      {"backup_pins",
       {{{"id", 2}, {"epoch", 20}, {"name", "atoll-backup-20261123T040506Z"}},
        {{"id", 1}, {"epoch", 10}, {"name", "atoll-backup-20261123T040506Z-older"}},
        {{"id", 1}, {"epoch", 10}, {"name", "atoll-backup-by-hand"}}}}};
  EXPECT_TRUE(find_problems(status).empty()) << "only add_left_pins knows whether a backup runs";
  const uint64_t begun = uint64_t{1795406706} * 1000;
  add_left_pins(status, true, begun);
  EXPECT_EQ(status["snapshots"]["left_pins"], Json::array()) << "the backup runs";
  EXPECT_TRUE(find_problems(status).empty());
  add_left_pins(status, false, begun - 5'000);
  EXPECT_EQ(status["snapshots"]["left_pins"][0]["age_s"], 0) << "the clock was set back";
  add_left_pins(status, false, begun + 7'200'000);
  const std::vector<Problem> problems = find_problems(status);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].what,
            "pin atoll-backup-20261123T040506Z of snapshot 2 is left by a backup that has ended, "
            "begun 2 h ago: the cluster keeps the log and the files since then");
  EXPECT_EQ(problems[0].what_to_do,
            "run `atoll backup`, which removes it, or `atoll snapshot unpin "
            "atoll-backup-20261123T040506Z`");
  EXPECT_TRUE(has(problems[1].what, "20261123T040506Z-older of snapshot 1")) << problems[1].what;
  EXPECT_TRUE(has(problems[1].what, "begun 2 h ago")) << problems[1].what;
  EXPECT_FALSE(has(problems[2].what, "begun")) << problems[2].what;
  EXPECT_FALSE(status_json(status).at("healthy"));
}

TEST(StatusReportTest, PinsOfAnUnfinishedExportAreAProblem) {
  Json status = healthy_status();
  const std::string name = "atoll-backup-atoll-export-0123456789abcdef";
  const Json pin = {{"id", 4}, {"epoch", 20}, {"name", name}};
  status["checkpoints"] = {{"backup_pins", Json::array({pin})}};
  add_left_pins(status, false, 0);
  const std::vector<Problem> problems = find_problems(status);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].what, "pin " + name +
                                  " of checkpoint 4 is left by an unfinished export: the cluster "
                                  "keeps the log and the files since then");
  EXPECT_EQ(problems[0].what_to_do,
            "run `atoll export --resume`, or `atoll snapshot unpin " + name + "`");
}

TEST(StatusReportTest, AnArchiveIsShownAndItsFailureOrLagIsAProblem) {
  Json status = healthy_status();
  status["archive"] = {{"target", "directory /a"},
                       {"epoch", 1'200},
                       {"file", "node0/log_1_0_000003.atlog"},
                       {"waiting_files", 2},
                       {"waiting_bytes", 2 << 20},
                       {"lag_seconds", 300},
                       {"failing_seconds", 0},
                       {"error", ""}};
  EXPECT_TRUE(find_problems(status).empty()) << "the limit itself is no lag";
  EXPECT_TRUE(has(status_text(status), "node0/log_1_0_000003.atlog, waiting 2 files with 2.0 MiB"))
      << status_text(status);
  status["archive"]["lag_seconds"] = 301;
  ASSERT_EQ(find_problems(status).size(), 1u);
  EXPECT_TRUE(find_problems(status)[0].what.starts_with("the archive lags")) << status_text(status);
  status["archive"]["error"] = "/a: full";
  status["archive"]["failing_seconds"] = 7;
  ASSERT_EQ(find_problems(status).size(), 1u);
  EXPECT_EQ(find_problems(status)[0].what,
            "the archive has failed for 7 s: /a: full; 2 closed log files (2.0 MiB) are kept for "
            "it");
}

TEST(StatusReportTest, ASnapshotThatFailedIsAProblemUntilTheNextOneSucceeds) {
  Json status = healthy_status();
  status["snapshots"] = {
      {"newest", 3}, {"run", {{"snapshot", 4}, {"phase", "failed"}, {"failure", "/disk: full"}}}};
  const std::string text = status_text(status);
  EXPECT_TRUE(has(text, "what is wrong: the last snapshot failed: /disk: full")) << text;
  status["snapshots"]["run"] = {{"snapshot", 5}, {"phase", "done"}};
  EXPECT_TRUE(find_problems(status).empty());
}

TEST(StatusReportTest, TheLastInstallAndStallsAreShown) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "snapshot ")) << "there is none";
  status["nodes"][0]["page_stalls"] = 1'200;
  status["nodes"][1]["page_stalls"] = 34;
  status["nodes"][1]["log_stalls"] = 5;
  EXPECT_TRUE(
      has(status_text(status), "stalls         1,234 for free pages, 5 for room in a log\n"));
  status["snapshots"] = {{"newest", 7}, {"epoch", 4'711}, {"install", Json::object()}};
  EXPECT_TRUE(has(status_text(status), "snapshot       7, of epoch 4,711\n"));
  status["snapshots"]["install"] = {{"snapshot", 7}, {"took_ms", 1'012}, {"dropped", 34'000}};
  EXPECT_TRUE(has(status_text(status), "; 7 was installed in 1,012 ms, 34,000 pages evicted\n"));
  status["snapshots"]["install"] = {{"snapshot", 6}, {"took_ms", 3}, {"error", "node 1: gone"}};
  EXPECT_TRUE(has(status_text(status), "; 6 is not installed: node 1: gone\n"));
}

TEST(StatusReportTest, ALimitForPagesIsShownWhileItHoldsAndAfterIt) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "page limit"));
  status["nodes"][1]["pool"]["limit_pages_per_s"] = 12'500;
  EXPECT_TRUE(has(status_text(status),
                  "page limit     node1 12,500 pages/s, until a snapshot frees some; transactions "
                  "have waited 0 times, 0.0 s in all\n"));
  status["nodes"][1]["pool"]["limit_pages_per_s"] = 0;
  status["nodes"][0]["page_delays"] = 1'200;
  status["nodes"][0]["page_delay_ms"] = 34'560;
  EXPECT_TRUE(
      has(status_text(status),
          "page limit     none now; transactions have waited 1,200 times, 34.6 s in all\n"));
}

TEST(StatusReportTest, RecordsWithoutTheirPageAreShownIfThereAreAny) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "cold writes"));
  status["storages"] = {{{"name", "items"}, {"cold_writes", "records"}},
                        {{"name", "orders"}, {"cold_writes", "pages"}}};
  status["nodes"][0]["delta_added"] = 5'000;
  status["nodes"][1]["delta_added"] = 100;
  status["nodes"][1]["delta_drained"] = 2'000;
  EXPECT_TRUE(has(status_text(status),
                  "cold writes    bring records into memory: items; 3,100 changed records are in "
                  "memory without their pages\n"));
  status["storages"][0]["cold_writes"] = "pages";
  EXPECT_TRUE(has(status_text(status), "cold writes    bring pages into memory; 3,100 changed"));
}

TEST(StatusReportTest, ADamagedPinIsAProblemWithAWayOut) {
  Json status = healthy_status();
  status["snapshots"] = {{"newest", 3},
                         {"unreadable_pins", {{{"id", 2}, {"reason", "/data/x: its checksum"}}}}};
  const std::string text = status_text(status);
  EXPECT_TRUE(
      has(text, "what is wrong: snapshot 2 is pinned and cannot be read: /data/x: its checksum"))
      << text;
  EXPECT_TRUE(has(text, "`atoll snapshot unpin 2`")) << text;
}

TEST(StatusReportTest, ARewriteWithoutRoomIsAProblemWithAWayOut) {
  Json status = healthy_status();
  status["snapshots"] = {{"newest", 3}, {"space", {{"percent", 420}, {"lacks_room", false}}}};
  EXPECT_FALSE(has(status_text(status), "what is wrong"));
  status["snapshots"]["space"]["lacks_room"] = true;
  const std::string text = status_text(status);
  EXPECT_TRUE(has(text, "what is wrong: files of snapshots have 420 percent")) << text;
  EXPECT_TRUE(has(text, "lower gleaner.disk_reserve")) << text;
}

TEST(StatusReportTest, ARestartIsToldWithItsReasonAndIsNoProblemOnceTheClusterRuns) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "restarts"));
  status["restarts"] = {{"count", 3}, {"last_time", 1}, {"last_reason", "node0 was killed"}};
  const std::string text = status_text(status);
  EXPECT_TRUE(text.starts_with("cluster \"bank\" is healthy\n")) << text;
  EXPECT_TRUE(has(text, "restarts       3, the last one ")) << text;
  EXPECT_TRUE(has(text, "s ago: node0 was killed\n")) << text;
}

TEST(StatusReportTest, WhatIsWrongAndWhatToDoComeBeforeTheNumbers) {
  Json status = healthy_status();
  status["nodes"][1] = node(1, "draining");
  const std::string text = status_text(status);
  EXPECT_TRUE(text.starts_with("cluster \"bank\" is not healthy\n")) << text;
  const size_t wrong = text.find("what is wrong: node1 is draining");
  const size_t advice = text.find("what to do:    see `atoll logs node1`");
  const size_t numbers = text.find("throughput");
  ASSERT_NE(wrong, std::string::npos) << text;
  ASSERT_NE(advice, std::string::npos) << text;
  EXPECT_LT(wrong, advice);
  EXPECT_LT(advice, numbers);
}

TEST(StatusReportTest, LoggersAreListedAndAFailedOneIsTheProblem) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "LOGGER"));
  status["nodes"][1]["loggers"] = Json::array({{{"logger", 0},
                                                {"durable_epoch", 41'000},
                                                {"failed", false},
                                                {"epoch_lag", 2},
                                                {"written_bytes", 3 << 20},
                                                {"batches", 1'234},
                                                {"write_us", {{"p50", 500.0}, {"p99", 1'500.0}}},
                                                {"sync_us", {{"p50", 250.0}, {"p99", 9'000.0}}}}});
  EXPECT_TRUE(find_problems(status).empty());
  const std::string text = status_text(status);
  for (const char* part : {"node1/0", "41,000", "3.0 MiB", "1,234", "0.5 1.5 ms", "0.2 9.0 ms"}) {
    EXPECT_TRUE(has(text, part)) << part << " in " << text;
  }
  status["nodes"][1]["loggers"][0]["lacks_next_file"] = true;
  const std::string lacking = status_text(status);
  EXPECT_TRUE(has(lacking, "what is wrong: logger 0 of node1 has no room for its next")) << lacking;
  EXPECT_TRUE(has(lacking, "what to do:    free disk space")) << lacking;
  status["nodes"][1]["loggers"][0]["failed"] = true;
  const std::string failed = status_text(status);
  EXPECT_TRUE(has(failed, "not healthy")) << failed;
  EXPECT_TRUE(has(failed, "what is wrong: logger 0 of node1 cannot write")) << failed;
}

TEST(StatusReportTest, StagesOfEpochsAreListedWithTheSlowestEpoch) {
  Json status = healthy_status();
  EXPECT_FALSE(has(status_text(status), "EPOCH STAGE"));
  const Json sync = {{"stage", "sync"},
                     {"slowest", "node1/0"},
                     {"us", {{"p50", 250.0}, {"p99", 9'000.0}, {"p99.9", 12'345.0}, {"max", 2e5}}}};
  status["acknowledgement"] = {{"stages", Json::array({sync})}, {"slowest_epoch", nullptr}};
  const std::string text = status_text(status);
  for (const char* part : {"EPOCH STAGE", "sync", "0.25", "9.00", "12.3", "200.00", "node1/0"}) {
    EXPECT_TRUE(has(text, part)) << part << " in " << text;
  }
  EXPECT_FALSE(has(text, "slowest epoch"));
  status["acknowledgement"]["slowest_epoch"] = {{"epoch", 812},
                                                {"total_us", 170'240.0},
                                                {"stages", Json::array()},
                                                {"last_logger", "node1/0"},
                                                {"age_s", 3}};
  EXPECT_TRUE(
      has(status_text(status), "slowest epoch 812: 170.24 ms: last logger node1/0, 3 s ago\n"));
}

TEST(StatusReportTest, ThroughputStandsBesideTheDurabilityMode) {
  const std::string text = status_text(healthy_status());
  EXPECT_TRUE(has(text, "12,346 transactions/s (durability off, over the last 0.25 s)")) << text;
}

TEST(StatusReportTest, AbortsAreSummedOverNodesAndRemoteAccessesAreAShare) {
  const std::string text = status_text(healthy_status());
  EXPECT_TRUE(has(text, "phantom 6, user_abort 8")) << text;
  EXPECT_TRUE(has(text, "25.0 %")) << text;
}

TEST(StatusReportTest, AnAlmostFullPoolIsAProblemAndAHalfFullOneIsNot) {
  Json status = healthy_status();
  status["nodes"][0]["pool"] = pool(1'000, 100);
  EXPECT_TRUE(find_problems(status).empty()) << "90 % are not yet more than 90 %";
  status["nodes"][0]["pool"] = pool(1'000, 99);
  const auto problems = find_problems(status);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].what, "the pool of node0 is 90 % full");
  EXPECT_TRUE(has(problems[0].what_to_do, "memory.volatile_pool"));
}

TEST(StatusReportTest, AClusterThatStartsOrDrainsOrHasStoppedIsNotHealthy) {
  for (const char* state : {"starting", "draining", "stopped"}) {
    Json status = healthy_status();
    status["state"] = state;
    EXPECT_FALSE(find_problems(status).empty()) << state;
  }
}

TEST(StatusReportTest, TheJsonHasTheVerdictAndNothingOfTheProtocol) {
  Json status = healthy_status();
  status["state"] = "draining";
  const Json json = status_json(status);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["healthy"], false);
  ASSERT_EQ(json["problems"].size(), 1u);
  EXPECT_TRUE(json["problems"][0]["what"].is_string());
  EXPECT_TRUE(json["problems"][0]["what_to_do"].is_string());
  EXPECT_FALSE(json.contains("v"));
  EXPECT_FALSE(json.contains("ok"));
}

TEST(StatusReportTest, AnAnswerWithoutItsMembersIsShownWithoutThem) {
  EXPECT_TRUE(has(status_text(Json::object()), "is not healthy"));
  EXPECT_EQ(status_json(Json::object())["healthy"], false);
}

}  // namespace
}  // namespace atolldb::cli
