#include "ops/launcher/adopt_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "ops/launcher/directory_owner.h"
#include "ops/launcher/process_lock.h"
#include "shared/base/check.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/process/run_paths.h"

namespace atolldb {
namespace {

/// A directory that the adoption may take.
struct Candidate {
  std::string directory;
  std::optional<DirectoryOwner> owner;  // no value: the directory is new
  DirectoryLocation present;
  std::string difference;  // difference from its owner file; empty: none
  std::string role;
};

std::unexpected<Error> identity_error(const std::string& directory, const std::string& why) {
  return make_error(ExitCode::identity, directory + ": " + why);
}

/// Returns where the directory was when its owner file was written.
std::string recorded_path(const DirectoryOwner& owner) {
  return owner.location ? owner.location->path : canonical_path(owner.data_dir);
}

class DataAdoption {
 public:
  DataAdoption(const Config& config, AdoptionKind adoption, FileSystem& file_system,
               const LocateDirectory& locate)
      : config_(config),
        adoption_(adoption),
        files_(file_system),
        locate_(locate),
        data_dir_(config.cluster.data_dir),
        table_(data_dir_) {}
  ~DataAdoption() {
    for (ProcessLock& lock : locks_) lock.forget_processes();
  }
  DataAdoption(const DataAdoption&) = delete;
  DataAdoption& operator=(const DataAdoption&) = delete;

  Result<Adopted> run() {
    for (const auto step : {&DataAdoption::read_data_dir, &DataAdoption::read_configured,
                            &DataAdoption::read_below_data_dir, &DataAdoption::check_mode,
                            &DataAdoption::find_roles, &DataAdoption::check_named}) {
      ATOLL_TRY((this->*step)());
    }
    if (!is_needed()) return report(false);
    for (const auto step : {&DataAdoption::write_pending, &DataAdoption::write_owners,
                            &DataAdoption::write_names, &DataAdoption::write_data_owner}) {
      ATOLL_TRY((this->*step)());
    }
    return report(true);
  }

 private:
  bool is_copy() const { return adoption_ == AdoptionKind::copy; }
  /// Returns whether an older version wrote the owner files. Savepoint and metadata then name paths
  /// instead of roles.
  bool is_old() const { return !data_.owner->location; }

  /// Locks the directory. Called before any other file of the directory is read.
  Result<void> lock(const std::string& directory, const std::string& key) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) {
      if (is_refusal(error.value())) {
        return std::unexpected(path_error(directory, "cannot be examined", error.value(),
                                          "change " + key + " in the config"));
      }
      return make_error(ExitCode::failed, fmt::format("{}: there is no such directory: mount it, "
                                                      "copy it, or change {} in the config",
                                                      directory, key));
    }
    ATOLL_ASSIGN(auto lock, ProcessLock::acquire_directory(directory, config_.cluster.name, key));
    locks_.push_back(std::move(lock));
    return {};
  }

  Result<Candidate> read_candidate(const std::string& directory) const {
    Candidate candidate;
    candidate.directory = directory;
    ATOLL_ASSIGN(auto owner, read_owner(files_, directory));
    candidate.owner = std::move(owner);
    ATOLL_ASSIGN(auto present, locate_(directory));
    candidate.present = std::move(present);
    if (!candidate.owner) return candidate;
    if (candidate.owner->location) {
      candidate.difference = difference(*candidate.owner->location, candidate.present);
      candidate.role = candidate.owner->role;
    } else if (recorded_path(*candidate.owner) != data_path()) {
      candidate.difference = fmt::format("data_dir was {}", candidate.owner->data_dir);
    }
    return candidate;
  }
  std::string data_path() const {
    return data_.present.path.empty() ? canonical_path(data_dir_) : data_.present.path;
  }

