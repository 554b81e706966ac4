// The C client library and the Python package: exports, installation, examples, and outages of the
// cluster. client_library.c and python_client_test.py have the tests of the calls.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/procedure_library.h"

namespace atolldb::test {
namespace {

const std::string kBuild = std::string(ATOLL_BIN_DIR) + "/..";
const std::string kClientLibrary = kBuild + "/lib/libatoll_client.so.0";
const std::string kSources = ATOLL_SOURCE_DIR;

std::set<std::string> matches_in(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

/// Returns the first fenced block of a language in a Markdown file.
std::string code_block(const std::string& file, const std::string& language) {
  const std::string text = read_text(kSources + "/" + file);
  const std::string fence = "\n```" + language + "\n";
  const size_t begin = text.find(fence);
  if (begin == std::string::npos) return "";
  const size_t code = begin + fence.size();
  return text.substr(code, text.find("\n```", code) + 1 - code);
}

/// A library whose procedure has eight times its input as output.
constexpr const char* kRepeatSource = R"cpp(
#include <atoll/procedure.h>

#include <string>

  static atoll_api::Status repeat(atoll_api::Context& context) {
    std::string output;
    for (int i = 0; i < 8; ++i) output += context.input().text();
    return context.set_output(output);
  }
  ATOLL_LIBRARY(nullptr, {"repeat", repeat});
)cpp";

/// A cluster "bank" with what the programs need, and an installed client library.
class ClientLibraryTest : public ::testing::Test {
 protected:
  ClientLibraryTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  void start_cluster() {
    ASSERT_FALSE(build_example_procedure(runner_).empty());
    std::ofstream(folder_.path() + "/repeat.cpp") << kRepeatSource;
    ASSERT_FALSE(build_procedures(runner_, folder_.path() + "/repeat.cpp", "repeat").empty());
    make_keys();
    config_ = runner_.config("bank",
                             "[network]\nenabled = true\nkey_file = \"node.key\"\n"
                             "authorised_keys = \"clients\"\n"
                             "[procedures]\nlibraries = [\"transfer.so\", \"repeat.so\"]\n"
                             "max_input = \"1MiB\"\nmax_output = \"4MiB\"\n[durability]\n"
                             "mode = \"durable\"\n[gleaner]\ninterval = \"1h\"\n");
    cluster_ = std::make_unique<CliCluster>(runner_, config_);
    create_storages();
  }
  void create_storages() const {
    for (const char* tree : {"tree", "people"}) create({tree, "--type", "mastertree"});
    for (const char* array : {"array", "accounts"}) {
      create({array, "--type", "array", "--payload-bytes", "8", "--records", "1000"});
    }
    create({"heap", "--type", "sequential"});
  }
  void empty_storages() const {
    for (const char* storage : {"tree", "people", "array", "accounts", "heap"}) {
      const Ran ran = runner_.atoll({"storage", "drop", storage});
      ASSERT_EQ(ran.code, 0) << ran.error;
    }
    create_storages();
    // The procedures of a library look their storages up when it is loaded.
    const Ran reloaded = runner_.atoll({"procedure", "reload"});
    ASSERT_EQ(reloaded.code, 0) << reloaded.error;
  }
  /// Makes the keys of the nodes and of a client that may do everything.
  void make_keys() {
    const Ran of_node = runner_.atoll({"keys", "generate", folder_.path() + "/node.key"});
    const Ran of_client = runner_.atoll({"keys", "generate", folder_.path() + "/client.key"});
    ASSERT_EQ(of_node.code + of_client.code, 0) << of_node.error << of_client.error;
    std::ofstream(folder_.path() + "/clients")
        << of_client.out.substr(0, of_client.out.size() - 1) << " test read,write,procedures\n";
  }
  /// Returns the connection string of a network session with a node.
  std::string network_string(size_t node) const {
    const auto status = cluster_->status();
    for (const auto& process : status["processes"]) {
      if (process.value("role", "") != "node" + std::to_string(node)) continue;
      return "atoll+tcp://" + process["network"].value("endpoint", "") +
             "?server_key=" + process["network"].value("key", "") + "&key_file=" + folder_.path() +
             "/client.key";
    }
    ADD_FAILURE() << status;
    return "";
  }
  void create(std::vector<std::string> words) const {
    words.insert(words.begin(), {"storage", "create"});
    const Ran ran = runner_.atoll(words);
    ASSERT_EQ(ran.code, 0) << ran.error;
  }
  Ran shell(const std::string& command) const { return runner_.run("/bin/sh", {"-c", command}); }

  /// Installs the library, and compiles a C program against it. Returns the program's path.
  std::string build_program(const std::string& source, const std::string& options) const {
    const std::string prefix = folder_.path() + "/prefix";
    const Ran installed = shell("for component in client client_dev; do cmake --install " + kBuild +
                                " --component $component --prefix " + prefix + " || exit; done");
    EXPECT_EQ(installed.code, 0) << installed.out << installed.error;
    const std::string program = folder_.path() + "/program";
    const Ran compiled = shell("PKG_CONFIG_PATH=$(dirname $(find " + prefix +
                               " -name atoll_client.pc)); export PKG_CONFIG_PATH; "
                               "gcc -Wall -Wextra -Werror -O1 " +
                               options + " " + source + " $(pkg-config --cflags --libs " +
                               "atoll_client) -pthread -Wl,-rpath,$(pkg-config " +
                               "--variable=libdir atoll_client) -o " + program);
    EXPECT_EQ(compiled.code, 0) << compiled.error;
    return program;
  }

