// A user's procedures: built against an installed Atoll, loaded by every node, called by clients,
// and replaced while the cluster runs.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "shared/client/session_client.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/procedure_library.h"
#include "tests/support/eventually.h"

namespace atolldb::test {
namespace {

/// Compiled with -DVERSION=..., and others.
constexpr const char* kVersionSource = R"cpp(
#include <atoll/procedure.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

  using namespace atoll_api;

  static Array accounts;

  static Status on_load(Library& library) {
#ifdef FAILS
    static_cast<void>(library.set_message("it has no licence"));
    return Status::invalid_argument;
#endif
    return library.find("accounts", accounts);
  }

  // Counts its commits in record 1.
  static Status version(Context& context) {
    const Status counted = accounts.increment(context.transaction(), 1, int64_t{1});
    return counted == Status::ok ? context.set_output(VERSION) : counted;
  }

  // Input: a file to create, a blank, and a file to wait for.
  static Status wait(Context& context) {
    const std::string input(context.input().text());
    const size_t blank = input.find(' ');
    close(open(input.substr(0, blank).c_str(), O_CREAT | O_WRONLY, 0600));
    while (access(input.c_str() + blank + 1, F_OK) != 0) usleep(1000);
    return context.set_output(VERSION);
  }

#ifndef LIST
#define LIST \
    {"version", version}, { "wait", wait }
#endif
  ATOLL_LIBRARY(on_load, LIST);
)cpp";

constexpr const char* kFutureSource = R"cpp(
#include <atoll/procedure.h>
  using namespace atoll_api::abi;
  extern "C" const LibraryDescription atoll_library;
  const LibraryDescription atoll_library = {kMagic, kAbiMajor, MINOR, 0, nullptr, nullptr};
)cpp";

/// A library of minor version 1. It calls the last function that its version has.
constexpr const char* kFirstMinorSource = R"cpp(
#include <atoll/procedure.h>
  using namespace atoll_api;
  static Mastertree counts;
  static Status on_load(Library& library) { return library.find("counts", counts); }
  static Status count(Context& context) {
    return counts.add(context.transaction(), context.input().bytes(), int64_t{5});
  }
  static void prefetch(Prefetch& prefetch) {
    const Bytes key = prefetch.input();
    prefetch.records(counts, &key, 1);
  }
  static const Procedure procedures[] = {{"first", count, Isolation::serializable, prefetch},
                                         {"second", count, Isolation::serializable, nullptr}};
  extern "C" const abi::LibraryDescription atoll_library;
  const abi::LibraryDescription atoll_library = {abi::kMagic, abi::kAbiMajor, 1,
                                                 2,           procedures,     on_load};
)cpp";

/// A library of minor version 0, whose procedures have no prefetch functions.
constexpr const char* kOldSource = R"cpp(
#include <atoll/procedure.h>
  using namespace atoll_api;
  struct OldProcedure {
    const char* name;
    ProcedureFunction function;
    Isolation isolation;
  };
  static Status first(Context& context) { return context.set_output("1"); }
  static Status second(Context& context) { return context.set_output("2"); }
  static const OldProcedure procedures[] = {{"first", first, Isolation::serializable},
                                            {"second", second, Isolation::snapshot}};
  extern "C" const abi::LibraryDescription atoll_library;
  const abi::LibraryDescription atoll_library = {
      abi::kMagic, abi::kAbiMajor, 0, 2, reinterpret_cast<const Procedure*>(procedures), nullptr};
)cpp";

/// Input: a key. Adds 5 to its number, which need not exist, and counts the records by a batch.
constexpr const char* kCountSource = R"cpp(
#include <atoll/procedure.h>

