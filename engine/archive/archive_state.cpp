#include "engine/archive/archive_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/archive/archive_json.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kStateKind = "state";

Json json_of_state(const ArchiveState& state) {
  Json incarnations = Json::array();
  for (const PendingIncarnation& pending : state.incarnations) {
    incarnations.push_back({{"incarnation", json_of(pending.incarnation)},
                            {"recorded", pending.is_recorded},
                            {"cut_recorded", pending.is_cut_recorded}});
  }
  Json streams = Json::array();
  for (const auto& [stream, progress] : state.streams) {
    const auto& [incarnation, node, logger] = stream;
    streams.push_back({incarnation, node, logger, progress.ordinal, progress.reach_epoch});
  }
  return {{"identity", json_of(state.identity)},
          {"target", state.target},
          {"records", state.records},
          {"ddl_records", state.ddl_records},
          {"last_time_epoch", state.last_time_epoch},
          {"archived_epoch", state.archived_epoch},
          {"history", state.history},
          {"begun", state.begun},
          {"incarnations", std::move(incarnations)},
          {"streams", std::move(streams)}};
}

ArchiveState state_of(const Json& json) {
  ArchiveState state;
  state.identity = identity_of(json.at("identity"));
  state.target = json.at("target").get<std::string>();
  state.records = json.at("records").get<uint64_t>();
  state.ddl_records = json.at("ddl_records").get<uint64_t>();
  state.last_time_epoch = json.at("last_time_epoch").get<uint64_t>();
  state.archived_epoch = json.at("archived_epoch").get<uint64_t>();
  state.history = json.at("history").get<uint64_t>();
  // Earlier versions did not write the member `begun`.
  if (json.contains("begun")) state.begun = json.at("begun").get<std::vector<std::string>>();
  for (const Json& entry : json.at("incarnations")) {
    state.incarnations.push_back({incarnation_of(entry.at("incarnation")),
                                  entry.at("recorded").get<bool>(),
                                  entry.at("cut_recorded").get<bool>()});
  }
  for (const Json& entry : json.at("streams")) {
    const ArchiveStream stream = {entry.at(0).get<uint64_t>(), entry.at(1).get<uint32_t>(),
                                  entry.at(2).get<uint32_t>()};
    state.streams[stream] = {entry.at(3).get<uint32_t>(), entry.at(4).get<uint64_t>()};
  }
  const auto number = [](const PendingIncarnation& pending) { return pending.incarnation.number; };
  if (!std::ranges::is_sorted(state.incarnations, {}, number)) {
    throw Json::other_error::create(501, "invalid order", &json);
  }
  return state;
}

std::string in_coordinator(const std::string& data_dir, const char* name) {
  return path_in(coordinator_directory(data_dir), name);
}

}  // namespace

bool ArchiveState::is_archived(uint32_t node, const LogFileName& log) const {
  CHECK(records != 0 || streams.empty());  // an archived file has a stored record
  const auto found = streams.find({log.incarnation, node, log.logger});
  return found != streams.end() && log.ordinal <= found->second.ordinal;
}

const PendingIncarnation* ArchiveState::find(uint64_t incarnation) const {
  for (const PendingIncarnation& pending : incarnations) {
    if (pending.incarnation.number == incarnation) return &pending;
  }
  return nullptr;
}

bool ArchiveState::lacks(uint32_t node, const LogFileName& log) const {
  const PendingIncarnation* pending = find(log.incarnation);
  if (pending == nullptr || is_archived(node, log)) return false;
  const ArchivedIncarnation& incarnation = pending->incarnation;
  return !incarnation.cut_epoch || *incarnation.cut_epoch >= incarnation.start_epoch;
}

