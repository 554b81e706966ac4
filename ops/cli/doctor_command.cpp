// `atoll doctor`: reports which settings of this machine help or hinder a cluster, and what to
// change.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ops/cli/command.h"
#include "ops/cli/kernel_settings.h"
#include "ops/cli/terminal.h"
#include "ops/launcher/run_folder.h"
#include "shared/memory/segment_file.h"
#include "shared/process/start_up.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

struct DoctorFinding {
  bool good = true;
  std::string what;
  std::string found;
  std::string advice;
};

/// Thread: one.
class DoctorReport {
 public:
  /// `prints`: each finding is printed at once. Otherwise `print_json` prints all of them.
  explicit DoctorReport(bool prints) : prints_(prints) {}

  void say(bool good, const std::string& what, const std::string& found,
           const std::string& advice) {
    findings_.push_back({good, what, found, good ? "" : advice});
    if (!prints_) return;
    const std::string mark =
        good ? paint(Colour::green, "ok    ") : paint(Colour::yellow, "advice");
    std::printf("%s  %-24s %s\n", mark.c_str(), what.c_str(), found.c_str());
    if (!good) std::printf("        %-24s -> %s\n", "", advice.c_str());
  }

  void print_json() const {
    Json list = Json::array();
    for (const DoctorFinding& each : findings_) {
      list.push_back({{"good", each.good},
                      {"what", each.what},
                      {"found", each.found},
                      {"advice", each.advice}});
    }
    const Json whole = {{"schema_version", 1}, {"findings", list}};
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }

 private:
  const bool prints_;
  std::vector<DoctorFinding> findings_;
};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void examine_memory(DoctorReport& report) {
  const MemoryAvailable memory = MemoryAvailable::detect();
  constexpr uint64_t kComfortable = uint64_t{2} << 30;
  report.say(memory.bytes >= kComfortable, "memory available", format_bytes(memory.bytes),
             "two nodes with the default pools need 2 GiB: lower memory.volatile_pool");
  report.say(
      memory.huge_pages_total > 0, "huge pages (2 MiB)",
      std::to_string(memory.huge_pages) + " of " + std::to_string(memory.huge_pages_total) +
          " free",
      "Atoll is faster with huge pages: for 2 GiB, run as root: sysctl vm.nr_hugepages=1024");
  const std::string shmem = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const bool advised = shmem.find("[never]") == std::string::npos &&
                       shmem.find("[deny]") == std::string::npos && !shmem.empty();
  report.say(advised || memory.huge_pages_total > 0, "transparent huge pages",
             shmem.empty() ? "none" : shmem,
             "to let shared memory use huge pages, run as root: echo advise > "
             "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
}

void examine_limits(DoctorReport& report) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  constexpr rlim_t kEnoughFiles = 4096;
  report.say(files.rlim_max >= kEnoughFiles, "open files (hard limit)",
             std::to_string(files.rlim_max),
             "clusters of many nodes need more: raise `ulimit -Hn`");
  rlimit locked{};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  report.say(true, "memlock (soft limit)",
             (locked.rlim_cur == RLIM_INFINITY ? "unlimited" : format_bytes(locked.rlim_cur)) +
                 ": any value works, because Atoll locks no memory",
             "");
  struct statvfs shm{};
  if (statvfs("/dev/shm", &shm) == 0) {
    report.say(true, "/dev/shm",
               format_bytes(uint64_t{shm.f_blocks} * shm.f_frsize) +
                   ": any size works, because Atoll's segments are not files there",
               "");
  }
  report.say(true, "page size", format_bytes(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))), "");
}

/// Returns the value of a systemd-logind setting; empty: not set. The settings decide about
/// processes and IPC objects of a user who has logged out.
std::string logind_setting(const std::string& key) {
  std::vector<fs::path> files = {"/etc/systemd/logind.conf"};
  for (const char* folder : {"/usr/lib/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) files.push_back(entry.path());
  }
  // Drop-in files apply in the order of their names, after the main file.
  std::sort(files.begin() + 1, files.end(),
            [](const fs::path& a, const fs::path& b) { return a.filename() < b.filename(); });
  std::string value;
  for (const fs::path& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(key + "=")) value = line.substr(key.size() + 1);
    }
  }
  return value;
}

