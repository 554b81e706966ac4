// `atoll export` and `atoll import` with real clusters: TPC-C in mid-run, random records there and
// back, kills, wrong rows.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "engine/log/savepoint.h"
#include "ops/export/export_manifest.h"
#include "tests/cluster/export_cluster.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kPython = "/usr/bin/python3";
class ExportTest : public ExportCluster {};

TEST_F(ExportTest, WhatWasImportedIsExportedByARunningAndAStoppedCluster) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto files = fill(rounds(10'000, kListRecords));
  const Ran running = export_to(path("running"), {"--json"});
  ASSERT_EQ(running.code, 0) << running.error;
  EXPECT_TRUE(pins().empty());
  stop();
  const Ran stopped =
      export_to(path("stopped"), {"--table", "list", "--table", "tree", "--table", "map"});
  ASSERT_EQ(stopped.code, 0) << stopped.error;
  EXPECT_TRUE(pins().empty());
  const Json done = Json::parse(running.out);
  EXPECT_EQ(done["tables"].size(), 4u);
  for (const auto& [table, csv] : files) {
    SCOPED_TRACE(table);
    const auto rows = rows_of({csv});
    const std::vector<std::string> parts = parts_of(path("running") + "/" + table);
    EXPECT_GT(parts.size(), 1u);
    EXPECT_EQ(rows_of(parts), rows);
    if (table != "heap") {
      EXPECT_EQ(rows_of(parts_of(path("stopped") + "/" + table)), rows);
    }
  }
  EXPECT_FALSE(fs::exists(path("stopped") + "/heap"));
}

/// The pin of a stopped cluster is written to both slots of the savepoint. If only the second write
/// fails, the savepoint has the pin. Then the directory has a manifest that names it.
TEST_F(ExportTest, APinWhoseWriteFailedStaysOnlyWithAManifest) {
  ASSERT_NO_FATAL_FAILURE(start());
  fill(100);
  ASSERT_EQ(atoll({"snapshot", "take"}).code, 0);
  stop();
  // With this limit of the size of files, writes of the second slot fail.
  const std::string limited =
      "trap '' XFSZ; ulimit -f " + std::to_string(kSavepointSlotBytes / 1024) + "; exec \"$@\"";
  int left = 0;
  for (const char* name : {"first", "second"}) {
    const std::string directory = path(name);
    const Ran failed = runner_.run(
        "/bin/bash", of_cluster({"-c", limited, "bash", std::string(ATOLL_BIN_DIR) + "/atoll",
                                 "export", directory, "--schema", schema_}));
    ASSERT_NE(failed.code, 0);
    const bool has_manifest = fs::exists(export_manifest_path(directory));
    ASSERT_EQ(pins().size(), has_manifest ? 1u : 0u) << failed.error;
    if (has_manifest) {
      ++left;
      EXPECT_TRUE(failed.error.contains("atoll snapshot unpin " + pins().front())) << failed.error;
      const Ran resumed = atoll({"export", "--resume", directory});
      ASSERT_EQ(resumed.code, 0) << resumed.error;
    } else {
      ASSERT_EQ(export_to(directory).code, 0) << "the directory can be used again";
      // Writes the savepoint once more, so that the next pin is written to the other slot first.
      PosixFileSystem files;
      auto read = read_savepoint(files, config_.cluster.data_dir);
      ASSERT_TRUE(read && *read);
      ASSERT_TRUE(write_savepoint(files, config_.cluster.data_dir, (*read)->savepoint));
    }
    EXPECT_TRUE(pins().empty());
  }
  EXPECT_EQ(left, 1) << "each slot was the first one once";
}

TEST_F(ExportTest, KilledAtRandomInstantsContinuesToTheSameFiles) {
  ASSERT_NO_FATAL_FAILURE(start());
  const auto csv = fill(rounds(10'000, kListRecords));
  const Ran whole = export_to(path("whole"), {"--json", "--parts", "8"});
  ASSERT_EQ(whole.code, 0) << whole.error;
  const std::string snapshot = std::to_string(Json::parse(whole.out).at("snapshot").get<int>());
  ASSERT_EQ(atoll({"snapshot", "pin", snapshot, "--name", "of the test"}).code, 0);
  const auto expected = files_of(path("whole"));
  uint64_t killed = 0;
  for (uint64_t round = 0; round < rounds(4, 60); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::string directory = path("killed" + std::to_string(round));
    const std::vector<std::string> begin = of_cluster(
        {"export", directory, "--schema", schema_, "--parts", "8", "--snapshot", snapshot});
    const std::vector<std::string> resume =
        of_cluster({"export", "--resume", directory, "--parts", "8"});
    for (uint32_t run = 0; run < 3; ++run) {
      const bool has_begun = fs::exists(directory + "/export.json");
      // Without a manifest, the directory has at most a lock and a schema, and is removed.
      if (!has_begun) fs::remove_all(directory);
      const pid_t pid =
          runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll", has_begun ? resume : begin,
                        path("killed.out"), path("killed.err"));
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 150));  // a random instant
      kill(pid, SIGKILL);
      int status = 0;
      waitpid(pid, &status, 0);
      killed += WIFSIGNALED(status) ? 1 : 0;
    }
    // New commits and snapshots do not change what is exported.
    ASSERT_EQ(import("heap", csv.at("heap")).code, 0);
    ASSERT_EQ(atoll({"snapshot", "take"}).code, 0);
    const bool has_begun = fs::exists(directory + "/export.json");
    if (!has_begun) fs::remove_all(directory);
    const Ran last = runner_.atoll(has_begun ? resume : begin);
    ASSERT_EQ(last.code, 0) << last.error;
    EXPECT_EQ(files_of(directory), expected);
    EXPECT_EQ(pins(), std::vector<std::string>{"of the test"});
    fs::remove_all(directory);
  }
  std::printf("%llu exports killed\n", static_cast<unsigned long long>(killed));
}

