// One child process, as its launcher sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "shared/base/error.h"
#include "shared/base/process_id.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config.h"
#include "shared/process/handover.h"
#include "shared/process/line_channel.h"

namespace atolldb {

struct Child {
  using Clock = std::chrono::steady_clock;

  std::string role;   // "coordinator", "node0"
  uint32_t node = 0;  // number of the node, or kCoordinator
  ProcessId id;
  std::string log_file;
  UniqueFd pidfd;
  UniqueFd channel;
  std::optional<LineReader> reader;
  Clock::time_point last_seen;     // when its latest line arrived
  std::string reached;             // its latest step: "prepared", "attached", ...
  std::string metrics;             // its metrics endpoint; empty: none
  std::string status_page;         // URL of its status page; empty: none
  std::string network;             // endpoint and key of its network port, as JSON; empty: none
  std::optional<Error> failure;    // the error that it reported before it ended
  std::optional<int> wait_status;  // set when it has ended and is reaped

  bool is_running() const { return !wait_status.has_value(); }
  /// Returns "node0 (pid 17)" for example.
  std::string name() const { return role + " (pid " + std::to_string(id.pid) + ")"; }
};

/// Starts `program` with the handover, whose channel is filled in here. Standard output and error
/// go to `log_file`. The child is killed when the calling *thread* ends.
Result<Child> spawn_child(const std::string& program, const std::string& log_file,
                          const std::string& cluster, Handover handover);

}  // namespace atolldb
