// Composer of Master-trees.
#pragma once

#include "engine/snapshot/compose.h"

namespace atolldb {

Result<ComposedPartition> compose_mastertree(const ComposeTask& task);

}  // namespace atolldb