TEST_F(ExportTest, RefusesWhatDoesNotFitTheUnfinishedExport) {
  ASSERT_NO_FATAL_FAILURE(start());
  fill(100);
  const auto refuse = [&](const Ran& ran, int code, const std::string& why) {
    EXPECT_EQ(ran.code, code) << ran.error;
    EXPECT_NE(ran.error.find(why), std::string::npos) << ran.error;
  };
  refuse(export_to(path("none"), {"--table", "forest"}), 2, "the schema");
  refuse(export_to(config_.cluster.data_dir + "/inside"), 2, "lie in one another");
  refuse(atoll({"export", path("none")}), 2, "--schema is missing");
  for (const char* parts : {"0", "1025", "-1", "many"}) {
    refuse(export_to(path("none"), {"--parts", parts}), 2, "--parts");
  }
  for (const char* threads : {"0", "65"}) {
    refuse(export_to(path("none"), {"--threads", threads}), 2, "--threads");
    refuse(import("tree", schema_, {"--connections", threads}), 2, "--connections");
  }
  refuse(export_to(path("none"), {"--format", "xml"}), 2, "--format");
  refuse(export_to(path("none"), {"--memory", "1GiB"}), 2, "--memory: the cluster has");
  refuse(atoll({"export", "--resume", path("none")}), 1, "holds no export");
  refuse(export_to(path("none"), {"--snapshot", "999"}), 1, "999");
  EXPECT_FALSE(fs::exists(path("none"))) << "a refused export leaves nothing";
  EXPECT_TRUE(pins().empty());
  const std::string other = path("other.toml");
  std::string text = kSchema;
  text.replace(text.find("payload_bytes = 60"), 18, "payload_bytes = 64");
  std::ofstream(other) << text;
  refuse(atoll({"export", path("none"), "--schema", other}), 1,
         "the payload has 60 bytes, the schema says 64");
  EXPECT_EQ(pins().size(), 1u) << "an unfinished export keeps its snapshot";
  refuse(atoll({"export", path("none"), "--schema", schema_}), 2, "is not empty");
  refuse(export_to(path("none"), {"--resume"}), 1, "another schema");
  refuse(atoll({"export", path("none"), "--resume", "--snapshot", "999"}), 1, "not 999");
  refuse(atoll({"export", path("none"), "--resume", "--table", "tree"}), 2, "keeps its tables");
  text.replace(text.find("payload_bytes = 16"), 18, "payload_bytes = 24");
  std::ofstream(other) << text;
  refuse(atoll({"export", path("array"), "--schema", other}), 1,
         "payloads have 16 bytes, the schema says 24");
  EXPECT_EQ(pins().size(), 1u);
  EXPECT_FALSE(fs::exists(path("array")));
  ASSERT_EQ(export_to(path("good")).code, 0);
  const Ran again = atoll({"export", "--resume", path("good")});
  EXPECT_EQ(again.code, 0) << again.error;
  std::ofstream(path("good") + "/export.json", std::ios::app) << "}";
  refuse(atoll({"export", "--resume", path("good")}), 7, "export.json: is damaged");
}

