// Composer of Master-trees.
#pragma once

#include "engine/compose/compose.h"

namespace atolldb {

Result<ComposedPartition> compose_mastertree(const ComposeTask& task);

}  // namespace atolldb
