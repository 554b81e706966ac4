#include "shared/memory/recovery_text.h"

namespace atolldb {

std::string recovery_text(const ControlSegment& control) {
  // Relaxed: for display only.
  const uint32_t percent = control.recovered_percent.load(std::memory_order_relaxed);
  const uint32_t snapshot = control.readable_snapshot.load(std::memory_order_relaxed);
  const std::string progress =
      percent < 100 ? std::to_string(percent) + " % of the log is read"
                    : std::string("the log is read, pages of the new snapshot are written");
  const std::string reads =
      snapshot == 0 ? std::string("there is no snapshot that could be read meanwhile")
                    : "until then only snapshot_read_only transactions run, on snapshot " +
                          std::to_string(snapshot);
  return "the cluster recovers (" + progress + "): try again when it runs; " + reads;
}

}  // namespace atolldb
