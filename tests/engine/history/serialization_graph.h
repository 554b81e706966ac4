// Direct serialization graph of a history, and cycles in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/engine/history/history.h"
#include "tests/engine/history/history_checker.h"

namespace atolldb::test {

enum class EdgeKind : uint8_t { ww = 1, wr = 2, rw_item = 4, rw_predicate = 8 };

struct Edge {
  uint32_t from;
  uint32_t to;
  EdgeKind kind;
  Item item;
};

class SerializationGraph {
 public:
  explicit SerializationGraph(const History& history);

  /// Reads of versions that must not be seen at all (G1a, G1b, unknown), found while building.
  const Verdict& bad_read() const { return bad_read_; }

  /// A shortest cycle through edges of the given kinds (bits of EdgeKind) that starts with an edge
  /// of `first_kinds`; empty if there is none.
  std::vector<Edge> find_cycle(uint8_t first_kinds, uint8_t other_kinds) const;

  std::string describe(const std::vector<Edge>& cycle) const;

 private:
  struct Place {
    Version version;
    uint32_t writer;  // index in the history; kNobody: the start
    bool erases;
    uint64_t order;
  };
  using Chain = std::vector<Place>;
  static constexpr uint32_t kNobody = ~uint32_t{0};

  void collect_chains();
  void add_writes();
  void add_reads(uint32_t reader);
  void add_predicate(uint32_t reader, const PredicateRead& predicate);
  void read_version(uint32_t reader, const Item& item, Version version, EdgeKind rw);
  void read_absence(uint32_t reader, const Item& item, EdgeKind rw);
  void add_edge(uint32_t from, uint32_t to, EdgeKind kind, const Item& item);
  void complain(Phenomenon phenomenon, uint32_t reader, const Item& item, Version version);
  std::vector<uint32_t> components(uint8_t kinds) const;

  const History& history_;
  std::map<Item, Chain> chains_;
  std::unordered_map<Version, uint32_t> place_of_;  // in the chain of its item
  std::unordered_map<Version, Phenomenon> forbidden_;
  std::vector<std::vector<Edge>> edges_;  // by `from`
  Verdict bad_read_;
};

}  // namespace atolldb::test
