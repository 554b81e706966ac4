// `atoll wal dump`: prints the records of the logs, one per line.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/format/log_block.h"
#include "engine/format/vid.h"
#include "engine/log/ddl_log.h"
#include "ops/cli/wal_data.h"
#include "shared/base/hex.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

const char* name_of(LogType type) {
  switch (type) {
    case LogType::insert:
      return "insert";
    case LogType::update:
      return "update";
    case LogType::erase:
      return "erase";
    case LogType::append:
      return "append";
    case LogType::add:
      return "add";
    default:
      return "filler";
  }
}

std::string hex(const std::byte* bytes, uint32_t count) { return to_hex({bytes, count}); }

/// Returns the storage with this id, or all storages that have had this name. Ids are never reused,
/// but names are.
Result<std::set<uint32_t>> chosen_storages(FileSystem& files, const LogData& data,
                                           const std::string& storage) {
  uint32_t id = 0;
  const char* end = storage.data() + storage.size();
  const auto parsed = std::from_chars(storage.data(), end, id);
  if (parsed.ec == std::errc{} && parsed.ptr == end) return std::set{id};
  ATOLL_ASSIGN(auto ddl, read_ddl_log(files, data.data_dir, data.savepoint.cluster_uuid));
  std::set<uint32_t> ids;
  for (const DdlRecord& record : ddl.records) {
    if (record.operation == DdlOperation::create_storage && record.name == storage) {
      ids.insert(record.storage_id);
    }
  }
  if (ids.empty()) {
    return make_error(ExitCode::failed, "--storage " + storage +
                                            ": no storage has had this name: give its id, or a "
                                            "name of `atoll storage ls`");
  }
  return ids;
}

class RecordPrinter {
 public:
  RecordPrinter(const LogOptions& options, std::set<uint32_t> storages)
      : options_(options), storages_(std::move(storages)) {}

  void print(const LogBlock& block, uint64_t cut, const std::string& file, uint64_t offset) {
    const LogBlockHeader& header = block.header;
    if (header.type != LogBlockType::records) return;
    if (options_.epoch && header.epoch != *options_.epoch) return;
    for_each_record(block, [&](const LogRecord& record) {
      if (record.type == LogType::filler) return;
      if (!options_.storage.empty() && !storages_.contains(record.storage_id)) return;
      options_.json ? print_json(header, record, header.epoch <= cut, file, offset)
                    : print_text(header, record, header.epoch <= cut);
    });
  }

  void begin() {
    if (options_.json) std::printf("{\"schema_version\": 1, \"records\": [");
  }
  void end() {
    if (options_.json) std::printf("\n]}\n");
  }

 private:
  void print_text(const LogBlockHeader& header, const LogRecord& record, bool counts) {
    const Vid vid(record.vid);
    std::string line = fmt::format("{} {} {}/{}/{} {} {} storage {}", header.incarnation,
                                   header.epoch, header.node, header.logger, header.worker,
                                   vid.ordinal(), name_of(record.type), record.storage_id);
    if (record.key_bytes != 0) line += " key " + hex(record.key(), record.key_bytes);
    if (record.payload_bytes != 0) {
      line += fmt::format(" payload {}: {}", record.payload_offset,
                          hex(record.payload(), record.payload_bytes));
    }
    std::printf("%s%s\n", line.c_str(), counts ? "" : " (above the cut)");
  }

  void print_json(const LogBlockHeader& header, const LogRecord& record, bool counts,
                  const std::string& file, uint64_t offset) {
    const Json line = {{"incarnation", header.incarnation},
                       {"epoch", header.epoch},
                       {"node", header.node},
                       {"logger", header.logger},
                       {"worker", header.worker},
                       {"ordinal", Vid(record.vid).ordinal()},
                       {"type", name_of(record.type)},
                       {"storage", record.storage_id},
                       {"key", hex(record.key(), record.key_bytes)},
                       {"payload_offset", record.payload_offset},
                       {"payload", hex(record.payload(), record.payload_bytes)},
                       {"counts", counts},
                       {"file", file},
                       {"block_offset", offset}};
    std::printf("%s\n%s", is_first_ ? "" : ",",
                line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    is_first_ = false;
  }

  const LogOptions& options_;
  std::set<uint32_t> storages_;
  bool is_first_ = true;
};

}  // namespace

Result<void> dump_logs(const ClusterChoice& choice, const LogOptions& options) {
  PosixFileSystem files;
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  std::set<uint32_t> storages;
  if (!options.storage.empty()) {
    ATOLL_ASSIGN(auto chosen, chosen_storages(files, data, options.storage));
    storages = std::move(chosen);
  }
  RecordPrinter printer(options, std::move(storages));
  Result<void> verdict;
  if (!options.json) {
    std::printf("# incarnation epoch node/logger/worker ordinal operation storage key payload\n");
  }
  printer.begin();
  for (const Incarnation& incarnation : data.savepoint.incarnations) {
    // First determines which records count, then reads the records.
    ATOLL_ASSIGN(const auto scan, scan_incarnation(files, data.savepoint, incarnation));
    if (scan.corruption && verdict) verdict = std::unexpected(scan.corruption_error());
    for (const LogScan& log : scan.logs) {
      const auto visit = [&](const LogBlock& block, const std::string& file, uint64_t offset) {
        printer.print(block, scan.cut_epoch, file, offset);
      };
      ATOLL_TRY(scan_log(files, log.stream, visit));
    }
  }
  printer.end();
  return verdict;
}

}  // namespace atolldb::cli
