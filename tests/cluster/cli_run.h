// Runs the `atoll` command and returns its output and exit code, as a shell would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {

struct Ran {
  int code = -1;  // 128 + signal if a signal killed it
  std::string out;
  std::string error;
};

/// Runs a program of the build, or any other program by its path. Its output goes to files in
/// `folder`.
class CliRunner {
 public:
  explicit CliRunner(const TestFolder& folder) : folder_(folder.path()) {
    // Default run folders are in `folder`, so that they are not those of the user of the tests.
    environment_ = {{"XDG_RUNTIME_DIR", folder_},
                    {"XDG_STATE_HOME", folder_ + "/state"},
                    {"XDG_DATA_HOME", folder_ + "/data"}};
  }

  Ran atoll(std::vector<std::string> arguments) const {
    return run(std::string(ATOLL_BIN_DIR) + "/atoll", std::move(arguments));
  }

  Ran run(const std::string& program, std::vector<std::string> arguments) const {
    const std::string stem = folder_ + "/run" + std::to_string(number_++);
    const pid_t pid = start(program, std::move(arguments), stem + ".out", stem + ".err");
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            read_text(stem + ".out"), read_text(stem + ".err")};
  }

  /// Starts a program and does not wait for it. The caller must wait for it.
  pid_t start(const std::string& program, std::vector<std::string> arguments,
              const std::string& out, const std::string& error) const {
    std::vector<char*> words = {const_cast<char*>(program.c_str())};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execv(program.c_str(), words.data());
    _exit(127);
  }

  /// Writes the config of a small cluster, with `more` at its end. The log is off, unless `more`
  /// has a [durability] section.
  std::string config(const std::string& name, const std::string& more = "",
                     uint32_t nodes = 2) const {
    std::string path = folder_ + "/" + name + ".toml";
    std::ofstream(path) << "[cluster]\nname = \"" << name << "\"\n[nodes]\ncount = " << nodes
                        << (more.contains("[durability]") ? "" : "\n[durability]\nmode = \"off\"")
                        << "\n[memory]\nvolatile_pool = \"16MiB\"\nlog_buffer = \"2MiB\"\n"
                        << "exchange = \"2MiB\"\n"
                        << more << "\n";
    return path;
  }

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
  mutable uint32_t number_ = 0;
};

/// Starts a cluster with `atoll up`, and stops it at the end of the test.
class CliCluster {
 public:
  CliCluster(const CliRunner& runner, std::string config_file)
      : runner_(runner), config_file_(std::move(config_file)) {
    up_ = runner_.atoll({"up", "-c", config_file_});
    EXPECT_EQ(up_.code, 0) << up_.error;
  }
  ~CliCluster() {
    if (!stopped_) runner_.atoll({"down", "--now", "-c", config_file_});
  }
  CliCluster(const CliCluster&) = delete;
  CliCluster& operator=(const CliCluster&) = delete;

  const Ran& up() const { return up_; }
  Ran down() {
    stopped_ = true;
    return runner_.atoll({"down", "-c", config_file_});
  }
  nlohmann::json status() const {
    const Ran ran = runner_.atoll({"status", "--json", "-c", config_file_});
    EXPECT_EQ(ran.code, 0) << ran.error;
    return nlohmann::json::parse(ran.out, nullptr, false);
  }

 private:
  const CliRunner& runner_;
  std::string config_file_;
  Ran up_;
  bool stopped_ = false;
};

}  // namespace atolldb::test
