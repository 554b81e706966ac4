// Checks of the relations between values of a config, and between a config and the machine.
#pragma once

#include <functional>
#include <string>

#include "shared/config/config.h"

namespace atolldb {

/// Receives `key`, `expected`, `got` and `hint` of one mistake.
using ConfigReport =
    std::function<void(std::string key, std::string expected, std::string got, std::string hint)>;

/// REQUIRES: every value is in the range of its key.
void check_config(const Config& config, const Machine& machine, const ConfigReport& report);

/// Fills in directories and endpoints that the file left empty, from the user's environment.
void resolve_defaults(Config& config);

/// Returns an absolute path without "." and "..". "~/" is the user's home; relative paths start at
/// `base`.
std::string absolute_path(const std::string& path, const std::string& base);

}  // namespace atolldb
