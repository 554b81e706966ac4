// Shared parts of `atoll config`.
#pragma once

#include <string>

#include "ops/cli/cluster_finder.h"
#include "shared/base/error.h"

namespace atolldb::cli {

struct ConfigFileOptions {
  std::string file;  // FILE of the command line
  bool any_machine = false;
  bool dry_run = false;
  bool json = false;
};

void print_config_json(const Json& json);

/// Returns the effective values as {"values": {"memory": {"volatile_pool": 536870912, ...}, ...}}.
Json config_values_json(const Config& config);

/// Applies the keys of the file, the environment and --set that can change at run time to the
/// running cluster. Changes nothing if a key differs that cannot.
Result<void> reload_config(const ClusterChoice& choice, const ConfigFileOptions& options);

}  // namespace atolldb::cli
