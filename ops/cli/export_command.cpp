// `atoll export`: writes a snapshot of a running or stopped cluster as CSV and Parquet, or a
// checkpoint and the log after it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "engine/format/crc32c.h"
#include "engine/log/log_files.h"
#include "ops/backup/backup_folder.h"
#include "ops/backup/source_state.h"
#include "ops/backup/take_backup.h"
#include "ops/cli/backup_data.h"
#include "ops/cli/backup_source.h"
#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/export_data.h"
#include "ops/cli/snapshot_data.h"
#include "ops/cli/terminal.h"
#include "ops/export/checkpoint_source.h"
#include "ops/export/export_manifest.h"
#include "ops/export/export_tables.h"
#include "ops/export/snapshot_source.h"
#include "shared/base/try.h"
#include "shared/config/config_values.h"
#include "shared/file/file_system.h"
#include "shared/memory/segment_file.h"

namespace atolldb::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kOtherExport = "another `atoll export`";

uint32_t crc_of_schema(const std::string& text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::string line_of_export(const ExportProgress& progress, double seconds) {
  const auto rate = static_cast<uint64_t>(static_cast<double>(progress.bytes) / seconds);
  std::string left = "?";
  if (progress.done != progress.kept) {
    const auto missing = static_cast<double>(progress.parts - progress.done);
    const auto written = static_cast<double>(progress.done - progress.kept);
    left = fmt::format("{:.0f}", seconds * missing / written);
  }
  return fmt::format("export: {} of {} parts, {} rows, {}, {}/s, about {} s left",
                     format_count(progress.done), format_count(progress.parts),
                     format_count(progress.rows), format_bytes(progress.bytes), format_bytes(rate),
                     left);
}

OnExportProgress export_line() {
  const auto line = std::make_shared<ProgressLine>();
  return [line](const ExportProgress& progress) -> Result<void> {
    if (was_interrupted()) return make_error(ExitCode::failed, "export: interrupted by a signal");
    if (line->is_due()) line->show(line_of_export(progress, line->seconds()));
    return {};
  };
}

/// An export in progress.
struct OwnExport {
  std::string directory;
  FolderLock lock;
  ExportSchema schema;
  ExportManifest manifest;
  bool is_of_checkpoint = false;
  bool can_continue = false;  // of a checkpoint: a later run can resume it
};

Result<FolderLock> lock_export(const std::string& directory) {
  return FolderLock::exclusive(path_in(directory, "export.lock"), kOtherExport);
}

/// Returns the running cluster, or nothing if it is stopped or --data-dir names its files.
Result<std::optional<Config>> find_source(const ClusterChoice& choice,
                                          const ExportOptions& options) {
  if (!options.data_dir.empty()) return std::nullopt;
  auto running = find_running(choice);
  if (!running && running.error().code == ExitCode::not_running) return std::nullopt;
  if (!running) return std::unexpected(running.error());
  if (running->durability.mode == DurabilityMode::durable) return *std::move(running);
  return make_error(ExitCode::failed,
                    "export: there are no snapshots here: exports need durability.mode "
                    "\"durable\"");
}

Result<void> refuse_used(FileSystem& files, const std::string& directory) {
  ATOLL_ASSIGN(const bool exists, files.exists(directory));
  if (!exists) return {};
  ATOLL_ASSIGN(const auto names, files.list(directory));
  if (names.empty()) return {};
  return make_error(ExitCode::usage,
                    fmt::format("export: {} is not empty: choose a new directory, or continue its "
                                "export with --resume",
                                directory));
}

/// Returns the tables to export, without parts.
Result<std::vector<ExportTable>> chosen_tables(const ExportSchema& schema,
                                               const ExportOptions& options) {
  for (const std::string& name : options.tables) {
    if (schema.find(name) != nullptr) continue;
    return make_error(ExitCode::usage, fmt::format("--table {}: the schema {} has no such table",
                                                   name, options.schema));
  }
  std::vector<ExportTable> tables;
  for (const TableSchema& table : schema.tables) {
    const bool is_chosen = options.tables.empty() ||
                           std::ranges::find(options.tables, table.name) != options.tables.end();
    if (!is_chosen) continue;
    ExportTable& chosen = tables.emplace_back();
    chosen.name = table.name;
    for (const TableColumn& column : table.columns) {
      chosen.columns.push_back({column.name, column.type_name});
    }
  }
  return tables;
}

std::string new_pin_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kExportPinPrefix, random(), random());
}

