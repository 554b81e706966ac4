#include "soc/checkpoint/node_checkpoint.h"

#include <algorithm>
#include <utility>

#include "engine/checkpoint/range_walk.h"
#include "shared/base/check.h"
#include "shared/base/run_tasks.h"
#include "shared/base/try.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

CheckpointProgress progress_of(const WalkCounters& walked, const CheckpointWriterCounters& writer) {
  CheckpointProgress progress;
  progress.pages = walked.pages;
  progress.records = walked.records;
  progress.skipped = walked.skipped;
  progress.bytes = writer.bytes;
  progress.blocks = writer.blocks;
  progress.syncs = writer.syncs;
  return progress;
}

}  // namespace

Json to_json(const CheckpointProgress& progress) {
  Json json = Json::object();
  for (const CheckpointCounter& each : kCheckpointCounters) {
    json[each.name] = progress.*each.progress;
  }
  return json;
}

void NodeCheckpoint::Part::publish(const CheckpointProgress& progress) {
  for (size_t i = 0; i < counters.size(); ++i) {
    // Relaxed: for display; each figure is valid on its own.
    counters[i].store(progress.*kCheckpointCounters[i].progress, std::memory_order_relaxed);
  }
}

NodeCheckpoint::NodeCheckpoint(CheckpointTask task, const CheckpointResources& resources,
                               Logger logger)
    : task_(std::move(task)),
      resources_(resources),
      file_system_(*resources.file_system, task_.disk_reserve),
      logger_(std::move(logger)) {
  CHECK(task_.threads >= 1 && task_.threads <= resources_.slots && task_.files >= 1);
  for (const DividedStorage& storage : task_.storages) {
    CHECK(task_.first_part + task_.threads <= storage.ranges.size());
  }
  for (uint32_t i = 0; i < task_.threads; ++i) parts_.push_back(std::make_unique<Part>());
  copying_ = std::make_unique<AwaitedTask>(
      "ckpt", [this] { return copy(); }, [this] { return to_json(progress()); });
}

NodeCheckpoint::~NodeCheckpoint() {
  cancel();
  copying_.reset();
}

void NodeCheckpoint::cancel() {
  const std::lock_guard guard(pause_mutex_);
  is_cancelled_.store(true, std::memory_order_relaxed);
  pauses_end_.notify_all();
}

void NodeCheckpoint::pause() {
  std::unique_lock lock(pause_mutex_);
  DCHECK(task_.pause.count() > 0);
  pauses_end_.wait_for(lock, task_.pause,
                       [this] { return is_cancelled_.load(std::memory_order_relaxed); });
}

void NodeCheckpoint::discard(const ControlReply& reply) {
  cancel();
  // Whether the copy has failed or not, its threads have ended then.
  copying_->wait(AwaitedTask::Clock::time_point::max(), [this, reply](const Result<Json>&) {
    remove_files();
    reply(Json::object());
  });
}

CheckpointProgress NodeCheckpoint::progress() const {
  CheckpointProgress sum;
  for (const auto& part : parts_) {
    for (size_t i = 0; i < part->counters.size(); ++i) {
      sum.*kCheckpointCounters[i].progress += part->counters[i].load(std::memory_order_relaxed);
    }
  }
  return sum;
}

Result<Json> NodeCheckpoint::copy() {
  const Result<void> copied =
      try_tasks(on_threads(task_.threads), task_.threads, [this](size_t thread) {
        Result<void> done = copy_part(static_cast<uint32_t>(thread));
        if (!done) record_failure(done.error());
        return done;
      });
  if (!copied) {
    remove_files();
    const std::lock_guard guard(files_mutex_);
    CHECK(failure_.has_value());
    logger_->error("checkpoint {}: {}", id(), failure_->message);
    return std::unexpected(*failure_);
  }
  const CheckpointProgress done = progress();
  logger_->info("checkpoint {}: this node has written {} records in {} bytes", id(), done.records,
                done.bytes);
  return Json{{"files", files_json()}, {"storages", storages_json()}};
}

/// Keeps the first error: the others only say that the checkpoint was given up because of it.
void NodeCheckpoint::record_failure(const Error& error) {
  {
    const std::lock_guard guard(files_mutex_);
    if (!failure_) failure_ = error;
  }
  cancel();  // the other threads need not continue
}

