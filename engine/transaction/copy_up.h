// Copy-up: the first write below a pointer installs a volatile copy of the snapshot page. Source:
// [FOEDUS15] section 5; rules R1, R2, R5, R43.
#pragma once

#include "engine/transaction/transaction.h"

namespace atolldb {

/// Copies the page `view.snapshot` into the pool of the worker's own node and installs the copy in
/// `pointer`, which the caller has read as `view`. Returns ok if there is a volatile page now, also
/// if another worker installed it: the caller reads the pointer again. Returns pointer_installed if
/// the transaction depends on the absence of a volatile page: the attempt must end (R5).
/// REQUIRES: the caller holds no lock. May read from the device.
Status copy_up(Transaction& txn, DualPointer& pointer, const DualPointer::View& view);

}  // namespace atolldb
