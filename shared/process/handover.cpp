#include "shared/process/handover.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {

Result<UniqueFd> write_handover(const Handover& handover) {
  CHECK(!handover.role.empty());
  CHECK(handover.node <= kCoordinator);
  CHECK(handover.launcher_pid > 0);
  const nlohmann::json json = {{"role", handover.role},
                               {"node", handover.node},
                               {"launcher_pid", handover.launcher_pid},
                               {"uuid0", handover.cluster_uuid[0]},
                               {"uuid1", handover.cluster_uuid[1]},
                               {"incarnation", handover.incarnation},
                               {"restarts", handover.restarts},
                               {"config", handover.config_text},
                               {"channel_fd", handover.channel_fd},
                               {"lock_fd", handover.lock_fd},
                               {"data_lock_fds", handover.data_lock_fds},
                               {"segments", handover.segments}};
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  UniqueFd fd(memfd_create("atoll.handover", MFD_CLOEXEC));
  if (!fd.is_open() || ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0 ||
      pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return make_error(ExitCode::resources, "handover to " + handover.role +
                                               ": memfd: " + std::strerror(errno) +
                                               ": free memory, or raise `ulimit -n`");
  }
  return fd;
}

Result<Handover> read_handover(int fd) {
  struct stat info{};
  if (fstat(fd, &info) != 0 || info.st_size <= 0) {
    return make_error(ExitCode::usage, "--handover " + std::to_string(fd) +
                                           ": no descriptor from a launcher: start clusters with "
                                           "`atoll up`");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (pread(fd, text.data(), text.size(), 0) != info.st_size) {
    return make_error(ExitCode::failed, std::string("handover: read: ") + std::strerror(errno) +
                                            ": start clusters with `atoll up`");
  }
  try {
    const auto json = nlohmann::json::parse(text);
    Handover handover;
    handover.role = json.at("role").get<std::string>();
    handover.node = json.at("node").get<uint32_t>();
    handover.launcher_pid = json.at("launcher_pid").get<pid_t>();
    handover.cluster_uuid[0] = json.at("uuid0").get<uint64_t>();
    handover.cluster_uuid[1] = json.at("uuid1").get<uint64_t>();
    handover.incarnation = json.at("incarnation").get<uint64_t>();
    handover.restarts = json.at("restarts").get<uint64_t>();
    handover.config_text = json.at("config").get<std::string>();
    handover.channel_fd = json.at("channel_fd").get<int>();
    handover.lock_fd = json.at("lock_fd").get<int>();
    handover.data_lock_fds = json.at("data_lock_fds").get<std::vector<int>>();
    handover.segments = json.at("segments").get<std::map<std::string, int>>();
    return handover;
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::usage,
                      std::string("handover: the launcher is of another version: ") + error.what() +
                          ": start clusters with `atoll up`");
  }
}

}  // namespace atolldb
