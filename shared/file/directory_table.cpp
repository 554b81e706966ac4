#include "shared/file/directory_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kTableVersion = 1;
constexpr std::string_view kLogRole = "log-";

/// Returns the number of a role log-<n>, or 0 for any other text.
uint64_t number_of(std::string_view role) {
  if (!role.starts_with(kLogRole)) return 0;
  role.remove_prefix(kLogRole.size());
  uint64_t number = 0;
  const auto [end, problem] = std::from_chars(role.data(), role.data() + role.size(), number);
  return problem == std::errc{} && end == role.data() + role.size() ? number : 0;
}

std::unexpected<Error> damaged_table(const std::string& path, const std::string& why) {
  return make_error(ExitCode::corruption, path + ": the table of directories " + why +
                                              ": restore the file from a backup");
}

bool is_row(const Json& row) {
  return row.is_object() && row.contains("role") && row["role"].is_string() &&
         row.contains("path") && row["path"].is_string();
}

}  // namespace

std::string directory_table_path(const std::string& data_dir) { return data_dir + "/directories"; }

std::string canonical_path(const std::string& path) {
  std::error_code error;
  std::string canonical = std::filesystem::weakly_canonical(path, error).string();
  if (error) canonical = std::filesystem::path(path).lexically_normal().string();
  while (canonical.size() > 1 && canonical.ends_with('/')) canonical.pop_back();
  return canonical;
}

Result<DirectoryTable> DirectoryTable::read(FileSystem& file_system, const std::string& data_dir) {
  DirectoryTable table(data_dir);
  const std::string path = directory_table_path(data_dir);
  ATOLL_ASSIGN(auto text, read_text_file(file_system, path));
  if (!text) return table;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_unsigned() ||
      !json.contains("last_number") || !json["last_number"].is_number_unsigned() ||
      !json.contains("directories") || !json["directories"].is_array()) {
    return damaged_table(path, "is damaged");
  }
  if (json["version"].get<uint64_t>() != kTableVersion) {
    return damaged_table(path, fmt::format("has version {}, this program knows {}",
                                           json["version"].get<uint64_t>(), kTableVersion));
  }
  table.last_number_ = json["last_number"].get<uint64_t>();
  for (const Json& row : json["directories"]) {
    if (!is_row(row)) return damaged_table(path, "is damaged");
    table.entries_.push_back({row["role"].get<std::string>(), row["path"].get<std::string>()});
  }
  return table;
}

Result<void> DirectoryTable::write(FileSystem& file_system) {
  if (!is_changed_) {
    // An earlier process may have been killed after it renamed the table's file, but before it
    // synced the directory. So this syncs the directory even if the table is unchanged. Without the
    // sync, the caller could make a file durable that names roles of this table, and a power cut
    // could then lose the table.
    return entries_.empty() ? Result<void>() : file_system.sync_directory(data_dir_);
  }
  Json rows = Json::array();
  for (const DirectoryRole& entry : entries_) {
    rows.push_back({{"role", entry.role}, {"path", entry.path}});
  }
  const Json json = {
      {"version", kTableVersion}, {"last_number", last_number_}, {"directories", rows}};
  ATOLL_TRY(replace_text_file(file_system, directory_table_path(data_dir_),
                              json.dump(2, ' ', false, Json::error_handler_t::replace)));
  is_changed_ = false;
  return {};
}

std::optional<std::string> DirectoryTable::path_of(std::string_view role) const {
  if (role == kDataRole) return data_dir_;
  const auto found = std::ranges::find(entries_, role, &DirectoryRole::role);
  if (found == entries_.end()) return std::nullopt;
  return found->path;
}

std::optional<std::string> DirectoryTable::role_of(const std::string& directory) const {
  if (directory == data_dir_) return std::string(kDataRole);
  const auto found = std::ranges::find(entries_, directory, &DirectoryRole::path);
  if (found != entries_.end()) return found->role;
  const std::string canonical = canonical_path(directory);
  if (canonical == canonical_path(data_dir_)) return std::string(kDataRole);
  for (const DirectoryRole& entry : entries_) {
    if (canonical_path(entry.path) == canonical) return entry.role;
  }
  return std::nullopt;
}

std::string DirectoryTable::add(const std::string& directory) {
  if (auto role = role_of(directory)) return *std::move(role);
  std::string role = fmt::format("{}{}", kLogRole, last_number_ + 1);
  set(role, directory);
  CHECK(role_of(directory) == role);
  return role;
}

void DirectoryTable::set(const std::string& role, const std::string& path) {
  if (path_of(role) == path) return;
  std::erase_if(entries_, [&](const DirectoryRole& entry) {
    return entry.role == role || entry.path == path;
  });
  entries_.push_back({role, path});
  last_number_ = std::max(last_number_, number_of(role));
  CHECK(role == kDataRole || path_of(role) == path);
  is_changed_ = true;
}

void DirectoryTable::remove(const std::string& role) {
  if (std::erase_if(entries_, [&](const DirectoryRole& entry) { return entry.role == role; }) !=
      0) {
    is_changed_ = true;
  }
}

}  // namespace atolldb
