// The control requests that the coordinator serves.
#include <algorithm>
#include <future>
#include <map>
#include <utility>

#include "coordinator/coordinator.h"
#include "shared/base/try.h"
#include "shared/memory/dirty_epoch.h"
#include "shared/memory/state_names.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

Json describe(const StorageControl& storage) {
  // Acquire pairs with the catalog's release: the fields belong to this state.
  const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_acquire));
  return {{"id", storage.id},
          {"name", storage.name},
          {"type", to_string(storage.type)},
          {"state", to_string(state)},
          {"payload_bytes", storage.payload_bytes},
          {"record_count", storage.record_count}};
}

Result<StorageDefinition> definition_of(const ControlRequest& request) {
  StorageDefinition definition;
  ATOLL_ASSIGN(const std::string name, get_text(request, "name"));
  ATOLL_ASSIGN(const std::string type, get_text(request, "type"));
  ATOLL_ASSIGN(const uint64_t payload, get_number_or(request, "payload_bytes", 0));
  ATOLL_ASSIGN(const uint64_t records, get_number_or(request, "record_count", 0));
  definition.name = name;
  definition.type = storage_type(type);
  definition.payload_bytes = payload;
  definition.record_count = records;
  return definition;
}

}  // namespace

void Coordinator::handle(const ControlRequest& request, ControlReply reply) {
  if (request.op == "status") {
    Json status = status_->write(storages());
    status["snapshots"] = snapshot_status();
    status["recovery"] = recovery_status();
    status["device_hangs"] = device_status();
    return reply(std::move(status));
  }
  if (request.op == "storage.list") return reply(Json{{"storages", storages()}});
  if (request.op == "storage.describe") return describe_storage(request, reply);
  if (request.op == "snapshot.take") return request_snapshot(reply);
  if (request.op.starts_with("snapshot.")) return request_change(request, reply);
  if (request.op == "down") {
    const bool now = request.body.value("now", Json(false)) == true;
    logger_->info("asked to stop{}", now ? " now" : "");
    reply(Json{{"state", "draining"}});
    return launcher_.request_stop(now);
  }
  const bool is_ddl = request.op == "storage.create" || request.op == "storage.drop";
  if (!is_ddl) return reply(unknown_op(request));
  if (const auto runs = check_runs(request.op); !runs) {
    return reply(std::unexpected(runs.error()));
  }
  ddl_thread_.give([this, request, reply = std::move(reply)] {
    request.op == "storage.create" ? create_storage(request, reply) : drop_storage(request, reply);
  });
}

/// Returns one text for each process whose device hangs now.
Json Coordinator::device_status() const {
  Json hangs = Json::array();
  const auto add = [&](const std::string& role, const DeviceMetrics& device) {
    const std::string text = device_hang_text(device, config_.durability.device_hang_limit);
    if (!text.empty()) hangs.push_back({{"process", role}, {"text", text}});
  };
  add("coordinator", device_metrics_);
  for (size_t node = 0; node < metrics_.size(); ++node) {
    add("node" + std::to_string(node), metrics_[node]->device);
  }
  return hangs;
}

void Coordinator::create_storage(const ControlRequest& request, const ControlReply& reply) {
  const Result<StorageDefinition> definition = definition_of(request);
  if (!definition) return reply(std::unexpected(definition.error()));
  if (const auto free = check_no_drop(definition->name); !free) {
    return reply(std::unexpected(free.error()));
  }
  const Result<uint32_t> id = catalog_->create(*definition, [this](const StorageControl& storage) {
    return log_ddl(DdlOperation::create_storage, storage);
  });
  if (!id) return reply(std::unexpected(id.error()));
  logger_->info("storage {} created: {}, id {}", definition->name, to_string(definition->type),
                *id);
  reply(describe(control_->storage(*id)));
}

/// Only hides the name, so the DDL thread is free again at once. The dropper's thread does the
/// rest.
void Coordinator::drop_storage(const ControlRequest& request, const ControlReply& reply) {
  const Result<std::string> name = get_text(request, "name");
  if (!name) return reply(std::unexpected(name.error()));
  if (const auto free = check_no_drop(*name); !free) return reply(std::unexpected(free.error()));
  const Result<uint32_t> id = catalog_->hide(*name);
  if (!id) return reply(std::unexpected(id.error()));
  // seq_cst pairs with the store that hid the name: a thread that begins in a later epoch cannot
  // find the storage.
  const uint64_t hidden_at = control_->epochs.current.load(std::memory_order_seq_cst);
  dropper_->drop(*id, *name, hidden_at, [reply, id = *id](const Result<uint64_t>& pages) {
    if (!pages) return reply(std::unexpected(pages.error()));
    reply(Json{{"id", id}, {"pages", *pages}});
  });
}

