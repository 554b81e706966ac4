#include "engine/archive/archive_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

/// Returns the largest number of a stored record, or 0 if there is no record.
Result<uint64_t> last_record(FileSystem& file_system, const std::string& directory) {
  const std::string folder = path_in(directory, kRecordsFolder);
  ATOLL_ASSIGN(const bool exists, file_system.exists(folder));
  if (!exists) return 0;
  ATOLL_ASSIGN(const auto names, file_system.list(folder));
  uint64_t last = 0;
  for (const std::string& name : names) {
    last = std::max(last, parse_record_file_name(name).value_or(0));
  }
  return last;
}

/// Adds a record. Returns an empty text, or why the record cannot follow the earlier ones.
std::string add_record(ArchiveContent& content, const ArchiveRecord& record) {
  if (record.first_ddl != content.ddl.size()) {
    return fmt::format("begins with DDL record {}, the records before it have {}", record.first_ddl,
                       content.ddl.size());
  }
  CHECK(record.number == content.records + 1);
  content.records = record.number;
  for (const ArchivedIncarnation& incarnation : record.incarnations) {
    content.incarnations[incarnation.number] = incarnation;
  }
  content.ddl.insert(content.ddl.end(), record.ddl.begin(), record.ddl.end());
  content.times.insert(content.times.end(), record.times.begin(), record.times.end());
  if (record.file) content.files[record.file->name] = *record.file;
  return "";
}

}  // namespace

Result<std::optional<ArchiveIdentity>> read_archive_identity(FileSystem& file_system,
                                                             const std::string& directory) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(directory));
  if (!exists) {
    return make_error(
        ExitCode::failed,
        fmt::format("{}: the directory of the archive is missing: make or mount it", directory));
  }
  const std::string path = path_in(directory, kIdentityName);
  ATOLL_ASSIGN(const auto text, read_text_file(file_system, path));
  if (!text) return std::nullopt;
  return decode_identity(*text, path);
}

Result<std::string> for_each_archive_record(
    FileSystem& file_system, const std::string& directory, const ArchiveIdentity& identity,
    const std::function<void(const ArchiveRecord&)>& visit) {
  CHECK(visit && !identity.id.empty());
  ATOLL_ASSIGN(const uint64_t last, last_record(file_system, directory));
  for (uint64_t number = 1; number <= last; ++number) {
    const std::string path = path_in(directory, archive_record_name(number));
    const auto text = read_text_file(file_system, path);
    if (!text && text.error().code != ExitCode::corruption) return std::unexpected(text.error());
    if (!text) return text.error().message;
    if (!*text) return path + ": is missing";
    const auto record = decode_record(**text, path);
    if (!record) return record.error().message;
    if (record->number != number || record->archive != identity.id) {
      return path + ": is a record of another archive, or of another number";
    }
    visit(*record);
  }
  return std::string();
}

Result<ArchiveContent> read_archive(FileSystem& file_system, const std::string& directory) {
  ATOLL_ASSIGN(const auto identity, read_archive_identity(file_system, directory));
  if (!identity) {
    return make_error(ExitCode::failed,
                      fmt::format("{}: holds no archive: {} is missing: choose the directory of an "
                                  "archive",
                                  directory, kIdentityName));
  }
  ArchiveContent content;
  content.identity = *identity;
  std::string misfit;
  const auto visit = [&](const ArchiveRecord& record) {
    if (!misfit.empty()) return;
    const std::string why = add_record(content, record);
    if (why.empty()) return;
    misfit = fmt::format("{}: {}", path_in(directory, archive_record_name(record.number)), why);
  };
  ATOLL_ASSIGN(content.damage,
               for_each_archive_record(file_system, directory, content.identity, visit));
  if (!misfit.empty()) content.damage = misfit;
  std::ranges::sort(content.times, {}, &EpochTime::epoch);
  CHECK(content.records != 0 || content.files.empty());
  return content;
}

}  // namespace atolldb
