// Installer of sequential storages: `install_snapshot` for this storage type.
#pragma once

#include "engine/install/install.h"

namespace atolldb {

Status install_sequential(WorkerContext& worker, StorageControl& storage, const InstallTask& task,
                          InstallReport& report);

}  // namespace atolldb
