// `atoll import`: writes the rows of CSV files into a storage of a running cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/format/crc32c.h"
#include "ops/cli/backup_data.h"
#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/export_data.h"
#include "ops/cli/terminal.h"
#include "ops/export/import_table.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

/// Maximum number of wrong rows that are printed. Further wrong rows are only counted.
constexpr uint64_t kMaxShownWrongRows = 1'000;
constexpr std::chrono::seconds kConnectPatience{30};

struct ImportOptions {
  std::string table;
  std::vector<std::string> files;
  std::string schema;
  std::string mode;  // empty: insert into a Master-tree
  std::string on_error = "stop";
  std::string resume;
  uint32_t connections = 8;
  bool json = false;
};

std::string line_of_import(const ImportCounts& counts, ImportSource& source, double seconds) {
  const auto read = static_cast<double>(source.bytes_read());
  const double left = read == 0 ? 0 : seconds * (static_cast<double>(source.bytes()) / read - 1);
  const auto rate = static_cast<uint64_t>(static_cast<double>(counts.rows) / seconds);
  return fmt::format("import: {} rows, {} wrong, {} rows/s, about {:.0f} s left",
                     format_count(counts.rows), format_count(counts.wrong), format_count(rate),
                     left);
}

/// Checks that the storage has the type and the payload that the schema says. Returns its id.
Result<uint64_t> check_storage(const Config& config, const TableSchema& table) {
  ATOLL_ASSIGN(const Json answer, call_coordinator(config, ControlOperation::storage_describe,
                                                   {{"name", table.storage}}, kDdlTimeout));
  const std::string type = answer.value("type", "");
  if (type != to_string(table.type)) {
    return make_error(ExitCode::failed,
                      fmt::format("import: storage \"{}\" is of type {}, the schema says {}",
                                  table.storage, type, to_string(table.type)));
  }
  const auto payload = answer.value("payload_bytes", uint64_t{0});
  if (table.type != StorageType::array || payload == table.payload_bytes) {
    return answer.value("id", uint64_t{0});
  }
  return make_error(ExitCode::failed,
                    fmt::format("import: payloads of storage \"{}\" have {} bytes, the schema says "
                                "{}",
                                table.storage, payload, table.payload_bytes));
}

/// Returns a name of the storage that is unique across clusters. Without durability, each start of
/// the cluster gives the storage another name.
Result<std::string> target_of(const ClusterChoice& choice, const Config& config, uint64_t storage) {
  if (config.durability.mode == DurabilityMode::durable) {
    PosixFileSystem files;
    ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, DataOptions{}));
    std::string uuid;
    for (const uint8_t byte : data.savepoint.cluster_uuid) uuid += fmt::format("{:02x}", byte);
    return fmt::format("{}/{}", uuid, storage);
  }
  ATOLL_ASSIGN(const Json status,
               call_coordinator(config, ControlOperation::status, Json::object(), kDdlTimeout));
  return fmt::format("{}/{}", status.value("uuid", ""), storage);
}

void print_import(const ImportOptions& options, const ImportCounts& counts) {
  if (options.json) {
    const Json whole = {{"schema_version", 1},
                        {"table", options.table},
                        {"rows", counts.rows},
                        {"wrong", counts.wrong},
                        {"left_out", counts.left_out}};
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    std::printf("import into \"%s\": %s rows committed, %s wrong, %s committed before\n",
                printable(options.table).c_str(), format_count(counts.rows).c_str(),
                format_count(counts.wrong).c_str(), format_count(counts.left_out).c_str());
  }
  std::fflush(stdout);
}

void show_wrong_row(const std::string& text, uint64_t& shown) {
  if (++shown <= kMaxShownWrongRows) {
    std::fprintf(stderr, "atoll: %s\n", printable(text).c_str());
  } else if (shown == kMaxShownWrongRows + 1) {
    std::fprintf(stderr, "atoll: more wrong rows are only counted\n");
  }
}

Result<void> import_files(const ClusterChoice& choice, const ImportOptions& options) {
  catch_interrupts();
  PosixFileSystem files;
  ATOLL_ASSIGN(const SchemaFile schema, read_schema_file(files, options.schema));
  const TableSchema* table = schema.schema.find(options.table);
  if (table == nullptr) {
    return make_error(ExitCode::usage,
                      fmt::format("import: \"{}\": the schema {} has no such table", options.table,
                                  options.schema));
  }
  if (!options.mode.empty() && !is_tree(table->type)) {
    return make_error(ExitCode::usage,
                      fmt::format("--mode: table \"{}\" is no mastertree: an array is overwritten, "
                                  "a sequential storage appended to: remove the option",
                                  options.table));
  }
  ATOLL_ASSIGN(const auto source, ImportSource::open(*table, options.files));
  ATOLL_ASSIGN(const Config config, find_running(choice));
  ATOLL_ASSIGN(const uint64_t storage, check_storage(config, *table));
  if (!options.resume.empty()) {
    const auto bytes = std::as_bytes(std::span(schema.text.data(), schema.text.size()));
    ATOLL_ASSIGN(const auto target, target_of(choice, config, storage));
    ATOLL_TRY(source->remember_in(options.resume, target, crc32c(bytes)));
  }
  ImportCounts counts;
  uint64_t shown = 0;
  Result<void> done;
  {
    ProgressLine line;
    const auto nodes = static_cast<uint32_t>(config.nodes.size());
    const ImportRequest request{
        .is_upsert = options.mode == "upsert",
        .skips_wrong_rows = options.on_error == "skip",
        .connections = options.connections,
        .connect =
            [&](uint32_t connection) {
              return SessionClient::connect_within(config.cluster.run_dir, connection % nodes,
                                                   kConnectPatience);
            },
        .on_wrong_row = [&](const std::string& text) { show_wrong_row(text, shown); },
        .on_progress = [&](const ImportCounts& now) -> Result<void> {
          if (was_interrupted()) {
            return make_error(ExitCode::failed, "import: interrupted by a signal");
          }
          if (line.is_due()) line.show(line_of_import(now, *source, line.seconds()));
          return {};
        }};
    done = import_table(*table, *source, request, counts);
  }
  print_import(options, counts);
  return done;
}

}  // namespace

void add_import_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* command = add_cluster_command(app, invocation, "import",
                                          "Read CSV files into a storage of a running cluster",
                                          options, import_files);
  command->add_option("TABLE", options->table, "Table of the schema")->required();
  command->add_option("CSV", options->files, "CSV files; the first line names the columns")
      ->required()
      ->type_name("FILE...");
  command->add_option("--schema", options->schema, "Schema file: tables and their columns")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--mode", options->mode,
                   "mastertree: insert, or overwrite existing keys [insert]")
      ->check(CLI::IsMember({"insert", "upsert"}));
  command->add_option("--on-error", options->on_error, "At a wrong row: stop or skip")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  command->add_option("--connections", options->connections, "Sessions that import in parallel")
      ->check(CLI::Range(uint32_t{1}, kMaxImportConnections))
      ->capture_default_str();
  command
      ->add_option("--resume", options->resume,
                   "Remember committed rows in this file, and skip those that it has")
      ->type_name("FILE");
  add_json_option(*command, options->json);
}

}  // namespace atolldb::cli
