// One log file per process. Loggers are passed along, never looked up: no global state.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

#include "shared/error.h"

namespace atolldb {

using Logger = std::shared_ptr<spdlog::logger>;

/// Appends to `path`; `name` ("node0") stands in every line. `level` as in the config.
Result<Logger> make_file_logger(const std::string& name, const std::string& path,
                                const std::string& level);
/// For processes whose standard error is their log file already, and for tests.
Logger make_stderr_logger(const std::string& name, const std::string& level);
Logger make_silent_logger(const std::string& name);

}  // namespace atolldb
