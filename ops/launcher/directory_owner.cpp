#include "ops/launcher/directory_owner.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "engine/log/log_owner.h"
#include "engine/log/savepoint.h"
#include "shared/check.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

struct DirectoryOwner {
  std::string id;            // of the cluster's data directory
  bool is_data_dir = false;  // false: it has logs of that data directory's cluster
  std::string cluster;       // for people, like data_dir: both may have changed since
  std::string data_dir;
};

std::string owner_path(const std::string& directory) { return directory + "/owner"; }

std::string random_id() {
  std::array<uint64_t, 2> bits{};
  CHECK(getrandom(bits.data(), sizeof bits, 0) == static_cast<ssize_t>(sizeof bits));
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

std::optional<DirectoryOwner> parse_owner(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  for (const char* key : {"id", "cluster", "data_dir"}) {
    if (!json.contains(key) || !json[key].is_string()) return std::nullopt;
  }
  if (!json.contains("is_data_dir") || !json["is_data_dir"].is_boolean()) return std::nullopt;
  return DirectoryOwner{json["id"], json["is_data_dir"], json["cluster"], json["data_dir"]};
}

/// Nothing if the directory has no owner yet.
Result<std::optional<DirectoryOwner>> read_owner(FileSystem& file_system,
                                                 const std::string& directory) {
  const std::string path = owner_path(directory);
  auto exists = file_system.exists(path);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return std::nullopt;
  auto file = file_system.open_for_reading(path);
  if (!file) return std::unexpected(file.error());
  constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
  std::string text(kMaxBytes, '\0');
  auto count = (*file)->read(0, std::as_writable_bytes(std::span(text)));
  if (!count) return std::unexpected(count.error());
  text.resize(*count);
  auto owner = parse_owner(text);
  if (!owner) {
    return make_error(ExitCode::corruption,
                      path +
                          ": does not say whose directory this is: restore the file, or, if all "
                          "logs in it are this cluster's, remove it");
  }
  return owner;
}

/// The file appears whole, by a rename: a crash leaves no owner, or this one.
Result<void> write_owner(FileSystem& file_system, const std::string& directory,
                         const DirectoryOwner& owner) {
  const Json json = {{"id", owner.id},
                     {"is_data_dir", owner.is_data_dir},
                     {"cluster", owner.cluster},
                     {"data_dir", owner.data_dir}};
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  const uint64_t bytes = (text.size() / kIoBlockBytes + 1) * kIoBlockBytes;
  text.resize(bytes, '\n');
  const std::unique_ptr<void, decltype(&std::free)> aligned(
      std::aligned_alloc(kIoBlockBytes, bytes), &std::free);
  CHECK(aligned != nullptr);
  std::memcpy(aligned.get(), text.data(), bytes);

  const std::string next = owner_path(directory) + ".new";
  auto left = file_system.exists(next);
  if (!left) return std::unexpected(left.error());
  if (*left) {
    if (auto removed = file_system.remove(next); !removed) return removed;
  }
  auto file = file_system.create(next, bytes);
  if (!file) return std::unexpected(file.error());
  const std::span content(static_cast<const std::byte*>(aligned.get()), bytes);
  if (auto written = (*file)->write(0, std::array{content}); !written) return written;
  if (auto synced = (*file)->sync(); !synced) return synced;
  if (auto renamed = file_system.rename(next, owner_path(directory)); !renamed) return renamed;
  return file_system.sync_directory(directory);
}

std::unexpected<Error> refusal(const std::string& directory, const DirectoryOwner& owner,
                               const char* key) {
  return make_error(
      ExitCode::failed,
      fmt::format("{}: is {} of cluster \"{}\" (data_dir {}), which keeps its commits there: give "
                  "this cluster its own in {}, or move the old files aside if that cluster is gone",
                  directory, owner.is_data_dir ? "the data directory" : "a log directory",
                  owner.cluster, owner.data_dir, key));
}

/// A log in a directory without an owner must be one that this cluster's savepoint knows: somebody
/// may have removed the owner file, or copied logs here.
Result<void> refuse_unowned_logs(FileSystem& file_system, const std::string& data_dir,
                                 const std::vector<std::string>& directories) {
  if (directories.empty()) return {};
  auto files = log_files_in(file_system, {directories.begin(), directories.end()});
  if (!files) return std::unexpected(files.error());
  if (files->empty()) return {};
  auto savepoint = read_savepoint(file_system, data_dir);
  // Damaged: nothing is known to be its own.
  const bool is_known = savepoint && *savepoint;
  if (!savepoint && savepoint.error().code != ExitCode::corruption) {
    return std::unexpected(savepoint.error());
  }
  for (const LogFilePlace& place : *files) {
    auto owner = owner_of(file_system, place);
    if (!owner) return std::unexpected(owner.error());
    if (!*owner || (is_known && **owner == (*savepoint)->savepoint.cluster_uuid)) continue;
    return make_error(ExitCode::failed,
                      path_of(place) +
                          ": is a log of another cluster: give this cluster its own "
                          "directories, or move that cluster's files elsewhere");
  }
  return {};
}

}  // namespace

Result<void> claim_directories(FileSystem& file_system, const std::string& cluster,
                               const std::string& data_dir,
                               const std::vector<std::string>& log_directories) {
  auto own = read_owner(file_system, data_dir);
  if (!own) return std::unexpected(own.error());
  if (*own && !(*own)->is_data_dir) return refusal(data_dir, **own, "cluster.data_dir");
  std::vector<std::string> free;
  for (const std::string& directory : log_directories) {
    auto owner = read_owner(file_system, directory);
    if (!owner) return std::unexpected(owner.error());
    if (!*owner) {
      free.push_back(directory);
    } else if ((*owner)->is_data_dir || !*own || (*own)->id != (*owner)->id) {
      return refusal(directory, **owner, "`directories` of its [[node]] tables");
    }
  }
  if (auto refused = refuse_unowned_logs(file_system, data_dir, free); !refused) return refused;
  if (!*own) {
    *own = DirectoryOwner{random_id(), true, cluster, data_dir};
    if (auto written = write_owner(file_system, data_dir, **own); !written) return written;
  }
  for (const std::string& directory : free) {
    auto written = write_owner(file_system, directory, {(*own)->id, false, cluster, data_dir});
    if (!written) return written;
  }
  return {};
}

}  // namespace atolldb
