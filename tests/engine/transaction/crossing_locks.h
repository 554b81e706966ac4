// A commit and another worker whose locks cross, as steps of the rules of locks (R22, R104).
#pragma once

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// Transaction a writes x, and y is locked early or written, too. Worker b holds x and wants y. The
/// commit of a must hold nothing while it waits for x, and succeeds after b has left.
inline void expect_no_crossing(Problem& problem, Transaction& a, McsLocker& b, const RecordRef& x,
                               const RecordRef& y) {
  problem.expect(b.lock(x.record->lock, x.name()), Status::ok, "b locks x");
  Status status = Status::ok;
  Other committer([&] { status = a.commit(); });
  committer.wait_until([&] { return is_last_waiter(x.record->lock, a.worker()); });
  const bool got_y = b.try_lock(y.record->lock);
  problem.expect(got_y, "each waits for the other");
  if (got_y) b.unlock(y.record->lock);
  b.unlock(x.record->lock);
  committer.join();
  problem.expect(status, Status::ok, "commit");
}

}  // namespace atolldb::test
