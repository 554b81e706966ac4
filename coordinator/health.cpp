#include "coordinator/health.h"

#include <fmt/format.h>

#include <cstdint>

#include "engine/log/savepoint.h"
#include "shared/config/config_values.h"

namespace atolldb {
namespace {

uint64_t number(const Json& json, const char* member) { return json.value(member, uint64_t{0}); }

/// Returns the member, or an empty object if it is missing. A recovery may end between two
/// requests.
Json object_of(const Json& json, const char* member) {
  const Json found = json.value(member, Json());
  return found.is_object() ? found : Json::object();
}

/// Returns the progress of a recovery.
std::string recovered_text(const Json& status) {
  const Json recovery = object_of(status, "recovery");
  const Json run = object_of(object_of(status, "snapshots"), "run");
  const auto eta = recovery.find("eta_seconds");
  const bool is_known = eta != recovery.end() && eta->is_number_unsigned();
  if (status.contains("checkpoints")) {
    const std::string size = format_rounded_size(number(recovery, "log_bytes"));
    // How much of the later steps is done is unknown.
    if (number(recovery, "percent_read") == 100) {
      return fmt::format("{} of checkpoint and log are read", size);
    }
    return fmt::format("{} % of {} of checkpoint and log replayed{}",
                       number(recovery, "percent_read"), size,
                       is_known ? fmt::format(", about {} s left", eta->get<uint64_t>()) : "");
  }
  return fmt::format(
      "{} % of {} of log read, phase {} of the new snapshot{}", number(recovery, "percent_read"),
      format_rounded_size(number(recovery, "log_bytes")), run.value("phase", "planning"),
      is_known ? fmt::format(", about {} s left", eta->get<uint64_t>()) : std::string());
}

/// Returns which requests a recovering cluster serves.
std::string readable_text(const Json& status) {
  const Json reads = object_of(object_of(status, "recovery"), "reads");
  if (reads.empty()) return "wait until it runs";
  return fmt::format(
      "wait until it runs; meanwhile snapshot_read_only transactions run, on snapshot {} "
      "(epoch {})",
      number(reads, "snapshot"), number(reads, "epoch"));
}

/// Returns "45 s", "12 min", "30 h" or "12 days".
std::string age_text(uint64_t seconds) {
  constexpr uint64_t kMinute = 60;
  constexpr uint64_t kHour = 60 * kMinute;
  constexpr uint64_t kDay = 24 * kHour;
  if (seconds < 2 * kMinute) return fmt::format("{} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{} h", seconds / kHour);
  return fmt::format("{} days", seconds / kDay);
}

/// `kind`: "snapshot" or "checkpoint".
Problem left_pin_problem(const Json& pin, const char* kind) {
  const std::string name = pin.value("name", "");
  if (name.starts_with(fmt::format("{}{}", kBackupPinPrefix, kExportPinPrefix))) {
    return {fmt::format("pin {} of {} {} is left by an unfinished export: the cluster keeps the "
                        "log and the files since then",
                        name, kind, number(pin, "id")),
            fmt::format("run `atoll export --resume`, or `atoll snapshot unpin {}`", name)};
  }
  const bool has_age = pin.contains("age_s") && pin["age_s"].is_number_unsigned();
  return {fmt::format("pin {} of {} {} is left by a backup that has ended{}: the cluster "
                      "keeps the log and the files since then",
                      name, kind, number(pin, "id"),
                      has_age ? ", begun " + age_text(number(pin, "age_s")) + " ago" : ""),
          fmt::format("run `atoll backup`, which removes it, or `atoll snapshot unpin {}`", name)};
}

void add_archive_problems(const Json& status, std::vector<Problem>& problems) {
  constexpr uint64_t kLagLimit = 300;  // seconds, as in alerts.yml
  const Json archive = object_of(status, "archive");
  if (archive.empty()) return;
  const std::string error = archive.value("error", "");
  const std::string kept =
      fmt::format("{} closed log files ({}) are kept for it", number(archive, "waiting_files"),
                  format_rounded_size(number(archive, "waiting_bytes")));
  if (!error.empty()) {
    problems.push_back(
        {fmt::format("the archive has failed for {} s: {}; {}", number(archive, "failing_seconds"),
                     error, kept),
         "remove the cause: commits go on, and the archive catches up by itself, but the log fills "
         "its disk meanwhile"});
  } else if (number(archive, "lag_seconds") > kLagLimit) {
    problems.push_back(
        {fmt::format("the archive lags: a log file has waited for {} s; {}",
                     number(archive, "lag_seconds"), kept),
         "check whether the archive (" + archive.value("target", "") + ") hangs or is too slow"});
  }
}

void add_checkpoint_problems(const Json& status, std::vector<Problem>& problems) {
  const Json checkpoints = object_of(status, "checkpoints");
  const std::string error = checkpoints.value("error", "");
  if (!error.empty()) {
    problems.push_back({"the last checkpoint failed: " + error,
                        "the previous checkpoint stays in use, and logs grow: remove the cause, "
                        "then run `atoll checkpoint take`"});
  }
  for (const Json& pin : checkpoints.value("left_pins", Json::array())) {
    problems.push_back(left_pin_problem(pin, "checkpoint"));
  }
}

void add_data_problems(const Json& status, std::vector<Problem>& problems) {
  const Json snapshots = status.value("snapshots", Json::object());
  const Json snapshot = snapshots.value("run", Json::object());
  if (snapshot.value("phase", "") == "failed") {
    problems.push_back(
        {"the last snapshot failed: " + snapshot.value("failure", ""),
         "the previous snapshot stays in use, and logs grow: remove the cause, then run "
         "`atoll snapshot take`"});
  }
  for (const Json& pin : snapshots.value("unreadable_pins", Json::array())) {
    problems.push_back({fmt::format("snapshot {} is pinned and cannot be read: {}",
                                    number(pin, "id"), pin.value("reason", "")),
                        fmt::format("restore its files, or run `atoll snapshot unpin {}`: until "
                                    "then no transaction can read it, and files of old snapshots "
                                    "are kept",
                                    number(pin, "id"))});
  }
  for (const Json& pin : snapshots.value("left_pins", Json::array())) {
    problems.push_back(left_pin_problem(pin, "snapshot"));
  }
  const Json space = snapshots.value("space", Json::object());
  if (space.value("lacks_room", false)) {
    problems.push_back({fmt::format("files of snapshots have {} percent of the size of their live "
                                    "pages, and there is no room to rewrite any",
                                    number(space, "percent")),
                        "free disk space, or lower gleaner.disk_reserve"});
  }
  for (const Json& hang : status.value("device_hangs", Json::array())) {
    problems.push_back({hang.value("process", "") + ": " + hang.value("text", ""),
                        "check the device and its kernel messages; commits wait for it"});
  }
  add_checkpoint_problems(status, problems);
  add_archive_problems(status, problems);
  const std::string fallback = snapshots.value("fallback", std::string());
  if (!fallback.empty()) {
    problems.push_back({"this start did not use the newest snapshot: " + fallback,
                        "check the device of that snapshot; the next start uses a newer one"});
  }
  const Json unreadable = snapshot.value("unreadable", Json::array());
  if (!unreadable.empty()) {
    problems.push_back({fmt::format("{} ranges of keys cannot be read since the newest snapshot",
                                    unreadable.size()),
                        "`atoll snapshot damage` lists them: restore the damaged files, or give "
                        "the ranges up with `atoll down` and `atoll up --salvage`"});
  }
}

void add_state_problem(const Json& status, const std::string& progress,
                       std::vector<Problem>& problems) {
  const std::string state = status.value("state", "");
  if (state == "recovering") {
    const std::string step = object_of(status, "recovery").value("step", "");
    const std::string& now = progress.empty() ? step : progress;
    problems.push_back(
        {"the cluster recovers: " + recovered_text(status) + (now.empty() ? "" : "; now " + now),
         readable_text(status)});
  } else if (state == "starting") {
    problems.push_back({"the cluster starts: " + progress,
                        "wait until it runs: `atoll status --watch` shows how far it is"});
  } else if (state == "draining") {
    problems.push_back(
        {"the cluster drains", "wait until it has ended, or run `atoll down --now`"});
  } else if (state != "running") {
    problems.push_back({"the cluster is " + state, "see `atoll logs`"});
  }
}

void add_node_problems(const Json& node, bool is_running, std::vector<Problem>& problems) {
  constexpr double kNearlyFull = 0.9;
  const std::string name = "node" + std::to_string(number(node, "node"));
  const std::string node_state = node.value("state", "");
  const uint64_t damaged = number(node.value("scrub", Json::object()), "damaged");
  if (damaged != 0) {
    problems.push_back(
        {fmt::format("{}: {} pages of snapshots or blocks of logs are damaged", name, damaged),
         "`atoll snapshot damage` lists them: restore the files, and check the "
         "device"});
  }
  if (is_running && node_state != "running") {
    problems.push_back({name + " is " + node_state, "see `atoll logs " + name + "`"});
  }
  for (const Json& logger : node.value("loggers", Json::array())) {
    const std::string which = fmt::format("logger {} of {}", number(logger, "logger"), name);
    if (logger.value("failed", false)) {
      problems.push_back(
          {which + " cannot write: no commit is acknowledged",
           "see `atoll logs " + name + "`, then free space on its disk, or replace it"});
    } else if (logger.value("lacks_next_file", false)) {
      problems.push_back({which + " has no room for its next log file: the cluster ends when the "
                                  "current one is full",
                          "free disk space; `atoll logs " + name + "` names the file"});
    }
  }
  const double used = pool_used_share(node.value("pool", Json::object()));
  if (used > kNearlyFull) {
    problems.push_back({fmt::format("the pool of {} is {:.0f} % full", name, 100 * used),
                        "drop storages, or raise memory.volatile_pool and restart the cluster"});
  }
}

}  // namespace

double pool_used_share(const Json& pool) {
  const auto total = static_cast<double>(number(pool, "total"));
  return total > 0 ? 1 - static_cast<double>(number(pool, "free")) / total : 0;
}

std::vector<Problem> find_problems(const Json& status, const std::string& progress) {
  std::vector<Problem> problems;
  add_data_problems(status, problems);
  add_state_problem(status, progress, problems);
  const bool is_running = status.value("state", "") == "running";
  for (const Json& node : status.value("nodes", Json::array())) {
    add_node_problems(node, is_running, problems);
  }
  return problems;
}

}  // namespace atolldb
