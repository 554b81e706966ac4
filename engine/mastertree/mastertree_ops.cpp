#include "engine/mastertree/maintain.h"
#include "engine/mastertree/track.h"
#include "engine/transaction/storage_ops.h"

namespace atolldb {

constinit const StorageOps kMastertreeOps = {track_moved, record_erased};

}  // namespace atolldb
