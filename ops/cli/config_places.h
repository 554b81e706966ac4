// Checks of a config against this machine for `atoll config check`: folders, room, file systems and
// procedure libraries. It creates nothing.
#pragma once

#include <string>
#include <vector>

#include "shared/config/config.h"

namespace atolldb::cli {

/// Something about this machine that a cluster with the config would meet.
struct ConfigFinding {
  bool is_error = true;  // false: the cluster starts nevertheless
  std::string key;       // "cluster.data_dir"
  std::string text;      // "<path>: <what>: <what to do>"
};

/// Checks that each folder exists or can be made, that this user can write it, and that its file
/// system fits and has room.
std::vector<ConfigFinding> check_places(const Config& config);

/// Checks that each procedure library exists, and that a node can load all of them.
std::vector<ConfigFinding> check_libraries(const Config& config);

}  // namespace atolldb::cli
