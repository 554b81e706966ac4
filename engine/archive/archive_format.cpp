#include "engine/archive/archive_format.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/archive/archive_json.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kIdentityKind = "identity";
constexpr std::string_view kRecordKind = "record";
constexpr std::string_view kRecordSuffix = ".json";

std::string record_file_name(uint64_t number) {
  return fmt::format("{:08}{}", number, kRecordSuffix);
}

Json json_of_file(const ArchivedFile& file) {
  CHECK(file.reach_epoch <= kMaxEpoch);
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"crc32c", file.crc32c},
          {"reach_epoch", file.reach_epoch}};
}

ArchivedFile archived_file_of(const Json& json) {
  ArchivedFile file = {json.at("name").get<std::string>(), json.at("bytes").get<uint64_t>(),
                       json.at("crc32c").get<uint32_t>(), json.at("reach_epoch").get<uint64_t>()};
  if (!parse_archived_log_name(file.name) || file.reach_epoch > kMaxEpoch) {
    throw Json::other_error::create(501, "invalid entry of a file", &json);
  }
  return file;
}

Json json_of_ddl(const DdlRecord& record) {
  CHECK(!record.name.empty());
  return {{"operation", static_cast<uint8_t>(record.operation)},
          {"id", record.storage_id},
          {"epoch", record.epoch},
          {"name", record.name},
          {"type", static_cast<uint8_t>(record.type)},
          {"payload_bytes", record.payload_bytes},
          {"record_count", record.record_count}};
}

DdlRecord ddl_of(const Json& json) {
  const auto operation = json.at("operation").get<uint8_t>();
  const bool is_known = operation == static_cast<uint8_t>(DdlOperation::create_storage) ||
                        operation == static_cast<uint8_t>(DdlOperation::drop_storage);
  if (!is_known) throw Json::other_error::create(501, "invalid DDL record", &json);
  return {static_cast<DdlOperation>(operation),
          json.at("id").get<uint32_t>(),
          json.at("epoch").get<uint64_t>(),
          json.at("name").get<std::string>(),
          static_cast<StorageType>(json.at("type").get<uint8_t>()),
          json.at("payload_bytes").get<uint64_t>(),
          json.at("record_count").get<uint64_t>()};
}

Json json_of_record(const ArchiveRecord& record) {
  Json incarnations = Json::array();
  for (const auto& incarnation : record.incarnations) incarnations.push_back(json_of(incarnation));
  Json ddl = Json::array();
  for (const DdlRecord& entry : record.ddl) ddl.push_back(json_of_ddl(entry));
  Json times = Json::array();
  for (const EpochTime& time : record.times) times.push_back({time.epoch, time.unix_ms});
  return {{"archive", record.archive},
          {"number", record.number},
          {"file", record.file ? json_of_file(*record.file) : Json()},
          {"incarnations", std::move(incarnations)},
          {"first_ddl", record.first_ddl},
          {"ddl", std::move(ddl)},
          {"times", std::move(times)}};
}

ArchiveRecord record_of(const Json& json) {
  ArchiveRecord record;
  record.archive = json.at("archive").get<std::string>();
  record.number = json.at("number").get<uint64_t>();
  if (!json.at("file").is_null()) record.file = archived_file_of(json.at("file"));
  for (const Json& incarnation : json.at("incarnations")) {
    record.incarnations.push_back(incarnation_of(incarnation));
  }
  record.first_ddl = json.at("first_ddl").get<uint64_t>();
  for (const Json& entry : json.at("ddl")) record.ddl.push_back(ddl_of(entry));
  for (const Json& time : json.at("times")) {
    record.times.push_back({time.at(0).get<uint64_t>(), time.at(1).get<uint64_t>()});
  }
  return record;
}

}  // namespace

std::string archived_log_name(uint32_t node, const LogFileName& log) {
  return path_in(node_directory_name(node), to_string(log));
}

std::optional<ArchivedLogName> parse_archived_log_name(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto node = parse_node_directory_name(name.substr(0, slash));
  const auto log = parse_log_file_name(name.substr(slash + 1));
  if (!node || !log) return std::nullopt;
  return ArchivedLogName{*node, *log};
}

std::string archive_record_name(uint64_t number) {
  CHECK(number != 0);
  return path_in(kRecordsFolder, record_file_name(number));
}

std::optional<uint64_t> parse_record_file_name(std::string_view name) {
  if (!name.ends_with(kRecordSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(0, name.size() - kRecordSuffix.size());
  uint64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (number == 0 || record_file_name(number) != name) return std::nullopt;
  return number;
}

std::string encode_identity(const ArchiveIdentity& identity) {
  CHECK(!identity.id.empty());
  return checked_json(kIdentityKind, json_of(identity));
}

std::string encode_record(const ArchiveRecord& record) {
  CHECK(record.number != 0 && !record.archive.empty());
  CHECK(std::ranges::is_sorted(record.times, {}, &EpochTime::epoch));
  CHECK(!record.file || parse_archived_log_name(record.file->name).has_value());
  CHECK(record.times.size() <= kMaxRecordTimes && record.ddl.size() <= kMaxRecordDdl);
  return checked_json(kRecordKind, json_of_record(record));
}

Result<ArchiveIdentity> decode_identity(const std::string& text, const std::string& path) {
  ATOLL_ASSIGN(const Json body, parse_checked_json(text, kIdentityKind, path));
  try {
    return identity_of(body);
  } catch (const Json::exception& error) {
    return damaged_json(path, fmt::format("is damaged: {}", error.what()));
  }
}

Result<ArchiveRecord> decode_record(const std::string& text, const std::string& path) {
  ATOLL_ASSIGN(const Json body, parse_checked_json(text, kRecordKind, path));
  try {
    return record_of(body);
  } catch (const Json::exception& error) {
    return damaged_json(path, fmt::format("is damaged: {}", error.what()));
  }
}

std::string new_archive_id() {
  uint64_t bits = 0;
  CHECK(getrandom(&bits, sizeof bits, 0) == static_cast<ssize_t>(sizeof bits));
  return fmt::format("{:016x}", bits);
}

}  // namespace atolldb
