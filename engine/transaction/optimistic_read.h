// Optimistic reads of records: the caller never gets a torn read.
#pragma once

#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/status.h"
#include "shared/memory/page_header.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

/// Calls `copy(vid)` until the VID is the same before and after, and no worker is writing the
/// record. `copy` must use racy_read. If the record is relocated (`is_relocated`), does not call
/// `copy`; `seen` then has its VID. The only error is cluster_failed, when a writer has died during
/// its write.
template <typename Copy>
Status read_stable(const WorkerContext& worker, const RecordHead& record, Vid& seen, Copy&& copy) {
  for (uint32_t turns = 0;;) {
    const Vid vid = record.load_acquire();
    if (!vid.is_being_written() || fault::no_vid_recheck) {
      seen = vid;
      if (vid.is_relocated()) return Status::ok;
      copy(vid);
      // racy_read ends with an acquire fence, so the copy's loads stay before this load, which
      // pairs with the writer's release store.
      if (record.load_acquire() == vid || fault::no_vid_recheck) return Status::ok;
    }
    if (spin_or_yield(turns) && worker.cluster_failed()) return Status::cluster_failed;
  }
}

/// Waits until the word of `page` is marked as moved. REQUIRES: a record of the page is marked as
/// moved; the mover marks the page word after the records (R7). A caller that searches after this
/// wait does not find the same page. The mover may have been descheduled. Returns ok, or
/// cluster_failed if the cluster has failed (R24).
Status await_move(const WorkerContext& worker, const PageHeader* page);

}  // namespace atolldb
