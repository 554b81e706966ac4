#include "shared/process/backup_note.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "shared/base/path_errors.h"

namespace atolldb {
namespace {

std::string backup_note_path(const std::string& data_dir) { return data_dir + "/last_backup.json"; }

}  // namespace

Result<void> write_backup_note(const std::string& data_dir, const BackupNote& note) {
  const std::string path = backup_note_path(data_dir);
  const std::string temporary = path + ".new";
  const nlohmann::json json = {{"schema_version", 1},
                               {"finished_s", note.finished_s},
                               {"id", note.id},
                               {"directory", note.directory}};
  errno = 0;
  std::ofstream file(temporary, std::ios::trunc);
  file << json.dump(2) << "\n";
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return std::unexpected(path_error(path, "cannot be written", errno,
                                      "the backup is complete, but the cluster does not know its "
                                      "age: make the directory writable and take another"));
  }
  return {};
}

uint64_t last_backup_time(const std::string& data_dir) {
  std::ifstream file(backup_note_path(data_dir));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("finished_s")) return 0;
  const auto& finished = json["finished_s"];
  return finished.is_number_unsigned() ? finished.get<uint64_t>() : 0;
}

}  // namespace atolldb