  TestFolder folder_;
  CliRunner runner_;
  std::string config_;
  std::unique_ptr<CliCluster> cluster_;
};

TEST_F(ClientLibraryTest, ItExportsTheFunctionsOfItsHeaderAndNeedsFewLibraries) {
  const std::string header = read_text(kSources + "/shared/c_client/atoll_client.h");
  const auto declared = matches_in(header, R"(ATOLL_API[^;(]*\b(atoll_\w+)\s*\()");
  EXPECT_GT(declared.size(), 60u);
  const Ran symbols = shell("nm -D --defined-only " + kClientLibrary);
  ASSERT_EQ(symbols.code, 0) << symbols.error;
  const auto exported = matches_in(symbols.out, R"( T (\w+)@@ATOLL_CLIENT_0)");
  EXPECT_EQ(exported, declared);
  // The name of the version itself is a symbol, too.
  EXPECT_EQ(matches_in(symbols.out, R"(\n?\w+ (\w) )"), (std::set<std::string>{"A", "T"}));
  const Ran dynamic = shell("readelf -d " + kClientLibrary);
  EXPECT_NE(dynamic.out.find("soname: [libatoll_client.so.0]"), std::string::npos) << dynamic.out;
  for (const std::string& needed : matches_in(dynamic.out, R"(NEEDED\).*\[(.*)\])")) {
    EXPECT_TRUE(std::regex_match(needed, std::regex(R"(lib(stdc\+\+|gcc_s|c|m)\.so\.\d+|ld-.*)")))
        << needed;
  }
}

TEST_F(ClientLibraryTest, ACProgramUsesAllCallsOfTheInstalledLibrary) {
  start_cluster();
  const std::string program = build_program(kSources + "/tests/cluster/client_library.c",
                                            "-std=c11 -pedantic -Wconversion");
  const Ran ran = runner_.run(program, {"checks", "atoll:bank"});
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_TRUE(ran.out.ends_with(" 0 failures\n")) << ran.out;
  // The same calls over the network.
  empty_storages();
  const Ran remote = runner_.run(program, {"checks", network_string(0)});
  EXPECT_EQ(remote.code, 0) << remote.error;
  EXPECT_TRUE(remote.out.ends_with(" 0 failures\n")) << remote.out;
}

TEST_F(ClientLibraryTest, TheExampleOfTheReadmePrintsWhatItSays) {
  start_cluster();
  const std::string source = folder_.path() + "/example.c";
  std::ofstream(source) << code_block("README.md", "c");
  const Ran ran = runner_.run(build_program(source, "-std=c11"), {});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "100\n");
}

TEST_F(ClientLibraryTest, ACProgramSurvivesAStopOfTheClusterAndReconnects) {
  start_cluster();
  const std::string program = build_program(kSources + "/tests/cluster/client_library.c", "");
  const std::string go = folder_.path() + "/go";
  const std::string out = folder_.path() + "/outage.out";
  const std::string error = folder_.path() + "/outage.err";
  const std::string where = "atoll://" + folder_.path() + "/atoll/bank?node=1";
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  const pid_t pid = runner_.start(
      "/bin/sh", {"-c", "exec " + program + " outage '" + where + "' <> " + go}, out, error);
  EXPECT_TRUE(eventually([&] { return read_text(out).contains("running\n"); })) << read_text(error);
  EXPECT_EQ(runner_.atoll({"down", "--now", "-c", config_}).code, 0);
  EXPECT_TRUE(eventually([&] { return read_text(out).contains("stopped\n"); })) << read_text(error);
  EXPECT_EQ(runner_.atoll({"up", "-c", config_}).code, 0);
  std::ofstream(go) << "go\n" << std::flush;
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0) << read_text(out) << read_text(error);
}

TEST_F(ClientLibraryTest, ThePythonPackageWorks) {
  start_cluster();
  // The examples of the READMEs continue the one in C.
  ASSERT_EQ(runner_.atoll({"kv", "put", "people", "alice", "100"}).code, 0);
  const Ran ran =
      shell("PYTHONPATH=" + kSources + "/shared/python/src ATOLL_CLIENT_LIBRARY=" + kClientLibrary +
            " ATOLL_PROGRAM=" + ATOLL_BIN_DIR + "/atoll ATOLL_CONFIG=" + config_ +
            " PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -W error " + kSources +
            "/tests/cluster/python_client_test.py");
  EXPECT_EQ(ran.code, 0) << "ops/setup --test installs python3-cffi\n" << ran.error;
  EXPECT_NE(ran.error.find("\nOK\n"), std::string::npos) << ran.error;
  const Ran remote =
      shell("PYTHONPATH=" + kSources + "/shared/python/src ATOLL_CLIENT_LIBRARY=" + kClientLibrary +
            " PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -W error -c 'import atoll, sys\n"
            "with atoll.connect(sys.argv[1]) as db:\n"
            "  db.put(\"people\", b\"remote\", b\"7\")\n"
            "  print(db.get(\"people\", b\"remote\"))' '" +
            network_string(1) + "'");
  EXPECT_EQ(remote.out, "b'7'\n") << remote.error;
}

}  // namespace
}  // namespace atolldb::test
