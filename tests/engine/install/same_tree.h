// A Master-tree for tests of installs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/install/warm_trees.h"

namespace atolldb::test {

/// What an install has done, without `reclaimed`: the pages that a thread takes and retires cannot
/// be told apart from those of the other threads.
struct InstallOutcome {
  uint64_t installed = 0;
  uint64_t unmatched = 0;
  uint64_t dropped = 0;
  uint64_t kept = 0;
  uint64_t busy = 0;
  uint32_t oldest_left = 0;
  uint64_t pages_left = 0;
  bool operator==(const InstallOutcome&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const InstallOutcome& outcome) {
  return out << outcome.installed << " installed, " << outcome.unmatched << " unmatched, "
             << outcome.dropped << " dropped, " << outcome.kept << " kept, " << outcome.busy
             << " busy, oldest " << outcome.oldest_left << ", " << outcome.pages_left << " left";
}

inline InstallOutcome outcome_of(const InstallReport& report, uint64_t pages_left) {
  return {report.installed, report.unmatched,   report.dropped, report.kept,
          report.busy,      report.oldest_left, pages_left};
}

/// A tree that is built the same way each time.
class SameTree {
 public:
  SameTree(bool is_layered, uint32_t installers)
      : is_layered_(is_layered), warm(1, 64, installers, false), tree(warm.storage) {}

  std::string key(uint64_t number) const {
    // Several layers below one border page, and several border pages in some layers.
    return is_layered_ ? big_endian(number * number % 37) + big_endian(number) : big_endian(number);
  }
  Status write(const std::vector<uint64_t>& numbers, bool is_insert) {
    for (const uint64_t number : numbers) {
      const std::string name = key(number);
      const Status status = warm.cluster.worker(0).run([&](Transaction& txn) {
        return is_insert ? tree.insert(txn, bytes_of(name), bytes_of(kPayload))
                         : tree.update(txn, bytes_of(name), bytes_of(kPayload));
      });
      if (status != Status::ok) return status;
    }
    warm.cluster.worker(0).context->leave();
    return Status::ok;
  }
  std::string take(const std::vector<uint64_t>& numbers, LogType type) {
    const uint64_t epoch = warm.settle();
    std::vector<GleanedLog> logs;
    for (const uint64_t number : numbers) {
      logs.push_back({type, key(number), 0, kPayload, Vid::make(epoch, 1)});
    }
    return warm.take(std::move(logs), epoch, 0);
  }
  InstallOutcome install(const std::function<DropVerdict(PageHeader&)>& policy) {
    EXPECT_EQ(warm.install(policy), "");
    TreeStatistics statistics;
    EXPECT_EQ(warm.check(statistics), "");
    return outcome_of(warm.report, statistics.pages());
  }

  static inline const std::string kPayload = std::string(40, 'x');

 private:
  const bool is_layered_;

 public:
  WarmTree warm;
  MasterTree tree;
};

}  // namespace atolldb::test