  Result<void> read_data_dir() {
    ATOLL_TRY(lock(data_dir_, "cluster.data_dir"));
    ATOLL_ASSIGN(auto data, read_candidate(data_dir_));
    data_ = std::move(data);
    if (!data_.owner) {
      return make_error(ExitCode::failed, owner_path(data_dir_) +
                                              ": the file is missing, so there is nothing to "
                                              "adopt: restore it, or start a new cluster there");
    }
    if (!data_.owner->is_data_dir) {
      return foreign_directory(data_dir_, *data_.owner, "cluster.data_dir");
    }
    ATOLL_ASSIGN(auto table, DirectoryTable::read(files_, data_dir_));
    table_ = std::move(table);
    return read_pending();
  }

  /// Resumes an adoption of this directory that a crash interrupted, and reuses its id.
  Result<void> read_pending() {
    id_ = is_copy() ? new_owner_id() : data_.owner->id;
    auto pending = read_owner_file(files_, adopting_path(data_dir_));
    if (!pending) {
      if (pending.error().code != ExitCode::corruption) return std::unexpected(pending.error());
      return {};
    }
    if (!*pending || !(*pending)->location) return {};
    if (!difference(*(*pending)->location, data_.present).empty()) return {};
    pending_id_ = (*pending)->id;
    if (is_copy() && pending_id_ != data_.owner->id) id_ = pending_id_;
    return {};
  }

  Result<void> read_configured() {
    for (const std::string& directory : node_directories(config_)) {
      ATOLL_TRY(add(directory));
    }
    return {};
  }

  Result<void> add(const std::string& directory) {
    const std::string path = canonical_path(directory);
    const auto is_it = [&](const Candidate& known) { return known.present.path == path; };
    if (path == data_path() || std::ranges::any_of(logs_, is_it)) return {};
    ATOLL_TRY(lock(directory, kDirectoriesKey));
    ATOLL_ASSIGN(auto candidate, read_candidate(directory));
    if (candidate.owner) {
      const DirectoryOwner& owner = *candidate.owner;
      const bool is_own = owner.id == data_.owner->id || owner.id == pending_id_;
      if (owner.is_data_dir || !is_own) {
        return foreign_directory(directory, owner, kDirectoriesKey);
      }
    }
    logs_.push_back(std::move(candidate));
    return {};
  }

  /// Reads the log directories below data_dir, configured or not, because they moved together with
  /// it.
  Result<void> read_below_data_dir() {
    const std::string before = recorded_path(*data_.owner) + "/";
    const std::vector<DirectoryRole> entries = table_.entries();
    for (const DirectoryRole& entry : entries) {
      const std::string path = canonical_path(entry.path);
      if (!path.starts_with(before)) continue;
      const std::string now = data_dir_ + "/" + path.substr(before.size());
      ATOLL_ASSIGN(auto owner, read_owner(files_, now));
      if (!owner || owner->role != entry.role) continue;
      ATOLL_TRY(add(now));
    }
    return {};
  }

  bool is_needed() const {
    const auto differs = [](const Candidate& log) {
      return !log.difference.empty() || !log.owner.has_value();
    };
    return !data_.difference.empty() || std::ranges::any_of(logs_, differs) || is_role_elsewhere_;
  }

  Result<void> check_mode() {
    if (!is_copy()) {
      ATOLL_TRY(refuse_copied(data_));
      for (const Candidate& log : logs_) {
        ATOLL_TRY(refuse_copied(log));
      }
      return {};
    }
    if (data_.difference.empty()) {
      return identity_error(data_dir_,
                            "is at the place in its owner file, so it is no copy: run `atoll up`");
    }
    for (const Candidate& log : logs_) {
      if (!log.owner || log.owner->id == pending_id_ || !log.difference.empty()) continue;
      return identity_error(
          log.directory,
          fmt::format("is at the place in its owner file, so it belongs to the original, "
                      "not to the copy: copy it, too, and name the copy in {}",
                      kDirectoriesKey));
    }
    ATOLL_TRY(refuse_links(data_dir_));
    for (const Candidate& log : logs_) {
      ATOLL_TRY(refuse_links(log.directory));
    }
    return {};
  }

