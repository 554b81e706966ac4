// `install_snapshot` for sequential storages.
#pragma once

#include "engine/snapshot/install.h"

namespace atolldb {

Status install_sequential(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report);

}  // namespace atolldb
