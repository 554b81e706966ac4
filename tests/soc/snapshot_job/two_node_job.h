// A snapshot job on two nodes, for tests.
#pragma once

#include <array>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"
#include "engine/log/log_writer.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "soc/snapshot_job/node_snapshot_job.h"
#include "tests/engine/gleaner/locked_file_system.h"
#include "tests/engine/log/log_blocks.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/soc/control_answer.h"

namespace atolldb::test {

struct FreeMemory {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

/// Two nodes with a reducer each, over one file system.
class TwoNodeJob {
 public:
  TwoNodeJob() {
    for (uint32_t node = 0; node < 2; ++node) {
      inboxes_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(4096, kInboxBytes)));
      ReducerInbox::format(inboxes_.back().get(), kInboxBytes);
      snapshots_.push_back(std::make_unique<SnapshotFiles>(files_, ClusterUuid{}));
      SnapshotJobResources& resources = resources_[node];
      resources.node = node;
      resources.file_system = &files_;
      resources.snapshots = snapshots_.back().get();
      resources.directory = [](uint32_t) { return std::string("/data"); };
      resources.inbox = [this](const ReducerPlace& place) {
        return place.node < 2 && place.reducer == 0 ? inboxes_[place.node].get() : nullptr;
      };
      resources.has_failed = [] { return false; };
    }
  }

  /// Plans an array, and a mapper on node 0. `has_stream`: the mapper reads a log that does not
  /// exist.
  static SnapshotPlan plan(bool has_stream) {
    SnapshotPlan plan;
    plan.snapshot = kSnapshot;
    plan.epoch = 10;
    PlannedStorage storage;
    storage.id = 1;
    storage.type = StorageType::array;
    storage.payload_bytes = 8;
    storage.record_count = 100;
    storage.partitions = {{"", {1, 0}}};
    plan.storages.push_back(storage);
    plan.reducers = {{0, 0}, {1, 0}};
    PlannedMapper mapper;
    if (has_stream) {
      LogStream stream;
      stream.directory = "/data";
      stream.incarnation = 3;
      stream.start_epoch = 5;
      stream.cluster_uuid = ClusterUuid{};
      mapper.streams.push_back({stream, 10});
    }
    plan.mappers.push_back(mapper);
    return plan;
  }

  /// Writes the log of `plan(true)`: blocks with one update of the array each.
  Result<void> write_log(size_t blocks) {
    ATOLL_ASSIGN(
        LogWriter writer,
        LogWriter::create(files_, {"/data", 0, 0, 3, 5, {}, (blocks + 8) * kLogBlockBytes}));
    BlockBuffer buffer(blocks);
    for (size_t i = 0; i < blocks; ++i) {
      LogBlock& block = buffer.all()[i];
      begin_block(block, 5, 0);
      // The key of a record of an array is its index, in the byte order of this machine.
      const std::array<uint64_t, 1> index = {i % 100};
      const uint64_t version = Vid::make(5, static_cast<uint32_t>(i + 1)).version();
      CHECK(add_record(block, LogType::update, 1, version, std::as_bytes(std::span(index)),
                       std::as_bytes(std::span(index))));
    }
    ATOLL_TRY(writer.append(std::array{buffer.all()}, 4));
    return writer.close_epoch(10, 4);
  }

  std::unique_ptr<NodeSnapshotJob> start(uint32_t node, bool has_stream) {
    ControlAnswer prepared;
    auto job = std::make_unique<NodeSnapshotJob>(plan(has_stream), resources_[node], 0,
                                                 prepared.reply(), make_silent_logger("test"));
    const auto answer = prepared.get();
    CHECK(answer);
    return job;
  }
  /// Waits until the job has ended, and returns its report.
  static Result<Json> outcome(NodeSnapshotJob& job) {
    ControlAnswer answer;
    job.wait(NodeSnapshotJob::Clock::time_point::max(), answer.reply());
    return answer.get();
  }
  bool has_file(uint32_t node) {
    return *files_.exists(snapshot_file_path("/data", node, kSnapshot));
  }

 protected:
  static constexpr uint32_t kSnapshot = 7;
  static constexpr uint64_t kInboxBytes = 64 * 1024;

  MemoryFileSystem memory_;
  LockedFileSystem files_{memory_};
  std::vector<std::unique_ptr<std::byte, FreeMemory>> inboxes_;
  std::vector<std::unique_ptr<SnapshotFiles>> snapshots_;
  SnapshotJobResources resources_[2];
};

}  // namespace atolldb::test
