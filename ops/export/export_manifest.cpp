#include "ops/export/export_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kExportFormatName = "atoll-export";

Json encode_table(const ExportTable& table) {
  Json columns = Json::array();
  for (const ExportColumn& column : table.columns) {
    columns.push_back({{"name", column.name}, {"type", column.type}});
  }
  Json parts = Json::array();
  for (const ExportPart& part : table.parts) {
    parts.push_back({{"low", part.range.low},
                     {"last", part.range.last},
                     {"complete", part.is_complete},
                     {"rows", part.rows},
                     {"bytes", part.bytes},
                     {"crc32c", part.crc32c}});
  }
  return {{"name", table.name}, {"columns", columns}, {"storage", table.storage}, {"parts", parts}};
}

Json encode_export(const ExportManifest& manifest) {
  Json tables = Json::array();
  for (const ExportTable& table : manifest.tables) tables.push_back(encode_table(table));
  return {{"pin", manifest.pin},
          {"uuid", manifest.cluster_uuid},
          {"snapshot", manifest.snapshot},
          {"epoch", manifest.epoch},
          {"schema_crc32c", manifest.schema_crc32c},
          {"input_crc32c", manifest.input_crc32c},
          {"complete", manifest.is_complete},
          {"tables", tables}};
}

/// Throws an exception of the JSON library if a member is missing or has another type.
ExportTable decode_table(const Json& json) {
  ExportTable table;
  table.name = json.at("name").get<std::string>();
  table.storage = json.value("storage", uint32_t{0});  // older manifests lack it
  for (const Json& column : json.at("columns")) {
    table.columns.push_back(
        {column.at("name").get<std::string>(), column.at("type").get<std::string>()});
  }
  for (const Json& part : json.at("parts")) {
    table.parts.push_back({{part.at("low").get<uint64_t>(), part.at("last").get<uint64_t>()},
                           part.at("complete").get<bool>(),
                           part.at("rows").get<uint64_t>(),
                           part.at("bytes").get<uint64_t>(),
                           part.at("crc32c").get<uint32_t>()});
  }
  return table;
}

/// Throws an exception of the JSON library if a member is missing or has another type.
ExportManifest decode_export(const Json& json) {
  ExportManifest manifest;
  manifest.pin = json.at("pin").get<std::string>();
  manifest.cluster_uuid = json.at("uuid").get<ClusterUuid>();
  manifest.snapshot = json.at("snapshot").get<uint32_t>();
  manifest.epoch = json.at("epoch").get<uint64_t>();
  manifest.schema_crc32c = json.at("schema_crc32c").get<uint32_t>();
  manifest.input_crc32c = json.value("input_crc32c", uint32_t{0});  // older manifests lack it
  manifest.is_complete = json.at("complete").get<bool>();
  for (const Json& table : json.at("tables")) manifest.tables.push_back(decode_table(table));
  return manifest;
}

uint32_t crc_of_json(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::unexpected<Error> damaged_export(const std::string& path, const std::string& reason) {
  return make_error(ExitCode::corruption,
                    fmt::format("{}: {}: remove the directory and export again", path, reason));
}

}  // namespace

bool ExportManifest::is_planned() const {
  return std::ranges::all_of(tables, [](const ExportTable& table) { return !table.parts.empty(); });
}

std::string export_manifest_path(const std::string& directory) {
  return path_in(directory, "export.json");
}

std::string export_schema_path(const std::string& directory) {
  return path_in(directory, "schema.toml");
}

std::string table_folder(const std::string& directory, const std::string& table) {
  return path_in(directory, table);
}

std::string part_name(size_t part) {
  CHECK(part < kMaxTableParts);
  return fmt::format("part-{:04}.csv", part);
}

Result<void> write_export_manifest(FileSystem& file_system, const std::string& directory,
                                   const ExportManifest& manifest) {
  const Json body = encode_export(manifest);
  const Json whole = {{"format", kExportFormatName},
                      {"version", kExportVersion},
                      {"crc32c", crc_of_json(body)},
                      {"export", body}};
  return replace_text_file(file_system, export_manifest_path(directory),
                           whole.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<std::optional<ExportManifest>> read_export_manifest(FileSystem& file_system,
                                                           const std::string& directory) {
  const std::string path = export_manifest_path(directory);
  ATOLL_ASSIGN(const auto text, read_text_file(file_system, path));
  if (!text) return std::nullopt;
  const Json whole = Json::parse(*text, nullptr, false);
  if (!whole.is_object() || whole.value("format", Json()) != kExportFormatName) {
    return damaged_export(path, "is damaged");
  }
  if (whole.value("version", Json()) != kExportVersion) {
    return damaged_export(path, fmt::format("has another version than {}", kExportVersion));
  }
  const Json body = whole.value("export", Json());
  if (whole.value("crc32c", Json()) != crc_of_json(body)) {
    return damaged_export(path, "is damaged: its CRC32C differs");
  }
  try {
    return decode_export(body);
  } catch (const Json::exception& error) {
    return damaged_export(path, fmt::format("is damaged: {}", error.what()));
  }
}

}  // namespace atolldb