TEST_F(ExportTest, WrongRowsAreNamedByFileAndLine) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(create_storages());
  const std::string csv = write_csv("wrong.csv",
                                    "id,name,amount,at,note,flags\n"
                                    "1,a,1.00,,\"two\nlines\",00000000\n"
                                    "x,a,1.00,,n,00000000\n"
                                    "2,a,1.001,,n,00000000\n"
                                    "3,a,1.00,yesterday,n,00000000\n"
                                    "4,a,1.00,,n\n"
                                    "1,a,1.00,,again,00000000\n"
                                    "5,a,1.00,2026-11-23T04:05:06Z,n,0000000g\n"
                                    "6,a,1.00,2026-11-23T04:05:06Z,n,0000000f\n");
  const Ran stopped = import("tree", csv);
  EXPECT_EQ(stopped.code, 1);
  EXPECT_NE(stopped.error.find(csv + ":4: id: \"x\": expected digits"), std::string::npos)
      << stopped.error;
  const Ran skipped = import("tree", csv, {"--on-error", "skip", "--json"});
  EXPECT_EQ(skipped.code, 0) << skipped.error;
  EXPECT_EQ(Json::parse(skipped.out)["rows"], 2) << skipped.out;
  EXPECT_EQ(Json::parse(skipped.out)["wrong"], 6) << skipped.out;
  for (const char* error :
       {":4: id: \"x\": expected digits", ":5: amount: \"1.001\": expected at most 2 decimals",
        ":6: at: \"yesterday\": expected a time like", ":7: expected 6 fields, got 5",
        ":8: the key exists already", ":9: flags: \"0000000g\": expected hexadecimal digits"}) {
    EXPECT_NE(skipped.error.find(csv + error), std::string::npos) << error << skipped.error;
  }
  const Ran upserted = import("tree", csv, {"--on-error", "skip", "--mode", "upsert", "--json"});
  EXPECT_EQ(Json::parse(upserted.out)["rows"], 3) << upserted.out;

  const std::string beyond = write_csv(
      "beyond.csv", "b,i,a\n1,1,1\n1," + std::to_string(kListRecords + 1) + ",1\n2,2,2\n");
  const Ran array = import("list", beyond, {"--on-error", "skip", "--json"});
  EXPECT_EQ(Json::parse(array.out)["rows"], 2) << array.out;
  EXPECT_NE(array.error.find(beyond + ":3: "), std::string::npos) << array.error;

  const auto refuse = [&](const Ran& ran, int code, const std::string& why) {
    EXPECT_EQ(ran.code, code) << ran.error;
    EXPECT_NE(ran.error.find(why), std::string::npos) << ran.error;
  };
  refuse(import("forest", csv), 2, "the schema");
  refuse(import("list", beyond, {"--mode", "insert"}), 2, "is no mastertree");
  refuse(import("list", csv), 1, ":1: \"id\": table \"list\" has no such column");
  refuse(import("list", path("missing.csv")), 1, "cannot be read");
  refuse(import("list", write_csv("empty.csv", "")), 1, "is empty");
  refuse(import("list", write_csv("open.csv", "i,a,b\n1,\"2,3\n")), 1,
         "the quotes that open in line 2 are not closed");
}

