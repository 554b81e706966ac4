// A tree whose pages can all be dropped.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/engine/install/warm_trees.h"

namespace atolldb::test {

/// A tree of several pages with the records 0 to 999, and an installed snapshot of it.
class DroppableTree {
 public:
  /// `frames`: size of the snapshot cache in pages.
  explicit DroppableTree(uint32_t workers, uint32_t frames = 32)
      : warm(workers, frames), tree(warm.storage) {}

  std::string fill() {
    const Status status = warm.cluster.worker(0).run([&](Transaction& txn) {
      for (uint64_t i = 0; i < kRecords; ++i) {
        const Status one = tree.insert(txn, bytes_of(big_endian(i)), bytes_of("old"));
        if (one != Status::ok) return one;
      }
      return Status::ok;
    });
    if (status != Status::ok) return "the inserts ended with " + std::string(to_string(status));
    warm.cluster.worker(0).context->leave();
    std::vector<GleanedLog> logs;
    const uint64_t epoch = warm.settle();
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back({LogType::insert, big_endian(i), 0, "old", Vid::make(epoch, 1)});
    }
    return warm.take(std::move(logs), epoch, 0);
  }
  Status write(uint32_t worker, uint64_t key, const std::string& value) {
    return warm.cluster.worker(worker).run([&](Transaction& txn) {
      return tree.update(txn, bytes_of(big_endian(key)), bytes_of(value));
    });
  }
  static Status read(Transaction& txn, const MasterTree& tree, uint64_t key, std::string& value) {
    return read_key(txn, tree, big_endian(key), value);
  }
  static Status read_key(Transaction& txn, const MasterTree& tree, const std::string& key,
                         std::string& value) {
    char buffer[512];
    uint32_t length = 0;
    const Status status = tree.get(txn, bytes_of(key), buffer, sizeof buffer, length);
    if (status == Status::ok) value.assign(buffer, length);
    return status;
  }
  std::string value_of(uint64_t key) {
    std::string value;
    const Status status =
        warm.cluster.worker(0).run([&](Transaction& txn) { return read(txn, tree, key, value); });
    return status == Status::ok ? value : std::string(to_string(status));
  }

  static constexpr uint64_t kRecords = 1000;
  WarmTree warm;
  MasterTree tree;
};

}  // namespace atolldb::test
