#include "ops/backup/backup_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

constexpr std::string_view kFormatName = "atoll-backup";
constexpr std::array<std::string_view, 8> kKindNames = {
    "savepoint",      "ddl_log", "epoch_times",         "snapshot_metadata",
    "snapshot_pages", "log",     "checkpoint_metadata", "checkpoint_records"};

std::string hex_text(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Parses exactly two hexadecimal digits per byte.
bool parse_hex(std::string_view text, std::span<uint8_t> bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char* first = text.data() + 2 * i;
    const auto [end, problem] = std::from_chars(first, first + 2, bytes[i], 16);
    if (problem != std::errc{} || end != first + 2) return false;
  }
  return true;
}

std::string crc_text(uint32_t crc) { return fmt::format("{:08x}", crc); }

std::optional<uint32_t> parse_crc(std::string_view text) {
  uint32_t crc = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  if (problem != std::errc{} || end != text.data() + text.size() || text.size() != 8) {
    return std::nullopt;
  }
  return crc;
}

std::string dump_json(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

uint32_t crc_of_text(const std::string& text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

nlohmann::json encode_manifest(const BackupManifest& manifest) {
  nlohmann::json snapshots = nlohmann::json::array();
  for (const BackupSnapshot& snapshot : manifest.snapshots) {
    snapshots.push_back({{"id", snapshot.id}, {"epoch", snapshot.epoch}});
  }
  nlohmann::json files = nlohmann::json::array();
  for (const BackupFile& file : manifest.files) {
    files.push_back({{"path", file.path},
                     {"kind", to_string(file.kind)},
                     {"bytes", file.bytes},
                     {"crc32c", crc_text(file.crc32c)},
                     {"final", file.is_final}});
  }
  return {{"id", manifest.id},
          {"cluster", manifest.cluster},
          {"data_id", manifest.data_id},
          {"uuid", hex_text(manifest.cluster_uuid)},
          {"incarnation", manifest.incarnation},
          {"oldest_epoch", manifest.oldest_epoch},
          {"durable_epoch", manifest.durable_epoch},
          {"started_ms", manifest.started_ms},
          {"finished_ms", manifest.finished_ms},
          {"linked_bytes", manifest.linked_bytes},
          {"snapshots", snapshots},
          {"files", files}};
}

/// Returns whether the path has exactly one folder and one name, so that it stays in the backup.
bool is_path_in_backup(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view folder = path.substr(0, slash);
  const std::string_view name = path.substr(slash + 1);
  const bool is_folder = folder == "coordinator" || parse_node_directory_name(folder).has_value();
  return is_folder && !name.empty() && name != "." && name != ".." && !name.contains('/');
}

BackupFile decode_file_entry(const nlohmann::json& json) {
  BackupFile file;
  file.path = json.at("path").get<std::string>();
  const auto kind = std::ranges::find(kKindNames, json.at("kind").get<std::string>());
  const auto crc = parse_crc(json.at("crc32c").get<std::string>());
  if (kind == kKindNames.end() || !crc || !is_path_in_backup(file.path)) {
    throw nlohmann::json::other_error::create(501, "invalid entry of a file", &json);
  }
  file.kind = static_cast<BackupFileKind>(kind - kKindNames.begin());
  file.bytes = json.at("bytes").get<uint64_t>();
  file.crc32c = *crc;
  file.is_final = json.at("final").get<bool>();
  return file;
}

/// Throws an exception of the JSON library if a member is missing or has another type.
BackupManifest decode_manifest(const nlohmann::json& json) {
  BackupManifest manifest;
  manifest.id = json.at("id").get<std::string>();
  manifest.cluster = json.at("cluster").get<std::string>();
  manifest.data_id = json.at("data_id").get<std::string>();
  if (!parse_hex(json.at("uuid").get<std::string>(), manifest.cluster_uuid)) {
    throw nlohmann::json::other_error::create(501, "invalid uuid", &json);
  }
  manifest.incarnation = json.at("incarnation").get<uint64_t>();
  manifest.oldest_epoch = json.at("oldest_epoch").get<uint64_t>();
  manifest.durable_epoch = json.at("durable_epoch").get<uint64_t>();
  manifest.started_ms = json.at("started_ms").get<uint64_t>();
  manifest.finished_ms = json.at("finished_ms").get<uint64_t>();
  manifest.linked_bytes = json.at("linked_bytes").get<uint64_t>();
  for (const nlohmann::json& snapshot : json.at("snapshots")) {
    manifest.snapshots.push_back(
        {snapshot.at("id").get<uint32_t>(), snapshot.at("epoch").get<uint64_t>()});
  }
  for (const nlohmann::json& file : json.at("files"))
    manifest.files.push_back(decode_file_entry(file));
  const bool is_sensible =
      manifest.oldest_epoch <= manifest.durable_epoch && manifest.durable_epoch <= kMaxEpoch &&
      std::ranges::is_sorted(manifest.files, std::ranges::less_equal(), &BackupFile::path) &&
      std::ranges::is_sorted(manifest.snapshots, {}, &BackupSnapshot::id);
  if (!is_sensible) throw nlohmann::json::other_error::create(501, "invalid content", &json);
  return manifest;
}

std::unexpected<Error> damaged_manifest(const std::string& path, const std::string& why) {
  return make_error(ExitCode::corruption,
                    fmt::format("{}: the manifest of a backup {}: use another backup", path, why));
}

}  // namespace

std::string_view to_string(BackupFileKind kind) {
  CHECK(static_cast<size_t>(kind) < kKindNames.size());
  return kKindNames[static_cast<size_t>(kind)];
}

uint64_t BackupManifest::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const BackupFile& file) { return sum + file.bytes; });
}

