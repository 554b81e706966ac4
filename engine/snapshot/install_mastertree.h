// `install_snapshot` for Master-trees.
#pragma once

#include "engine/snapshot/install.h"

namespace atolldb {

Status install_mastertree(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report);

}  // namespace atolldb
