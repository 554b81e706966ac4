// The built-in procedures `kv.*`.
#pragma once

#include <span>

#include "soc/procedure/procedure.h"

namespace atolldb {

/// Returns kv.txn (any list of operations), kv.commit (a list with an incarnation), and one
/// procedure for each single operation.
std::span<const ProcedureEntry> kv_procedures();

}  // namespace atolldb