TEST_F(ExportTest, AnImportThatIsKilledContinuesAfterTheCommittedRows) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(create_storages());
  const auto schema = parse_export_schema(kSchema, "schema");
  ASSERT_TRUE(schema);
  const uint64_t rows = rounds(20'000, 200'000);
  const std::string csv = write_csv("tree.csv", random_csv(*schema->find("tree"), rows));
  const std::vector<std::string> more = {"--mode", "upsert", "--resume", path("memory"), "--json"};
  std::vector<std::string> words = of_cluster({"import", "tree", csv, "--schema", schema_});
  words.insert(words.end(), more.begin(), more.end());
  for (uint32_t run = 0; run < 3; ++run) {
    const pid_t pid = runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll", words,
                                    path("killed.out"), path("killed.err"));
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 200));  // a random instant
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
  }
  const Ran last = import("tree", csv, more);
  ASSERT_EQ(last.code, 0) << last.error;
  const Json counts = Json::parse(last.out);
  EXPECT_EQ(counts["rows"].get<uint64_t>() + counts["left_out"].get<uint64_t>(), rows);
  const Ran again = import("tree", csv, more);
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(Json::parse(again.out)["rows"], 0);
  EXPECT_EQ(Json::parse(again.out)["left_out"], rows);
  std::ofstream(csv, std::ios::app) << "1,a,1.00,,n,00000000\n";
  const Ran changed = import("tree", csv, more);
  EXPECT_EQ(changed.code, 1);
  EXPECT_NE(changed.error.find("another table, schema or files"), std::string::npos)
      << changed.error;
  ASSERT_EQ(export_to(path("all"), {"--table", "tree"}).code, 0);
  fs::resize_file(csv, fs::file_size(csv) - std::strlen("1,a,1.00,,n,00000000\n"));
  EXPECT_EQ(rows_of(parts_of(path("all") + "/tree")), rows_of({csv}));
}

/// Returns the tokens of all keys at the end of `epoch`, according to the cluster's replies to its
/// clients.
std::map<LedgerKey, LedgerToken> tokens_at(const Ledger& ledger, uint64_t epoch) {
  std::map<LedgerKey, std::pair<uint64_t, LedgerToken>> newest;  // version first
  for (const auto& [token, transaction] : ledger) {
    EXPECT_TRUE(transaction.outcome) << "no reply to " << token;
    if (!transaction.outcome || transaction.outcome->status != Status::ok) continue;
    if (transaction.outcome->commit_epoch > epoch) continue;
    for (const LedgerKey key : transaction.writes) {
      newest[key] = std::max(newest[key], {transaction.outcome->version, token});
    }
  }
  std::map<LedgerKey, LedgerToken> tokens;
  for (const auto& [key, version] : newest) tokens[key] = version.second;
  return tokens;
}

