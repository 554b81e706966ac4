// The text for requests that are refused during a recovery.
#include "shared/memory/state_names.h"

#include <gtest/gtest.h>

#include <string>

#include "shared/file/io_buffer.h"

namespace atolldb::test {
namespace {

std::string text_at(uint32_t percent, uint32_t snapshot, bool has_snapshots) {
  IoBuffer memory(sizeof(ControlSegment));
  auto& control = *reinterpret_cast<ControlSegment*>(memory.bytes().data());
  control.recovered_percent.store(percent, std::memory_order_relaxed);
  control.readable_snapshot.store(snapshot, std::memory_order_relaxed);
  return recovery_text(control, has_snapshots);
}

TEST(RecoveryText, OfSnapshotsSaysWhichTransactionsRun) {
  EXPECT_EQ(text_at(41, 0, true),
            "the cluster recovers (41 % of the log is read): try again when it runs; there is no "
            "snapshot that could be read meanwhile");
  EXPECT_EQ(text_at(100, 3, true),
            "the cluster recovers (the log is read, pages of the new snapshot are written): try "
            "again when it runs; until then only snapshot_read_only transactions run, on snapshot "
            "3");
}

TEST(RecoveryText, OfCheckpointsNamesNoSnapshotAndNoPercentageAfterTheFiles) {
  EXPECT_EQ(text_at(41, 0, false),
            "the cluster recovers (41 % of the checkpoint and the log is read): try again when it "
            "runs; until then no transaction runs");
  EXPECT_EQ(text_at(100, 0, false),
            "the cluster recovers (the checkpoint and the log are read; the nodes store the last "
            "records): try again when it runs; until then no transaction runs");
}

}  // namespace
}  // namespace atolldb::test
