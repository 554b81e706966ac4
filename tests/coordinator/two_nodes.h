// Two nodes that answer the requests of a replay at once, and store nothing.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/checkpoints/checkpoint_recovery.h"
#include "engine/checkpoint/given_records.h"
#include "shared/file/io_buffer.h"
#include "shared/memory/control_layout.h"

namespace atolldb::test {

/// Each node gives the other one a file.
class TwoNodes {
 public:
  TwoNodes() {
    NodeSharedLayout layout;
    layout.worker_count = 1;
    memory_ = std::make_unique<IoBuffer>(layout.bytes());
    auto* shared = reinterpret_cast<NodeShared*>(memory_->bytes().data());
    layout.format(*shared);
    config_.nodes.resize(2);
    start_epochs(epochs_, 10);
    constexpr std::chrono::milliseconds kInterval{1};
    const EpochIntervals intervals{kInterval, kInterval};
    clock_ = std::make_unique<EpochClock>(epochs_, std::vector<NodeShared*>{shared}, intervals,
                                          true, make_silent_logger("epochs"));
    clock_->start();
  }
  ~TwoNodes() { clock_->stop(); }

  /// `division`: what node 1 says of the files. Node 0 says "all".
  Result<void> recover(const std::string& division) {
    const NodeCall call = [&](uint32_t node, ControlOperation operation, const Json& body) {
      const std::lock_guard guard(mutex_);
      if (operation == ControlOperation::replay_exchange) {
        const auto files = decode_given_files(*find_binary(body, "given"));
        CHECK(files.has_value());
        for (const GivenFile& file : *files) taken[node].push_back(file.run.path);
      }
      if (operation != ControlOperation::replay_wait) return Result<Json>(Json::object());
      GivenFile file;
      file.to = gives_to_missing_node && node == 1 ? 2 : 1 - node;
      file.run.path = "of node " + std::to_string(node);
      file.run.chunk_bytes = GivenRecords::kChunkBytes;
      file.run.chunks = 1;
      return Result<Json>(Json{{"done", true},
                               {"bytes", 4u},
                               {"division", node == 0 ? "all" : division},
                               {"given", to_binary(encode_given_files({file}))}});
    };
    CheckpointRecovery recovery(config_, call, *clock_);
    ReplayPlan plan;
    plan.first_epoch = 2;
    plan.cut_epoch = 8;
    const Result<void> done = recovery.run(plan);
    progress = recovery.progress();
    return done;
  }

  bool gives_to_missing_node = false;
  std::map<uint32_t, std::vector<std::string>> taken;  // files of replay.exchange, by node
  Json progress;

 private:
  Config config_;
  EpochBlock epochs_{};
  std::unique_ptr<IoBuffer> memory_;  // words that a node shares
  std::unique_ptr<EpochClock> clock_;
  std::mutex mutex_;
};

}  // namespace atolldb::test