TEST_F(ExportTest, UnderLoadEqualsTheOracleAtItsEpoch) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  fs::create_directories(path("ledgers"));
  std::ofstream(schema_) << "[[table]]\nname = \"ledger\"\ntype = \"mastertree\"\n"
                            "payload_bytes = 8\n"
                            "key = [ { name = \"k\", type = \"u64\", offset = 0 } ]\n"
                            "column = [ { name = \"t\", type = \"u64\", offset = 0 } ]\n";
  LedgerClients clients(config_, path("ledgers"), random_());
  std::map<uint64_t, std::map<LedgerKey, LedgerToken>> exported;  // by epoch
  for (uint64_t round = 1; round <= rounds(3, 30); ++round) {
    for (const uint32_t node : {0u, 1u}) {
      ASSERT_TRUE(eventually([&] { return clients.has_written(node, round * 20'000); }));
    }
    const std::string directory = path("round" + std::to_string(round));
    const Ran ran = export_to(directory, {"--json"});
    ASSERT_EQ(ran.code, 0) << ran.error;
    auto& tokens = exported[Json::parse(ran.out).at("epoch").get<uint64_t>()];
    for (const auto& row : rows_of(parts_of(directory + "/ledger"))) {
      const auto key = static_cast<LedgerKey>(std::stoul(row.at(0)));
      EXPECT_TRUE(tokens.emplace(key, std::stoull(row.at(1))).second) << "key " << key << " twice";
    }
  }
  clients.stop();
  const Ledger ledger = clients.ledger();
  EXPECT_GT(exported.size(), 1u);
  for (const auto& [epoch, tokens] : exported) {
    EXPECT_GT(tokens.size(), 100u);
    EXPECT_EQ(tokens, tokens_at(ledger, epoch)) << "epoch " << epoch;
  }
}

TEST_F(ExportTest, ParquetFilesHaveEveryImportedValue) {
  const std::string python = std::string(ATOLL_BIN_DIR) + "/../../tools/parquet/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "needs pyarrow: `./ops/setup --parquet` gets it";
  ASSERT_NO_FATAL_FAILURE(start());
  const uint64_t rows = rounds(2'000, kListRecords);
  fill(rows);
  const Ran ran = export_to(path("parquet"), {"--format", "parquet"});
  ASSERT_EQ(ran.code, 0) << ran.error;
  for (const char* table : kTables) {
    EXPECT_EQ(parts_of(path("parquet") + "/" + table, ".parquet").size(),
              parts_of(path("parquet") + "/" + table).size());
  }
  const Ran compared =
      runner_.run(python, {std::string(ATOLL_SOURCE_DIR) + "/tests/cluster/parquet_values.py",
                           path("parquet"), folder_.path()});
  EXPECT_EQ(compared.code, 0) << compared.error;
  for (const char* table : kTables) {
    EXPECT_NE(compared.out.find(std::string(table) + " " + std::to_string(rows) + "\n"),
              std::string::npos)
        << compared.out;
  }
}

TEST_F(ExportTest, ParquetNeedsPyarrowAndSaysSo) {
  ASSERT_NO_FATAL_FAILURE(start());
  fill(1'000);
  ASSERT_EQ(export_to(path("parquet")).code, 0);
  // Debian's Python has no pyarrow.
  const Ran without =
      atoll({"export", "--resume", path("parquet"), "--format", "parquet", "--python", kPython});
  EXPECT_EQ(without.code, 6) << without.error;
  EXPECT_NE(without.error.find("the Python package pyarrow is missing: `./ops/setup --parquet`"),
            std::string::npos)
      << without.error;
  const Ran missing =
      atoll({"export", "--resume", path("parquet"), "--format", "parquet", "--python", "/none"});
  EXPECT_EQ(missing.code, 6) << missing.error;
  EXPECT_NE(missing.error.find("/none: cannot be started"), std::string::npos) << missing.error;
}

constexpr uint32_t kLoadedOrders = 3'000;

/// Returns a checksum of the rows of each table that does not depend on their order. Each row is
/// one line, because no text of TPC-C has a line end.
std::string table_sums(const CliRunner& runner, const std::string& directory) {
  const Ran ran =
      runner.run("/bin/bash",
                 {"-c",
                  "set -eo pipefail; cd \"$1\"; for table in */; do echo \"$table $(tail -q -n +2 "
                  "\"$table\"*.csv | LC_ALL=C sort | sha256sum)\"; done",
                  "bash", directory});
  EXPECT_EQ(ran.code, 0) << ran.error;
  return ran.out;
}

TEST_F(ExportTest, TpccInMidRunSatisfiesItsTwelveConditionsInSql) {
  config_.memory.volatile_pool = uint64_t{768} << 20;
  config_.durability.log_file_size = uint64_t{64} << 20;
  config_.memory.log_buffer = uint64_t{16} << 20;
  config_.snapshot.keep = 8;
  std::ofstream(file_) << to_toml(config_);
  schema_ = std::string(ATOLL_SOURCE_DIR) + "/configs/schemas/tpcc.toml";
  ASSERT_NO_FATAL_FAILURE(start());
  // The mix inserts few rows, because the SQL below reads all of them. It has more new orders than
  // deliveries.
  const auto load = of_cluster({"bench", "tpcc", "--warehouses", "2", "--warmup", "0", "--seconds",
                                "3600", "--mix", "12/5/79/1/3"});
  const pid_t bench = runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll", load, path("bench.out"),
                                    path("bench.err"));
  // The job occupies all workers, so no request can observe its progress. The output of the
  // benchmark shows each second.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (!read_text(path("bench.out")).contains("transactions/s (durability")) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "the load takes too long";
    ASSERT_EQ(waitpid(bench, nullptr, WNOHANG), 0) << read_text(path("bench.err"));
    // this sleep does not synchronise: it spares the processes that the test waits for
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // With ATOLL_LONG, this snapshot and the log after it must give the same states as the exports.
  const bool has_oracle = rounds(0, 1) == 1;
  if (has_oracle) {
    ASSERT_EQ(atoll({"snapshot", "take"}).code, 0);
  }
  uint64_t epoch = 0;  // epoch of the latest export
  std::vector<std::string> directories;
  for (uint64_t round = 0; round < rounds(1, 3); ++round) {
    directories.push_back(path("mid" + std::to_string(round)));
    const Ran ran = export_to(directories.back(), {"--json"});
    ASSERT_EQ(ran.code, 0) << ran.error;
    const uint64_t previous = std::exchange(epoch, Json::parse(ran.out).at("epoch"));
    EXPECT_GT(epoch, previous);
  }
  ASSERT_EQ(waitpid(bench, nullptr, WNOHANG), 0)
      << "the run has ended before the last export: " << read_text(path("bench.err"));
  kill(bench, SIGKILL);
  waitpid(bench, nullptr, 0);
  EXPECT_TRUE(pins().empty());
  if (has_oracle) {
    // The backup has the newest and the oldest snapshot, so the restore begins with the oldest one
    // and applies the log up to the epoch.
    ASSERT_EQ(atoll({"snapshot", "take"}).code, 0);
    const Ran backup = atoll({"backup", path("backups")});
    ASSERT_EQ(backup.code, 0) << backup.error;
  }
  stop();  // this also ends the job of the killed benchmark
  uint64_t last_order = kLoadedOrders + 1;
  for (const std::string& directory : directories) {
    const Ran checked = runner_.run(
        kPython, {std::string(ATOLL_SOURCE_DIR) + "/tests/cluster/tpcc_conditions.py", directory});
    EXPECT_EQ(checked.code, 0) << checked.out << checked.error;
    const uint64_t before = std::exchange(last_order, std::stoul(checked.out));
    EXPECT_GT(last_order, before) << "the run goes on";
    std::printf("the conditions hold up to order %llu of a district\n",
                static_cast<unsigned long long>(last_order));
  }
  if (!has_oracle) return;
  Config restored = config_;
  restored.cluster = folder_.config("export-restored").cluster;
  restored.cluster.hang_limit = std::chrono::minutes(5);
  restored.control.endpoint = "ipc://" + restored.cluster.run_dir + "/control.sock";
  const Ran restore = runner_.atoll({"restore", path("backups"), "--to", restored.cluster.data_dir,
                                     "--epoch", std::to_string(epoch)});
  ASSERT_EQ(restore.code, 0) << restore.error;
  config_ = restored;
  std::ofstream(file_) << to_toml(config_);
  ASSERT_NO_FATAL_FAILURE(start());
  const Ran again = export_to(path("oracle"));
  ASSERT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(table_sums(runner_, path("oracle")), table_sums(runner_, directories.back()));
}

}  // namespace
}  // namespace atolldb::test
