#include "engine/checkpoint/range_walk.h"

#include <fmt/format.h>

#include "engine/hooks/mutants.h"
#include "engine/transaction/storage_handle.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {

bool CheckpointRules::skips(Vid vid) const {
  if (vid.ordinal() == 0 || vid.is_deleted()) return true;  // never written, or a tombstone
  DCHECK(replay_epoch != 0 && !vid.is_being_written());
  // The log may have only a part of a record with a new VID.
  return fault::checkpoint_skips_all_new && vid.epoch() >= replay_epoch;
}

uint64_t replay_epoch_of_checkpoint(const EpochBlock& epochs) {
  // Acquire pairs with the release of the thread that has found the epoch closed: all its commits
  // are visible.
  const uint64_t durable = epochs.durable.load(std::memory_order_acquire);
  const uint64_t current = epochs.current.load(std::memory_order_seq_cst);
  CHECK(durable < current);
  return fault::checkpoint_begins_late ? current : durable + 1;
}

uint64_t end_epoch_of_checkpoint(const EpochBlock& epochs) {
  // seq_cst, after the loads of the last record: its commit has loaded this epoch or an earlier one
  // (R21).
  return epochs.current.load(std::memory_order_seq_cst);
}

bool RangeWalk::is_ready() const { return is_storage_ready(storage_, id_); }

std::unique_ptr<RangeWalk> walk_range(WorkerContext& worker, StorageControl& storage,
                                      const CheckpointRules& rules, const KeyRange& range) {
  CHECK(rules.replay_epoch != 0);
  switch (storage.type) {
    case StorageType::array:
      return make_array_walk(worker, storage, rules, range);
    case StorageType::sequential:
      return make_heap_walk(worker, storage, rules, range);
    case StorageType::mastertree:
    case StorageType::hash:
      return make_tree_walk(worker, storage, rules, range);
    case StorageType::none:
      break;
  }
  CHECK(false);
  return nullptr;
}

Result<WalkCounters> copy_range(WorkerContext& worker, uint32_t storage_id,
                                const CheckpointRules& rules, const KeyRange& range,
                                CheckpointWriter& writer, const ContinueCopy& continues) {
  CHECK(storage_id != 0 && rules.replay_epoch != 0);
  StorageControl& storage = worker.view().control->storage(storage_id);
  // While the worker has a begin epoch, the slot keeps its storage (R34). The walk checks it again
  // for each page.
  worker.enter();
  if (!is_storage_ready(storage, storage_id)) {
    worker.leave();
    return WalkCounters{};
  }
  const auto walk = walk_range(worker, storage, rules, range);
  for (bool is_at_end = false; !is_at_end;) {
    worker.enter();
    const Status status = walk->copy_page(writer, is_at_end);
    const bool is_wanted = continues == nullptr || continues(walk->counters());
    if (status == Status::ok && is_wanted && !is_at_end && !writer.is_full()) continue;
    // The thread must not delay the reuse of pages while it waits for the device (R9).
    worker.leave();
    if (status != Status::ok) {
      return make_error(ExitCode::failed, fmt::format("checkpoint of storage {} failed: {}",
                                                      storage_id, to_string(status)));
    }
    if (!is_wanted) return make_error(ExitCode::failed, "the checkpoint was given up");
    ATOLL_TRY(writer.write_if_full());
  }
  return walk->counters();
}

}  // namespace atolldb
