// Data that the launcher gives each child: descriptors and names, as JSON in an inherited memfd.
// The child's command line has only the number of that descriptor, and role and cluster for
// display.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

struct Handover {
  std::string role;   // "coordinator", "node3"
  uint32_t node = 0;  // node id, or kCoordinator
  pid_t launcher_pid = 0;
  uint64_t cluster_uuid[2] = {0, 0};
  uint64_t incarnation = 0;
  uint64_t restarts = 0;           // restarts of the cluster by its launcher (cluster.restart)
  std::string config_text;         // effective config, in the format of to_toml
  int channel_fd = -1;             // lines to and from the launcher
  int lock_fd = -1;                // open file description that holds the cluster's lock (R31)
  std::vector<int> data_lock_fds;  // descriptors of locked data directories and of their lock files
  std::map<std::string, int> segments;  // "node0.pool" -> descriptor
};

/// Creates a close-on-exec memfd with the text of `handover`.
Result<UniqueFd> write_handover(const Handover& handover);
Result<Handover> read_handover(int fd);

}  // namespace atolldb