/// Returns an error if a storage of this name is being dropped: a crash would restore it (R34).
Result<void> Coordinator::check_no_drop(const std::string& name) const {
  if (!dropper_->is_unlogged(name)) return {};
  return make_error(ExitCode::failed,
                    "storage \"" + name +
                        "\": is being dropped: wait until `atoll storage ls` lists it no more, or "
                        "use another name");
}

std::unique_ptr<StorageDropper> Coordinator::make_dropper() {
  StorageDropperHooks hooks;
  hooks.have_begun_after = [this](uint64_t epoch, std::chrono::milliseconds patience) {
    return clock_->wait_until_begun_after(epoch, patience);
  };
  hooks.latest_commit_epoch = [this] { return latest_dirty_epoch(nodes_); };
  hooks.is_durable = [this](uint64_t epoch, std::chrono::milliseconds patience) {
    return wait_until_durable(epoch, patience);
  };
  // Only the DDL thread writes the catalog and the DDL log.
  hooks.log = [this](uint32_t id) {
    return on_ddl_thread(
        [this, id] { return log_ddl(DdlOperation::drop_storage, control_->storage(id)); });
  };
  hooks.release = [this](uint32_t id) -> Result<uint64_t> {
    // Any node can walk the pages. The modulus spreads the work.
    const auto node = static_cast<uint32_t>(id % nodes_.size());
    ATOLL_ASSIGN(const Json released, call_node_(node, "pages.release", Json{{"storage_id", id}}));
    return released.value("pages", uint64_t{0});
  };
  hooks.free_slot = [this](uint32_t id) {
    [[maybe_unused]] const auto freed = on_ddl_thread([this, id] {
      catalog_->free_slot(id);
      return Result<void>();
    });
  };
  return std::make_unique<StorageDropper>(std::move(hooks), logger_);
}

/// REQUIRES: the DDL thread runs, and the caller is another thread.
Result<void> Coordinator::on_ddl_thread(const std::function<Result<void>()>& task) {
  std::promise<Result<void>> promise;
  auto done = promise.get_future();
  ddl_thread_.give([&] { promise.set_value(task()); });
  return done.get();
}

bool Coordinator::wait_until_durable(uint64_t epoch, std::chrono::milliseconds patience) const {
  const EpochBlock& epochs = control_->epochs;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    // Acquire, and the signal before `durable`: a rise that this load misses changes the signal.
    const uint32_t signal = epochs.durable_signal.load(std::memory_order_acquire);
    if (epochs.durable.load(std::memory_order_acquire) >= epoch) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now >= end || state() >= ClusterState::stopped) return false;
    wait_on(epochs.durable_signal, signal,
            std::min<std::chrono::nanoseconds>(end - now, kMaxSleep));
  }
}

Result<void> Coordinator::restore_storages() {
  if (durable_ == nullptr) return {};
  std::map<uint32_t, StorageDefinition> living;
  for (const DdlRecord& record : durable_->ddl()) {
    catalog_->skip_ids(record.storage_id);
    if (record.operation == DdlOperation::drop_storage) {
      living.erase(record.storage_id);
    } else {
      living[record.storage_id] = {record.name, record.type, record.payload_bytes,
                                   record.record_count};
    }
  }
  for (const auto& [id, definition] : living) {
    ATOLL_TRY(catalog_->restore(id, definition));
  }
  return {};
}

Result<void> Coordinator::log_ddl(DdlOperation operation, const StorageControl& storage) {
  if (durable_ == nullptr) return {};
  DdlRecord record;
  record.operation = operation;
  record.storage_id = storage.id;
  record.epoch = control_->epochs.current.load(std::memory_order_relaxed);
  record.name = storage.name;
  if (operation == DdlOperation::create_storage) {
    record.type = storage.type;
    record.payload_bytes = storage.payload_bytes;
    record.record_count = storage.record_count;
  }
  const Result<void> logged = durable_->log_ddl(record);
  if (!logged) fail_durability(logged.error());
  return logged;
}

void Coordinator::describe_storage(const ControlRequest& request, const ControlReply& reply) const {
  const Result<std::string> name = get_text(request, "name");
  if (!name) return reply(std::unexpected(name.error()));
  const StorageControl* storage = catalog_->find(*name);
  if (storage == nullptr) {
    return reply(make_error(ExitCode::failed, "storage \"" + *name +
                                                  "\": does not exist: `atoll storage ls` lists "
                                                  "them"));
  }
  reply(describe(*storage));
}

Json Coordinator::storages() const {
  Json list = Json::array();
  for (const StorageControl* storage : catalog_->list()) {
    list.push_back(describe(*storage));
    const auto drop = dropper_ == nullptr ? std::nullopt : dropper_->progress(storage->id);
    if (drop) list.back()["drop"] = *drop;
  }
  return list;
}

}  // namespace atolldb
