#include "engine/archive/archive_json.h"

#include <fmt/format.h>

#include <charconv>
#include <span>
#include <utility>

#include "engine/format/crc32c.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kArchiveFormat = "atoll-archive";

std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string crc_of_body(const Json& body) {
  const std::string text = compact(body);
  return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text.data(), text.size()))));
}

std::string uuid_text(const ClusterUuid& uuid) {
  std::string text;
  for (const uint8_t byte : uuid) text += fmt::format("{:02x}", byte);
  CHECK(text.size() == 2 * uuid.size());
  return text;
}

/// Parses exactly two hexadecimal digits per byte.
ClusterUuid parse_uuid(const Json& json) {
  const auto text = json.get<std::string>();
  ClusterUuid uuid = {};
  if (text.size() != 2 * uuid.size()) throw Json::other_error::create(501, "invalid uuid", &json);
  for (size_t i = 0; i < uuid.size(); ++i) {
    const char* first = text.data() + 2 * i;
    const auto [end, problem] = std::from_chars(first, first + 2, uuid[i], 16);
    if (problem != std::errc{} || end != first + 2) {
      throw Json::other_error::create(501, "invalid uuid", &json);
    }
  }
  return uuid;
}

}  // namespace

std::unexpected<Error> damaged_json(const std::string& path, std::string_view why) {
  return make_error(ExitCode::corruption,
                    fmt::format("{}: {}: restore the file, or begin a new archive in another "
                                "directory and take a backup",
                                path, why));
}

std::string checked_json(std::string_view kind, const Json& body) {
  CHECK(body.is_object() && !kind.empty());
  const Json whole = {{"format", kArchiveFormat},
                      {"version", kArchiveVersion},
                      {"kind", kind},
                      {"crc32c", crc_of_body(body)},
                      {"body", body}};
  return compact(whole);
}

Result<Json> parse_checked_json(const std::string& text, std::string_view kind,
                                const std::string& path) {
  CHECK(!kind.empty() && !path.empty());
  const Json whole = Json::parse(text, nullptr, false);
  if (!whole.is_object() || whole.value("format", Json()) != kArchiveFormat ||
      whole.value("kind", Json()) != kind) {
    return damaged_json(path, "is damaged");
  }
  const Json version = whole.value("version", Json());
  if (version != kArchiveVersion) {
    return damaged_json(path, fmt::format("has version {}, this program reads version {}",
                                          compact(version), kArchiveVersion));
  }
  Json body = whole.value("body", Json());
  const std::string computed = crc_of_body(body);
  const Json stored = whole.value("crc32c", Json());
  if (stored != computed) {
    return damaged_json(
        path, fmt::format("is damaged: its CRC32C is {}, it says {}", computed, compact(stored)));
  }
  return body;
}

Json json_of(const ArchiveIdentity& identity) {
  CHECK(!identity.id.empty());
  return {{"id", identity.id},
          {"data_id", identity.data_id},
          {"uuid", uuid_text(identity.cluster_uuid)},
          {"cluster", identity.cluster}};
}

ArchiveIdentity identity_of(const Json& json) {
  return {json.at("id").get<std::string>(), json.at("data_id").get<std::string>(),
          parse_uuid(json.at("uuid")), json.at("cluster").get<std::string>()};
}

Json json_of(const ArchivedIncarnation& incarnation) {
  CHECK(incarnation.number != 0 && incarnation.start_epoch >= 1);
  CHECK(incarnation.base_epoch < incarnation.start_epoch);
  CHECK(!incarnation.cut_epoch || *incarnation.cut_epoch + 1 >= incarnation.start_epoch);
  Json loggers = Json::array();
  for (const LoggerName& name : incarnation.loggers) loggers.push_back({name.node, name.logger});
  return {{"number", incarnation.number},
          {"start_epoch", incarnation.start_epoch},
          {"cut_epoch", incarnation.cut_epoch ? Json(*incarnation.cut_epoch) : Json()},
          {"base_epoch", incarnation.base_epoch},
          {"history", incarnation.history},
          {"loggers", std::move(loggers)}};
}

ArchivedIncarnation incarnation_of(const Json& json) {
  ArchivedIncarnation incarnation;
  incarnation.number = json.at("number").get<uint64_t>();
  incarnation.start_epoch = json.at("start_epoch").get<uint64_t>();
  if (!json.at("cut_epoch").is_null()) {
    incarnation.cut_epoch = json.at("cut_epoch").get<uint64_t>();
  }
  incarnation.base_epoch = json.at("base_epoch").get<uint64_t>();
  incarnation.history = json.at("history").get<uint64_t>();
  for (const Json& logger : json.at("loggers")) {
    incarnation.loggers.push_back({logger.at(0).get<uint16_t>(), logger.at(1).get<uint16_t>()});
  }
  const bool is_sensible =
      incarnation.number != 0 && incarnation.start_epoch >= 1 &&
      incarnation.start_epoch <= kMaxEpoch && incarnation.base_epoch < incarnation.start_epoch &&
      (!incarnation.cut_epoch || (*incarnation.cut_epoch + 1 >= incarnation.start_epoch &&
                                  *incarnation.cut_epoch <= kMaxEpoch));
  if (!is_sensible) throw Json::other_error::create(501, "invalid incarnation", &json);
  return incarnation;
}

}  // namespace atolldb
