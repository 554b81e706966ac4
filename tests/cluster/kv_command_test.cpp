// `atoll kv` and `atoll shell` with real processes: results, formats, exit codes, scripts and a
// terminal.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <termios.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr int kConditionNotMet = 12;

class KvCommandTest : public ::testing::Test {
 protected:
  KvCommandTest() : runner_(folder_), cluster_(runner_, config()) {
    std::printf("seed: none, nothing here is random\n");
    create({"tree", "--type", "mastertree"});
    create({"array", "--type", "array", "--payload-bytes", "8", "--records", "1000"});
    create({"heap", "--type", "sequential"});
    create({"hash", "--type", "hash"});
  }

  std::string config() const {
    return runner_.config("records",
                          "[durability]\nmode = \"durable\"\n[gleaner]\n"
                          "interval = \"1h\"\n");
  }
  void create(Words words) const {
    words.insert(words.begin(), {"storage", "create"});
    const Ran ran = runner_.atoll(words);
    ASSERT_EQ(ran.code, 0) << ran.error;
  }
  Ran kv(Words words) const {
    words.insert(words.begin(), "kv");
    return runner_.atoll(words);
  }
  /// Runs a command that must succeed, and returns its output.
  std::string out(const Words& words) const {
    const Ran ran = kv(words);
    EXPECT_EQ(ran.code, 0) << ran.error;
    return ran.out;
  }
  void expect_refused(const Words& words, int code, const std::string& message) const {
    const Ran ran = kv(words);
    EXPECT_EQ(ran.code, code) << ran.error;
    EXPECT_NE(ran.error.find(message), std::string::npos) << "expected \"" << message << "\" in\n"
                                                          << ran.error;
  }
  /// Runs lines of a script on standard input of `atoll shell`.
  Ran script(const std::string& lines, const std::string& options = "") const {
    const std::string path = folder_.path() + "/script";
    std::ofstream(path) << lines;
    return runner_.run(
        "/bin/sh", {"-c", std::string(ATOLL_BIN_DIR) + "/atoll shell " + options + " < " + path});
  }

  TestFolder folder_;
  CliRunner runner_;
  CliCluster cluster_;
};

TEST_F(KvCommandTest, EachVerbDoesWhatItsNameSays) {
  EXPECT_EQ(out({"put", "tree", "alice", "100"}), "ok\n");
  EXPECT_EQ(out({"get", "tree", "alice"}), "100\n");
  EXPECT_EQ(out({"insert", "tree", "bob", "a\\x00b"}), "ok\n");
  EXPECT_EQ(out({"get", "tree", "bob"}), "a\\x00b\n");
  EXPECT_EQ(out({"get", "tree", "bob", "--value-format", "hex"}), "610062\n");
  EXPECT_EQ(out({"put", "tree", "alice", "xx", "--offset", "1"}), "ok\n");
  EXPECT_EQ(out({"check", "tree", "alice", "1xx"}), "ok\n");
  EXPECT_EQ(out({"scan", "tree"}), "alice\t1xx\nbob\ta\\x00b\n");
  EXPECT_EQ(out({"del", "tree", "bob"}), "ok\n");
  EXPECT_EQ(out({"check", "tree", "bob", "--absent"}), "ok\n");
  EXPECT_EQ(out({"add", "array", "7", "40"}), "ok\n");
  EXPECT_EQ(out({"add", "array", "7", "-2", "--return"}), "38\n");
  EXPECT_EQ(out({"get", "array", "7", "--value-format", "i64"}), "38\n");
  EXPECT_EQ(out({"append", "heap", "entry", "--acknowledge", "visible"}), "ok\n");
  // Absent, existing and different records are no failures of the command.
  expect_refused({"get", "tree", "none"}, kConditionNotMet, "get tree \"none\": not_found");
  expect_refused({"del", "tree", "none"}, kConditionNotMet, "not_found");
  expect_refused({"add", "tree", "none", "1"}, kConditionNotMet, "not_found");
  expect_refused({"insert", "tree", "alice", "x"}, kConditionNotMet,
                 "insert tree \"alice\": already_exists");
  expect_refused({"check", "tree", "alice", "x"}, kConditionNotMet, "the value differs");
  expect_refused({"check", "tree", "alice", "--absent"}, kConditionNotMet, "the key exists");
}

