// Composer of arrays.
#pragma once

#include "engine/snapshot/compose.h"

namespace atolldb {

Result<ComposedPartition> compose_array(const ComposeTask& task);

}  // namespace atolldb
