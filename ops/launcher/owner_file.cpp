#include "ops/launcher/owner_file.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

bool has_texts(const Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!json.contains(key) || !json[key].is_string()) return false;
  }
  return true;
}

std::optional<DirectoryLocation> parse_location(const Json& json) {
  if (!json.is_object() || !has_texts(json, {"path", "file_system", "machine", "hardware"})) {
    return std::nullopt;
  }
  if (!json.contains("inode") || !json["inode"].is_number_unsigned()) return std::nullopt;
  return DirectoryLocation{json["path"], json["file_system"], json["inode"].get<uint64_t>(),
                           json["machine"], json["hardware"]};
}

std::optional<DirectoryOwner> parse_owner(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !has_texts(json, {"id", "cluster", "data_dir"})) return std::nullopt;
  if (!json.contains("is_data_dir") || !json["is_data_dir"].is_boolean()) return std::nullopt;
  DirectoryOwner owner{json["id"], json["is_data_dir"], json["cluster"], json["data_dir"], "", {}};
  if (!json.contains("location")) return owner;
  owner.location = parse_location(json["location"]);
  if (!owner.location || !has_texts(json, {"role"})) return std::nullopt;
  owner.role = json["role"];
  return owner;
}

}  // namespace

std::string owner_path(const std::string& directory) { return directory + "/owner"; }

std::string adopting_path(const std::string& data_dir) {
  return owner_path(data_dir) + ".adopting";
}

std::string restoring_path(const std::string& data_dir) {
  return owner_path(data_dir) + ".restoring";
}

std::string new_owner_id() {
  std::array<uint64_t, 2> bits{};
  CHECK(getrandom(bits.data(), sizeof bits, 0) == static_cast<ssize_t>(sizeof bits));
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

uint64_t distant_incarnation(uint64_t largest) {
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  // This distance is so small that the numbers stay below 2^53 even after several generations of
  // copies. Every reader of JSON accepts numbers below 2^53.
  constexpr uint64_t kDistance = uint64_t{1} << 48;
  uint64_t random = 0;
  CHECK(getrandom(&random, sizeof random, 0) == static_cast<ssize_t>(sizeof random));
  return std::max(largest, static_cast<uint64_t>(now)) + random % kDistance;
}

Result<std::optional<DirectoryOwner>> read_owner(FileSystem& file_system,
                                                 const std::string& directory) {
  return read_owner_file(file_system, owner_path(directory));
}

Result<std::optional<DirectoryOwner>> read_owner_file(FileSystem& file_system,
                                                      const std::string& path) {
  ATOLL_ASSIGN(auto text, read_text_file(file_system, path));
  if (!text) return std::nullopt;
  auto owner = parse_owner(*text);
  if (!owner) {
    return make_error(
        ExitCode::corruption,
        path +
            ": does not name the owner of the directory: restore the file from a backup; "
            "in a log directory that holds only logs of this cluster, the file may be "
            "removed instead");
  }
  return owner;
}

Result<void> write_owner(FileSystem& file_system, const std::string& directory,
                         const DirectoryOwner& owner) {
  return write_owner_file(file_system, owner_path(directory), owner);
}

Result<void> write_owner_file(FileSystem& file_system, const std::string& path,
                              const DirectoryOwner& owner) {
  Json json = {{"id", owner.id},
               {"is_data_dir", owner.is_data_dir},
               {"cluster", owner.cluster},
               {"data_dir", owner.data_dir}};
  if (owner.location) {
    json["role"] = owner.role;
    json["location"] = {{"path", owner.location->path},
                        {"file_system", owner.location->file_system},
                        {"inode", owner.location->inode},
                        {"machine", owner.location->machine},
                        {"hardware", owner.location->hardware}};
  }
  return replace_text_file(file_system, path,
                           json.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace atolldb