/// Creates the directory with a manifest that names the pin, before the pin exists. So a killed
/// export leaves no pin that no manifest names.
Result<OwnExport> begin_export(FileSystem& files, const ClusterChoice& choice,
                               const ExportOptions& options, const std::string& directory) {
  if (options.schema.empty()) {
    return make_error(ExitCode::usage, "export: --schema is missing: see `atoll export --help`");
  }
  ATOLL_ASSIGN(SchemaFile schema, read_schema_file(files, options.schema));
  ATOLL_ASSIGN(auto tables, chosen_tables(schema.schema, options));
  ATOLL_TRY(refuse_used(files, directory));
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  ATOLL_TRY(refuse_nested("export", directory, data.data_dir));
  ATOLL_TRY(files.make_directory(directory));
  ATOLL_ASSIGN(auto lock, lock_export(directory));
  ATOLL_ASSIGN(const auto other, read_export_manifest(files, directory));
  if (other) {
    return make_error(ExitCode::usage, fmt::format("export: {} holds another export by now: choose "
                                                   "a new directory",
                                                   directory));
  }
  ExportManifest manifest;
  manifest.pin = new_pin_name();
  manifest.cluster_uuid = data.savepoint.cluster_uuid;
  manifest.snapshot = options.snapshot.value_or(0);
  manifest.schema_crc32c = crc_of_schema(schema.text);
  manifest.tables = std::move(tables);
  ATOLL_TRY(replace_text_file(files, export_schema_path(directory), schema.text));
  ATOLL_TRY(write_export_manifest(files, directory, manifest));
  return OwnExport{directory, std::move(lock), std::move(schema.schema), std::move(manifest)};
}

Result<OwnExport> resume_export(FileSystem& files, const ExportOptions& options,
                                const std::string& directory) {
  ATOLL_ASSIGN(auto manifest, read_export_manifest(files, directory));
  if (!manifest) {
    return make_error(ExitCode::failed, fmt::format("export: {} holds no export: export into it "
                                                    "without --resume",
                                                    directory));
  }
  ATOLL_ASSIGN(auto lock, lock_export(directory));
  // Reads the manifest again, because now no other process changes it.
  ATOLL_ASSIGN(manifest, read_export_manifest(files, directory));
  if (!manifest) return make_error(ExitCode::failed, directory + ": the export was just removed");
  ATOLL_ASSIGN(SchemaFile schema, read_schema_file(files, export_schema_path(directory)));
  bool is_same = crc_of_schema(schema.text) == manifest->schema_crc32c;
  if (!options.schema.empty()) {
    ATOLL_ASSIGN(const SchemaFile given, read_schema_file(files, options.schema));
    is_same = is_same && given.text == schema.text;
  }
  for (const ExportTable& table : manifest->tables) {
    is_same = is_same && schema.schema.find(table.name) != nullptr;
  }
  if (!is_same) {
    return make_error(ExitCode::failed,
                      fmt::format("export: {} was begun with another schema: continue with that "
                                  "one, or export into a new directory",
                                  directory));
  }
  if (options.snapshot && *options.snapshot != manifest->snapshot) {
    return make_error(ExitCode::failed,
                      fmt::format("export: {} is of snapshot {}, not {}: continue without "
                                  "--snapshot, or export into a new directory",
                                  directory, manifest->snapshot, *options.snapshot));
  }
  if (!options.tables.empty()) {
    return make_error(ExitCode::usage,
                      "--table: an export that continues keeps its tables: remove "
                      "the option");
  }
  return OwnExport{directory, std::move(lock), std::move(schema.schema), *std::move(manifest)};
}

Result<void> refuse_other_data(const LogData& data, const ExportManifest& manifest) {
  if (data.savepoint.cluster_uuid == manifest.cluster_uuid) return {};
  return make_error(ExitCode::identity,
                    fmt::format("export: {} is not the data that this export has begun with: "
                                "choose its cluster with -c or --cluster",
                                data.data_dir));
}