TEST_F(KvCommandTest, AHashStorageHasPointOperationsAndScansOfAllRecords) {
  EXPECT_EQ(out({"put", "hash", "alice", "100"}), "ok\n");
  EXPECT_EQ(out({"insert", "hash", "bob", "200"}), "ok\n");
  EXPECT_EQ(out({"get", "hash", "alice"}), "100\n");
  const std::string rows = out({"scan", "hash"});
  EXPECT_EQ(rows.size(), std::string("alice\t100\nbob\t200\n").size()) << rows;
  EXPECT_NE(rows.find("alice\t100\n"), std::string::npos) << rows;
  EXPECT_NE(rows.find("bob\t200\n"), std::string::npos) << rows;
  const std::string first = rows.substr(0, rows.find('\t'));
  EXPECT_EQ(out({"scan", "hash", "--limit", "1"}) + out({"scan", "hash", "--after", first}), rows);
  expect_refused({"insert", "hash", "bob", "x"}, kConditionNotMet, "already_exists");
  expect_refused({"append", "hash", "x"}, 2, "operation_not_supported");
  for (const Words& range :
       {Words{"--low", "a"}, Words{"--high", "b"}, Words{"--prefix", "a"}, Words{"--reverse"}}) {
    Words words = {"scan", "hash"};
    words.insert(words.end(), range.begin(), range.end());
    expect_refused(words, 2, "keys have no order");
  }
  EXPECT_EQ(out({"del", "hash", "bob"}), "ok\n");
  EXPECT_EQ(out({"scan", "hash"}), "alice\t100\n");
}

TEST_F(KvCommandTest, BadInputIsNamedAndChangesNothing) {
  expect_refused({"get", "none", "k"}, 1, "none");
  expect_refused({"get", "array", "x"}, 2, "KEY: \"x\": the key of an array is an index");
  expect_refused({"get", "array", "1000"}, 2, "out_of_range");
  expect_refused({"scan", "heap"}, 2, "operation_not_supported");
  expect_refused({"append", "tree", "x"}, 2, "operation_not_supported");
  expect_refused({"put", "tree", "k", "v", "--key-format", "i64"}, 2, "--key-format: \"i64\"");
  expect_refused({"put", "tree", "k", "v", "--value-format", "u8"}, 2,
                 "VALUE: \"v\": is not a number of type u8");
  expect_refused({"put", "tree", std::string(1025, 'k'), "v"}, 2, "1025 bytes is longer than 1024");
  expect_refused({"put", "tree", "k", std::string(2049, 'v')}, 2, "2049 bytes is longer than 2048");
  expect_refused({"put", "tree", "k"}, 2, "VALUE");
  expect_refused({"check", "tree", "k"}, 2, "VALUE or --absent");
  expect_refused({"delete", "tree", "k"}, 2, "did you mean \"kv del\"?");
  expect_refused({"get", "tree", "k", "--node", "2"}, 2, "has nodes 0 to 1");
  expect_refused({"get", "tree", "k", "--snapshot", "3"}, 2, "snapshot_read_only");
  expect_refused({"txn"}, 2, "1 to 256 statements, not 0");
  EXPECT_EQ(out({"scan", "tree"}), "");
}