bool ArchiveState::add(const Savepoint& savepoint) {
  bool is_changed = false;
  uint64_t base = savepoint.oldest_epoch();  // no unlisted incarnation has a later cut
  for (const Incarnation& listed : savepoint.incarnations) {
    CHECK(listed.start_epoch != 0);
    const auto found = std::ranges::find_if(incarnations, [&](const PendingIncarnation& pending) {
      return pending.incarnation.number == listed.number;
    });
    if (found == incarnations.end()) {
      ArchivedIncarnation added = {listed.number,    listed.start_epoch,
                                   listed.cut_epoch, std::min(base, listed.start_epoch - 1),
                                   history,          {}};
      for (const LoggerPlace& place : listed.loggers) {
        added.loggers.push_back({place.node, place.logger});
      }
      incarnations.push_back({std::move(added), false, false});
      is_changed = true;
    } else if (listed.cut_epoch && !found->incarnation.cut_epoch) {
      found->incarnation.cut_epoch = listed.cut_epoch;
      is_changed = true;
    }
    base = std::max(base, listed.cut_epoch.value_or(base));
  }
  sort_incarnations();
  update_archived_epoch();
  return is_changed;
}

bool ArchiveState::end_unlisted(const Savepoint& savepoint) {
  bool is_changed = false;
  for (PendingIncarnation& pending : incarnations) {
    ArchivedIncarnation& incarnation = pending.incarnation;
    const auto listed =
        std::ranges::find(savepoint.incarnations, incarnation.number, &Incarnation::number);
    if (incarnation.cut_epoch || listed != savepoint.incarnations.end()) continue;
    incarnation.cut_epoch = reach_of(incarnation);  // archived log was synced, so it counts
    CHECK(*incarnation.cut_epoch + 1 >= incarnation.start_epoch);
    is_changed = true;
  }
  return is_changed;
}

bool ArchiveState::has_begun(const std::string& at) const {
  return std::ranges::find(begun, at) != begun.end();
}

void ArchiveState::note_begun(const std::string& at) {
  CHECK(!at.empty() && !has_begun(at));
  begun.push_back(at);
  if (begun.size() > kMaxBegunArchives) begun.erase(begun.begin());
  CHECK(begun.size() <= kMaxBegunArchives);
}

void ArchiveState::sort_incarnations() {
  const auto number = [](const PendingIncarnation& pending) { return pending.incarnation.number; };
  std::ranges::sort(incarnations, {}, number);
  CHECK(std::ranges::adjacent_find(incarnations, {}, number) == incarnations.end());
}

void ArchiveState::apply(const ArchiveRecord& record) {
  CHECK(record.number == records + 1);
  CHECK(record.archive == identity.id);
  records = record.number;
  for (const ArchivedIncarnation& incarnation : record.incarnations) {
    history = std::max(history, incarnation.history);
    auto found = std::ranges::find_if(incarnations, [&](const PendingIncarnation& pending) {
      return pending.incarnation.number == incarnation.number;
    });
    if (found == incarnations.end()) {
      // Reached only while a state is rebuilt from the records of an archive.
      incarnations.push_back({incarnation, true, incarnation.cut_epoch.has_value()});
      sort_incarnations();
      continue;
    }
    found->is_recorded = true;
    if (!incarnation.cut_epoch) continue;
    found->incarnation.cut_epoch = incarnation.cut_epoch;
    found->is_cut_recorded = true;
  }
  ddl_records = std::max(ddl_records, record.first_ddl + record.ddl.size());
  for (const EpochTime& time : record.times) {
    last_time_epoch = std::max(last_time_epoch, time.epoch);
  }
  if (record.file) {
    const auto name = parse_archived_log_name(record.file->name);
    CHECK(name.has_value());
    StreamProgress& progress = streams[{name->log.incarnation, name->node, name->log.logger}];
    progress.ordinal = std::max(progress.ordinal, name->log.ordinal);
    progress.reach_epoch = std::max(progress.reach_epoch, record.file->reach_epoch);
  }
  const uint64_t before = archived_epoch;
  update_archived_epoch();
  CHECK(archived_epoch >= before);
}