/// Finds the pin, or makes it. After this the manifest has the id and epoch of the snapshot.
Result<void> ensure_pin(const ClusterChoice& choice, const ExportOptions& options,
                        const LogData& data, ExportManifest& manifest) {
  ATOLL_TRY(refuse_other_data(data, manifest));
  const auto& pins = data.savepoint.pinned;
  const auto found = std::ranges::find(pins, manifest.pin, &PinnedSnapshot::name);
  PinnedSnapshot pin;
  if (found != pins.end()) {
    pin = *found;
  } else {
    SnapshotOptions wanted;
    wanted.data_dir = options.data_dir;
    wanted.name = manifest.pin;
    if (manifest.snapshot != 0) wanted.id = manifest.snapshot;
    ATOLL_ASSIGN(pin, make_pin(choice, wanted));
  }
  if (manifest.snapshot != 0 && manifest.snapshot != pin.id) {
    return make_error(ExitCode::failed,
                      fmt::format("export: the pin {} keeps snapshot {}, but the export is of {}: "
                                  "export into a new directory",
                                  manifest.pin, pin.id, manifest.snapshot));
  }
  if (manifest.epoch != 0 && manifest.epoch != pin.epoch) {
    return make_error(
        ExitCode::identity,
        fmt::format("export: snapshot {} is of epoch {} now, but the export is of {}: "
                    "the data was restored since: run `atoll snapshot unpin {}`, and "
                    "export into a new directory",
                    pin.id, pin.epoch, manifest.epoch, manifest.pin));
  }
  manifest.snapshot = pin.id;
  manifest.epoch = pin.epoch;
  return {};
}

Result<void> release_pin(const ClusterChoice& choice, const ExportOptions& options,
                         const std::string& name) {
  SnapshotOptions wanted;
  wanted.data_dir = options.data_dir;
  wanted.pin = name;
  const auto removed = remove_pin(choice, wanted);
  if (removed) return {};
  return make_error(removed.error().code,
                    fmt::format("the pin {} stays: `atoll snapshot unpin {}` removes it: {}", name,
                                name, removed.error().message));
}

/// Removes the pin if the savepoint has it.
Result<void> release_pin_of(const LogData& data, const ClusterChoice& choice,
                            const ExportOptions& options, const std::string& name) {
  const auto& pins = data.savepoint.pinned;
  if (std::ranges::find(pins, name, &PinnedSnapshot::name) == pins.end()) return {};
  return release_pin(choice, options, name);
}

/// Pins the snapshot and divides the tables, if an earlier run has not. Returns the snapshot.
Result<std::unique_ptr<ExportSource>> prepare_export(FileSystem& files, const ClusterChoice& choice,
                                                     const ExportOptions& options,
                                                     const std::optional<Config>& live,
                                                     const ExportRequest& request, OwnExport& own) {
  const bool is_planned = own.manifest.is_planned();
  if (live && own.manifest.snapshot == 0) {
    ATOLL_TRY(
        call_coordinator(*live, ControlOperation::snapshot_take, Json::object(), kSnapshotTimeout));
  }
  // Finds the data after the snapshot was taken, so that they include it.
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  ATOLL_TRY(ensure_pin(choice, options, data, own.manifest));
  ATOLL_ASSIGN(auto source, open_snapshot_source(files, data.data_dir, own.manifest));
  if (!is_planned) ATOLL_TRY(plan_export(*source, request, own.schema, own.manifest));
  ATOLL_TRY(write_export_manifest(files, own.directory, own.manifest));
  return source;
}

/// Removes what begin_export has made, so that the directory can be used again. Best effort:
/// --resume refuses or continues a directory that stays.
void remove_begun(const OwnExport& own) {
  std::error_code ignored;
  for (const std::string& path :
       {export_manifest_path(own.directory), export_schema_path(own.directory),
        path_in(own.directory, "export.lock"), own.directory}) {
    std::filesystem::remove(path, ignored);
  }
}

/// Removes what begin_export has made, and the pin. The savepoint may have the pin although its
/// write has failed. As long as the pin may exist, the manifest stays and names it, so that
/// --resume can continue or the user can remove it.
void discard_export(FileSystem& files, const ClusterChoice& choice, const ExportOptions& options,
                    const OwnExport& own) {
  const auto data = find_log_data(files, choice, options);
  if (!data) return print_error(data.error());
  const auto released = release_pin_of(*data, choice, options, own.manifest.pin);
  if (!released) return print_error(released.error());
  remove_begun(own);
}

