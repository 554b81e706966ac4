#include <cstdlib>
#include <string>

#include "shared/base/check.h"
#include "shared/config/config.h"
#include "shared/config/config_keys.h"

namespace atolldb {

std::optional<ConfigOverride> parse_override(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  return ConfigOverride{"--set " + text, text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<ConfigOverride> environment_overrides() {
  std::vector<ConfigOverride> found;
  for (const ConfigKey& key : config_keys()) {
    CHECK(!key.section.empty() && !key.name.empty());
    std::string name = "ATOLL_" + std::string(key.section) + "_" + std::string(key.name);
    for (char& c : name) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    const char* value = std::getenv(name.c_str());
    if (value != nullptr) found.push_back({name, key.full_name(), value});
  }
  return found;
}

}  // namespace atolldb
