// Directed graph of transactions with labelled edges, and a search for its cycles.
#pragma once

#include <cstdint>
#include <vector>

namespace atolldb::test {

/// The reason why one transaction comes before another.
enum class Dependency : uint8_t {
  ww,            // installed the previous version
  wr,            // installed the version that the other read
  session,       // is an earlier transaction of the same worker
  rw_item,       // read the version that the other overwrote
  rw_predicate,  // like rw_item, but the read was a scan or a not-found look-up
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
  /// Builds the graph. REQUIRES: called once, after the last `add`.
  void finish();
  uint64_t edge_count() const { return edges_.size(); }

  /// Returns a short cycle whose edges are all at most `strongest`, in the order of `Dependency`.
  /// Returns an empty list if there is none. With `one_anti`, exactly one edge is an
  /// anti-dependency (is_anti).
  std::vector<Edge> find_cycle(Dependency strongest, bool one_anti) const;

 private:
  /// Returns, for each node, the number of its strongly connected component.
  std::vector<uint32_t> components(Dependency strongest) const;
  /// Returns the shortest path within `component` over edges up to `strongest`.
  std::vector<Edge> path(uint32_t from, uint32_t to, Dependency strongest,
                         const std::vector<uint32_t>& component) const;

  uint32_t nodes_;
  std::vector<Edge> edges_;      // sorted by `from` after finish()
  std::vector<uint32_t> first_;  // index in edges_ of each node's first edge
};

}  // namespace atolldb::test
