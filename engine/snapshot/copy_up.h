// Installing the volatile page for a snapshot page, at the first write below a pointer (foedus.txt
// section 5; rules R1, R2, R5, R43).
#pragma once

#include "engine/transaction/transaction.h"

namespace atolldb {

/// Puts a volatile copy of the page `view.snapshot` behind `pointer`, which read as `view`, into
/// the worker's own node. ok also when somebody else was faster: look again. pointer_installed: the
/// transaction depends on that there is none; the attempt is over (R5). REQUIRES: no lock is held;
/// may read from the device.
Status copy_up(Transaction& txn, DualPointer& pointer, const DualPointer::View& view);

}  // namespace atolldb