Result<void> NodeCheckpoint::copy_part(uint32_t thread) {
  name_thread("ckpt" + std::to_string(thread));
  if (const auto pinned = pin_thread(resources_.cpus, "gleaner_cpus"); !pinned) {
    logger_->warn("checkpoint {}: {}", id(), pinned.error().message);
  }
  const uint32_t slot = resources_.first_slot + thread;
  CHECK(thread < task_.threads && slot < resources_.view->shared[resources_.node]->slot_count);
  WorkerContext worker(*resources_.view, *resources_.pool, resources_.node, slot,
                       resources_.metrics(slot), resources_.write_set);
  ATOLL_ASSIGN(CheckpointWriter writer,
               CheckpointWriter::create(file_system_, writer_settings(thread)));
  std::vector<uint64_t> records;
  auto files = copy_storages(worker, writer, thread, records);
  if (!files) {
    writer.discard();
    return std::unexpected(files.error());
  }
  const std::lock_guard guard(files_mutex_);
  parts_[thread]->files = *std::move(files);
  parts_[thread]->records = std::move(records);
  return {};
}

Result<std::vector<CheckpointFileInfo>> NodeCheckpoint::copy_storages(
    WorkerContext& worker, CheckpointWriter& writer, uint32_t thread,
    std::vector<uint64_t>& records) {
  Part& part = *parts_[thread];
  const CheckpointRules rules{task_.replay_epoch};
  WalkCounters before;  // of the storages that are complete
  const auto publish = [&](const WalkCounters& walked) {
    WalkCounters sum = before;
    sum.add(walked);
    part.publish(progress_of(sum, writer.counters()));
  };
  const auto continues = [&](const WalkCounters& walked) {
    publish(walked);
    return !is_cancelled_.load(std::memory_order_relaxed);
  };
  for (const DividedStorage& divided : task_.storages) {
    const KeyRange& range = divided.ranges[task_.first_part + thread];
    ATOLL_ASSIGN(const WalkCounters walked,
                 copy_range(worker, divided.id, rules, range, writer, continues));
    before.add(walked);
    records.push_back(walked.records);
  }
  ATOLL_ASSIGN(auto files, writer.finish());
  publish({});
  if (is_cancelled_.load(std::memory_order_relaxed)) {
    return make_error(ExitCode::failed, "the checkpoint was given up");
  }
  return files;
}

CheckpointWriterSettings NodeCheckpoint::writer_settings(uint32_t thread) {
  CheckpointWriterSettings settings;
  settings.directory = resources_.directory(thread);
  settings.node = static_cast<uint16_t>(resources_.node);
  settings.writer = static_cast<uint16_t>(thread);
  settings.files = task_.files;
  settings.checkpoint = task_.checkpoint;
  settings.replay_epoch = task_.replay_epoch;
  settings.sync_bytes = task_.sync_bytes;
  if (task_.pause.count() != 0) settings.pause = [this] { pause(); };
  settings.pause_bytes = task_.pause_bytes;
  std::ranges::copy(resources_.view->control->data_uuid, settings.cluster_uuid.begin());
  return settings;
}

Json NodeCheckpoint::files_json() {
  Json files = Json::array();
  const std::lock_guard guard(files_mutex_);
  for (const auto& part : parts_) {
    CHECK(part->files.size() == task_.files);
    for (const CheckpointFileInfo& file : part->files) {
      files.push_back({{"directory", file.directory},
                       {"writer", file.writer},
                       {"number", file.number},
                       {"bytes", file.bytes},
                       {"records", file.records},
                       {"checksum", file.checksum}});
    }
  }
  return files;
}

/// Returns the number of records that this node has copied of each storage.
Json NodeCheckpoint::storages_json() {
  Json storages = Json::array();
  const std::lock_guard guard(files_mutex_);
  for (size_t i = 0; i < task_.storages.size(); ++i) {
    uint64_t records = 0;
    for (const auto& part : parts_) {
      CHECK(part->records.size() == task_.storages.size());
      records += part->records[i];
    }
    storages.push_back({{"id", task_.storages[i].id}, {"records", records}});
  }
  return storages;
}

/// Removes the files of all threads that have ended without an error. The others have removed
/// theirs. A file that cannot be removed is removed after the next checkpoint
/// (DurableState::delete_unneeded).
void NodeCheckpoint::remove_files() {
  const std::lock_guard guard(files_mutex_);
  for (const auto& part : parts_) {
    for (const CheckpointFileInfo& file : part->files) {
      const std::string path = checkpoint_file_path(file.directory, file.node,
                                                    {task_.checkpoint, file.writer, file.number});
      if (const auto removed = resources_.file_system->remove(path); !removed) {
        logger_->warn("checkpoint {}: {}", id(), removed.error().message);
      }
    }
    part->files.clear();
  }
}

}  // namespace atolldb