#include <string>

  using namespace atoll_api;
  static Mastertree counts;
  static Status on_load(Library& library) { return library.find("counts", counts); }

  static Status count(Context& context) {
    const Transaction txn = context.transaction();
    const Status added = counts.add(txn, context.input().bytes(), int64_t{5});
    if (added != Status::ok) return added;
    Rows<8, 8> rows;
    Cursor cursor(counts, txn);
    const Status found = cursor.next_many(rows);
    if (found != Status::ok) return found;
    std::string output;
    for (uint32_t i = 0; i < rows.size(); ++i) {
      int64_t number = 0;
      __builtin_memcpy(&number, rows.payload(i).data(), 8);
      output += std::string(rows.key(i).text()) + "=" + std::to_string(number) + " ";
    }
    return context.set_output(output);
  }
  ATOLL_LIBRARY(on_load, {"count", count});
)cpp";

/// `echo` returns its input, and `twice` returns it two times.
constexpr const char* kEchoSource = R"cpp(
#include <atoll/procedure.h>

#include <cstdio>
#include <fstream>
#include <string>

  using namespace atoll_api;
  static Status echo(Context& context) { return context.set_output(context.input().bytes()); }
  static Status twice(Context& context) {
    const std::string text(context.input().text());
    return context.set_output(text + text);
  }
  // Replaces the file that the input names by an empty one, and fails.
  static Status replace(Context& context) {
    const std::string path(context.input().text());
    std::rename(path.c_str(), (path + ".old").c_str());
    std::ofstream made(path);
    return Status::invalid_argument;
  }
  // Adds a byte to the file that the input names, and fails.
  static Status grow(Context& context) {
    std::ofstream(std::string(context.input().text()), std::ios::app) << "x";
    return Status::invalid_argument;
  }
  ATOLL_LIBRARY(nullptr, {"echo", echo}, {"twice", twice}, {"replace", replace}, {"grow", grow});
)cpp";

class ProcedureLibraryTest : public ::testing::Test {
 protected:
  ProcedureLibraryTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  Ran shell(const std::string& command) const { return runner_.run("/bin/sh", {"-c", command}); }
  Ran call(const std::string& name, const std::string& input, const std::string& node = "0") const {
    return runner_.atoll({"procedure", "call", name, input, "--node", node});
  }
  void create_accounts() const {
    const Ran created = runner_.atoll({"storage", "create", "accounts", "--type", "array",
                                       "--payload-bytes", "8", "--records", "1000"});
    ASSERT_EQ(created.code, 0) << created.error;
  }
  /// Compiles a source into `<name>.so`.
  std::string compile(const char* source, const std::string& name,
                      const std::vector<std::string>& options) const {
    const std::string file = folder_.path() + "/" + name + ".cpp";
    std::ofstream(file) << source;
    return build_procedures(runner_, file, name, options);
  }
  std::string compile_version(const std::string& name, const std::string& version,
                              std::vector<std::string> options = {}) const {
    options.push_back("-DVERSION=\"" + version + "\"");
    return compile(kVersionSource, name, options);
  }
  /// Compiles kEchoSource. Returns the config file of a cluster that loads it. `keys`: more keys of
  /// the section `procedures`.
  std::string echo_config(const std::string& keys = "") const {
    EXPECT_FALSE(compile(kEchoSource, "echo", {}).empty());
    return runner_.config("bank", "[procedures]\nlibraries = [\"echo.so\"]\n" + keys, 1);
  }
  /// Builds the procedures of orders. Returns the config file of a cluster that loads them.
  std::string build_shop() const {
    const std::string source =
        std::string(ATOLL_SOURCE_DIR) + "/bench/example_procedure/orders.cpp";
    EXPECT_FALSE(build_procedures(runner_, source, "orders").empty());
    return runner_.config("shop", "[procedures]\nlibraries = [\"orders.so\"]");
  }
  /// Creates the storages of the shop.
  void create_shop(const std::string& branches) const {
    const auto create = [&](const std::vector<std::string>& words) {
      std::vector<std::string> all = {"storage", "create"};
      all.insert(all.end(), words.begin(), words.end());
      ASSERT_EQ(runner_.atoll(all).code, 0);
    };
    create({"branches", "--type", "array", "--payload-bytes", "8", "--records", branches});
    create({"stock", "--type", "array", "--payload-bytes", "8", "--records", "1000"});
    create({"orders", "--type", "mastertree"});
  }

  const TestFolder folder_;
  const CliRunner runner_;
};

