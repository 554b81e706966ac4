// Optimistic reads of records: the caller never gets a torn read.
#pragma once

#include "engine/format/vid.h"
#include "engine/hooks/mutants.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/status.h"
#include "shared/memory/page_header.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

/// Calls `copy(vid)` until the VID is the same before and after the call, and no worker is writing
/// the record. `copy` must use racy_read. If the record is relocated (`is_relocated`), sets `seen`
/// to its VID and does not call `copy`. The only error is cluster_failed: a writer has died during
/// its write, and the cluster has failed.
template <typename Copy>
Status read_stable(const WorkerContext& worker, const RecordHead& record, Vid& seen, Copy&& copy) {
  for (uint32_t turns = 0;;) {
    const Vid vid = record.load_acquire();
    if (!vid.is_being_written() || fault::no_vid_recheck) {
      seen = vid;
      if (vid.is_relocated()) return Status::ok;
      copy(vid);
      // racy_read ends with an acquire fence, so the loads of the copy come before this load. This
      // load pairs with the writer's release store.
      if (record.load_acquire() == vid || fault::no_vid_recheck) return Status::ok;
    }
    if (spin_or_yield(turns) && worker.cluster_failed()) return Status::cluster_failed;
  }
}

/// Waits until the word of `page` is marked as moved. After this wait a search does not find the
/// same page again. The wait may be long, because the thread that moves the page may have been
/// descheduled. REQUIRES: a record of the page is marked as moved; the page word is marked after
/// the records (R7). Returns ok, or cluster_failed if the cluster has failed (R24).
Status await_move(const WorkerContext& worker, const PageHeader* page);

}  // namespace atolldb
