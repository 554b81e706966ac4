#include "coordinator/catalog/catalog_manager.h"

#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <utility>

#include "coordinator/epoch/durable_epoch.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/state_names.h"

namespace atolldb {
namespace {

Json describe_storage(const StorageControl& storage) {
  // Acquire pairs with the catalog's release: the fields belong to this state.
  const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
  return {{"id", storage.id},
          {"name", storage.name},
          {"type", to_string(storage.type)},
          {"state", to_string(state)},
          {"payload_bytes", storage.payload_bytes},
          {"record_count", storage.record_count},
          {"cold_writes",
           storage.uses_delta.load(std::memory_order_relaxed) != 0 ? "records" : "pages"}};
}

Result<StorageDefinition> definition_of(const ControlRequest& request) {
  ATOLL_ASSIGN(const std::string name, get_text(request, "name"));
  ATOLL_ASSIGN(const std::string type, get_text(request, "type"));
  ATOLL_ASSIGN(const uint64_t payload, get_number_or(request, "payload_bytes", 0));
  ATOLL_ASSIGN(const uint64_t records, get_number_or(request, "record_count", 0));
  return StorageDefinition{name, storage_type(type), payload, records};
}

}  // namespace

CatalogManager::CatalogManager(ControlSegment& control, DurableState* durable,
                               const std::vector<NodeShared*>& nodes,
                               const std::vector<const MetricsSegment*>& metrics,
                               const NodeCall& call_node, OnFailure on_failure, Logger logger)
    : control_(control),
      durable_(durable),
      nodes_(nodes),
      call_node_(call_node),
      on_failure_(std::move(on_failure)),
      logger_(std::move(logger)),
      catalog_(control, metrics) {
  CHECK(on_failure_);
}

Result<void> CatalogManager::restore() {
  CHECK(dropper_ == nullptr);
  if (durable_ == nullptr) return {};
  std::map<uint32_t, StorageDefinition> living;
  for (const DdlRecord& record : durable_->ddl()) {
    catalog_.skip_ids(record.storage_id);
    if (record.operation == DdlOperation::drop_storage) {
      living.erase(record.storage_id);
    } else {
      living[record.storage_id] = {record.name, record.type, record.payload_bytes,
                                   record.record_count};
    }
  }
  for (const auto& [id, definition] : living) {
    ATOLL_TRY(catalog_.restore(id, definition));
  }
  return {};
}

void CatalogManager::start(EpochClock& clock) {
  CHECK(clock_ == nullptr && !nodes_.empty());
  clock_ = &clock;
  ddl_thread_.start();
  dropper_ = make_dropper();
  dropper_->start();
}

void CatalogManager::stop_drops() {
  if (dropper_ != nullptr) dropper_->stop();
}

void CatalogManager::stop() {
  // Stops the drops before the DDL thread, because they wait for tasks of this thread.
  stop_drops();
  ddl_thread_.stop();
}

void CatalogManager::change(const ControlRequest& request, const ControlReply& reply) {
  const bool creates = request.operation == ControlOperation::storage_create;
  CHECK(creates || request.operation == ControlOperation::storage_drop);
  const bool is_given = ddl_thread_.give([this, creates, request, reply] {
    creates ? create_storage(request, reply) : drop_storage(request, reply);
  });
  if (!is_given) reply(make_error(ExitCode::not_running, request.op + ": the cluster stops"));
}

void CatalogManager::create_storage(const ControlRequest& request, const ControlReply& reply) {
  CHECK(ddl_thread_.is_current());
  const Result<StorageDefinition> definition = definition_of(request);
  if (!definition) return reply(std::unexpected(definition.error()));
  if (const auto free = check_no_drop(definition->name); !free) {
    return reply(std::unexpected(free.error()));
  }
  const Result<uint32_t> id = catalog_.create(*definition, [this](const StorageControl& storage) {
    return log_ddl(DdlOperation::create_storage, storage);
  });
  if (!id) return reply(std::unexpected(id.error()));
  logger_->info("storage {} created: {}, id {}", definition->name, to_string(definition->type),
                *id);
  reply(describe_storage(control_.storage(*id)));
}

/// Hides the name of the storage, and gives the rest of the drop to the dropper's thread. So other
/// requests need not wait for the drop.
void CatalogManager::drop_storage(const ControlRequest& request, const ControlReply& reply) {
  CHECK(ddl_thread_.is_current());
  const Result<std::string> name = get_text(request, "name");
  if (!name) return reply(std::unexpected(name.error()));
  if (const auto free = check_no_drop(*name); !free) return reply(std::unexpected(free.error()));
  const Result<uint32_t> id = catalog_.hide(*name);
  if (!id) return reply(std::unexpected(id.error()));
  // seq_cst pairs with the store that has hidden the name. A thread that begins in a later epoch
  // cannot find the storage.
  const uint64_t hidden_at = control_.epochs.current.load(std::memory_order_seq_cst);
  dropper_->drop(*id, *name, hidden_at, [reply, id = *id](const Result<uint64_t>& pages) {
    if (!pages) return reply(std::unexpected(pages.error()));
    reply(Json{{"id", id}, {"pages", *pages}});
  });
}

Result<void> CatalogManager::check_no_drop(const std::string& name) const {
  if (!dropper_->is_unlogged(name)) return {};
  return make_error(ExitCode::failed,
                    "storage \"" + name +
                        "\": is being dropped: wait until `atoll storage ls` lists it no more, or "
                        "use another name");
}

Result<void> CatalogManager::log_ddl(DdlOperation operation, const StorageControl& storage) {
  CHECK(ddl_thread_.is_current());
  if (durable_ == nullptr) return {};
  DdlRecord record;
  record.operation = operation;
  record.storage_id = storage.id;
  record.epoch = control_.epochs.current.load(std::memory_order_relaxed);
  record.name = storage.name;
  if (operation == DdlOperation::create_storage) {
    record.type = storage.type;
    record.payload_bytes = storage.payload_bytes;
    record.record_count = storage.record_count;
  }
  const Result<void> logged = durable_->log_ddl(record);
  if (!logged) on_failure_(logged.error());
  return logged;
}

std::unique_ptr<StorageDropper> CatalogManager::make_dropper() {
  StorageDropperHooks hooks;
  hooks.have_begun_after = [this](uint64_t epoch, std::chrono::milliseconds patience) {
    return clock_->wait_until_begun_after(epoch, patience);
  };
  hooks.latest_commit_epoch = [this] { return latest_dirty_epoch(nodes_); };
  hooks.is_durable = [this](uint64_t epoch, std::chrono::milliseconds patience) {
    return wait_until_durable(control_, epoch, patience);
  };
  // Runs on the DDL thread, which alone writes the catalog and the DDL log.
  hooks.log = [this](uint32_t id) {
    return on_ddl_thread(
        [this, id] { return log_ddl(DdlOperation::drop_storage, control_.storage(id)); });
  };
  hooks.release = [this](uint32_t id) -> Result<uint64_t> {
    // Any node can release the pages. The modulus distributes the storages over the nodes.
    const auto node = static_cast<uint32_t>(id % nodes_.size());
    ATOLL_ASSIGN(const Json released,
                 call_node_(node, ControlOperation::pages_release, Json{{"storage_id", id}}));
    return released.value("pages", uint64_t{0});
  };
  hooks.free_slot = [this](uint32_t id) {
    [[maybe_unused]] const auto freed = on_ddl_thread([this, id] {
      catalog_.free_slot(id);
      return Result<void>();
    });
  };
  return std::make_unique<StorageDropper>(std::move(hooks), logger_);
}

Result<void> CatalogManager::on_ddl_thread(const std::function<Result<void>()>& task) {
  CHECK(!ddl_thread_.is_current());  // the thread would wait for itself
  std::promise<Result<void>> promise;
  auto done = promise.get_future();
  if (!ddl_thread_.give([&] { promise.set_value(task()); })) {
    return make_error(ExitCode::not_running, "the catalog: the cluster stops");
  }
  return done.get();
}

Result<bool> CatalogManager::has_unlogged_drop() {
  bool found = false;
  // On the DDL thread, because it hides a name first, and gives the drop to the dropper then.
  ATOLL_TRY(on_ddl_thread([&] {
    found = dropper_ != nullptr && dropper_->has_unlogged();
    return Result<void>();
  }));
  return found;
}

std::vector<StorageEntry> CatalogManager::entries() {
  CHECK(!ddl_thread_.is_current());  // the thread would wait for itself
  std::promise<std::vector<StorageEntry>> promise;
  auto answer = promise.get_future();
  const bool is_given = ddl_thread_.give([&] {
    std::vector<StorageEntry> entries;
    for (const StorageControl* storage : catalog_.list()) {
      entries.push_back({storage->id, storage->type, storage->name, storage->payload_bytes,
                         storage->record_count});
    }
    promise.set_value(std::move(entries));
  });
  CHECK(is_given);  // a snapshot with an empty list would lose all storages
  return answer.get();
}

void CatalogManager::record_idle_epoch(uint64_t durable_epoch) {
  CHECK(durable_ != nullptr);
  // Does nothing after `stop`, because the orderly end stores the durable epoch
  // (DurableState::end).
  [[maybe_unused]] const bool is_given = ddl_thread_.give([this, durable_epoch] {
    if (const auto recorded = durable_->record_idle(durable_epoch); !recorded) {
      logger_->warn("the savepoint does not record that epoch {} is durable: {}", durable_epoch,
                    recorded.error().message);
    }
  });
}

Result<Json> CatalogManager::describe(const ControlRequest& request) const {
  ATOLL_ASSIGN(const std::string name, get_text(request, "name"));
  const StorageControl* storage = catalog_.find(name);
  if (storage == nullptr) {
    return make_error(ExitCode::failed,
                      "storage \"" + name + "\": does not exist: `atoll storage ls` lists them");
  }
  return describe_storage(*storage);
}

Json CatalogManager::list() const {
  Json list = Json::array();
  for (const StorageControl* storage : catalog_.list()) {
    list.push_back(describe_storage(*storage));
    const auto drop = dropper_ == nullptr ? std::nullopt : dropper_->progress(storage->id);
    if (drop) list.back()["drop"] = *drop;
  }
  return list;
}

}  // namespace atolldb