TEST_F(ProcedureLibraryTest, TheExampleIsBuiltAgainstAnInstalledAtollAndRunsOnEveryNode) {
  const std::string prefix = folder_.path() + "/prefix";
  const Ran built =
      shell("set -e; cmake --install " ATOLL_BIN_DIR "/.. --component dev --prefix " + prefix +
            "; cp -r " ATOLL_SOURCE_DIR "/bench/example_procedure " + folder_.path() +
            "/example; " + "cmake -S " + folder_.path() + "/example -B " + folder_.path() +
            " -DCMAKE_PREFIX_PATH=" + prefix + "; cmake --build " + folder_.path());
  ASSERT_EQ(built.code, 0) << built.out << built.error;
  // pkg-config gives options that suffice, too. The headers need C++17, and no other header.
  const Ran by_hand = shell(
      "set -e; PKG_CONFIG_PATH=$(dirname $(find " + prefix + " -name atoll_procedure.pc)); " +
      "export PKG_CONFIG_PATH; g++ -fsyntax-only -Wall -Wextra -Wshadow -Wconversion -Werror " +
      "-pedantic $(pkg-config --cflags atoll_procedure) " + folder_.path() +
      "/example/*.cpp; grep -rh '#include' " + prefix +
      "/include/atoll | grep -v '<[a-z_]*>$' | grep -v '<atoll/[a-z]*.h>$' || true");
  EXPECT_EQ(by_hand.code, 0) << by_hand.error;
  EXPECT_EQ(by_hand.out, "");

  // The path is relative to the config file, which lies beside the library.
  const CliCluster cluster(runner_,
                           runner_.config("bank", "[procedures]\nlibraries = [\"transfer.so\"]"));
  const Ran list = runner_.atoll({"procedure", "ls"});
  EXPECT_NE(list.out.find("transfer"), std::string::npos) << list.out << list.error;
  EXPECT_NE(list.out.find(folder_.path() + "/transfer.so"), std::string::npos) << list.out;
  const Ran early = call("transfer", "1 2 100");
  EXPECT_EQ(early.code, 1);
  EXPECT_NE(early.error.find("procedure \"transfer\": storage_not_found"), std::string::npos)
      << early.error;
  EXPECT_NE(early.error.find("storage \"accounts\" of type array: there is none"),
            std::string::npos)
      << early.error;
  create_accounts();
  const Ran first = call("transfer", "1 2 100");
  EXPECT_EQ(first.code, 0) << first.error;
  EXPECT_EQ(first.out, "-100\n");
  EXPECT_EQ(call("transfer", "1 2 100", "1").out, "-200\n") << "both nodes see the same account";
  EXPECT_EQ(call("transfer", "2 3 50", "1").out, "150\n");
  const Ran too_much = call("transfer", "1 2 5000");
  EXPECT_EQ(too_much.code, 1);
  EXPECT_NE(too_much.error.find("user_abort"), std::string::npos) << too_much.error;
  EXPECT_EQ(call("transfer", "1 2 0").out, "-200\n") << "what was rolled back has not happened";
  EXPECT_NE(call("transfer", "one two").error.find("invalid_argument"), std::string::npos);
  EXPECT_NE(call("transfer", "1 5000 1").error.find("out_of_range"), std::string::npos);
}

TEST_F(ProcedureLibraryTest, ALibraryThatIsNoneOrOfAnotherVersionStopsTheStartAndIsNamed) {
  std::ofstream(folder_.path() + "/text.so") << "no library";
  compile(kFutureSource, "newer", {"-DMINOR=kAbiMinor + 1"});
  compile_version("refused", "1", {"-DFAILS"});
  const auto expect_refused = [&](const std::string& library, const std::string& why) {
    const std::string file =
        runner_.config("bad", "[procedures]\nlibraries = [\"" + library + "\"]");
    const Ran up = runner_.atoll({"up", "-c", file});
    EXPECT_EQ(up.code, 78) << up.error;
    EXPECT_NE(up.error.find("procedures.libraries: "), std::string::npos) << up.error;
    EXPECT_NE(up.error.find("/" + library), std::string::npos) << up.error;
    EXPECT_NE(up.error.find(why), std::string::npos) << up.error;
    EXPECT_TRUE(processes_of("bad").empty());
  };
  expect_refused("text.so", "cannot be loaded: ");
  expect_refused("absent.so", "No such file or directory");
  expect_refused("newer.so",
                 "it was built for version 1.3 of the procedure ABI, this node has version 1.2: "
                 "build it again with the headers of this Atoll");
  expect_refused("refused.so", "its load function returned invalid_argument: it has no licence");
}

