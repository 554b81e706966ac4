#include "engine/install/install.h"

#include <algorithm>

#include "engine/install/install_array.h"
#include "engine/install/install_mastertree.h"
#include "engine/install/install_sequential.h"

namespace atolldb {

void InstallReport::add(const InstallReport& other) {
  installed += other.installed;
  unmatched += other.unmatched;
  dropped += other.dropped;
  dropped_hot += other.dropped_hot;
  kept += other.kept;
  kept_hot += other.kept_hot;
  busy += other.busy;
  longest_hold_ns = std::max(longest_hold_ns, other.longest_hold_ns);
  oldest_left = std::min(oldest_left, other.oldest_left);
}

Status install_snapshot(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                        InstallReport& report) {
  Status status = Status::invalid_argument;
  switch (storage.type) {
    case StorageType::array:
      status = install_array(worker, storage, task, report);
      break;
    case StorageType::mastertree:
      status = install_mastertree(worker, storage, task, report);
      break;
    case StorageType::sequential:
      status = install_sequential(worker, storage, task, report);
      break;
    case StorageType::none:
      break;
  }
  worker.leave();
  if (status != Status::ok) report.oldest_left = 0;
  return status;
}

}  // namespace atolldb
