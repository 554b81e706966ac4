// A directed graph of transactions with labelled edges, and its cycles.
#pragma once

#include <cstdint>
#include <vector>

namespace atolldb::test {

/// Why one transaction comes before another.
enum class Dependency : uint8_t {
  ww,            // installed the version before
  wr,            // installed what the other read
  session,       // the same worker, earlier
  rw_item,       // read what the other overwrote
  rw_predicate,  // ... and learnt it from a scan or a not-found look-up
};
constexpr bool is_anti(Dependency dependency) { return dependency >= Dependency::rw_item; }

struct Edge {
  uint32_t from;
  uint32_t to;
  Dependency dependency;
  uint64_t key;
};

class Graph {
 public:
  explicit Graph(uint32_t nodes) : nodes_(nodes) {}

  void add(uint32_t from, uint32_t to, Dependency dependency, uint64_t key) {
    if (from != to) edges_.push_back({from, to, dependency, key});
  }
  /// Once, after the last `add`.
  void finish();
  uint64_t edge_count() const { return edges_.size(); }

  /// A short cycle whose edges are all at most `strongest`; empty: there is none. With
  /// `one_anti`, exactly one edge is an anti-dependency.
  std::vector<Edge> find_cycle(Dependency strongest, bool one_anti) const;

 private:
  /// Number of its strongly connected component per node.
  std::vector<uint32_t> components(Dependency strongest) const;
  /// Shortest path within `component`; edges up to `strongest`.
  std::vector<Edge> path(uint32_t from, uint32_t to, Dependency strongest,
                         const std::vector<uint32_t>& component) const;

  uint32_t nodes_;
  std::vector<Edge> edges_;      // by `from`, once finished
  std::vector<uint32_t> first_;  // of each node, in edges_
};

}  // namespace atolldb::test