TEST_F(ProcedureLibraryTest, ALibraryOfAnOlderMinorVersionRuns) {
  ASSERT_FALSE(compile(kOldSource, "old", {}).empty());
  const CliCluster cluster(runner_,
                           runner_.config("bank", "[procedures]\nlibraries = [\"old.so\"]"));
  EXPECT_EQ(call("first", "").out, "1\n");
  // Its isolation is `snapshot`, and this cluster takes no snapshots.
  const Ran second = call("second", "");
  EXPECT_NE(second.error.find("snapshot_not_found"), std::string::npos) << second.error;
}

TEST_F(ProcedureLibraryTest, ALibraryOfTheMinorVersionWithPrefetchFunctionsRuns) {
  ASSERT_FALSE(compile(kFirstMinorSource, "old", {}).empty());
  const CliCluster cluster(runner_,
                           runner_.config("bank", "[procedures]\nlibraries = [\"old.so\"]"));
  const Ran created = runner_.atoll({"storage", "create", "counts", "--type", "mastertree"});
  ASSERT_EQ(created.code, 0) << created.error;
  EXPECT_EQ(call("first", "alice").code, 0);
  EXPECT_EQ(call("second", "alice", "1").code, 0);
  EXPECT_EQ(runner_.atoll({"kv", "get", "counts", "alice", "--value-format", "i64"}).out, "10\n");
}

/// The stock, the numbers and the lines of orders, as each procedure of the example leaves them.
TEST_F(ProcedureLibraryTest, TheOrdersOfTheExampleKeepTheStock) {
  const CliCluster cluster(runner_, build_shop());
  create_shop("100");
  const auto left = [&](const std::string& item) {
    return runner_.atoll({"kv", "get", "stock", item, "--value-format", "i64"}).out;
  };
  for (const char* item : {"5", "6", "7", "999"}) {
    ASSERT_EQ(runner_.atoll({"kv", "add", "stock", item, "20"}).code, 0);
  }
  EXPECT_EQ(call("order", "1 5:3 999:20 6:1").out, "0\n");
  EXPECT_EQ(call("order", "1 5:1 5:2", "1").out, "1\n") << "one item twice";
  EXPECT_EQ(call("order", "2 6:1", "1").out, "0\n") << "each branch has its own numbers";
  EXPECT_EQ(left("5") + left("6") + left("999"), "14\n18\n0\n");
  // What is rolled back has not happened: neither to the stock nor to the number of the branch.
  EXPECT_NE(call("order", "1 5:1 999:1").error.find("user_abort"), std::string::npos);
  EXPECT_NE(call("order", "1 5:1 1000:1").error.find("out_of_range"), std::string::npos);
  EXPECT_NE(call("order", "100 5:1").error.find("out_of_range"), std::string::npos);
  std::string longest = "3";
  for (int i = 0; i < 15; ++i) longest += " 7:1";
  EXPECT_EQ(call("order", longest).out, "0\n");
  for (const std::string& input :
       {std::string("1"), std::string("1 5"), std::string("1 5:0"), std::string("1 5:-1"),
        std::string("one 5:1"), std::string("1 :3"), std::string("1 -5:3"), std::string(" 5:1"),
        longest + " 7:1"}) {
    EXPECT_NE(call("order", input).error.find("invalid_argument"), std::string::npos) << input;
  }
  EXPECT_EQ(left("5"), "14\n");
  EXPECT_EQ(call("cancel", "1 0").out, "3\n");
  EXPECT_NE(call("cancel", "1 0").error.find("not_found"), std::string::npos);
  EXPECT_EQ(left("5") + left("6") + left("999"), "17\n19\n20\n");
  EXPECT_EQ(call("order", "1 5:1", "1").out, "2\n");
}

