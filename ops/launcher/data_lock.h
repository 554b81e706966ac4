// The lock of the data directory, before anything looks at the data (R31).
#pragma once

#include <optional>

#include "ops/launcher/process_lock.h"
#include "shared/config/config.h"

namespace atolldb {

/// Makes the directory and locks it; nothing if the config keeps no data.
Result<std::optional<ProcessLock>> lock_data(const Config& config);

}  // namespace atolldb