const BackupFile* BackupManifest::find(const std::string& path) const {
  const auto found = std::ranges::lower_bound(files, path, {}, &BackupFile::path);
  return found == files.end() || found->path != path ? nullptr : &*found;
}

std::string manifest_path(const std::string& folder) { return path_in(folder, "manifest.json"); }

Result<void> write_manifest(FileSystem& file_system, const std::string& folder,
                            const BackupManifest& manifest) {
  CHECK(manifest.oldest_epoch <= manifest.durable_epoch);
  const nlohmann::json body = encode_manifest(manifest);
  const nlohmann::json whole = {{"format", kFormatName},
                                {"version", kBackupVersion},
                                {"crc32c", crc_text(crc_of_text(dump_json(body, -1)))},
                                {"backup", body}};
  return replace_text_file(file_system, manifest_path(folder), dump_json(whole, 1));
}

Result<std::optional<BackupManifest>> read_manifest(FileSystem& file_system,
                                                    const std::string& folder) {
  const std::string path = manifest_path(folder);
  ATOLL_ASSIGN(const auto text, read_text_file(file_system, path));
  if (!text) return std::nullopt;
  const nlohmann::json whole = nlohmann::json::parse(*text, nullptr, false);
  if (!whole.is_object() || whole.value("format", nlohmann::json()) != kFormatName) {
    return damaged_manifest(path, "is damaged");
  }
  const nlohmann::json version = whole.value("version", nlohmann::json());
  if (version != kBackupVersion) {
    return damaged_manifest(path, fmt::format("has version {}, this program reads version {}",
                                              dump_json(version, -1), kBackupVersion));
  }
  const nlohmann::json body = whole.value("backup", nlohmann::json());
  const std::string computed = crc_text(crc_of_text(dump_json(body, -1)));
  const nlohmann::json stored = whole.value("crc32c", nlohmann::json());
  if (stored != computed) {
    return damaged_manifest(path, fmt::format("is damaged: its CRC32C is {}, it says {}", computed,
                                              dump_json(stored, -1)));
  }
  try {
    return decode_manifest(body);
  } catch (const nlohmann::json::exception& error) {
    return damaged_manifest(path, fmt::format("is damaged: {}", error.what()));
  }
}

}  // namespace atolldb