/// Branches and numbers that do not fit into a key must not lead to an order of another branch.
TEST_F(ProcedureLibraryTest, OrdersOfTheExampleWithTooLargeNumbersAreRefused) {
  const CliCluster cluster(runner_, build_shop());
  create_shop("65537");
  ASSERT_EQ(runner_.atoll({"kv", "add", "stock", "5", "20"}).code, 0);
  EXPECT_EQ(call("order", "0 5:1").out, "0\n");
  EXPECT_EQ(call("order", "1 5:1").out, "0\n");
  const auto expect_refused = [&](const char* procedure, const std::string& input,
                                  const std::string& status) {
    EXPECT_NE(call(procedure, input).error.find(status), std::string::npos) << input;
  };
  expect_refused("order", "65536 5:1", "out_of_range");
  expect_refused("order", "18446744073709551616 5:1", "invalid_argument");
  expect_refused("cancel", "0 1099511627776", "out_of_range");
  expect_refused("cancel", "65536 0", "out_of_range");
  expect_refused("cancel", "1 0 0", "invalid_argument");
  expect_refused("cancel", "1", "invalid_argument");
  // The last order of a branch.
  ASSERT_EQ(runner_.atoll({"kv", "add", "branches", "65535", "1099511627775"}).code, 0);
  EXPECT_EQ(call("order", "65535 5:1").out, "1099511627775\n");
  expect_refused("order", "65535 5:1", "out_of_range");
  EXPECT_EQ(call("cancel", "65535 1099511627775").out, "1\n");
  EXPECT_EQ(call("cancel", "0 0").out, "1\n");
  EXPECT_EQ(call("cancel", "1 0").out, "1\n");
  EXPECT_EQ(runner_.atoll({"kv", "get", "stock", "5", "--value-format", "i64"}).out, "20\n");
}

TEST_F(ProcedureLibraryTest, ALibraryAddsToNumbersAndReadsABatchOfRows) {
  ASSERT_FALSE(compile(kCountSource, "count", {}).empty());
  const std::string file = runner_.config("bank", "[procedures]\nlibraries = [\"count.so\"]\n");
  const CliCluster cluster(runner_, file);
  const Ran created = runner_.atoll({"storage", "create", "counts", "--type", "mastertree"});
  ASSERT_EQ(created.code, 0) << created.error;
  EXPECT_EQ(call("count", "alice").out, "alice=5 \n");
  EXPECT_EQ(call("count", "bob", "1").out, "alice=5 bob=5 \n");
  EXPECT_EQ(call("count", "alice", "1").out, "alice=10 bob=5 \n");
}

