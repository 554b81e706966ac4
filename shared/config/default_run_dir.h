// The default of cluster.run_dir. Clients include this header instead of the whole config.
#pragma once

#include <string>

namespace atolldb {

/// Returns the run_dir of a cluster with this name whose config sets none. It reads only
/// environment variables.
std::string default_run_dir(const std::string& cluster);

}  // namespace atolldb
