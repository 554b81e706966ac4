#include "shared/logging/logger.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cerrno>

#include "shared/base/check.h"
#include "shared/base/path_errors.h"
#include "shared/base/unique_fd.h"

namespace atolldb {
namespace {

Logger with_settings(Logger logger, const std::string& level) {
  CHECK(!logger->name().empty());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %n %v");
  set_level(logger, level);
  logger->flush_on(spdlog::level::info);
  return logger;
}

}  // namespace

Result<Logger> make_file_logger(const std::string& name, const std::string& path,
                                const std::string& level) {
  // Opens the file first, to get an errno: spdlog's exception has the cause only as text.
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return std::unexpected(
        path_error(path, "cannot be opened", errno, "change cluster.log_dir in the config"));
  }
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    return with_settings(std::make_shared<spdlog::logger>(name, std::move(sink)), level);
  } catch (const spdlog::spdlog_ex& error) {
    return make_error(ExitCode::failed, "log file " + path + ": " + error.what() +
                                            ": change cluster.log_dir in the config");
  }
}

Logger make_stderr_logger(const std::string& name, const std::string& level) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return with_settings(std::make_shared<spdlog::logger>(name, std::move(sink)), level);
}

void set_level(const Logger& logger, const std::string& level) {
  // spdlog converts an unknown name to the level "off".
  CHECK(level == "off" || spdlog::level::from_str(level) != spdlog::level::off);
  logger->set_level(spdlog::level::from_str(level));
}

Logger make_silent_logger(const std::string& name) {
  return std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::null_sink_mt>());
}

}  // namespace atolldb