void ArchiveState::take_incarnations(const ArchiveState& other) {
  history = std::max(history, other.history);
  std::erase_if(incarnations, [&](const PendingIncarnation& pending) {
    return other.find(pending.incarnation.number) == nullptr;
  });
  std::erase_if(streams,
                [&](const auto& entry) { return other.find(std::get<0>(entry.first)) == nullptr; });
  for (const PendingIncarnation& pending : other.incarnations) {
    const auto found = std::ranges::find_if(incarnations, [&](const PendingIncarnation& own) {
      return own.incarnation.number == pending.incarnation.number;
    });
    if (found == incarnations.end()) {
      incarnations.push_back({pending.incarnation, false, false});
    } else if (pending.incarnation.cut_epoch) {
      found->incarnation.cut_epoch = pending.incarnation.cut_epoch;
    }
  }
  sort_incarnations();
  CHECK(incarnations.size() == other.incarnations.size());
  update_archived_epoch();
}

void ArchiveState::remove(uint64_t incarnation) {
  const PendingIncarnation* pending = find(incarnation);
  CHECK(pending != nullptr);
  CHECK(pending->is_cut_recorded);
  std::erase_if(incarnations, [&](const PendingIncarnation& other) {
    return other.incarnation.number == incarnation;
  });
  std::erase_if(streams,
                [&](const auto& entry) { return std::get<0>(entry.first) == incarnation; });
}

void ArchiveState::update_archived_epoch() {
  for (const PendingIncarnation& pending : incarnations) {
    const ArchivedIncarnation& incarnation = pending.incarnation;
    const uint64_t cut = incarnation.cut_epoch.value_or(UINT64_MAX);
    const bool has_log = !incarnation.loggers.empty() && cut >= incarnation.start_epoch;
    const uint64_t reach = has_log ? std::min(cut, reach_of(incarnation)) : cut;
    if (has_log && reach >= incarnation.start_epoch) {
      archived_epoch = std::max(archived_epoch, reach);
    }
    if (!incarnation.cut_epoch || reach < *incarnation.cut_epoch) return;
  }
}

uint64_t ArchiveState::reach_of(const ArchivedIncarnation& incarnation) const {
  CHECK(incarnation.start_epoch >= 1);
  const uint64_t before = incarnation.start_epoch - 1;
  if (incarnation.loggers.empty()) return before;
  uint64_t reach = UINT64_MAX;
  for (const LoggerName& name : incarnation.loggers) {
    const auto found = streams.find({incarnation.number, name.node, name.logger});
    reach = std::min(reach, found == streams.end() ? before : found->second.reach_epoch);
  }
  CHECK(reach != UINT64_MAX);
  return std::max(reach, before);
}

std::string archive_state_path(const std::string& data_dir) {
  return in_coordinator(data_dir, "archive_state");
}

std::string pending_record_path(const std::string& data_dir) {
  return in_coordinator(data_dir, "archive_record");
}

std::string pending_identity_path(const std::string& data_dir) {
  return in_coordinator(data_dir, "archive_identity");
}

Result<std::optional<ArchiveState>> read_archive_state(FileSystem& file_system,
                                                       const std::string& data_dir) {
  const std::string path = archive_state_path(data_dir);
  ATOLL_ASSIGN(const auto text, read_text_file(file_system, path));
  if (!text) return std::nullopt;
  ATOLL_ASSIGN(const Json body, parse_checked_json(*text, kStateKind, path));
  try {
    return state_of(body);
  } catch (const Json::exception& error) {
    return damaged_json(path, fmt::format("is damaged: {}", error.what()));
  }
}

Result<void> write_archive_state(FileSystem& file_system, const std::string& data_dir,
                                 const ArchiveState& state) {
  CHECK(!state.identity.id.empty() && !state.target.empty());
  CHECK(state.records != 0 || state.streams.empty());
  return replace_text_file(file_system, archive_state_path(data_dir),
                           checked_json(kStateKind, json_of_state(state)));
}

}  // namespace atolldb