TEST_F(ProcedureLibraryTest, CallsCarryInputsAndOutputsOfTheLimitsOfTheCluster) {
  const CliCluster cluster(runner_, echo_config("max_input = \"3MiB\"\nmax_output = \"4MiB\""));
  std::string bytes(size_t{3} << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((i * 31) ^ (i >> 11));
  const std::string in = folder_.path() + "/in";
  const std::string out = folder_.path() + "/out";
  const auto call_file = [&](const std::string& name, const std::string& to) {
    return runner_.atoll({"procedure", "call", name, "--input-file", in, "--output", to});
  };
  std::ofstream(in, std::ios::binary) << bytes;
  const Ran longest = call_file("echo", out);
  EXPECT_EQ(longest.code, 0) << longest.error;
  EXPECT_EQ(longest.out, "");
  EXPECT_TRUE(read_text(out) == bytes) << "the output differs";
  EXPECT_TRUE(runner_.atoll({"procedure", "call", "echo", "--input-file", in}).out == bytes);
  const Ran piped =
      shell("cat " + in +
            " | " ATOLL_BIN_DIR "/atoll procedure call echo --input-file - --output " + out + "2");
  EXPECT_EQ(piped.code, 0) << piped.error;
  EXPECT_TRUE(read_text(out + "2") == bytes) << "the output differs";

  // A failed call leaves the file as it was.
  const Ran too_long = call_file("twice", out);
  EXPECT_EQ(too_long.code, 1);
  EXPECT_NE(
      too_long.error.find("6291456 bytes is longer than 4194304: raise procedures.max_output"),
      std::string::npos)
      << too_long.error;
  EXPECT_TRUE(read_text(out) == bytes);
  EXPECT_EQ(call_file("twice", out + "3").code, 1);
  EXPECT_FALSE(std::filesystem::exists(out + "3"));
  const Ran nowhere = call_file("echo", folder_.path() + "/none/out");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.error.find("cannot be opened"), std::string::npos) << nowhere.error;
  EXPECT_NE(nowhere.error.find("the procedure was not called"), std::string::npos) << nowhere.error;
  const Ran full = call_file("echo", "/dev/full");
  EXPECT_EQ(full.code, 10);
  EXPECT_NE(full.error.find("the procedure has committed"), std::string::npos) << full.error;
  EXPECT_EQ(runner_.atoll({"procedure", "call", "echo", "short", "--output", out}).code, 0);
  EXPECT_EQ(read_text(out), "short") << "a shorter output replaces the whole file";
}

TEST_F(ProcedureLibraryTest, AFailedCallRemovesOnlyAnEmptyFileOfItsOwn) {
  const CliCluster cluster(runner_, echo_config());
  const std::string out = folder_.path() + "/out";
  const auto call_on = [&](const std::string& name) {
    return runner_.atoll({"procedure", "call", name, out, "--output", out}).code;
  };
  EXPECT_EQ(call_on("replace"), 1);
  EXPECT_TRUE(std::filesystem::exists(out)) << "it is another file";
  EXPECT_TRUE(std::filesystem::exists(out + ".old"));
  std::filesystem::remove(out);
  EXPECT_EQ(call_on("grow"), 1);
  EXPECT_EQ(read_text(out), "x");
}

TEST_F(ProcedureLibraryTest, LostOutputsOfCommittedCallsAreReported) {
  const CliCluster cluster(runner_, echo_config("max_input = \"3MiB\""));
  const std::string in = folder_.path() + "/in";
  const std::string out = folder_.path() + "/out";
  std::ofstream(in, std::ios::binary) << std::string(size_t{3} << 20, 'x');
  const std::string call_echo = ATOLL_BIN_DIR "/atoll procedure call echo ";
  for (const char* how : {"short", "short --json", "short --output -"}) {
    const Ran full = shell(call_echo + how + " > /dev/full");
    EXPECT_EQ(full.code, 10) << full.error;
    EXPECT_NE(full.error.find("the procedure has committed"), std::string::npos) << full.error;
  }
  EXPECT_EQ(runner_.atoll({"procedure", "call", "echo", "short", "--output", "-"}).out, "short\n");
  const Ran json = runner_.atoll({"procedure", "call", "echo", "short", "--output", "-", "--json"});
  EXPECT_NE(json.out.find("\"output\": \"short\""), std::string::npos) << json.out;
  EXPECT_FALSE(std::filesystem::exists("-"));
  // The limit is less than the output. Without the trap, the signal would end the command.
  const Ran part = shell("trap '' XFSZ; ulimit -f 1024; " + call_echo + "--input-file " + in +
                         " --output " + out);
  EXPECT_EQ(part.code, 1) << part.error;
  EXPECT_NE(part.error.find("the file has the first "), std::string::npos) << part.error;
  EXPECT_GT(std::filesystem::file_size(out), 0u) << "the part stays";
}

