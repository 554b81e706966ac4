// Composer of sequential storages.
#pragma once

#include "engine/compose/compose.h"

namespace atolldb {

Result<ComposedPartition> compose_sequential(const ComposeTask& task);

}  // namespace atolldb