TEST_F(KvCommandTest, ScansHaveBoundsLimitsAndPages) {
  const Words number = {"--key-format", "u16,u16", "--value-format", "json"};
  const auto with_formats = [&](Words words) {
    words.insert(words.end(), number.begin(), number.end());
    return words;
  };
  for (int i = 0; i < 6; ++i) {
    out(with_formats({"put", "tree", std::to_string(i / 3) + "," + std::to_string(i),
                      "{\"n\": " + std::to_string(i) + "}"}));
  }
  EXPECT_EQ(out(with_formats({"scan", "tree", "--prefix", "1"})),
            "1,3\t{\"n\":3}\n1,4\t{\"n\":4}\n1,5\t{\"n\":5}\n");
  EXPECT_EQ(out(with_formats({"scan", "tree", "--low", "0,1", "--high", "1,4", "--keys-only"})),
            "0,1\n0,2\n1,3\n");
  const Ran cut = kv(with_formats({"scan", "tree", "--limit", "2", "--reverse", "--keys-only"}));
  EXPECT_EQ(cut.out, "1,5\n1,4\n");
  EXPECT_NE(cut.error.find("more rows follow"), std::string::npos);
  EXPECT_EQ(out(with_formats({"scan", "tree", "--after", "1,4", "--keys-only"})), "1,5\n");
  const Json rows = Json::parse(out(with_formats({"scan", "tree", "--limit", "2", "--json"})));
  EXPECT_EQ(rows["rows"][1]["key"], Json({0, 1}));
  EXPECT_EQ(rows["rows"][1]["value"]["n"], 1);
  EXPECT_EQ(rows["more"], true);
  // An array is scanned by index, and a scan of many rows is several requests.
  EXPECT_EQ(out({"scan", "array", "--limit", "0", "--keys-only"}).size(),
            10u * 2 + 90u * 3 + 900u * 4);
  EXPECT_EQ(
      out({"scan", "array", "--low", "5", "--high", "8", "--reverse", "--value-format", "u64"}),
      "7\t0\n6\t0\n5\t0\n");
  const std::string value(2000, 'v');
  Words fill = {"txn"};
  for (int i = 0; i < 30; ++i) fill.push_back("put tree " + std::to_string(5000 + i) + " " + value);
  EXPECT_EQ(kv(fill).code, 0);
  EXPECT_EQ(kv(fill).code, 0) << "30 rows of 2000 bytes fit into a request, not into a reply";
  EXPECT_EQ(out({"scan", "tree", "--low", "5000", "--limit", "0"}).size(), 30u * (4 + 1 + 2001));
  const Ran together = kv({"txn", "scan tree --low 5000 --limit 0"});
  EXPECT_EQ(together.code, 0);
  EXPECT_NE(together.error.find("more rows follow"), std::string::npos)
      << "the scans of a transaction have one reply";
  EXPECT_EQ(runner_
                .run("/bin/sh", {"-c", std::string(ATOLL_BIN_DIR) +
                                           "/atoll kv scan tree --limit 0 > /dev/full"})
                .code,
            1);
}

TEST_F(KvCommandTest, ATransactionIsAllOrNothing) {
  EXPECT_EQ(out({"txn", "put tree a 1", "put tree b 2", "get tree a", "scan tree --keys-only"}),
            "ok\nok\n1\na\nb\n");
  expect_refused({"txn", "put tree a 9", "check tree b 3"}, kConditionNotMet,
                 "operation 1 (compare of \"tree\")");
  EXPECT_EQ(out({"get", "tree", "a"}), "1\n");
  expect_refused({"txn", "put tree a 9", "frobnicate"}, 2, "statement 2: \"frobnicate\"");
  expect_refused({"txn", "put tree 'a"}, 2, "the quote ' is not closed");
  const Json json = Json::parse(out({"txn", "get tree a", "scan tree", "--json"}));
  EXPECT_EQ(json["results"][0]["value"], "1");
  EXPECT_EQ(json["results"][1]["rows"].size(), 2u);
  Words many = {"txn"};
  for (int i = 0; i < 256; ++i) many.push_back("get tree a");
  EXPECT_EQ(kv(many).code, 0);
  many.push_back("get tree a");
  expect_refused(many, 2, "1 to 256 statements, not 257");
}

TEST_F(KvCommandTest, SnapshotsAreReadAsTheyWere) {
  EXPECT_EQ(out({"put", "tree", "k", "old"}), "ok\n");
  ASSERT_EQ(runner_.atoll({"snapshot", "take"}).code, 0);
  EXPECT_EQ(out({"put", "tree", "k", "new"}), "ok\n");
  const Words read_only = {"--isolation", "snapshot_read_only"};
  EXPECT_EQ(out({"get", "tree", "k", read_only[0], read_only[1]}), "old\n");
  EXPECT_EQ(out({"scan", "tree", read_only[0], read_only[1]}), "k\told\n");
  expect_refused({"put", "tree", "k", "x", read_only[0], read_only[1]}, 1, "read_only_transaction");
  expect_refused({"get", "tree", "k", read_only[0], read_only[1], "--snapshot", "99"}, 1,
                 "`atoll snapshot pin` keeps one");
  const Ran ran = script("begin snapshot\nget tree k\nput tree k x\n");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("\nold\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.error.find("line 3: put tree \"k\": read_only_transaction"), std::string::npos)
      << ran.error;
}

