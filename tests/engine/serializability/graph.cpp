#include "tests/engine/serializability/graph.h"

#include <algorithm>
#include <deque>

namespace atolldb::test {

void Graph::finish() {
  std::sort(edges_.begin(), edges_.end(),
            [](const Edge& a, const Edge& b) { return a.from < b.from; });
  first_.assign(nodes_ + 1, 0);
  for (const Edge& edge : edges_) ++first_[edge.from + 1];
  for (uint32_t node = 0; node < nodes_; ++node) first_[node + 1] += first_[node];
}

/// Tarjan's algorithm with an explicit stack, because histories are too deep for a thread's stack.
std::vector<uint32_t> Graph::components(Dependency strongest) const {
  constexpr uint32_t kUnseen = ~0u;
  struct Visit {
    uint32_t node;
    uint32_t edge;
  };
  std::vector<uint32_t> component(nodes_, kUnseen);
  std::vector<uint32_t> order(nodes_, kUnseen);
  std::vector<uint32_t> low(nodes_, 0);
  std::vector<uint32_t> open;
  std::vector<Visit> visits;
  uint32_t next_order = 0;
  uint32_t next_component = 0;
  for (uint32_t start = 0; start < nodes_; ++start) {
    if (order[start] != kUnseen) continue;
    visits.push_back({start, first_[start]});
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const uint32_t node = visit.node;
      if (order[node] == kUnseen) {
        order[node] = low[node] = next_order++;
        open.push_back(node);
      }
      if (visit.edge == first_[node + 1]) {
        if (low[node] == order[node]) {
          uint32_t member = 0;
          do {
            member = open.back();
            open.pop_back();
            component[member] = next_component;
          } while (member != node);
          ++next_component;
        }
        visits.pop_back();
        if (!visits.empty()) {
          const uint32_t parent = visits.back().node;
          low[parent] = std::min(low[parent], low[node]);
        }
        continue;
      }
      const Edge& edge = edges_[visit.edge++];
      if (edge.dependency > strongest) continue;
      if (order[edge.to] == kUnseen) {
        visits.push_back({edge.to, first_[edge.to]});
      } else if (component[edge.to] == kUnseen) {
        low[node] = std::min(low[node], order[edge.to]);
      }
    }
  }
  return component;
}

std::vector<Edge> Graph::path(uint32_t from, uint32_t to, Dependency strongest,
                              const std::vector<uint32_t>& component) const {
  constexpr uint32_t kNone = ~0u;
  std::vector<uint32_t> came_by(nodes_, kNone);
  std::deque<uint32_t> waiting{from};
  while (!waiting.empty()) {
    const uint32_t node = waiting.front();
    waiting.pop_front();
    for (uint32_t at = first_[node]; at < first_[node + 1]; ++at) {
      const Edge& edge = edges_[at];
      if (edge.dependency > strongest || component[edge.to] != component[from]) continue;
      if (edge.to == from || came_by[edge.to] != kNone) continue;
      came_by[edge.to] = at;
      if (edge.to != to) {
        waiting.push_back(edge.to);
        continue;
      }
      std::vector<Edge> found;
      for (uint32_t back = to; back != from; back = edges_[came_by[back]].from) {
        found.push_back(edges_[came_by[back]]);
      }
      std::reverse(found.begin(), found.end());
      return found;
    }
  }
  return {};
}

std::vector<Edge> Graph::find_cycle(Dependency strongest, bool one_anti) const {
  // These tries are enough to find a short cycle. More tries only cost time when there are very
  // many cycles.
  constexpr uint32_t kTries = 300;
  const std::vector<uint32_t> component = components(strongest);
  const Dependency way_back = one_anti ? Dependency::session : strongest;
  std::vector<Edge> best;
  uint32_t tries = 0;
  for (const Edge& edge : edges_) {
    if (edge.dependency > strongest || component[edge.from] != component[edge.to]) continue;
    if (one_anti && !is_anti(edge.dependency)) continue;
    std::vector<Edge> cycle = path(edge.to, edge.from, way_back, component);
    if (!cycle.empty() && (best.empty() || cycle.size() + 1 < best.size())) {
      cycle.insert(cycle.begin(), edge);
      best = std::move(cycle);
    }
    if (best.size() == 2 || ++tries == kTries) break;
  }
  return best;
}

}  // namespace atolldb::test
