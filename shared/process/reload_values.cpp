#include "shared/process/reload_values.h"

#include <string>
#include <vector>

#include "shared/config/config_reload.h"

namespace atolldb {

Result<Config> reload_values(Config& config, const nlohmann::json& values, const Logger& logger) {
  const auto refuse = [](const std::string& why) {
    return make_error(ExitCode::config, "config.reload: " + why + ": nothing was changed");
  };
  if (!values.is_object()) return refuse("the values are no object");
  std::vector<ConfigOverride> overrides;
  for (const auto& [key, value] : values.items()) {
    if (!value.is_string()) return refuse(key + ": its value is no text");
    overrides.push_back({"config.reload", key, value.get<std::string>()});
  }
  auto wanted = changed_config(config, Machine::detect(), overrides);
  if (!wanted) return refuse(wanted.error().front().to_string());
  for (const ConfigChange& change : config_changes(config, *wanted)) {
    if (!change.is_reloadable) return refuse(change.key + " cannot change at run time");
    logger->info("config: {} changes from {} to {}", change.key, change.from, change.to);
  }
  set_live_values(config, *wanted);
  if (values.contains("log.level")) set_level(logger, wanted->log.level);
  return *std::move(wanted);
}

}  // namespace atolldb
