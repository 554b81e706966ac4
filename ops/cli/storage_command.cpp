// `atoll storage create|ls|describe|drop`: the catalog of a running cluster.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/kv_options.h"
#include "ops/cli/new_storage.h"
#include "ops/cli/terminal.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct StorageOptions : NodeChoice {
  NewStorage storage;  // only its name is set, except by `create`
  bool json = false;
};

/// Sends requests on the catalog to the chosen cluster, or to a node in the network.
class Catalog {
 public:
  static Result<Catalog> find(const ClusterChoice& choice, const StorageOptions& options) {
    Catalog found;
    ATOLL_ASSIGN(NodePlace place, node_place_of(choice, options, {.node = true}));
    if (place.network) {
      ATOLL_ASSIGN(found.connection_, shell::Connection::open_network(*std::move(place.network),
                                                                      Isolation::serializable));
    } else {
      ATOLL_ASSIGN(found.config_, find_running(place.choice));
      // All nodes have the same catalog.
      ATOLL_TRY(check_node(found.config_, place.node, "--connect"));
    }
    return found;
  }
  Result<Json> ask(ControlOperation operation, const Json& body) const {
    return connection_ == nullptr ? call_coordinator(config_, operation, body, kDdlTimeout)
                                  : connection_->call(operation, body);
  }

 private:
  Config config_;
  std::unique_ptr<shell::Connection> connection_;  // null: a cluster of this machine
};

Result<Json> ask(const ClusterChoice& choice, const StorageOptions& options,
                 ControlOperation operation, const Json& body) {
  ATOLL_ASSIGN(const Catalog catalog, Catalog::find(choice, options));
  return catalog.ask(operation, body);
}

/// Returns the size of an array. Other storages have the number of records in the newest snapshot
/// or checkpoint, which is not that of now.
std::string records_text(const Json& storage) {
  const uint64_t count = storage.value("record_count", uint64_t{0});
  for (const char* newest : {"snapshot", "checkpoint"}) {
    const Json stored = storage.value(newest, Json::object());
    if (count != 0 || !stored.contains("records")) continue;
    return "~" + format_count(stored.value("records", uint64_t{0}));
  }
  return records_cell(count);
}

std::vector<std::string> row(const Json& storage) {
  const Json cache = storage.value("snapshot_cache", Json::object());
  const Json snapshot = storage.value("snapshot", Json::object());
  return {storage.value("name", ""),
          storage.value("type", ""),
          std::to_string(storage.value("id", uint64_t{0})),
          storage.value("state", ""),
          payload_cell(storage.value("payload_bytes", uint64_t{0})),
          records_text(storage),
          format_count(storage.value("operations", uint64_t{0})),
          snapshot.empty() ? "-" : format_bytes(snapshot.value("bytes", uint64_t{0})),
          format_bytes(cache.value("used_bytes", uint64_t{0})),
          format_count(cache.value("pages_read", uint64_t{0})),
          format_count(cache.value("evictions", uint64_t{0}))};
}

void print(const Json& storages) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "TYPE", "ID", "STATE", "PAYLOAD BYTES",
                                                 "RECORDS", "OPERATIONS", "IN SNAPSHOT", "CACHED",
                                                 "PAGES READ", "EVICTIONS"}};
  for (const Json& storage : storages) rows.push_back(row(storage));
  std::printf("%s", format_table(rows).c_str());
  for (const Json& storage : storages) {
    if (!storage.contains("drop")) continue;
    std::printf("storage \"%s\": its drop %s\n", storage.value("name", "").c_str(),
                storage.value("drop", "").c_str());
  }
}

Result<void> create(const ClusterChoice& choice, const StorageOptions& options) {
  ATOLL_ASSIGN(const Json answer, ask(choice, options, ControlOperation::storage_create,
                                      creation_of(options.storage)));
  if (options.json) {
    const Json whole = {{"schema_version", 1},
                        {"name", options.storage.name},
                        {"type", options.storage.type},
                        {"id", answer.value("id", uint64_t{0})}};
    std::printf("%s\n", whole.dump(2).c_str());
    return {};
  }
  std::printf("storage \"%s\" created: %s, id %s\n", options.storage.name.c_str(),
              options.storage.type.c_str(),
              std::to_string(answer.value("id", uint64_t{0})).c_str());
  return {};
}

Result<void> list_storages(const ClusterChoice& choice, const StorageOptions& options) {
  ATOLL_ASSIGN(const Catalog catalog, Catalog::find(choice, options));
  const auto ask_part = [&](const Json& body) {
    return catalog.ask(ControlOperation::storage_list, body);
  };
  ATOLL_ASSIGN(const Json storages, shell::whole_list(ask_part, "storages", "name"));
  if (options.json) {
    const Json whole = {{"schema_version", 1}, {"storages", storages}};
    std::printf("%s\n", whole.dump(2).c_str());
  } else {
    print(storages);
  }
  return {};
}

Result<void> describe(const ClusterChoice& choice, const StorageOptions& options) {
  ATOLL_ASSIGN(const Json answer, ask(choice, options, ControlOperation::storage_describe,
                                      {{"name", options.storage.name}}));
  Json storage = {{"schema_version", 1}};
  for (const char* member : {"id", "name", "type", "state", "payload_bytes", "record_count",
                             "operations", "snapshot", "checkpoint", "snapshot_cache"}) {
    if (answer.contains(member)) storage[member] = answer[member];
  }
  if (options.json) {
    std::printf("%s\n", storage.dump(2).c_str());
  } else {
    print(Json::array({storage}));
  }
  return {};
}

Result<void> drop(const ClusterChoice& choice, const StorageOptions& options) {
  ATOLL_ASSIGN(const Json answer, ask(choice, options, ControlOperation::storage_drop,
                                      {{"name", options.storage.name}}));
  if (options.json) {
    const Json whole = {{"schema_version", 1},
                        {"name", options.storage.name},
                        {"pages_freed", answer.value("pages", uint64_t{0})}};
    std::printf("%s\n", whole.dump(2).c_str());
    return {};
  }
  std::printf("storage \"%s\" dropped: %s pages freed\n", options.storage.name.c_str(),
              format_count(answer.value("pages", uint64_t{0})).c_str());
  return {};
}

}  // namespace

void add_storage_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("storage", "Create, list and drop storages");
  group->require_subcommand(1);
  const auto options = std::make_shared<StorageOptions>();
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* const command = add_cluster_command(*group, invocation, name, help, options, run);
    add_connect_options(*command, *options);
    return command;
  };
  const auto add_name = [&](CLI::App* command) {
    command->add_option("NAME", options->storage.name, "Name of the storage")->required();
  };

  CLI::App* creating = add("create", "Create a storage", create);
  add_new_storage_options(*creating, options->storage);
  add_json_option(*creating, options->json);
  add_json_option(*add("ls", "List the storages", list_storages), options->json);
  CLI::App* describing = add("describe", "Show one storage", describe);
  add_name(describing);
  add_json_option(*describing, options->json);
  CLI::App* dropping = add("drop", "Drop a storage and free its pages", drop);
  add_name(dropping);
  add_json_option(*dropping, options->json);
}

}  // namespace atolldb::cli
