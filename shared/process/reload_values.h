// The part of a reload (`atoll config reload`) that is the same in all processes of a cluster.
#pragma once

#include <nlohmann/json.hpp>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// Applies the new values to the config and to the level of the logger. `values`: TOML texts by
/// key, for example {"gleaner.interval": "\"1min\""}. Returns the new config. Returns code config,
/// and changes nothing, if a value is wrong or its key cannot change at run time. Thread: any, one
/// at a time.
Result<Config> reload_values(Config& config, const nlohmann::json& values, const Logger& logger);

}  // namespace atolldb
