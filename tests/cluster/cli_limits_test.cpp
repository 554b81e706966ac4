// Command line arguments at and past their limits. The last valid value is accepted, the first
// invalid one is refused with an error that names it. The cluster continues in both cases.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/array/array.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "shared/message/control_client.h"
#include "soc/procedure/procedure.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/procedure_library.h"

namespace atolldb::test {
namespace {

using Words = std::vector<std::string>;

struct Case {
  Words arguments;
  int code;             // 0: accepted
  std::string message;  // a part of standard error
};

std::string text_of(uint64_t number) { return std::to_string(number); }

Words create(const std::string& name, const std::string& type, const Words& more = {}) {
  Words words = {"storage", "create", "--type", type};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--", name});
  return words;
}

Words create_array(const std::string& name, const std::string& payload,
                   const std::string& records) {
  return create(name, "array", {"--payload-bytes", payload, "--records", records});
}

class CliLimitsTest : public ::testing::Test {
 protected:
  CliLimitsTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  void expect(const Case& wanted) const {
    std::string line = "atoll";
    for (const std::string& word : wanted.arguments) line += " " + word.substr(0, 80);
    const Ran ran = runner_.atoll(wanted.arguments);
    EXPECT_EQ(ran.code, wanted.code) << line << "\n" << ran.error;
    EXPECT_NE(ran.error.find(wanted.message), std::string::npos)
        << line << ": expected \"" << wanted.message << "\" in\n"
        << ran.error;
    if (wanted.code == 0) return;
    EXPECT_TRUE(ran.error.starts_with("atoll: ") || wanted.code == 78) << line << "\n" << ran.error;
    EXPECT_EQ(ran.out, "") << line;
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(CliLimitsTest, StorageNamesAndSizesAreTakenUpToTheirLimitsAndRefusedPastThem) {
  const CliCluster cluster(runner_, runner_.config("limits", "", 1));
  const std::string longest(kMaxStorageName, 'n');
  const std::string name_rule = "its name must have 1 to 63 letters, digits";
  const Case cases[] = {
      {create(longest, "mastertree"), 0, ""},
      {create(longest + "n", "mastertree"), 2, name_rule},
      {create("", "mastertree"), 2, ""},
      {create("a/b", "mastertree"), 2, name_rule},
      {create("a b", "mastertree"), 2, name_rule},
      {create("a\nb", "mastertree"), 2, name_rule},
      {create("\xc3\xa4", "mastertree"), 2, name_rule},
      {create("\xff", "mastertree"), 2, name_rule},
      {create("-x", "sequential"), 0, ""},
      {create("h", "hash"), 0, ""},
      {create("t", "hashed"), 2, "hashed"},
      {create("t", "Array"), 2, "Array"},
      {create("t", ""), 2, "--type"},

      {create_array("a1", "1", "1"), 0, ""},
      {create_array("a2", text_of(Array::kMaxPayloadBytes), text_of(Array::kMaxRecords)), 0, ""},
      {create("a3", "array"), 2, "0 records: an array has 1 to " + text_of(Array::kMaxRecords)},
      {create_array("a3", "8", "0"), 2, "0 records"},
      {create_array("a3", "8", text_of(Array::kMaxRecords + 1)), 2, "an array has 1 to"},
      {create_array("a3", "0", "1"), 2,
       "0 bytes a record: an array's have 1 to 2000: give --payload-bytes"},
      {create_array("a3", text_of(Array::kMaxPayloadBytes + 1), "1"), 2,
       "more than the limit of " + text_of(Array::kMaxPayloadBytes)},
      {create_array("a3", "4294967297", "1"), 2,
       "4294967297 bytes a record: more than"},  // 2^32 + 1: in 32 bits this would be a valid 1
      {create_array("a3", "8", "18446744073709551616"), 2, "an array has 1 to"},
      {create_array("a3", "8", "-1"), 2, "--records"},
      {create_array("a3", "8", "ten"), 2, "--records"},
      {create_array("a3", "8", "1.5"), 2, "--records"},
      {create_array("a3", "", "1"), 2, "--payload-bytes"},

      {create("m1", "mastertree", {"--payload-bytes", text_of(MasterTree::kMaxPayloadBytes)}), 0,
       ""},
      {create("m2", "mastertree", {"--payload-bytes", text_of(MasterTree::kMaxPayloadBytes + 1)}),
       2, "more than the limit of " + text_of(MasterTree::kMaxPayloadBytes)},
      {create("m2", "mastertree", {"--records", "1"}), 2,
       "1 records: only arrays have a fixed number"},
      {create("s1", "sequential", {"--payload-bytes", text_of(Sequential::kMaxPayloadBytes)}), 0,
       ""},
      {create("s2", "sequential", {"--payload-bytes", text_of(Sequential::kMaxPayloadBytes + 1)}),
       2, "more than the limit of " + text_of(Sequential::kMaxPayloadBytes)},
      {create("s2", "sequential", {"--records", "1"}), 2,
       "1 records: only arrays have a fixed number"},

      {create("a1", "sequential"), 1, "storage \"a1\": exists already"},
      {{"storage", "describe", longest + "n"}, 1, "does not exist"},
      {{"storage", "describe", "\xff"}, 1, "does not exist"},
      {{"storage", "drop", ""}, 1, "does not exist"},
      {{"storage", "drop", "a1", "a2"}, 2, "a2"},
      {{"storage", "drop", "a1"}, 0, ""},
      {{"storage", "drop", "a1"}, 1, "storage \"a1\": does not exist"},
      {{"storage", "describe", "a1"}, 1, "does not exist"},
  };
  for (const Case& wanted : cases) expect(wanted);
  EXPECT_EQ(cluster.status()["healthy"], true);
  EXPECT_EQ(cluster.status()["storages"].size(), 6u);
}

TEST_F(CliLimitsTest, AFullCatalogSaysSoAndTakesANewOneAfterADrop) {
  const CliCluster cluster(runner_, runner_.config("full", "", 1));
  const auto endpoints =
      nlohmann::json::parse(read_text(folder_.path() + "/atoll/full/endpoints.json"));
  const ControlClient client(endpoints.at("coordinator_endpoint").get<std::string>());
  for (uint32_t i = 0; i < kMaxStorages; ++i) {
    const auto created =
        client.call(ControlOperation::storage_create,
                    {{"name", "s" + text_of(i)}, {"type", "sequential"}}, std::chrono::seconds(10));
    ASSERT_TRUE(created) << created.error().message;
  }
  expect({create("more", "sequential"), 6, "all 1024 places are taken: drop one first"});
  expect({{"storage", "drop", "s7"}, 0, ""});
  expect({create("more", "sequential"), 0, ""});
  const Ran list = runner_.atoll({"storage", "ls", "--json"});
  EXPECT_EQ(nlohmann::json::parse(list.out)["storages"].size(), kMaxStorages);
}

TEST_F(CliLimitsTest, ProcedureNamesNodesAndInputsHaveLimitsThatAreNamed) {
  ASSERT_FALSE(build_example_procedure(runner_).empty());
  const CliCluster cluster(runner_, runner_.config("calls",
                                                   "[procedures]\nlibraries = [\"transfer.so\"]\n"
                                                   "max_input = \"2MiB\"\nmax_output = \"2MiB\"",
                                                   1));
  constexpr size_t kMostInput = size_t{2} << 20;
  const auto file_of = [&](size_t bytes) {
    std::string path = folder_.path() + "/input" + text_of(bytes);
    std::ofstream(path) << std::string(bytes, ' ');
    return path;
  };
  const auto call = [](const std::string& name, const Words& more = {}) {
    Words words = {"procedure", "call", name};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Case cases[] = {
      // The command accepts blank input. The procedure then refuses it, because there is no storage
      // yet.
      {call("transfer", {"--input-file", file_of(kMostInput)}), 1,
       "procedure \"transfer\": storage_not_found"},
      {call("transfer", {"--input-file", file_of(kMostInput + 1)}), 2,
       "is longer than the limit of 2097152 bytes: raise procedures.max_input"},
      {call("transfer", {"--input-file", file_of(size_t{17} << 20)}), 2,
       "is longer than the limit"},
      {call("transfer", {"--input-file", "/dev/zero"}), 2, "limit"},
      {call("transfer", {"--input-file", folder_.path()}), 2, "cannot be read"},
      {call("transfer"), 1, "storage_not_found"},
      {call("transfer", {""}), 1, "storage_not_found"},
      {call("Transfer"), 1, "procedure \"Transfer\": unknown: `atoll procedure ls` lists"},
      {call(""), 1, "unknown"},
      {call(std::string(kMaxProcedureName + 1, 'p')), 1, "unknown"},
      {call(std::string(100'000, 'p')), 1, "unknown"},
      {call("\xff"), 1, "unknown"},
      {call("tpcc.load"), 1, "procedure \"tpcc.load\": is a job"},
      {call("transfer", {"--node", "1"}), 2, "--node 1: cluster \"calls\" has nodes 0 to 0"},
      {call("transfer", {"--node", "-1"}), 2, "--node"},
      {call("transfer", {"--node", "4294967296"}), 2, "--node"},
      {call("transfer", {"a", "b"}), 2, "b"},
  };
  for (const Case& wanted : cases) expect(wanted);
  EXPECT_EQ(cluster.status()["healthy"], true);
}

TEST_F(CliLimitsTest, ConfigFilesThatAreNoneAreRefusedByName) {
  const std::string folder = folder_.path();
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
    return folder + "/" + name;
  };
  const std::string large = write("large.toml", std::string((1u << 20) + 1, '#'));
  const std::string binary = write("binary.toml", std::string("\0\xff\x80[", 4));
  const std::string open = write("open.toml", "[cluster]\nname = \"unfinished\n");
  const std::string name32 = "[cluster]\nname = \"" + std::string(32, 'c') + "\"\n";
  const std::string name33 = "[cluster]\nname = \"" + std::string(33, 'c') + "\"\n";
  const Case cases[] = {
      {{"config", "check", large}, 78, "large.toml"},
      {{"config", "check", binary}, 78, "binary.toml"},
      {{"config", "check", open}, 78, "open.toml:2:"},
      {{"config", "check", folder}, 78, folder},
      {{"config", "check", ""}, 78, ""},
      {{"config", "check", write("name32.toml", name32)}, 0, ""},
      {{"config", "check", write("name33.toml", name33)}, 78, "cluster.name"},
      {{"config", "check", large, large}, 2, "large.toml"},
      {{"up", "-c", binary}, 78, "binary.toml"},
      {{"up", "-c", folder}, 78, folder},
      {{"status", "-c", binary}, 78, "binary.toml"},
      {{"down", "-c", folder + "/none.toml"}, 78, "none.toml"},
      {{"up", "--cluster", std::string(33, 'c')}, 2, "expected"},
      {{"up", "--cluster", "a\nb"}, 2, "expected"},
      {{"status", "--cluster", "../up"}, 2, "expected"},
      {{"status", "--cluster", "\xff"}, 2, ""},
      {{"logs", "-n", "1000001"}, 2, "1000000"},
      {{"logs", "-n", "-1"}, 2, "--lines"},
      {{"up", "now"}, 2, "now"},
  };
  for (const Case& wanted : cases) expect(wanted);
}

TEST_F(CliLimitsTest, OneNodeTooFewOrTooManyAWorkerTooManyAreConfigErrors) {
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name) << text;
    return folder_.path() + "/" + name;
  };
  const Case cases[] = {
      {{"up", "-c", file("none.toml", "[nodes]\ncount = 0\n")}, 78, "nodes.count"},
      {{"up", "-c", file("many.toml", "[nodes]\ncount = 256\n")}, 78, "nodes.count"},
      {{"up", "-c", file("slots.toml", "[[node]]\nworkers = 251\n")}, 78, "workers"},
      {{"up", "-c", file("bytes.toml", "[[node]]\nworkers = 256\n")}, 78, "workers"},
      {{"up", "-c", file("cpu.toml", "[[node]]\ncpus = [8191]\n")}, 78, "cpus"},
      {{"up", "-c", file("pool.toml", "[memory]\nvolatile_pool = \"8TiB\"\n")},
       78,
       "volatile_pool"},
  };
  for (const Case& wanted : cases) expect(wanted);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/atoll/atoll"));
}

}  // namespace
}  // namespace atolldb::test