TEST_F(KvCommandTest, AScriptRunsItsLinesAndStopsAtTheFirstMistake) {
  const Ran ran = script(
      "# a comment, then a blank line\n\n"
      "create more\n"
      "put more 'a key' '{\"x\": 1}'\n"
      "set value-format json\n"
      "get more 'a key'\n"
      "begin\n"
      "put more b 2\n"
      "get more b\n"
      "commit\n"
      "set json on\n"
      "get more b\n"
      "drop more\n"
      "quit\n"
      "never run\n");
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_EQ(ran.out.find("ok\nok\nok\n{\"x\":1}\nok\nok\n2\nok\n{"), 0u) << ran.out;

  const Ran documents = script(
      "set json on\nset\ncreate other --type array --payload-bytes 8 --records 4\nstorages\n"
      "begin\nput tree j 1\ncommit\nbegin\nabort\nset timing on\ndrop other\n");
  EXPECT_EQ(documents.code, 0) << documents.error;
  std::istringstream lines_of_json(documents.out);
  std::string members;
  for (std::string line; std::getline(lines_of_json, line);) {
    const Json document = Json::parse(line, nullptr, false);
    ASSERT_TRUE(document.is_object()) << line;
    EXPECT_EQ(document["schema_version"], 1) << line;
    for (const auto& [name, value] : document.items()) {
      if (name != "schema_version") members += name + " ";
    }
  }
  EXPECT_EQ(members,
            "setting value settings state storage storages snapshot transaction key storage "
            "commit_epoch version snapshot transaction transaction setting value time_ms state "
            "storage time_ms ");

  const Ran stopped = script("put tree a 1\nget tree none\nput tree b 2\n");
  EXPECT_EQ(stopped.code, kConditionNotMet);
  EXPECT_EQ(stopped.out, "ok\n");
  EXPECT_NE(stopped.error.find("line 2: get tree \"none\": not_found"), std::string::npos);
  const Ran going = script("frobnicate\nput tree c 1\n", "--keep-going");
  EXPECT_EQ(going.code, 2);
  EXPECT_EQ(going.out, "ok\n");
  EXPECT_NE(going.error.find("line 1: \"frobnicate\": no such command"), std::string::npos)
      << going.error;
  const Ran open = script("begin\nput tree d 1\n");
  EXPECT_EQ(open.code, 1);
  EXPECT_NE(open.error.find("the script ends within a transaction"), std::string::npos);
  EXPECT_EQ(kv({"get", "tree", "d"}).code, kConditionNotMet);
  const Ran lines = runner_.atoll({"shell", "-e", "put tree e 1", "-e", "get tree e"});
  EXPECT_EQ(lines.code, 0) << lines.error;
  EXPECT_EQ(lines.out, "ok\n1\n");
  EXPECT_EQ(script("commit\n").code, 2);
  // The addition is read before it is made. So one that fails leaves nothing.
  std::string full = "create sums --type array --payload-bytes 8 --records 1\nbegin\n";
  for (int i = 0; i < 255; ++i) full += "put tree full" + std::to_string(i) + " 1\n";
  full += "add sums 0 5 --return\ncommit\nset value-format i64\nget sums 0\n";
  const Ran sum = script(full, "--keep-going");
  EXPECT_NE(sum.error.find("transaction_too_large"), std::string::npos) << sum.error;
  EXPECT_TRUE(sum.out.ends_with("ok\n0\n")) << sum.out;
  EXPECT_EQ(script("begin\nbegin\n").code, 2);
  EXPECT_EQ(script("set colour red\n").code, 2);
  EXPECT_NE(script("help scan\n").out.find("--prefix"), std::string::npos);
}