void print_export(const OwnExport& own, const ExportOptions& options) {
  Json tables = Json::array();
  uint64_t all_rows = 0;
  uint64_t all_bytes = 0;
  for (const ExportTable& table : own.manifest.tables) {
    uint64_t rows = 0;
    uint64_t bytes = 0;
    for (const ExportPart& part : table.parts) {
      rows += part.rows;
      bytes += part.bytes;
    }
    tables.push_back(
        {{"name", table.name}, {"rows", rows}, {"bytes", bytes}, {"parts", table.parts.size()}});
    all_rows += rows;
    all_bytes += bytes;
  }
  if (options.json) {
    const Json whole = {{"schema_version", 1},
                        {"directory", own.directory},
                        {"snapshot", own.manifest.snapshot},
                        {"epoch", own.manifest.epoch},
                        {"tables", tables}};
    std::printf("%s\n", whole.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("export of %s %u, epoch %s: %zu tables, %s rows, %s\n",
              own.is_of_checkpoint ? "checkpoint" : "snapshot", own.manifest.snapshot,
              std::to_string(own.manifest.epoch).c_str(), own.manifest.tables.size(),
              format_count(all_rows).c_str(), format_bytes(all_bytes).c_str());
}

ExportRequest request_of(const ExportOptions& options, const std::optional<Config>& live,
                         const OwnExport& own) {
  return {.directory = own.directory,
          .threads = options.threads,
          .parts = options.parts,
          .reserve_bytes = live ? reserve_beside(*live, own.directory) : 0,
          .on_progress = export_line()};
}

Result<void> run_export(FileSystem& files, const ClusterChoice& choice,
                        const ExportOptions& options, const std::optional<Config>& live,
                        OwnExport& own) {
  ExportRequest request = request_of(options, live, own);
  const auto prepared = prepare_export(files, choice, options, live, request, own);
  if (!prepared) {
    // If the coordinator's answer is lost, the pin may exist. The manifest then stays, because it
    // must name the pin.
    const bool is_refused = prepared.error().code != ExitCode::coordinator_unreachable;
    if (!options.is_resumed && is_refused) discard_export(files, choice, options, own);
    return std::unexpected(prepared.error());
  }
  const Result<void> done = export_tables(files, **prepared, request, own.schema, own.manifest);
  request.on_progress = {};  // erases the progress line
  if (!done) {
    std::fprintf(stderr,
                 "atoll: the export in %s is unfinished and keeps snapshot %u: `atoll export "
                 "--resume` continues it; to give it up, remove the directory and run `atoll "
                 "snapshot unpin %s`\n",
                 printable(own.directory).c_str(), own.manifest.snapshot, own.manifest.pin.c_str());
  } else if (!live) {
    std::fprintf(stderr,
                 "atoll: the cluster is stopped: commits after snapshot %u are only in its log\n",
                 own.manifest.snapshot);
  }
  return done;
}

/// Removes the pin of a complete export. A run that was killed before has left it.
Result<void> release_left_pin(FileSystem& files, const ClusterChoice& choice,
                              const ExportOptions& options, const std::string& name) {
  const auto data = find_log_data(files, choice, options);
  if (!data) return {};  // the CSV files are complete even if the cluster cannot be found
  return release_pin_of(*data, choice, options, name);
}

/// Returns the default of --memory: most of the memory that the machine has available.
uint64_t default_export_memory() {
  const uint64_t available = MemoryAvailable::detect().bytes;
  return available == 0 ? UINT64_MAX : available / 4 * 3;
}

/// Chooses the checkpoint, and pins it. A resumed export keeps its checkpoint.
Result<void> choose_checkpoint(BackupSource& kept, const ExportManifest& manifest) {
  if (!manifest.is_planned()) {
    ATOLL_TRY(kept.remove_left_pins());
    return kept.choose_checkpoint(manifest.pin);
  }
  return kept.continue_with(manifest.pin, manifest.snapshot, manifest.epoch);
}

/// Returns whether a later run may continue after this error of read_checkpoint_source.
bool may_continue(FileSystem& files, const CheckpointSourceRequest& wanted, const Error& error) {
  if (error.code == ExitCode::identity) return false;
  const auto now = read_live_savepoint(files, wanted.data_dir);
  return !now || refuse_unkept(*now, wanted.data_dir, wanted.checkpoint).has_value();
}

/// Writes the tables of a cluster with checkpoints. A pin keeps the data, as for a backup.
Result<void> run_checkpoint_export(FileSystem& files, const ClusterChoice& choice,
                                   const ExportOptions& options, const std::optional<Config>& live,
                                   BackupSource& kept, OwnExport& own) {
  ATOLL_TRY(choose_checkpoint(kept, own.manifest));
  own.can_continue = own.manifest.is_planned();
  // Reads the savepoint after the pin, so that the log that it lists is kept.
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  const ExportRequest request = request_of(options, live, own);
  CheckpointSourceRequest wanted{
      .data_dir = data.data_dir,
      .savepoint = data.savepoint,
      .checkpoint = kept.newest(),
      .durable_epoch = kept.durable_epoch(),
      .begun = {},
      .tables = {},
      .memory_limit = options.memory_bytes != 0 ? options.memory_bytes : default_export_memory(),
      .on_progress = [&](uint64_t) { return request.on_progress(ExportProgress{}); }};
  if (own.manifest.is_planned()) {
    wanted.begun = BegunCheckpointExport{own.manifest.epoch, own.manifest.input_crc32c};
  }
  for (const ExportTable& table : own.manifest.tables) {
    wanted.tables.push_back(own.schema.find(table.name));
    if (wanted.begun) wanted.begun->storages.push_back(table.storage);
  }
  const auto read = read_checkpoint_source(files, wanted);
  if (!read) {
    own.can_continue = own.can_continue && may_continue(files, wanted, read.error());
    return std::unexpected(read.error());
  }
  // Only an export that can continue removes the pins of others.
  if (wanted.begun) ATOLL_TRY(kept.remove_left_pins());
  if (!wanted.begun) {
    own.manifest.snapshot = wanted.checkpoint;
    own.manifest.epoch = read->epoch;
    own.manifest.input_crc32c = read->input_crc32c;
    for (size_t i = 0; i < read->storages.size(); ++i) {
      own.manifest.tables[i].storage = read->storages[i];
    }
    ATOLL_TRY(plan_export(*read->source, request, own.schema, own.manifest));
    ATOLL_TRY(write_export_manifest(files, own.directory, own.manifest));
    own.can_continue = true;
  }
  return export_tables(files, *read->source, request, own.schema, own.manifest);
}

/// Ends a failed export. Keeps its pin if --resume can continue it. A full disk may need the room
/// of what the pin keeps (R65), so the pin is removed then.
void leave_checkpoint_export(const ExportOptions& options, BackupSource& kept, const OwnExport& own,
                             const Error& error) {
  const bool keeps_pin = own.can_continue && kept.has_pins() && error.code != ExitCode::disk_full;
  if (keeps_pin) kept.keep_pins();
  const auto released = kept.release();
  if (!released) print_error(released.error());
  if (!own.can_continue) {
    // The manifest names a pin that is left.
    if (!options.is_resumed && released) remove_begun(own);
    return;
  }
  const std::string unpin =
      fmt::format(" and run `atoll snapshot unpin {}`", BackupSource::pin_name(own.manifest.pin));
  std::fprintf(stderr,
               "atoll: the export in %s is unfinished: `atoll export --resume` continues it while "
               "checkpoint %u is kept, until the next %s; to give it up, remove the directory%s\n",
               printable(own.directory).c_str(), own.manifest.snapshot,
               keeps_pin ? "backup or other export" : "checkpoint",
               keeps_pin ? printable(unpin).c_str() : "");
}

Result<OwnExport> export_checkpoint(FileSystem& files, const ClusterChoice& choice,
                                    const ExportOptions& options, const std::string& directory,
                                    const std::optional<Config>& live) {
  if (options.snapshot) {
    return make_error(ExitCode::usage,
                      "--snapshot: the cluster has durability.scheme \"silor\", and so no "
                      "snapshots: export the newest state into a new directory");
  }
  ATOLL_ASSIGN(BackupSource kept, BackupSource::open(files, choice, options));
  ATOLL_TRY(refuse_unfinished(files, kept.data_dir()));
  ATOLL_ASSIGN(OwnExport own, options.is_resumed ? resume_export(files, options, directory)
                                                 : begin_export(files, choice, options, directory));
  own.is_of_checkpoint = true;
  // Checked before the pins of this data are changed.
  ATOLL_ASSIGN(const LogData data, find_log_data(files, choice, options));
  ATOLL_TRY(refuse_other_data(data, own.manifest));
  if (own.manifest.is_complete) {
    ATOLL_TRY(kept.remove_left_pin(own.manifest.pin));
    return own;
  }
  const Result<void> done = run_checkpoint_export(files, choice, options, live, kept, own);
  if (!done) {
    leave_checkpoint_export(options, kept, own, done.error());
    return std::unexpected(done.error());
  }
  ATOLL_TRY(kept.release());
  return own;
}

/// Returns the scheme of the cluster's data. If they cannot be found, it returns nothing, and the
/// caller's next step reports that.
std::optional<DurabilityScheme> scheme_of(FileSystem& files, const ClusterChoice& choice,
                                          const ExportOptions& options) {
  const auto data = find_log_data(files, choice, options);
  if (!data) return std::nullopt;
  return data->savepoint.scheme;
}

}  // namespace

Result<SchemaFile> read_schema_file(FileSystem& file_system, const std::string& path) {
  ATOLL_ASSIGN(auto text, read_text_file(file_system, path));
  if (!text) {
    return make_error(ExitCode::usage, path + ": there is no such file: choose another schema");
  }
  text->erase(text->find_last_not_of('\n') + 1);
  ATOLL_ASSIGN(auto schema, parse_export_schema(*text, path));
  return SchemaFile{*std::move(text), std::move(schema)};
}

Result<void> export_snapshot(const ClusterChoice& choice, const ExportOptions& options) {
  catch_interrupts();
  PosixFileSystem files;
  const std::string directory = absolute_path(options.directory);
  ATOLL_ASSIGN(const auto live, find_source(choice, options));
  const auto finish = [&](const OwnExport& own) -> Result<void> {
    print_export(own, options);
    std::fflush(stdout);
    return options.wants_parquet ? convert_to_parquet(directory, options.python) : Result<void>();
  };
  const auto scheme = scheme_of(files, choice, options);
  if (scheme == DurabilityScheme::silor) {
    ATOLL_ASSIGN(const OwnExport own, export_checkpoint(files, choice, options, directory, live));
    return finish(own);
  }
  if (scheme && options.memory_bytes != 0) {
    return make_error(ExitCode::usage,
                      "--memory: the cluster has durability.scheme \"gleaned\", and an export of a "
                      "snapshot keeps no tables in memory: remove the option");
  }
  ATOLL_ASSIGN(OwnExport own, options.is_resumed ? resume_export(files, options, directory)
                                                 : begin_export(files, choice, options, directory));
  Result<void> released;
  if (own.manifest.is_complete) {
    released = release_left_pin(files, choice, options, own.manifest.pin);
  } else {
    ATOLL_TRY(run_export(files, choice, options, live, own));
    released = release_pin(choice, options, own.manifest.pin);
  }
  ATOLL_TRY(finish(own));
  return released;
}

void add_export_command(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      add_cluster_command(app, invocation, "export", "Write a snapshot as CSV or Parquet files",
                          options, export_snapshot);
  add_data_options(*command, *options);
  command->add_option("DIR", options->directory, "New directory for the files")->required();
  command->add_option("--schema", options->schema, "Schema file: tables and their columns")
      ->type_name("FILE");
  command->add_option("--table", options->tables, "Export this table; may be repeated [all]")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command
      ->add_option("--snapshot", options->snapshot,
                   "Snapshot to export [a new one; of a stopped cluster: the newest]")
      ->check(CLI::Range(uint32_t{1}, SnapshotPointer::kMaxSnapshot));
  command->add_flag("--resume", options->is_resumed, "Continue the unfinished export in DIR");
  command
      ->add_option_function<std::string>(
          "--format",
          [options](const std::string& format) { options->wants_parquet = format == "parquet"; },
          "csv; or parquet, beside the CSV files [csv]")
      ->check(CLI::IsMember({"csv", "parquet"}));
  command->add_option("--parts", options->parts, "Largest number of files per table")
      ->check(CLI::Range(uint32_t{1}, kMaxTableParts))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Files that are written at the same time")
      ->check(CLI::Range(uint32_t{1}, kMaxExportThreads))
      ->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--memory",
          [options](const std::string& text) {
            const auto bytes = parse_size(text);
            if (!bytes || *bytes <= 0) {
              throw CLI::ValidationError("--memory", text + ": must be a size like 512MiB");
            }
            options->memory_bytes = static_cast<uint64_t>(*bytes);
          },
          "Limit of the memory for the tables of a cluster with checkpoints [3/4 of the free "
          "memory]")
      ->type_name("SIZE");
  command->add_option("--python", options->python, "Python with pyarrow, for Parquet")
      ->type_name("FILE");
}

}  // namespace atolldb::cli
