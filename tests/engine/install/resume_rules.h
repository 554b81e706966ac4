// Scans that search again from the root (R46). A body returns an error text, or an empty text if
// all is right. Every run takes the same steps.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/install/warm_trees.h"

namespace atolldb::test {

/// A tree with the record of a parent, and those of its children. The parent's key fills a slice
/// and is a prefix of the children's keys, so the children are in a layer. The layer has several
/// pages. All of them are in a snapshot only.
class ParentAndChildren {
 public:
  ParentAndChildren() : warm(1), tree(warm.storage) {}

  std::string fill() {
    std::vector<std::string> keys = {"before", kParent};
    for (int i = 10; i < 50; ++i) keys.push_back(kParent + std::to_string(i));
    const std::string payload(300, 'p');
    const Status status = warm.cluster.worker(0).run([&](Transaction& txn) {
      for (const std::string& key : keys) {
        const Status one = tree.insert(txn, bytes_of(key), bytes_of(payload));
        if (one != Status::ok) return one;
      }
      return Status::ok;
    });
    if (status != Status::ok) return "the inserts ended with " + std::string(to_string(status));
    warm.cluster.worker(0).context->leave();
    std::vector<GleanedLog> logs;
    const uint64_t epoch = warm.settle();
    for (const std::string& key : keys) {
      logs.push_back({LogType::insert, key, 0, payload, Vid::make(epoch, 1)});
    }
    std::string problem = warm.take(std::move(logs), epoch, 0);
    if (problem.empty()) problem = warm.install(drop_all);
    TreeStatistics statistics;
    if (problem.empty()) problem = warm.check(statistics);
    if (problem.empty() && warm.report.dropped < 5) return "the layer has too few pages";
    if (problem.empty() && statistics.border_pages > 1) return "not all border pages were dropped";
    return problem;
  }

  static inline const std::string kParent = "parent01";
  WarmTree warm;
  MasterTree tree;
};

/// A retry installs each page that it misses (R5), and then its scan searches again. The scan
/// returns the parent, and searches again because of an own insert. It now meets the children past
/// its upper bound, because they share the parent's slice. It skips the last children, installs the
/// page before them, and searches for the third time. It must not return children then.
inline std::string a_scan_searches_again_within_its_range() {
  ParentAndChildren test;
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  const MasterTree other(test.warm.cluster.create("other", StorageType::mastertree));
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  const std::string low = "a";
  const std::string high = ParentAndChildren::kParent + "12";
  const ScanRange range{
      .low = bytes_of(low), .has_low = true, .high = bytes_of(high), .has_high = true};
  const std::string payload(300, 'n');
  std::string found;
  // The first attempt wants to install a page over a null word that it has relied on.
  for (const Status expected : {Status::pointer_installed, Status::ok}) {
    if (txn.begin() != Status::ok) return "no transaction";
    // An attempt leaves its reserved record, so each one needs another key.
    const std::string added(to_string(expected));
    MasterTreeCursor cursor(test.tree, txn, range, false);
    found.clear();
    Status status = Status::ok;
    for (bool is_first = true; (status = cursor.next()) == Status::ok;) {
      const Bytes key = cursor.key();
      found.append(reinterpret_cast<const char*>(key.data()), key.size()) += ' ';
      if (!is_first || key.size() != ParentAndChildren::kParent.size()) continue;
      is_first = false;
      if (other.insert(txn, bytes_of(added), {}) != Status::ok) return "no insert";
    }
    if (status != Status::end_of_scan) return "scan: " + std::string(to_string(status));
    status = expected == Status::ok ? txn.commit()
                                    : test.tree.update(txn, bytes_of(high), bytes_of(payload));
    if (status != expected) return "an attempt ended with " + std::string(to_string(status));
    if (status != Status::ok) txn.rollback(status);
  }
  return found == "parent0111 parent0110 parent01 before " ? "" : "the scan has returned " + found;
}

}  // namespace atolldb::test