  /// Refuses links to files of the original, because the copy would change or delete these files.
  /// `cp -a` copies a link to a folder of logs as a link, and `cp -al` shares every file.
  static Result<void> refuse_links(const std::string& directory) {
    namespace fs = std::filesystem;
    const auto linked = [](const fs::directory_entry& entry) -> Result<void> {
      return identity_error(entry.path().string(),
                            "is a link to a file or folder of the original: replace it with a copy "
                            "of that file or folder");
    };
    std::error_code error;
    for (fs::directory_iterator folder(directory, error); !error && folder != fs::end(folder);
         folder.increment(error)) {
      const bool has_data =
          folder->path() == coordinator_directory(directory) ||
          parse_node_directory_name(folder->path().filename().string()).has_value();
      if (!has_data) continue;
      if (folder->is_symlink(error)) return linked(*folder);
      for (fs::directory_iterator file(folder->path(), error); !error && file != fs::end(file);
           file.increment(error)) {
        if (file->is_symlink(error)) return linked(*file);
        if (file->is_regular_file(error) && file->hard_link_count(error) > 1) return linked(*file);
      }
      if (error) break;  // the increment of `folder` would clear the error
    }
    if (!error) return {};
    return std::unexpected(path_error(directory, "cannot be examined", error.value(),
                                      "copy it as the user of the cluster"));
  }

  /// Refuses a move if the directory at the recorded place still belongs to the cluster. The
  /// candidate is then a copy.
  Result<void> refuse_copied(const Candidate& candidate) const {
    if (!candidate.owner || candidate.difference.empty()) return {};
    const std::string before = recorded_path(*candidate.owner);
    if (before == candidate.present.path) return {};
    // In an older version the owner file of a log directory does not record the location of the
    // directory.
    if (!candidate.owner->location && !candidate.owner->is_data_dir) return {};
    const auto original = read_owner(files_, before);
    if (!original || !*original || (*original)->id != candidate.owner->id) return {};
    if ((*original)->location) {
      const auto present = locate_(before);
      if (!present || !difference(*(*original)->location, *present).empty()) return {};
    }
    return identity_error(candidate.directory,
                          fmt::format("is a copy: its original is at {}: run `atoll data adopt "
                                      "--copy`, or remove the original",
                                      before));
  }

  Result<void> find_roles() {
    std::set<std::string> roles;
    std::vector<std::string> free;
    for (Candidate& log : logs_) {
      if (!log.owner) free.push_back(log.directory);
      if (!log.role.empty() && !roles.insert(log.role).second) {
        return make_error(ExitCode::failed,
                          fmt::format("{}: another configured directory also has the role {}: "
                                      "configure only one of the two copies",
                                      log.directory, log.role));
      }
      const auto path = table_.path_of(log.role);
      if (!log.role.empty() && (!path || canonical_path(*path) != log.present.path)) {
        is_role_elsewhere_ = true;
      }
    }
    return refuse_foreign_logs(files_, data_dir_, free);
  }

  bool is_candidate(const std::string& role) const {
    return std::ranges::any_of(logs_, [&](const Candidate& log) { return log.role == role; });
  }

  /// Checks that the new place is known for every directory that the data name.
  Result<void> check_named() {
    ATOLL_ASSIGN(auto named, named_directories(files_, data_dir_));
    if (named.is_partial) {
      warnings_.push_back(
          data_dir_ +
          ": the savepoint or the metadata of a snapshot is damaged: the next start "
          "reports what is lost");
    }
    for (const std::string& directory : named.directories) {
      if (is_old()) {
        ATOLL_TRY(rename_old(directory));
        continue;
      }
      const auto role = table_.role_of(directory);
      if (!role || *role == kDataRole || is_candidate(*role)) continue;
      if (!is_copy()) continue;  // in a move, this directory stays where it was
      return make_error(
          ExitCode::failed,
          fmt::format("{}: its data need {}, which is {} at the original: copy that directory, "
                      "too, and name the copy in {}",
                      data_dir_, *role, directory, kDirectoriesKey));
    }
    return {};
  }

