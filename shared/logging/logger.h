// Creates the loggers of a process; each process has one log file. Loggers are passed as arguments,
// and there is no global state.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

using Logger = std::shared_ptr<spdlog::logger>;

/// Appends to `path`. Every line contains `name` ("node0"). `level`: a value of the key log.level.
Result<Logger> make_file_logger(const std::string& name, const std::string& path,
                                const std::string& level);
/// Returns a logger for a process whose standard error is already its log file, or for tests.
Logger make_stderr_logger(const std::string& name, const std::string& level);
Logger make_silent_logger(const std::string& name);
/// `level`: a value of the key log.level. Thread: any.
void set_level(const Logger& logger, const std::string& level);

}  // namespace atolldb
