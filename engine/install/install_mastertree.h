// Installer of Master-trees: `install_snapshot` for this storage type.
#pragma once

#include "engine/install/install.h"

namespace atolldb {

Status install_mastertree(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report);

}  // namespace atolldb
