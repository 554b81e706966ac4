#include "ops/launcher/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "shared/base/path_errors.h"
#include "shared/base/pointer.h"
#include "shared/base/try.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIpc = "ipc://";

std::unexpected<Error> folder_error(const std::string& path, const char* what) {
  return std::unexpected(path_error(path, what, errno, "change cluster.run_dir in the config"));
}

}  // namespace

Result<RunFolder> RunFolder::acquire(const Config& config) {
  const std::string& folder = config.cluster.run_dir;
  // Checks the parents before it makes a folder. If root made a folder in another user's runtime
  // folder, that user could not start a cluster there any more.
  ATOLL_TRY(check_parents(folder, "cluster.run_dir"));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    errno = error.value();
    return folder_error(folder, "cannot be made");
  }
  // Another user may have made this folder, or a folder above it. Sockets are not safe in a folder
  // that another user can rename or replace.
  ATOLL_TRY(check_owned(folder, "cluster.run_dir"));
  if (chmod(folder.c_str(), 0700) != 0) return folder_error(folder, "cannot be made private");
  ATOLL_ASSIGN(ProcessLock lock,
               ProcessLock::acquire(lock_path(config), config.cluster.name, "cluster.run_dir"));
  RunFolder run_folder(config, std::move(lock));
  if (run_folder.lock_.was_left()) {
    const auto& launcher = run_folder.lock_.previous_launcher();
    run_folder.leftovers_ =
        "removed the files of a dead cluster in " + folder +
        (launcher ? " (its launcher was pid " + std::to_string(launcher->pid) + ")"
                  : std::string());
  }
  run_folder.remove_files();
  return run_folder;
}

RunFolder::~RunFolder() {
  if (!lock_.is_held() || !is_in_place()) return;
  remove_files();
  unlink(
      lock_path(config_).c_str());  // while the lock is held, so that a waiting process notices it
  rmdir(config_.cluster.run_dir.c_str());
}

void RunFolder::take_endpoint() {
  has_endpoint_ = true;
  remove_control_socket();
}

Result<void> RunFolder::await_restart() {
  remove_endpoints();
  return lock_.write_processes({});
}

void RunFolder::remove_files() {
  remove_endpoints();
  unlink(running_config_path(config_).c_str());
  unlink(restarts_path(config_).c_str());
}

void RunFolder::remove_endpoints() {
  unlink(endpoints_path(config_).c_str());
  unlink(start_path(config_).c_str());
  for (uint32_t node = 0; node < kMaxNodes; ++node) {
    unlink(node_socket_path(config_, node).c_str());
    unlink(session_socket_path(config_.cluster.run_dir, node).c_str());
  }
  remove_control_socket();
}

void RunFolder::remove_control_socket() {
  const std::string& endpoint = config_.control.endpoint;
  if (!endpoint.starts_with(kIpc)) return;
  const std::string socket = endpoint.substr(kIpc.size());
  // A socket outside the run folder may belong to a live cluster with another run folder.
  if (has_endpoint_ || socket.starts_with(config_.cluster.run_dir + "/")) unlink(socket.c_str());
}

Result<void> RunFolder::write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  {
    errno = 0;
    std::ofstream file(temporary, std::ios::trunc);
    file << text;
    if (!file.flush()) return folder_error(temporary, "cannot be written");
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return folder_error(path, "cannot be written");
  return {};
}

Result<void> check_distinct_folders(const Config& config) {
  std::vector<std::pair<const char*, std::string>> folders = {
      {"cluster.run_dir", config.cluster.run_dir}, {"cluster.log_dir", config.cluster.log_dir}};
  if (config.durability.mode == DurabilityMode::durable) {
    folders.emplace_back("cluster.data_dir", config.cluster.data_dir);
  }
  for (size_t first = 0; first < folders.size(); ++first) {
    for (size_t second = first + 1; second < folders.size(); ++second) {
      std::error_code error;
      if (!fs::equivalent(folders[first].second, folders[second].second, error) || error) continue;
      return make_error(ExitCode::config,
                        fmt::format("{} ({}) and {} ({}): are the same folder: give each its own",
                                    folders[first].first, folders[first].second,
                                    folders[second].first, folders[second].second));
    }
  }
  return {};
}

std::optional<ProcessId> running_launcher(const Config& config) {
  return launcher_of_lock(lock_path(config));
}

}  // namespace atolldb
