// `atoll bench tpcc|ycsb prepare|run|verify|cleanup` on a cluster that runs on, clients in another
// process, histograms in files, and comparisons.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class BenchVerbsTest : public ::testing::Test {
 protected:
  BenchVerbsTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  /// `pool`: size of the pool of each node, for what fast machines insert in a second.
  std::string config(uint32_t nodes, const std::string& pool) const {
    const std::string path =
        runner_.config("bench",
                       "snapshot_cache = \"16MiB\"\n[durability]\nmode = \"durable\"\n"
                       "log_file_size = \"16MiB\"\n",
                       nodes);
    std::string text = read_text(path);
    const std::string small = "volatile_pool = \"16MiB\"";
    text.replace(text.find(small), small.size(), "volatile_pool = \"" + pool + "\"");
    std::ofstream(path) << text;
    return path;
  }
  Ran bench(Words words) const {
    words.insert(words.begin(), "bench");
    return runner_.atoll(words);
  }
  void expect_ok(const Words& words) const {
    const Ran ran = bench(words);
    EXPECT_EQ(ran.code, 0) << words[0] << " " << words[1] << ": " << ran.out << ran.error;
  }
  void expect_refused(const Words& words, const std::string& part) const {
    const Ran ran = bench(words);
    EXPECT_EQ(ran.code, 2) << ran.error;
    EXPECT_NE(ran.error.find(part), std::string::npos) << ran.error;
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  /// Makes keys of the nodes, of the client `bench`, and of the client `admin`, which may also
  /// administer. Adds network sessions to the config.
  void add_network(const std::string& config_file) const {
    ASSERT_EQ(runner_.atoll({"keys", "generate", path("node.key")}).code, 0);
    std::ofstream clients(path("clients"));
    for (const auto& [name, more] :
         {std::pair("bench", ""), std::pair("admin", ",administration")}) {
      const Ran keys = runner_.atoll({"keys", "generate", path(std::string(name) + ".key")});
      ASSERT_EQ(keys.code, 0) << keys.error;
      clients << keys.out.substr(0, keys.out.find('\n')) << " " << name << " read,write,procedures"
              << more << "\n";
    }
    std::ofstream(config_file, std::ios::app)
        << "[network]\nenabled = true\nbase_port = 0\nkey_file = \"node.key\"\n"
           "authorised_keys = \"clients\"\n";
  }
  Json read_json(const std::string& name) const {
    return Json::parse(read_text(folder_.path() + "/" + name), nullptr, false);
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(BenchVerbsTest, YcsbIsPreparedOnceAndRunsAgainAlsoAfterARestart) {
  const std::string file = config(2, "128MiB");
  CliCluster cluster(runner_, file);
  expect_refused({"ycsb", "run", "--seconds", "1"}, "run `atoll bench ycsb prepare` first");
  expect_ok({"ycsb", "prepare", "--records", "2000"});
  expect_refused({"ycsb", "prepare"}, "run `atoll bench ycsb cleanup` first");
  // Workload D inserts, so the second run depends on what the first one has left.
  expect_ok({"ycsb", "run", "--workload", "D", "--seconds", "1", "--warmup", "0"});
  expect_ok({"ycsb", "run", "--seconds", "1", "--warmup", "0"});
  expect_ok({"ycsb", "verify"});
  EXPECT_EQ(cluster.down().code, 0);
  const CliCluster again(runner_, file);
  expect_ok({"ycsb", "run", "--workload", "F", "--seconds", "1", "--warmup", "0"});
  const Ran verified = bench({"ycsb", "verify"});
  EXPECT_EQ(verified.code, 0) << verified.error;
  EXPECT_NE(verified.out.find("verify: every record exists once"), std::string::npos)
      << verified.out;
  // A lost record is found.
  const Ran row = runner_.atoll({"kv", "scan", "ycsb_records", "--key-format", "hex",
                                 "--value-format", "hex", "--limit", "1"});
  ASSERT_EQ(row.code, 0) << row.error;
  const std::string key = row.out.substr(0, row.out.find('\t'));
  ASSERT_EQ(runner_.atoll({"kv", "del", "ycsb_records", key, "--key-format", "hex"}).code, 0);
  EXPECT_EQ(bench({"ycsb", "verify"}).code, 7);
  expect_ok({"ycsb", "cleanup"});
  expect_refused({"ycsb", "verify"}, "prepare` first");
  EXPECT_EQ(runner_.atoll({"storage", "ls"}).out.find("ycsb_records"), std::string::npos);
  expect_ok({"ycsb", "prepare", "--records", "100", "--storage", "array"});
}

TEST_F(BenchVerbsTest, ClientsRunSingleRecordOperationsThroughSessions) {
  const CliCluster cluster(runner_, config(2, "64MiB"));
  expect_ok({"ycsb", "prepare", "--records", "1000"});
  const std::string json = folder_.path() + "/clients.json";
  const Ran ran = bench({"ycsb", "run", "--client", "local", "--clients", "3", "--pipeline", "16",
                         "--mix", "50:30:0:0:20", "--seconds", "1", "--warmup", "0", "--json", json,
                         "--histogram", folder_.path() + "/clients.csv"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("clients: 3, each with a local session and 16 requests in flight"),
            std::string::npos)
      << ran.out;
  const Json report = read_json("clients.json");
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["config"]["client"], "local");
  for (const char* type : {"read", "update", "read_modify_write"}) {
    EXPECT_GT(report["runs"][0]["types"][type]["committed"].get<uint64_t>(), 0u) << type;
  }
  const std::string csv = read_text(folder_.path() + "/clients.csv");
  EXPECT_TRUE(csv.starts_with("type,stage,first_ns,last_ns,count\nread,commit,")) << csv;
  expect_ok({"ycsb", "verify"});
  expect_ok({"ycsb", "run", "--client", "local", "--workload", "C", "--acknowledge", "visible",
             "--seconds", "1", "--warmup", "0"});
  // 48 terminals, which think 100 ms on average, cannot send more than 480 requests per second.
  const std::string slow = folder_.path() + "/slow.json";
  expect_ok({"ycsb", "run", "--client", "local", "--clients", "3", "--pipeline", "16",
             "--think-time", "100", "--seconds", "2", "--warmup", "0", "--json", slow});
  const Json thinking = read_json("slow.json");
  ASSERT_TRUE(thinking.is_object());
  EXPECT_EQ(thinking["config"]["think_ms"], 100.0);
  EXPECT_GT(thinking["throughput_tps"].get<double>(), 0.0);
  EXPECT_LT(thinking["throughput_tps"].get<double>(), 1000.0);
  expect_refused({"ycsb", "run", "--think-time", "5"}, "jobs on the workers do not think");
  expect_refused({"ycsb", "run", "--client", "local", "--think-time", "nan"}, "out of range");
  expect_refused({"ycsb", "run", "--client", "remote"}, "use node");
  expect_refused({"ycsb", "run", "--client", "network"}, "node0 has no network port");
  expect_refused({"ycsb", "run", "--client", "local", "--key-file", "a"}, "only network clients");
  expect_refused({"ycsb", "run", "--client", "local", "--workload", "E"}, "no inserts and scans");
  expect_refused({"ycsb", "run", "--client", "local", "--pipeline", "257"}, "use 1 to 256");
  expect_refused({"ycsb", "run", "--client", "local", "--clients", "121"}, "use at most 120");
  expect_refused({"ycsb", "run", "--acknowledge", "soon"}, "use durable or visible");
}

TEST_F(BenchVerbsTest, ClientsRunBothBenchmarksOverTheNetworkWithKeys) {
  const std::string file = config(2, "128MiB");
  add_network(file);
  const CliCluster cluster(runner_, file);
  const Words network = {"--client", "network",   "--clients", "2",        "--pipeline",
                         "16",       "--seconds", "1",         "--warmup", "0"};
  const auto run = [&](const char* benchmark, const Words& more) {
    Words words = {benchmark, "run"};
    words.insert(words.end(), network.begin(), network.end());
    words.insert(words.end(), more.begin(), more.end());
    return bench(words);
  };
  expect_ok({"ycsb", "prepare", "--records", "1000"});
  const Ran ycsb = run("ycsb", {"--workload", "A", "--key-file", path("bench.key")});
  EXPECT_EQ(ycsb.code, 0) << ycsb.out << ycsb.error;
  EXPECT_NE(ycsb.out.find("clients: 2, each with a network session"), std::string::npos)
      << ycsb.out;
  expect_ok({"ycsb", "verify"});
  EXPECT_NE(run("ycsb", {}).code, 0) << "the nodes want keys";
  expect_ok({"tpcc", "prepare", "--warehouses", "2"});
  const Ran tpcc =
      run("tpcc", {"--key-file", path("bench.key"), "--verify", "--json", path("tpcc.json")});
  EXPECT_EQ(tpcc.code, 0) << tpcc.out << tpcc.error;
  const Json report = read_json("tpcc.json");
  ASSERT_TRUE(report.is_object()) << tpcc.out;
  EXPECT_EQ(report["config"]["client"], "network");
  EXPECT_EQ(report["verified"], true);
  for (const char* type : {"new_order", "payment"}) {
    EXPECT_GT(report["runs"][0]["types"][type]["committed"].get<uint64_t>(), 0u) << type;
  }
}

TEST_F(BenchVerbsTest, ABenchmarkUsesAClusterInTheNetworkByItsConnectionStrings) {
  const std::string file = config(2, "128MiB");
  add_network(file);
  const CliCluster cluster(runner_, file);
  std::vector<std::string> nodes;
  const Json status = cluster.status();
  for (const Json& process : status["processes"]) {
    if (!process.contains("network")) continue;
    nodes.push_back("atoll+tcp://" + process["network"].value("endpoint", "") +
                    "?server_key=" + process["network"].value("key", ""));
  }
  ASSERT_EQ(nodes.size(), 2u);
  // The order of the nodes has no meaning.
  const auto remote = [&](Words words, const char* client) {
    const Words more = {"--connect", nodes[1],     "--connect",
                        nodes[0],    "--key-file", path(std::string(client) + ".key")};
    words.insert(words.end(), more.begin(), more.end());
    return bench(words);
  };
  const auto expect = [](const Ran& ran, int code, const std::string& part) {
    EXPECT_EQ(ran.code, code) << ran.out << ran.error;
    EXPECT_NE((code == 0 ? ran.out : ran.error).find(part), std::string::npos)
        << part << " is missing in: " << ran.out << ran.error;
  };
  const Words run = {"ycsb", "run",      "--clients", "2",      "--seconds",
                     "1",    "--warmup", "0",         "--json", path("remote.json")};
  expect(remote(run, "bench"), 2, "run `atoll bench ycsb prepare` first");
  expect(remote({"ycsb", "prepare", "--records", "1000"}, "bench"), 1,
         "lacks the right administration");
  expect(remote({"ycsb", "prepare", "--records", "1000"}, "admin"), 0, "loaded 1,000 records");
  // A run needs no administration, but then the report has no sizes.
  for (const char* client : {"bench", "admin"}) {
    expect(remote(run, client), 0, "clients: 2, each with a network session");
    const Json report = read_json("remote.json");
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report["config"]["mode"], "network");
    EXPECT_EQ(report["config"]["durability"], "durable");
    EXPECT_EQ(report["storage_bytes"].empty(), std::string(client) == "bench") << report;
    EXPECT_GT(report["throughput_tps"].get<double>(), 0.0);
  }
  expect(remote({"ycsb", "verify"}, "admin"), 0, "verify: every record exists once");
  expect(remote({"ycsb", "verify"}, "bench"), 1, "lacks the right administration");
  expect(remote({"tpcc", "run", "--verify"}, "bench"), 2, "--verify");
  expect_ok({"ycsb", "verify", "--connect", "atoll:bench"});
  expect(remote({"ycsb", "run", "--client", "local"}, "bench"), 2, "use --client network");
  const Words admin = {"--key-file", path("admin.key")};
  expect(bench({"ycsb", "verify", "--connect", nodes[0], admin[0], admin[1]}), 2,
         "names node 1 never");
  expect(
      bench({"ycsb", "verify", "--connect", nodes[0], "--connect", nodes[0], admin[0], admin[1]}),
      2, "names node 0 twice");
  expect_refused({"ycsb", "verify", "--connect", "atoll:bench", "--connect", "atoll:bench"},
                 "needs only one");
  expect_refused({"ycsb", "--nodes", "1", "--connect", "atoll:bench"}, "excludes");
  EXPECT_EQ(bench({"ycsb", "--connect", "atoll:none"}).code, 3) << "no cluster is started";
  expect(remote({"ycsb", "cleanup"}, "admin"), 0, "dropped");
  // All phases at once.
  expect(remote({"tpcc", "--warehouses", "2", "--clients", "2", "--seconds", "1", "--warmup", "0"},
                "admin"),
         0, "verify: consistency conditions 1-12 hold");
}

TEST_F(BenchVerbsTest, ClientsRunTpccThroughLocalSessions) {
  const CliCluster cluster(runner_, config(1, "256MiB"));
  expect_ok({"tpcc", "prepare", "--warehouses", "1"});
  const std::string json = folder_.path() + "/clients.json";
  const Ran ran = bench({"tpcc", "run", "--client", "local", "--clients", "2", "--pipeline", "8",
                         "--seconds", "2", "--warmup", "0", "--verify", "--json", json});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.error;
  const Json report = read_json("clients.json");
  ASSERT_TRUE(report.is_object());
  for (const char* type : {"new_order", "payment", "order_status", "delivery", "stock_level"}) {
    EXPECT_GT(report["runs"][0]["types"][type]["committed"].get<uint64_t>(), 0u) << type;
  }
  EXPECT_GT(report["runs"][0]["delivered_orders"].get<uint64_t>(), 0u);
  const Ran thinking =
      bench({"tpcc", "run", "--client", "local", "--clients", "2", "--pipeline", "10",
             "--think-time", "0.002", "--seconds", "2", "--warmup", "0", "--verify"});
  ASSERT_EQ(thinking.code, 0) << thinking.out << thinking.error;
  EXPECT_NE(thinking.out.find("think times x 0.002: 20 terminals in all"), std::string::npos)
      << thinking.out;
  // The procedure takes no input that is not one of TPC-C.
  EXPECT_EQ(runner_.atoll({"procedure", "call", "tpcc.call", "nonsense"}).code, 1);
}

TEST_F(BenchVerbsTest, TpccThinksAndIsVerifiedByItself) {
  const CliCluster cluster(runner_, config(1, "512MiB"));
  expect_ok({"tpcc", "prepare", "--warehouses", "1"});
  const std::string json = folder_.path() + "/report.json";
  const Ran ran = bench({"tpcc", "run", "--seconds", "1", "--warmup", "0", "--json", json,
                         "--histogram", folder_.path() + "/tpcc.histogram"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.error;
  const Json histograms = read_json("tpcc.histogram");
  ASSERT_TRUE(histograms.is_object());
  uint64_t counted = 0;
  for (const Json& bucket : histograms["histograms"][0]["buckets"]) {
    EXPECT_LE(bucket[0].get<uint64_t>(), bucket[1].get<uint64_t>());
    counted += bucket[2].get<uint64_t>();
  }
  EXPECT_EQ(counted, histograms["histograms"][0]["count"].get<uint64_t>());
  Json old = read_json("report.json");
  old["runs"][0]["per_second_tps"] = {10.0, 11.0, 10.0, 11.0, 10.0};
  const std::string old_file = folder_.path() + "/old.json";
  std::ofstream(old_file) << old.dump();
  const Ran thinking = bench({"tpcc", "run", "--think-time", "0.002", "--seconds", "8", "--warmup",
                              "0", "--verify", "--compare", old_file});
  ASSERT_EQ(thinking.code, 0) << thinking.out << thinking.error;
  EXPECT_NE(thinking.out.find("think times x 0.002: 10 terminals per warehouse"),
            std::string::npos);
  EXPECT_NE(thinking.out.find("compared with " + old_file), std::string::npos) << thinking.out;
  EXPECT_NE(thinking.out.find("think_time: 0.0 -> 0.002"), std::string::npos) << thinking.out;
  expect_ok({"tpcc", "verify"});
  expect_refused({"tpcc", "run", "--think-time", "101"}, "--think-time");
  expect_refused({"tpcc", "run", "--think-time", "nan"}, "--think-time");
  expect_refused({"tpcc", "run", "--compare", "/no/such"}, "is no report of a benchmark");
  expect_refused({"tpcc", "run", "--histogram", "/no/such/x"}, "cannot be written");
  // Damage is found: a district's next order number is one too large.
  const Ran broken = runner_.atoll({"kv", "add", "tpcc_district_next", "0", "1", "--type", "u32"});
  EXPECT_EQ(broken.code, 0) << broken.error;
  const Ran verified = bench({"tpcc", "verify"});
  EXPECT_EQ(verified.code, 7) << verified.out;
  expect_ok({"tpcc", "cleanup"});
}

}  // namespace
}  // namespace atolldb::test
