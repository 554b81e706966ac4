// `atoll wal verify`: checks every block of every incarnation by the rules of a start-up.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/log/ddl_log.h"
#include "engine/recovery/log_start.h"
#include "ops/cli/terminal.h"
#include "ops/cli/wal_data.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

bool is_corrupt(const IncarnationScan& scan, const LogScan& log) {
  return scan.corruption && scan.corruption->file == log.end.file &&
         scan.corruption->offset == log.end.offset;
}

/// Returns how a log ends: complete, with the torn tail of a crash, or with corruption.
const char* kind_of_end(const IncarnationScan& scan, const LogScan& log) {
  if (is_corrupt(scan, log)) return "corruption";
  return log.end.is_defect || log.intact_after_end != 0 ? "torn tail" : "end";
}

std::string epochs(const LogFileScan& file) {
  if (file.first_epoch == 0) return "-";
  return std::to_string(file.first_epoch) + "-" + std::to_string(file.last_epoch);
}

void print_text(const IncarnationScan& scan) {
  const Incarnation& incarnation = scan.incarnation;
  std::printf("incarnation %llu, %s: epochs from %llu, %s %llu: %s\n",
              static_cast<unsigned long long>(incarnation.number), state_of(incarnation).c_str(),
              static_cast<unsigned long long>(incarnation.start_epoch),
              incarnation.cut_epoch ? "cut at" : "durable up to",
              static_cast<unsigned long long>(scan.cut_epoch),
              scan.corruption ? paint(Colour::red, "corrupt").c_str()
                              : paint(Colour::green, "intact").c_str());
  std::vector<std::vector<std::string>> rows = {{"FILE", "BLOCKS", "RECORDS", "EPOCHS"}};
  for (const LogScan& log : scan.logs) {
    for (const LogFileScan& file : log.files) {
      rows.push_back({printable(file.path), format_count(file.blocks), format_count(file.records),
                      epochs(file)});
    }
  }
  std::printf("%s", format_table(rows).c_str());
  for (const LogScan& log : scan.logs) {
    const std::string kind = kind_of_end(scan, log);
    if (kind == "end") continue;
    std::printf("%s: %s: offset %llu: %s; %s intact blocks after it\n", kind.c_str(),
                printable(log.end.file).c_str(), static_cast<unsigned long long>(log.end.offset),
                log.end.reason.c_str(), format_count(log.intact_after_end).c_str());
  }
}

Json to_json(const IncarnationScan& scan) {
  Json logs = Json::array();
  for (const LogScan& log : scan.logs) {
    Json files = Json::array();
    for (const LogFileScan& file : log.files) {
      files.push_back({{"path", file.path},
                       {"blocks", file.blocks},
                       {"records", file.records},
                       {"markers", file.markers},
                       {"first_epoch", file.first_epoch},
                       {"last_epoch", file.last_epoch}});
    }
    logs.push_back({{"node", log.stream.node},
                    {"logger", log.stream.logger},
                    {"directory", log.stream.directory},
                    {"durable_epoch", log.durable_epoch},
                    {"files", files},
                    {"end",
                     {{"kind", kind_of_end(scan, log)},
                      {"file", log.end.file},
                      {"offset", log.end.offset},
                      {"reason", log.end.reason},
                      {"intact_blocks_behind", log.intact_after_end}}}});
  }
  return {{"number", scan.incarnation.number},
          {"state", state_of(scan.incarnation)},
          {"start_epoch", scan.incarnation.start_epoch},
          {"cut_epoch", scan.cut_epoch},
          {"known_durable_epoch", scan.known_durable_epoch},
          {"intact", !scan.corruption},
          {"logs", logs}};
}

/// Checks the rest of the data, and adds the facts about the DDL log to `whole`. Returns code
/// corruption for damage outside the listed logs, and for log records of storages that no DDL
/// record creates (R52).
Result<void> verify_rest(FileSystem& files, const LogData& data,
                         const std::vector<IncarnationScan>& scans, Json& whole) {
  ATOLL_TRY(refuse_unlisted(files, data.savepoint, data.directories));
  ATOLL_ASSIGN(const auto ddl, read_ddl_log(files, data.data_dir, data.savepoint.cluster_uuid,
                                            data.savepoint.ddl_records));
  whole["ddl"] = {{"records", ddl.records.size()}, {"torn", ddl.torn}};
  for (const IncarnationScan& scan : scans) {
    ATOLL_TRY(refuse_uncreated(scan, ddl.records));
  }
  return {};
}

}  // namespace

Result<void> verify_logs(const ClusterChoice& choice, const LogOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  Json whole = {{"schema_version", 1},
                {"data_dir", data.data_dir},
                {"damaged_savepoint_slot", data.damaged_slot},
                {"incarnations", Json::array()},
                {"ddl", nullptr}};
  Result<void> verdict;
  if (!options.json && !data.damaged_slot.empty()) {
    std::printf("savepoint: %s: the other slot is used\n", data.damaged_slot.c_str());
  }
  std::vector<IncarnationScan> scans;
  for (const Incarnation& incarnation : data.savepoint.incarnations) {
    ATOLL_ASSIGN(auto scan, scan_incarnation(files, data.savepoint, incarnation));
    if (!options.json) print_text(scan);
    whole["incarnations"].push_back(to_json(scan));
    if (scan.corruption && verdict) verdict = std::unexpected(scan.corruption_error());
    scans.push_back(std::move(scan));
  }
  const Result<void> rest = verify_rest(files, data, scans, whole);
  if (!rest && rest.error().code != ExitCode::corruption) return rest;
  if (verdict) verdict = rest;
  whole["intact"] = verdict.has_value();
  whole["problem"] = verdict ? "" : verdict.error().message;
  if (options.json) {
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (!whole["ddl"].is_null()) {
    std::printf("changes of storages: %s records, intact%s\n",
                whole["ddl"]["records"].dump().c_str(),
                whole["ddl"]["torn"] == "" ? "" : "; the last one is torn and is ignored");
  }
  return verdict;
}

}  // namespace atolldb::cli
