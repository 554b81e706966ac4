// Composer of arrays.
#pragma once

#include "engine/compose/compose.h"

namespace atolldb {

Result<ComposedPartition> compose_array(const ComposeTask& task);

}  // namespace atolldb
