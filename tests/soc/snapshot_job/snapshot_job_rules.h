// Bodies of tests of snapshot jobs (R84). A body returns an error text, or an empty text if all is
// right.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "tests/soc/snapshot_job/two_node_job.h"

namespace atolldb::test {

class HeldJob : public TwoNodeJob {
 public:
  /// The second node has received all records of the mapper of the first node, before it is told to
  /// hold its composers. Then the first node ends.
  std::string run() {
    constexpr size_t kBlocks = 64;
    const auto written = write_log(kBlocks);
    if (!written) return written.error().message;
    const auto first = start(0, true);
    const auto second = start(1, true);
    first->map(0, {}, true);
    const auto limit = NodeSnapshotJob::Clock::now() + std::chrono::seconds(30);
    while (second->progress().records_received != kBlocks) {
      if (NodeSnapshotJob::Clock::now() > limit) return "the records do not arrive";
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    bool is_early = composes(*second);
    second->map(0, {}, true);
    const auto first_done = outcome(*first);
    if (!first_done) return first_done.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    is_early = is_early || composes(*second);
    const auto second_done = outcome(*second);
    if (!second_done) return second_done.error().message;
    if (is_early) return "a reducer composes before it may";
    return second_done->at("records_composed") == 0 ? "no record is composed" : "";
  }

 private:
  static bool composes(const NodeSnapshotJob& job) {
    return job.has_ended() || job.progress().records_composed != 0;
  }
};

/// R84: composers begin after the install of the base, when the coordinator waits for the job.
inline std::string a_job_that_holds_composes_after_the_first_wait() { return HeldJob().run(); }

}  // namespace atolldb::test
