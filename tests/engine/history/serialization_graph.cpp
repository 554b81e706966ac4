#include "tests/engine/history/serialization_graph.h"

#include <algorithm>
#include <deque>

namespace atolldb::test {

namespace {
bool is_in(EdgeKind kind, uint8_t kinds) { return (static_cast<uint8_t>(kind) & kinds) != 0; }

std::string name_of(const Item& item) {
  return "table " + std::to_string(item.table) + " key " + std::to_string(item.key);
}

const char* name_of(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::ww:
      return "ww";
    case EdgeKind::wr:
      return "wr";
    case EdgeKind::rw_item:
      return "rw";
    case EdgeKind::rw_predicate:
      return "rw(predicate)";
  }
  return "?";
}
}  // namespace

SerializationGraph::SerializationGraph(const History& history)
    : history_(history), edges_(history.size()) {
  collect_chains();
  add_writes();
  for (uint32_t i = 0; i < history_.size(); ++i) {
    if (history_[i].committed) add_reads(i);
  }
}

void SerializationGraph::collect_chains() {
  for (uint32_t i = 0; i < history_.size(); ++i) {
    const TransactionRecord& transaction = history_[i];
    for (const ItemWrite& write : transaction.writes) {
      if (!transaction.committed) {
        forbidden_[write.version] = Phenomenon::g1a;
      } else if (write.intermediate) {
        forbidden_[write.version] = Phenomenon::g1b;
      } else {
        const uint64_t order = write.order != 0 ? write.order : transaction.order;
        chains_[write.item].push_back({write.version, i, write.erases, order});
      }
    }
    for (const ItemRead& read : transaction.reads) chains_[read.item];
  }
  for (auto& [item, chain] : chains_) {
    std::stable_sort(chain.begin(), chain.end(),
                     [](const Place& a, const Place& b) { return a.order < b.order; });
    chain.insert(chain.begin(), {kInitialVersion, kNobody, true, 0});
    for (uint32_t place = 1; place < chain.size(); ++place) {
      place_of_[chain[place].version] = place;
    }
  }
}

void SerializationGraph::add_writes() {
  for (const auto& [item, chain] : chains_) {
    for (size_t place = 2; place < chain.size(); ++place) {
      add_edge(chain[place - 1].writer, chain[place].writer, EdgeKind::ww, item);
    }
  }
}

void SerializationGraph::add_reads(uint32_t reader) {
  for (const ItemRead& read : history_[reader].reads) {
    if (read.version == kAbsent) {
      read_absence(reader, read.item, EdgeKind::rw_predicate);
    } else {
      read_version(reader, read.item, read.version, EdgeKind::rw_item);
    }
  }
  for (const PredicateRead& predicate : history_[reader].predicates) {
    add_predicate(reader, predicate);
  }
}

void SerializationGraph::add_predicate(uint32_t reader, const PredicateRead& predicate) {
  std::map<uint64_t, Version> found(predicate.found.begin(), predicate.found.end());
  for (const auto& [key, version] : found) {
    read_version(reader, {predicate.table, key}, version, EdgeKind::rw_item);
  }
  const auto& own = predicate.own_keys;
  auto it = chains_.lower_bound({predicate.table, predicate.first});
  for (; it != chains_.end(); ++it) {
    const Item& item = it->first;
    if (item.table != predicate.table || item.key > predicate.last) break;
    if (found.contains(item.key) || std::find(own.begin(), own.end(), item.key) != own.end()) {
      continue;
    }
    read_absence(reader, item, EdgeKind::rw_predicate);
  }
}

void SerializationGraph::read_version(uint32_t reader, const Item& item, Version version,
                                      EdgeKind rw) {
  if (const auto it = forbidden_.find(version); it != forbidden_.end()) {
    return complain(it->second, reader, item, version);
  }
  const auto chain = chains_.find(item);
  uint32_t place = 0;
  if (version != kInitialVersion) {
    const auto it = place_of_.find(version);
    if (it == place_of_.end() || chain == chains_.end() || it->second >= chain->second.size() ||
        chain->second[it->second].version != version) {
      return complain(Phenomenon::unknown, reader, item, version);
    }
    place = it->second;
  }
  if (chain == chains_.end()) return;
  if (place != 0) add_edge(chain->second[place].writer, reader, EdgeKind::wr, item);
  if (place + 1 < chain->second.size()) {
    add_edge(reader, chain->second[place + 1].writer, rw, item);
  }
}