/// A shell on a terminal, which the test controls.
class Terminal {
 public:
  explicit Terminal(const TestFolder& folder) {
    pid_ = forkpty(&master_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    setenv("TERM", "xterm", 1);
    for (const char* name : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "HOME"}) {
      setenv(name, folder.path().c_str(), 1);
    }
    const std::string program = std::string(ATOLL_BIN_DIR) + "/atoll";
    execl(program.c_str(), program.c_str(), "shell", nullptr);
    _exit(127);
  }
  ~Terminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& text) const {
    EXPECT_EQ(write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Waits until the terminal has shown this text since the last call. Returns false after a
  /// minute.
  bool shows(const std::string& text) {
    for (int i = 0; i < 600; ++i) {
      const size_t found = shown_.find(text);
      if (found != std::string::npos) {
        shown_.erase(0, found + text.size());
        return true;
      }
      pollfd ready{master_, POLLIN, 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(master_, buffer, sizeof(buffer));
      if (got <= 0) break;
      shown_.append(buffer, static_cast<size_t>(got));
    }
    ADD_FAILURE() << "expected \"" << text << "\" in\n" << shown_;
    return false;
  }
  /// Returns whether the shell runs a statement. While it reads a line, it reads single characters.
  bool is_at_statement() const {
    termios mode{};
    return tcgetattr(master_, &mode) == 0 && (mode.c_lflag & ICANON) != 0;
  }
  int wait() {
    // The shell restores the terminal at its end. For this it waits until all output was read.
    char buffer[4096];
    while (read(master_, buffer, sizeof(buffer)) > 0) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  int master_ = -1;
  pid_t pid_ = 0;
  std::string shown_;
};

TEST_F(KvCommandTest, ATerminalHasPromptsCompletionHistoryAndInterrupts) {
  Terminal terminal(folder_);
  ASSERT_TRUE(terminal.shows("`help` lists the statements"));
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("put tr\tk v1\n");  // the tab completes "tree "
  ASSERT_TRUE(terminal.shows("ok\r\n"));
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("beg\t\n");
  ASSERT_TRUE(terminal.shows("atoll*> "));
  terminal.type("put tree k \x03");  // Ctrl-C discards the line, and not the transaction
  ASSERT_TRUE(terminal.shows("atoll*> "));
  terminal.type("get tree k\n");
  ASSERT_TRUE(terminal.shows("v1\r\n"));
  terminal.type("frobnicate\n");
  ASSERT_TRUE(terminal.shows("error: \"frobnicate\": no such command"));
  EXPECT_EQ(out({"put", "tree", "k", "v2"}), "ok\n");
  terminal.type("commit\n");
  ASSERT_TRUE(terminal.shows("error: commit: conflict: "));
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("\x1b[A\x1b[A\x1b[A\n");  // three lines up: get tree k
  ASSERT_TRUE(terminal.shows("v2\r\n"));
  // The terminal takes Ctrl-D for the end of a line until the shell reads single characters.
  ASSERT_TRUE(terminal.shows("atoll> "));
  ASSERT_TRUE(eventually([&] { return !terminal.is_at_statement(); }));
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 0);
  const std::string history = folder_.path() + "/atoll/shell_history";
  EXPECT_NE(read_text(history).find("get"), std::string::npos);
  struct stat info{};
  ASSERT_EQ(stat(history.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(KvCommandTest, AnInterruptEndsAStatementThatWaits) {
  Terminal terminal(folder_);
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("put tree k v1\n");
  ASSERT_TRUE(terminal.shows("ok\r\n"));
  ASSERT_TRUE(terminal.shows("atoll> "));
  const Json status = Json::parse(runner_.atoll({"status", "--json", "-c", config()}).out);
  const auto node = status.at("nodes").at(0).at("pid").get<pid_t>();
  ASSERT_TRUE(eventually([&] { return !terminal.is_at_statement(); }));
  ASSERT_EQ(kill(node, SIGSTOP), 0);
  terminal.type("get tree k\n");
  // At the prompt, Ctrl-C would discard the line.
  ASSERT_TRUE(eventually([&] { return terminal.is_at_statement(); }));
  terminal.type("\x03");
  const bool is_interrupted = terminal.shows("interrupted: ");
  ASSERT_EQ(kill(node, SIGCONT), 0);
  ASSERT_TRUE(is_interrupted);
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("get tree k\n");
  ASSERT_TRUE(terminal.shows("v1\r\n"));
}

TEST_F(KvCommandTest, ARestartOfTheClusterEndsAnOpenTransaction) {
  Terminal terminal(folder_);
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("put tree k v1\n");
  ASSERT_TRUE(terminal.shows("ok\r\n"));
  terminal.type("begin\n");
  ASSERT_TRUE(terminal.shows("atoll*> "));
  terminal.type("put tree k lost\n");
  ASSERT_TRUE(terminal.shows("atoll*> "));
  ASSERT_EQ(cluster_.down().code, 0);
  ASSERT_EQ(runner_.atoll({"up", "-c", config()}).code, 0);
  terminal.type("put tree k second\n");
  ASSERT_TRUE(terminal.shows("the session of the transaction has ended"));
  terminal.type("put tree k third\n");
  ASSERT_TRUE(terminal.shows("the statement was not run"));
  terminal.type("commit\n");
  ASSERT_TRUE(terminal.shows("nothing was committed: begin again"));
  ASSERT_TRUE(terminal.shows("atoll> "));
  terminal.type("get tree k\n");
  ASSERT_TRUE(terminal.shows("v1\r\n"));
  EXPECT_EQ(runner_.atoll({"down", "-c", config()}).code, 0);
}

}  // namespace
}  // namespace atolldb::test
