// JSON of archives and of their state: the checked form, and the parts that both have.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/archive/archive_format.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns the text of a file: {"format", "version", "kind", "crc32c", "body"}.
std::string checked_json(std::string_view kind, const nlohmann::json& body);

/// Returns the member `body` of such a text. Returns code corruption if it is damaged, of another
/// kind, or of another version.
Result<nlohmann::json> parse_checked_json(const std::string& text, std::string_view kind,
                                          const std::string& path);

/// Returns code corruption that names the file.
std::unexpected<Error> damaged_json(const std::string& path, std::string_view why);

nlohmann::json json_of(const ArchiveIdentity& identity);
nlohmann::json json_of(const ArchivedIncarnation& incarnation);
/// Throw an exception of the JSON library if a member is missing, has another type, or is invalid.
ArchiveIdentity identity_of(const nlohmann::json& json);
ArchivedIncarnation incarnation_of(const nlohmann::json& json);

}  // namespace atolldb