void SerializationGraph::read_absence(uint32_t reader, const Item& item, EdgeKind rw) {
  const Chain& chain = chains_.at(item);
  size_t first = 0;
  size_t last = 0;
  // The reader's own write comes right behind what it saw.
  const auto own = std::find_if(chain.begin(), chain.end(),
                                [&](const Place& place) { return place.writer == reader; });
  if (own != chain.end() && (own - 1)->erases) {
    first = last = static_cast<size_t>(own - chain.begin()) - 1;
  } else {
    for (size_t place = 1; place < chain.size(); ++place) {
      if (chain[place].erases) last = place;
    }
  }
  // `first` is where the item was absent for the first time, which is always possible.
  if (first != 0) add_edge(chain[first].writer, reader, EdgeKind::wr, item);
  if (last + 1 < chain.size()) add_edge(reader, chain[last + 1].writer, rw, item);
}

void SerializationGraph::add_edge(uint32_t from, uint32_t to, EdgeKind kind, const Item& item) {
  if (from != to) edges_[from].push_back({from, to, kind, item});
}

void SerializationGraph::complain(Phenomenon phenomenon, uint32_t reader, const Item& item,
                                  Version version) {
  if (bad_read_.phenomenon != Phenomenon::none) return;
  const char* why = phenomenon == Phenomenon::g1a   ? "which an aborted transaction wrote (G1a)"
                    : phenomenon == Phenomenon::g1b ? "which its own transaction overwrote (G1b)"
                                                    : "which nobody wrote there";
  bad_read_ = {phenomenon, "T" + std::to_string(history_[reader].id) + " read version " +
                               std::to_string(version) + " of " + name_of(item) + ", " + why};
}

/// Tarjan's strongly connected components, without recursion: component of each node.
std::vector<uint32_t> SerializationGraph::components(uint8_t kinds) const {
  const auto count = static_cast<uint32_t>(edges_.size());
  std::vector<uint32_t> index(count, kNobody);
  std::vector<uint32_t> low(count, 0);
  std::vector<uint32_t> component(count, kNobody);
  std::vector<uint32_t> stack;
  std::vector<std::pair<uint32_t, size_t>> path;  // node, next edge
  uint32_t next_index = 0;
  uint32_t next_component = 0;
  for (uint32_t start = 0; start < count; ++start) {
    if (index[start] != kNobody) continue;
    path.emplace_back(start, 0);
    while (!path.empty()) {
      const uint32_t node = path.back().first;
      if (path.back().second == 0) {
        index[node] = low[node] = next_index++;
        stack.push_back(node);
      }
      if (path.back().second < edges_[node].size()) {
        const Edge& edge = edges_[node][path.back().second++];
        if (!is_in(edge.kind, kinds)) continue;
        if (index[edge.to] == kNobody) {
          path.emplace_back(edge.to, 0);
        } else if (component[edge.to] == kNobody) {
          low[node] = std::min(low[node], index[edge.to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        low[path.back().first] = std::min(low[path.back().first], low[node]);
      }
      if (low[node] != index[node]) continue;
      for (uint32_t member = kNobody; member != node;) {
        member = stack.back();
        stack.pop_back();
        component[member] = next_component;
      }
      ++next_component;
    }
  }
  return component;
}

std::vector<Edge> SerializationGraph::find_cycle(uint8_t first_kinds, uint8_t other_kinds) const {
  const std::vector<uint32_t> component = components(first_kinds | other_kinds);
  std::vector<Edge> best;
  int left = 100;  // starts to try for a shorter cycle, once there is one
  for (const std::vector<Edge>& out : edges_) {
    for (const Edge& first : out) {
      if (!is_in(first.kind, first_kinds) || component[first.from] != component[first.to]) continue;
      // Breadth first from its end back to its start.
      std::unordered_map<uint32_t, Edge> came_by;
      std::deque<uint32_t> queue{first.to};
      while (!queue.empty() && !came_by.contains(first.from)) {
        const uint32_t node = queue.front();
        queue.pop_front();
        for (const Edge& edge : edges_[node]) {
          if (!is_in(edge.kind, other_kinds) || component[edge.to] != component[node]) continue;
          if (edge.to != first.to && came_by.try_emplace(edge.to, edge).second) {
            queue.push_back(edge.to);
          }
        }
      }
      if (!came_by.contains(first.from)) continue;
      std::vector<Edge> cycle;
      for (uint32_t node = first.from; node != first.to; node = came_by.at(node).from) {
        cycle.push_back(came_by.at(node));
      }
      cycle.push_back(first);
      std::reverse(cycle.begin(), cycle.end());
      if (best.empty() || cycle.size() < best.size()) best = cycle;
      if (best.size() == 2 || --left == 0) return best;
    }
  }
  return best;
}

std::string SerializationGraph::describe(const std::vector<Edge>& cycle) const {
  std::string text;
  for (const Edge& edge : cycle) {
    text += "T" + std::to_string(history_[edge.from].id) + " -" + name_of(edge.kind) + "[" +
            name_of(edge.item) + "]-> ";
  }
  return text + "T" + std::to_string(history_[cycle.front().from].id);
}

}  // namespace atolldb::test
