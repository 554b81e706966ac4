// Small clusters with temporary folders, and searches for the processes and segments that they
// left.
#pragma once

#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/process_id.h"
#include "shared/config/config.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb::test {

/// Folders below a new temporary folder. The destructor removes it.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = "/tmp/atoll-test-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  Config config(const std::string& name, uint32_t nodes = 2, uint32_t workers = 1) const {
    Config config;
    config.cluster.name = name;
    config.cluster.run_dir = path_ + "/" + name + ".run";
    config.cluster.log_dir = path_ + "/" + name + ".log";
    config.cluster.data_dir = path_ + "/" + name + ".data";
    config.control.endpoint = "ipc://" + config.cluster.run_dir + "/control.sock";
    config.nodes.assign(nodes, NodeConfig{});
    for (NodeConfig& node : config.nodes) node.workers = workers;
    config.memory.volatile_pool = uint64_t{8} << 20;
    config.memory.log_buffer = uint64_t{2} << 20;
    config.memory.exchange = uint64_t{2} << 20;
    config.durability.log_file_size = uint64_t{1} << 20;
    return config;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // does not throw if the process ends while its file in /proc is read
  return text.str();
}

/// An environment variable that all processes of this test inherit. It identifies them, because
/// tests run at the same time and some use the same name for a cluster.
inline const std::string kTestVariable = [] {
  constexpr const char* kName = "ATOLL_TEST_PROCESS";
  const std::string value = std::to_string(getpid());
  setenv(kName, value.c_str(), /*replace=*/1);
  return fmt::format("{}={}", kName, value);
}();

/// Returns the processes of the cluster with this role ("" = any), found by their command lines.
/// Ignores clusters that another test has started.
inline std::vector<pid_t> processes_of(const std::string& cluster, const std::string& role = "") {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = read_text(entry.path().string() + "/cmdline");
    const std::string named = std::string("--cluster") + '\0' + cluster + '\0';
    if (words.find(named) == std::string::npos) continue;
    const std::string with_role = std::string("--role") + '\0' + role + '\0';
    if (!role.empty() && words.find(with_role) == std::string::npos) continue;
    const std::string variables = read_text(entry.path().string() + "/environ");
    if (variables.find(kTestVariable + '\0') == std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(number));
    if (find_process(pid)) found.push_back(pid);  // find_process returns nothing for zombies
  }
  return found;
}

/// Returns the peak resident memory of a process, in bytes.
inline uint64_t peak_bytes(pid_t pid) {
  const std::string status = read_text("/proc/" + std::to_string(pid) + "/status");
  const size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : std::stoull(status.substr(at + 6)) << 10;
}

/// Stops a process, and waits until all its threads have stopped. A thread runs on after the call
/// of `kill` until some thread of the process has taken the signal.
inline void stop_process(pid_t pid) {
  ASSERT_EQ(kill(pid, SIGSTOP), 0);
  ASSERT_TRUE(eventually([&] {
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      const std::string stat = read_text(task.path().string() + "/stat");
      const size_t name_end = stat.rfind(')');
      if (name_end == std::string::npos || stat.compare(name_end, 3, ") T") != 0) return false;
    }
    return true;
  }));
}

/// Returns the number of segments that this process still has open.
inline uint32_t open_segments() {
  uint32_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.find("memfd:atoll.") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace atolldb::test