  /// Returns the new path of a directory that an older version named by its path.
  Result<std::string> rename_old(const std::string& directory) const {
    const std::string path = canonical_path(directory);
    if (path == data_path() || path == recorded_path(*data_.owner)) return data_dir_;
    const bool is_configured =
        std::ranges::any_of(logs_, [&](const Candidate& log) { return log.present.path == path; });
    if (is_configured && !is_copy()) return directory;
    return make_error(
        ExitCode::failed,
        fmt::format("{}: an older version wrote its data, which name {} by that path: start the "
                    "original once with this version, then {} it again",
                    data_dir_, directory, is_copy() ? "copy" : "move"));
  }

  DirectoryOwner next_owner(const Candidate& candidate, const std::string& role) const {
    return {id_, role == kDataRole, config_.cluster.name, data_dir_, role, candidate.present};
  }

  Result<void> write_pending() {
    return write_owner_file(files_, adopting_path(data_dir_),
                            next_owner(data_, std::string(kDataRole)));
  }

  Result<void> write_owners() {
    if (is_copy()) forget_original();
    for (Candidate& log : logs_) {
      if (log.role.empty()) log.role = table_.add(log.directory);
      table_.set(log.role, log.directory);
      ATOLL_TRY(write_owner(files_, log.directory, next_owner(log, log.role)));
    }
    return table_.write(files_);
  }

  /// Removes every role whose directory is not part of the copy, because such a role leads to a
  /// directory of the original. Does not use the savepoint, which may be damaged.
  void forget_original() {
    const std::vector<DirectoryRole> entries = table_.entries();
    for (const DirectoryRole& entry : entries) {
      if (!is_candidate(entry.role)) table_.remove(entry.role);
    }
  }

  Result<void> write_names() {
    if (is_old()) {
      const auto rename = [&](const std::string& directory) { return rename_old(directory); };
      ATOLL_TRY(rename_directories(files_, data_dir_, rename));
    }
    return is_copy() ? skip_incarnations() : Result<void>();
  }

  /// Incarnation numbers name the cluster to which a session, a reply and a `kv.commit` request
  /// belong. The numbers of the copy begin far above those of the original, at a random distance.
  /// So neither cluster accepts requests or replies of the other.
  Result<void> skip_incarnations() {
    auto read = read_savepoint(files_, data_dir_);
    if (!read && read.error().code != ExitCode::corruption) return std::unexpected(read.error());
    if (!read || !*read) return {};
    Savepoint savepoint = (*read)->savepoint;
    savepoint.largest_incarnation = distant_incarnation(savepoint.largest_incarnation);
    for (int slot = 0; slot < 2; ++slot) {
      ATOLL_TRY(write_savepoint(files_, data_dir_, savepoint));
    }
    return {};
  }

  Result<void> write_data_owner() {
    ATOLL_TRY(files_.rename(adopting_path(data_dir_), owner_path(data_dir_)));
    return files_.sync_directory(data_dir_);
  }

  Result<Adopted> report(bool is_changed) const {
    Adopted adopted;
    adopted.is_changed = is_changed;
    adopted.id = id_;
    adopted.previous_id = data_.owner->id;
    adopted.directories.push_back({std::string(kDataRole), data_dir_});
    for (const DirectoryRole& entry : table_.entries()) adopted.directories.push_back(entry);
    adopted.warnings = warnings_;
    return adopted;
  }

  const Config& config_;
  AdoptionKind adoption_;
  FileSystem& files_;
  const LocateDirectory& locate_;
  std::string data_dir_;
  std::vector<ProcessLock> locks_;
  Candidate data_;
  std::vector<Candidate> logs_;
  DirectoryTable table_;
  std::string id_;
  std::string pending_id_;  // id of an interrupted adoption; empty: none
  bool is_role_elsewhere_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<Adopted> adopt_data(const Config& config, AdoptionKind adoption, FileSystem& file_system,
                           const LocateDirectory& locate) {
  return DataAdoption(config, adoption, file_system, locate).run();
}

}  // namespace atolldb