/// A cluster of two nodes with the library bank.so, which returns "1".
class ProcedureReloadTest : public ProcedureLibraryTest {
 protected:
  void start() {
    library_ = compile_version("bank", "1");
    ASSERT_FALSE(library_.empty());
    const std::string file = runner_.config("bank", "[procedures]\nlibraries = [\"bank.so\"]\n");
    cluster_ = std::make_unique<CliCluster>(runner_, file);
    create_accounts();
    ASSERT_EQ(call("version", "", "0").out, "1\n");
    ASSERT_EQ(call("version", "", "1").out, "1\n");
  }
  /// Writes into the library's own file, as `cp` does.
  void overwrite(const std::string& other) const {
    std::ifstream from(folder_.path() + "/" + other + ".so", std::ios::binary);
    ASSERT_TRUE(from.is_open());
    std::ofstream(library_, std::ios::binary | std::ios::trunc) << from.rdbuf();
  }
  Ran reload(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"procedure", "reload"};
    words.insert(words.end(), more.begin(), more.end());
    return runner_.atoll(words);
  }
  std::string run_dir() const { return folder_.path() + "/atoll/bank"; }

  std::string library_;
  std::unique_ptr<CliCluster> cluster_;
};

/// Calls "version" on a node until it ends. Every answer must be "1", and after the first "2" every
/// answer must be "2".
class Load {
 public:
  Load(const std::string& run_dir, uint32_t node)
      : thread_([this, run_dir, node] { run(run_dir, node); }) {}
  ~Load() { end(); }
  void end() {
    ends_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  uint64_t old_answers() const { return old_.load(std::memory_order_relaxed); }
  uint64_t new_answers() const { return new_.load(std::memory_order_relaxed); }
  bool has_failed() const { return has_failed_.load(std::memory_order_relaxed); }
  /// The first wrong answer, or "". REQUIRES: `end` was called.
  const std::string& wrong() const { return wrong_; }

 private:
  void run(const std::string& run_dir, uint32_t node) {
    auto session = SessionClient::connect(run_dir, node);
    if (!session) return fail(session.error().message);
    while (!ends_.load(std::memory_order_relaxed) && !has_failed()) {
      const SessionReply reply = (*session)->call("version", {});
      const std::string output(reinterpret_cast<const char*>(reply.output.data()),
                               reply.output.size());
      if (reply.status == Status::ok && output == "2") {
        new_.fetch_add(1, std::memory_order_relaxed);
      } else if (reply.status == Status::ok && output == "1" && new_answers() == 0) {
        old_.fetch_add(1, std::memory_order_relaxed);
      } else {
        fail(std::string(to_string(reply.status)) + " " + output + " " + reply.message);
      }
    }
  }

  void fail(std::string why) {
    wrong_ = std::move(why);
    has_failed_.store(true, std::memory_order_relaxed);
  }

  std::atomic<bool> ends_{false};
  std::atomic<bool> has_failed_{false};
  std::atomic<uint64_t> old_{0};
  std::atomic<uint64_t> new_{0};
  std::string wrong_;
  std::thread thread_;
};

TEST_F(ProcedureReloadTest, RunningTransactionsEndWithTheOldCodeAndNewRequestsRunTheNewCode) {
  start();
  compile_version("next", "2", {"-DLIST={\"version\",version},{\"wait\",wait},{\"more\",wait}"});
  const std::string begun = folder_.path() + "/begun";
  const std::string go = folder_.path() + "/go";
  const std::string out = folder_.path() + "/wait.out";
  const pid_t waiting = runner_.start(
      std::string(ATOLL_BIN_DIR) + "/atoll",
      {"procedure", "call", "wait", begun + " " + go, "--node", "0"}, out, out + ".err");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(begun); }));

  Load load(run_dir(), 1);
  ASSERT_TRUE(eventually([&] { return load.old_answers() >= 100 || load.has_failed(); }));
  overwrite("next");
  const Ran reloaded = reload({"bank.so", "--json"});
  EXPECT_EQ(reloaded.code, 0) << reloaded.error;
  const auto json = nlohmann::json::parse(reloaded.out, nullptr, false);
  EXPECT_EQ(json.value("nodes", 0), 2) << reloaded.out;
  EXPECT_EQ(json["libraries"][0].value("procedures", 0), 3) << reloaded.out;
  ASSERT_TRUE(eventually([&] { return load.new_answers() >= 100 || load.has_failed(); }));
  load.end();
  EXPECT_EQ(load.wrong(), "");

  std::ofstream(go) << "go";
  int status = 0;
  waitpid(waiting, &status, 0);
  EXPECT_EQ(read_text(out), "1\n") << read_text(out + ".err");
  EXPECT_EQ(call("version", "", "0").out, "2\n");
  EXPECT_EQ(call("more", begun + " " + go, "1").out, "2\n") << "a procedure that version 1 lacks";
  // Each answer is one commit, by either version. The record counts 8-byte numbers.
  const Ran counted = runner_.atoll({"kv", "get", "accounts", "1", "--value-format", "i64"});
  EXPECT_EQ(counted.out, std::to_string(3 + load.old_answers() + load.new_answers()) + "\n");
}

