#include "tests/engine/history/history_checker.h"

#include "tests/engine/history/serialization_graph.h"

namespace atolldb::test {

Verdict check_history(const History& history) {
  const SerializationGraph graph(history);
  if (graph.bad_read().phenomenon != Phenomenon::none) return graph.bad_read();

  constexpr auto kWw = static_cast<uint8_t>(EdgeKind::ww);
  constexpr auto kWr = static_cast<uint8_t>(EdgeKind::wr);
  constexpr auto kItem = static_cast<uint8_t>(EdgeKind::rw_item);
  constexpr auto kPredicate = static_cast<uint8_t>(EdgeKind::rw_predicate);
  struct Search {
    Phenomenon phenomenon;
    const char* name;
    uint8_t first;
    uint8_t others;
  };
  // From the worst down: the first hit names what is wrong best. The last one covers all cycles.
  const Search searches[] = {
      {Phenomenon::g0, "G0", kWw, kWw},
      {Phenomenon::g1c, "G1c", kWr, kWw | kWr},
      {Phenomenon::g_single, "G-single", kItem, kWw | kWr},
      {Phenomenon::g2_item, "G2-item", kItem, kWw | kWr | kItem},
      {Phenomenon::g2, "G2", kPredicate, kWw | kWr | kItem | kPredicate},
  };
  for (const Search& search : searches) {
    const std::vector<Edge> cycle = graph.find_cycle(search.first, search.others);
    if (!cycle.empty()) {
      return {search.phenomenon, std::string(search.name) + ": " + graph.describe(cycle)};
    }
  }
  return {};
}

}  // namespace atolldb::test
