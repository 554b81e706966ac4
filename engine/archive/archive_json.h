// JSON of archives and of the archive state: the text form with its checksum, and the types that
// both contain.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/archive/archive_format.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns the text of a file with this body: {"format", "version", "kind", "crc32c", "body"}.
std::string checked_json(std::string_view kind, const nlohmann::json& body);

/// Returns the member `body` of a text that checked_json has made. Returns code corruption if the
/// text is damaged, of another kind, or of another version.
Result<nlohmann::json> parse_checked_json(const std::string& text, std::string_view kind,
                                          const std::string& path);

/// Returns an error of code corruption that names the file and the reason.
std::unexpected<Error> damaged_json(const std::string& path, std::string_view why);

nlohmann::json json_of(const ArchiveIdentity& identity);
nlohmann::json json_of(const ArchivedIncarnation& incarnation);
/// Both functions throw an exception of the JSON library if a member is missing, mistyped or
/// invalid.
ArchiveIdentity identity_of(const nlohmann::json& json);
ArchivedIncarnation incarnation_of(const nlohmann::json& json);

}  // namespace atolldb
