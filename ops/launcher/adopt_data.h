// `atoll data adopt`: makes directories a cluster's again that are not where their owner files say
// (rule R47). Nothing outside of the configured directories, and of data_dir, is changed.
//
//   data_dir/owner.adopting   what data_dir's owner file becomes: written first
//   <directory>/owner         of the directories of logs
//   data_dir/directories      where each role is now
//   savepoint, metadata       only if an earlier program wrote them, or of a copy
//   data_dir/owner            by renaming owner.adopting: last
//
// Until the last step a start is refused as before, and the next adoption goes on.
#pragma once

#include <string>
#include <vector>

#include "ops/launcher/directory_location.h"
#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/file/directory_table.h"
#include "shared/file/file.h"

namespace atolldb {

enum class AdoptionKind {
  moved,  // the same cluster in another place: it keeps its identity
  copy,   // another cluster than the original, which stays as it is
};

struct Adopted {
  bool is_changed = false;  // false: every directory was where its owner file says
  std::string id;           // of the data directory, as the owner files have it from now on
  std::string previous_id;
  std::vector<DirectoryRole> directories;  // data_dir first
  std::vector<std::string> warnings;
};

/// REQUIRES: the directories of the config exist (else code failed). Code already_running: a live
/// cluster has one of them. Code identity: they are not what `adoption` says. Code failed: one of
/// them is another cluster's, or one that the data need is not configured.
Result<Adopted> adopt_data(const Config& config, AdoptionKind adoption, FileSystem& file_system,
                           const LocateDirectory& locate = locate_directory);

}  // namespace atolldb