TEST_F(ProcedureReloadTest, ABrokenVersionLeavesTheOldOneInUse) {
  start();
  compile(kFutureSource, "newer", {"-DMINOR=kAbiMinor + 1"});
  compile_version("fails", "2", {"-DFAILS"});
  compile_version("lacks", "2", {"-DLIST={\"version\",version}"});
  compile_version("twice", "2",
                  {"-DLIST={\"version\",version},{\"wait\",wait},{\"version\",version}"});
  compile_version("built_in", "2",
                  {"-DLIST={\"version\",version},{\"wait\",wait},{\"kv.get\",version}"});
  compile_version("next", "2");
  const auto expect_refused = [&](const std::string& why) {
    const Ran ran = reload();
    EXPECT_EQ(ran.code, 78) << ran.out << ran.error;
    EXPECT_NE(ran.error.find(library_), std::string::npos) << ran.error;
    EXPECT_NE(ran.error.find(why), std::string::npos) << ran.error;
    EXPECT_NE(ran.error.find("the version in use stays in use"), std::string::npos) << ran.error;
    for (const char* node : {"0", "1"}) EXPECT_EQ(call("version", "", node).out, "1\n");
  };
  const auto expect_version_refused = [&](const std::string& version, const std::string& why) {
    SCOPED_TRACE(version);
    overwrite(version);
    expect_refused(why);
  };
  std::filesystem::remove(library_);
  expect_refused("cannot be read: No such file or directory");
  std::ofstream(library_) << "no library";
  expect_refused("cannot be loaded: ");
  expect_version_refused("newer", "it was built for version 1.3 of the procedure ABI");
  expect_version_refused("fails", "its load function returned invalid_argument: it has no licence");
  expect_version_refused("lacks", "it has no wait, which the version in use has");
  expect_version_refused("twice", "version exists twice in it");
  expect_version_refused("built_in", "names that begin with \"kv.\" are built in");

  const Ran unknown = reload({"other.so"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.error.find("library \"other.so\": is not one of cluster \"bank\""),
            std::string::npos)
      << unknown.error;
  overwrite("next");
  const Ran repaired = reload();
  EXPECT_EQ(repaired.code, 0) << repaired.error;
  EXPECT_EQ(repaired.out, "reloaded " + library_ + " on all 2 nodes; procedures and jobs: 2\n");
  for (const char* node : {"0", "1"}) EXPECT_EQ(call("version", "", node).out, "2\n");
}

TEST_F(ProcedureReloadTest, AHandleOfADroppedStorageIsRefusedUntilTheLibraryIsLoadedAgain) {
  start();
  const Ran dropped = runner_.atoll({"storage", "drop", "accounts"});
  ASSERT_EQ(dropped.code, 0) << dropped.error;
  EXPECT_NE(call("version", "").error.find("storage_not_found"), std::string::npos);
  create_accounts();
  EXPECT_NE(call("version", "").error.find("storage_not_found"), std::string::npos)
      << "the handle names the dropped storage, not its name";
  const Ran reloaded = reload();
  EXPECT_EQ(reloaded.code, 0) << reloaded.error;
  EXPECT_EQ(call("version", "").out, "1\n") << "the same file is loaded as a new version";
  EXPECT_EQ(call("version", "", "1").out, "1\n");
}

}  // namespace
}  // namespace atolldb::test
