// `atoll data adopt`: assigns moved or copied directories to the cluster (R47). It changes nothing
// outside the configured directories and data_dir. The steps, in order:
//
//   data_dir/owner.adopting   the future owner file of data_dir, written first
//   <directory>/owner         the owner file of each log directory
//   data_dir/directories      the new path of each role
//   savepoint, metadata       only for a copy, or if an older version wrote them
//   data_dir/owner            last: owner.adopting is renamed to it
//
// Until the last step a start-up is refused as before, and a repeated adoption resumes.
#pragma once

#include <string>
#include <vector>

#include "ops/launcher/directory_location.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/file/directory_table.h"
#include "shared/file/file.h"

namespace atolldb {

enum class AdoptionKind {
  moved,  // the same cluster in another place: it keeps its identity
  copy,   // a new cluster; the original stays as it is
};

struct Adopted {
  bool is_changed = false;  // false: each directory was where its owner file says
  std::string id;           // id of the data directory after the adoption
  std::string previous_id;
  std::vector<DirectoryRole> directories;  // data_dir first
  std::vector<std::string> warnings;
};

/// Returns code already_running if a live cluster uses a directory of the config. Returns code
/// identity if `adoption` does not fit what is found. Returns code failed if a directory of the
/// config is missing or belongs to another cluster. Returns code failed if the data need a
/// directory that is not configured.
Result<Adopted> adopt_data(const Config& config, AdoptionKind adoption, FileSystem& file_system,
                           const LocateDirectory& locate = locate_directory);

}  // namespace atolldb
