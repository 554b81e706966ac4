// The built-in procedures `kv.*`.
#pragma once

#include <span>

#include "soc/procedure/procedure.h"

namespace atolldb {

/// kv.txn (any list of operations), kv.commit (the same, with an incarnation), and one procedure
/// for each operation alone.
std::span<const ProcedureEntry> kv_procedures();

}  // namespace atolldb
