// Commands at a terminal: colours, --watch, following logs and interrupts.
#include <gtest/gtest.h>
#include <pty.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

/// A program that runs beside the test until it is interrupted or ends.
class Running {
 public:
  Running(const CliRunner& runner, std::vector<std::string> arguments)
      : out_(runner.folder() + "/running.out"), error_(runner.folder() + "/running.err") {
    pid_ = runner.start(std::string(ATOLL_BIN_DIR) + "/atoll", std::move(arguments), out_, error_);
  }
  ~Running() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void interrupt() const { kill(pid_, SIGINT); }
  /// Returns the exit code, or 128 + signal.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string out() const { return read_text(out_); }
  std::string error() const { return read_text(error_); }

 private:
  std::string out_;
  std::string error_;
  pid_t pid_ = 0;
};

class CliTerminalTest : public ::testing::Test {
 protected:
  CliTerminalTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  /// Returns the standard output of `atoll` on a terminal of this kind.
  std::string on_terminal(const std::string& kind, bool with_no_color,
                          const std::vector<std::string>& arguments) const {
    int master = -1;
    const pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
    if (pid == 0) {
      setenv("TERM", kind.c_str(), 1);
      setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
      with_no_color ? setenv("NO_COLOR", "1", 1) : unsetenv("NO_COLOR");
      std::string program = std::string(ATOLL_BIN_DIR) + "/atoll";
      std::vector<std::string> copies = arguments;
      std::vector<char*> words = {program.data()};
      for (std::string& word : copies) words.push_back(word.data());
      words.push_back(nullptr);
      execv(program.c_str(), words.data());
      _exit(127);
    }
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(master, buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    close(master);
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << text;
    return text;
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(CliTerminalTest, ColoursAreForTerminalsThatHaveThemAndPeopleWhoWantThem) {
  const CliCluster cluster(runner_, runner_.config("tinted", "", 1));
  EXPECT_NE(on_terminal("xterm", false, {"status"}).find("\033[32mhealthy\033[0m"),
            std::string::npos);
  for (const std::string& plain :
       {on_terminal("xterm", true, {"status"}), on_terminal("dumb", false, {"status"}),
        runner_.atoll({"status"}).out}) {
    EXPECT_EQ(plain.find('\033'), std::string::npos) << plain;
    EXPECT_NE(plain.find("is healthy"), std::string::npos) << plain;
  }
}

TEST_F(CliTerminalTest, WatchingRepeatsTheReportUntilTheClusterHasStopped) {
  const std::string file = runner_.config("seen", "", 1);
  CliCluster cluster(runner_, file);
  Running watch(runner_, {"status", "--watch", "-c", file});
  ASSERT_TRUE(eventually([&] { return count_of(watch.out(), "is healthy") >= 3; }));
  EXPECT_EQ(count_of(watch.out(), "transactions/s"), count_of(watch.out(), "(durability off"));
  EXPECT_EQ(watch.out().find('\033'), std::string::npos) << "it is no terminal";
  EXPECT_EQ(cluster.down().code, 0);
  const int code = watch.wait();
  EXPECT_TRUE(code == 3 || code == 5) << code << ": " << watch.error();
  EXPECT_TRUE(watch.error().starts_with("atoll: ")) << watch.error();
}

TEST_F(CliTerminalTest, WatchingForProgramsIsOneObjectALine) {
  const std::string file = runner_.config("lines", "", 1);
  const CliCluster cluster(runner_, file);
  Running watch(runner_, {"status", "--watch", "--json", "-c", file});
  ASSERT_TRUE(eventually([&] { return count_of(watch.out(), "\n") >= 3; }));
  watch.interrupt();
  EXPECT_EQ(watch.wait(), 128 + SIGINT);
  uint64_t epoch = 0;
  for (const std::string& line : lines_of(watch.out())) {
    const Json json = Json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ(json["durability"], "off") << "beside throughput_tps";
    EXPECT_TRUE(json["throughput_tps"].is_number());
    EXPECT_GT(json["epochs"]["current"].get<uint64_t>(), epoch);
    epoch = json["epochs"]["current"];
  }
}

TEST_F(CliTerminalTest, FollowedLogsGoOnWithWhatHappens) {
  const std::string file = runner_.config("story", "", 1);
  const CliCluster cluster(runner_, file);
  Running follow(runner_, {"logs", "-f", "coordinator", "-c", file});
  ASSERT_TRUE(eventually([&] { return follow.out().find("coordinator") != std::string::npos; }));
  for (const char* name : {"first", "second"}) {
    ASSERT_EQ(runner_.atoll({"storage", "create", name, "--type", "mastertree"}).code, 0);
    const std::string news = std::string("storage ") + name + " created";
    ASSERT_TRUE(eventually([&] { return count_of(follow.out(), news) > 0; })) << follow.out();
    EXPECT_EQ(count_of(follow.out(), news), 1u) << "each line once";
  }
  follow.interrupt();
  EXPECT_EQ(follow.wait(), 128 + SIGINT);
  const Ran tail = runner_.atoll({"logs", "coordinator", "-n", "1", "-c", file});
  EXPECT_EQ(count_of(tail.out, "\n"), 1u) << tail.out;
  EXPECT_NE(tail.out.find("second"), std::string::npos) << tail.out;
}

TEST_F(CliTerminalTest, AForegroundClusterStopsInOrderAtTheFirstInterrupt) {
  const std::string file = runner_.config("stay", "", 1);
  Running up(runner_, {"up", "--foreground", "-c", file});
  ASSERT_TRUE(eventually([&] { return up.out().find("cluster \"stay\" runs") == 0; }))
      << up.error();
  EXPECT_NE(up.out().find("in memory only: down loses the data"), std::string::npos) << up.out();
  EXPECT_EQ(runner_.atoll({"status", "-c", file}).code, 0);
  up.interrupt();
  EXPECT_EQ(up.wait(), 0) << up.error();
  EXPECT_TRUE(processes_of("stay").empty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/atoll/stay"));
}

TEST_F(CliTerminalTest, AStartShowsItsStepsInOneLineOfATerminalThatItClears) {
  const std::string file = folder_.path() + "/steps.toml";
  std::ofstream(file) << "[cluster]\nname = \"steps\"\nlog_dir = \"" << folder_.path()
                      << "/log\"\n[nodes]\ncount = 1\n[durability]\nmode = \"off\"\n[memory]\n"
                      << "volatile_pool = \"8MiB\"\n";
  const std::string text = on_terminal("xterm", false, {"up", "-c", file});
  const size_t step = text.find("\r\033[Kstarting: preparing memory and files");
  const size_t end = text.rfind("\r\033[Kcluster \"steps\"");
  EXPECT_NE(step, std::string::npos) << text;
  EXPECT_NE(end, std::string::npos) << text;
  EXPECT_LT(step, end);
  EXPECT_EQ(text.substr(0, end).find('\n'), std::string::npos) << text;
  EXPECT_EQ(runner_.atoll({"down", "-c", file}).code, 0);
  // Programs get one document, also on a terminal.
  EXPECT_TRUE(on_terminal("xterm", false, {"up", "--json", "-c", file}).starts_with("{"));
  EXPECT_EQ(runner_.atoll({"down", "-c", file}).code, 0);
}

TEST_F(CliTerminalTest, ControlCharactersInALogDoNotReachTheTerminal) {
  const std::string file = runner_.config("escape", "", 1);
  CliCluster cluster(runner_, file);
  EXPECT_EQ(cluster.down().code, 0);
  const std::string log = folder_.path() + "/state/atoll/escape/node0.log";
  ASSERT_TRUE(std::filesystem::exists(log)) << log;
  std::ofstream(log, std::ios::app) << "title \033]0;owned\007 end\n";
  const Ran logs = runner_.atoll({"logs", "0", "-c", file});
  EXPECT_EQ(logs.code, 0) << logs.error;
  EXPECT_EQ(logs.out.find('\033'), std::string::npos);
  EXPECT_NE(logs.out.find("title ?]0;owned? end"), std::string::npos) << logs.out;
  const Ran json = runner_.atoll({"logs", "0", "-n", "1", "--json", "-c", file});
  EXPECT_EQ(json.out.find('\033'), std::string::npos);
  const auto line = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(line.is_object()) << json.out;
  EXPECT_EQ(line.value("message", ""), "title \033]0;owned\007 end");
}

}  // namespace
}  // namespace atolldb::test