void examine_logind(DoctorReport& report) {
  const std::string remove = logind_setting("RemoveIPC");
  report.say(
      true, "logind RemoveIPC",
      (remove.empty() ? "yes by default" : remove) +
          ": it deletes named shared memory at log-out; Atoll's memory has no name and is kept",
      "");
  const std::string kill = logind_setting("KillUserProcesses");
  const bool kills = kill == "yes" || kill == "true" || kill == "1" || kill == "on";
  report.say(!kills, "logind KillUserProcesses", kill.empty() ? "no by default" : kill,
             "your log-out kills your clusters: to prevent this, run `loginctl enable-linger`");
  const std::string run_dir = default_config().cluster.run_dir;
  const bool is_volatile = run_dir.starts_with("/run/user/");
  std::error_code none;
  const char* user = std::getenv("USER");
  const bool lingers =
      user != nullptr && fs::exists(std::string("/var/lib/systemd/linger/") + user, none);
  report.say(!is_volatile || lingers, "default run folder", run_dir,
             "logind removes it at your last log-out: run `loginctl enable-linger`, or set "
             "cluster.run_dir");
}

void examine_clock(DoctorReport& report) {
  const std::string source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const bool fast =
      source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
  report.say(fast, "clock source", source.empty() ? "unknown" : source,
             "reading the time is slow and costs throughput: boot with clocksource=tsc");
}

void examine_kernel(DoctorReport& report, size_t numa_nodes) {
  const std::vector<Finding> findings = kernel_findings("/", numa_nodes);
  for (const Finding& finding : findings) {
    report.say(finding.is_good, finding.what, finding.found, finding.advice);
  }
  const std::string command = boot_command(findings);
  report.say(command.empty(), "kernel settings at boot",
             command.empty() ? "none to change" : "to change",
             "to set these values at each boot, run as root: " + command);
}

/// Lists folders of clusters whose processes have all ended.
void examine_leftovers(DoctorReport& report) {
  const fs::path root = fs::path(default_config().cluster.run_dir).parent_path();
  std::error_code error;
  std::string dead;
  size_t running = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    // The folder of the config-file notes begins with a dot. Names of clusters do not.
    const bool is_hidden = entry.path().filename().string().starts_with('.');
    if (is_hidden || !entry.is_directory(error)) continue;
    Config config = default_config();
    config.cluster.run_dir = entry.path().string();
    if (running_launcher(config)) {
      ++running;
    } else {
      dead += (dead.empty() ? "" : ", ") + entry.path().string();
    }
  }
  report.say(true, "running clusters", std::to_string(running), "");
  report.say(
      dead.empty(), "leftovers", dead.empty() ? "none" : dead,
      "a cluster died there: its next `atoll up` removes the files (its memory is free already)");
}

Result<void> doctor(bool json) {
  DoctorReport report(!json);
  const Machine machine = Machine::detect();
  const Result<void> processor = check_processor();
  report.say(processor.has_value(), "processor",
             processor ? "has x86-64-v3" : processor.error().message,
             "no cluster can start on this machine: use a processor with x86-64-v3");
  report.say(machine.cpus.size() > 1, "CPUs", std::to_string(machine.cpus.size()),
             "the workers of all nodes share one CPU: more workers are not faster");
  report.say(true, "NUMA nodes", std::to_string(machine.numa_nodes.size()), "");
  examine_memory(report);
  examine_limits(report);
  examine_logind(report);
  examine_clock(report);
  examine_kernel(report, machine.numa_nodes.size());
  examine_leftovers(report);
  if (json) report.print_json();
  if (!processor) return make_error(ExitCode::resources, processor.error().message);
  return {};
}

}  // namespace

void add_doctor_command(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("doctor", "Examine this machine and give advice");
  const auto json = std::make_shared<bool>(false);
  add_json_option(*command, *json);
  command->callback([&invocation, json] { invocation.run = [json] { return doctor(*json); }; });
}

}  // namespace atolldb::cli
