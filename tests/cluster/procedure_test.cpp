// A user's procedure: built outside of the source tree, loaded by every node, and called by a
// client.
#include <gtest/gtest.h>

#include <string>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/procedure_library.h"

namespace atolldb::test {
namespace {

TEST(ProcedureLibraryTest, AProcedureBuiltOutsideOfTheTreeRunsOnEveryNode) {
  const TestFolder folder;
  const CliRunner runner(folder);
  const std::string library = build_example_procedure(runner);
  ASSERT_FALSE(library.empty());
  // The path is relative to the config file, which lies beside the library.
  const CliCluster cluster(runner,
                           runner.config("bank", "[procedures]\nlibraries = [\"transfer.so\"]"));
  const Ran list = runner.atoll({"procedure", "ls"});
  EXPECT_NE(list.out.find("transfer"), std::string::npos) << list.out << list.error;
  EXPECT_NE(list.out.find(library), std::string::npos) << list.out;

  const auto call = [&](const std::string& input, const std::string& node = "0") {
    return runner.atoll({"procedure", "call", "transfer", input, "--node", node});
  };
  const Ran early = call("1 2 100");
  EXPECT_EQ(early.code, 1);
  EXPECT_NE(early.error.find("procedure \"transfer\": storage_not_found"), std::string::npos)
      << early.error;
  ASSERT_EQ(runner
                .atoll({"storage", "create", "accounts", "--type", "array", "--payload-bytes", "8",
                        "--records", "1000"})
                .code,
            0);
  const Ran first = call("1 2 100");
  EXPECT_EQ(first.code, 0) << first.error;
  EXPECT_EQ(first.out, "-100\n");
  EXPECT_EQ(call("1 2 100", "1").out, "-200\n") << "the other node sees the same account";
  EXPECT_EQ(call("2 3 50", "1").out, "150\n");

  const Ran too_much = call("1 2 5000");
  EXPECT_EQ(too_much.code, 1);
  EXPECT_NE(too_much.error.find("user_abort"), std::string::npos) << too_much.error;
  EXPECT_EQ(call("1 2 0").out, "-200\n") << "what was rolled back has not happened";
  const Ran garbage = call("one two");
  EXPECT_EQ(garbage.code, 1);
  EXPECT_NE(garbage.error.find("invalid_argument"), std::string::npos) << garbage.error;
  EXPECT_NE(call("1 5000 1").error.find("out_of_range"), std::string::npos);
}

TEST(ProcedureLibraryTest, ALibraryThatIsNoneStopsTheStartAndIsNamed) {
  const TestFolder folder;
  const CliRunner runner(folder);
  std::ofstream(folder.path() + "/text.so") << "no library";
  const std::string file = runner.config("bad", "[procedures]\nlibraries = [\"text.so\"]");
  const Ran up = runner.atoll({"up", "-c", file});
  EXPECT_EQ(up.code, 78) << up.error;
  EXPECT_NE(up.error.find("procedures.libraries: "), std::string::npos) << up.error;
  EXPECT_NE(up.error.find("/text.so"), std::string::npos) << up.error;
  EXPECT_TRUE(processes_of("bad").empty());
}

}  // namespace
}  // namespace atolldb::test
