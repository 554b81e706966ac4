#include "tests/engine/serializability/checker.h"

#include <algorithm>
#include <unordered_map>

#include "tests/engine/serializability/graph.h"
#include "tests/engine/serializability/versions.h"

namespace atolldb::test {

std::string to_text(Anomaly anomaly) {
  switch (anomaly) {
    case Anomaly::none:
      return "none";
    case Anomaly::lost_order:
      return "two versions with one VID";
    case Anomaly::impossible_read:
      return "impossible read";
    case Anomaly::aborted_read:
      return "G1a (aborted read)";
    case Anomaly::intermediate_read:
      return "G1b (intermediate read)";
    case Anomaly::write_cycle:
      return "G0 (write cycle)";
    case Anomaly::information_cycle:
      return "G1c (circular information flow)";
    case Anomaly::single_cycle:
      return "G-single (one anti-dependency)";
    case Anomaly::item_cycle:
      return "G2-item (anti-dependency cycle)";
    case Anomaly::predicate_cycle:
      return "G2 (anti-dependency cycle with a predicate)";
  }
  return "?";
}

namespace {

std::string key_text(uint64_t key) {
  return "key " + std::to_string(key >> 32) + "/" + std::to_string(key & 0xffffffff);
}

class Checker {
 public:
  explicit Checker(const History& history)
      : history_(history), graph_(static_cast<uint32_t>(history.size())) {
    verdict_.transactions = history.size();
  }

  Verdict run() {
    if (order_versions() && draw_reads()) {
      draw_writes();
      draw_sessions();
      graph_.finish();
      verdict_.edges = graph_.edge_count();
      look_for_cycles();
    }
    return verdict_;
  }

 private:
  struct Origin {
    uint32_t writer;
    uint32_t version;  // 0: the write made no version
    bool intermediate;
  };

  bool fail(Anomaly anomaly, const std::string& text) {
    verdict_.anomaly = anomaly;
    verdict_.text = to_text(anomaly) + ": " + text;
    return false;
  }
  std::string name(uint32_t index) const { return name_text(history_[index].name); }

  bool order_versions() {
    for (uint32_t index = 0; index < history_.size(); ++index) {
      const HistoryTransaction& txn = history_[index];
      for (const HistoryWrite& write : txn.writes) {
        origins_[write.value] = {index, 0, write.intermediate != 0};
        if (!txn.committed || write.intermediate != 0) continue;
        versions_[write.key].add(
            {write.order, index, write.value, write.erases != 0, txn.begin_ns, txn.end_ns});
      }
    }
    for (auto& [key, versions] : versions_) {
      if (!versions.finish()) return fail(Anomaly::lost_order, "of " + key_text(key));
      for (uint32_t i = 1; i < versions.all().size(); ++i) {
        origins_[versions.all()[i].value].version = i;
      }
    }
    return true;
  }

  bool draw_reads() {
    for (uint32_t reader = 0; reader < history_.size(); ++reader) {
      if (!history_[reader].committed) continue;
      for (const HistoryRead& read : history_[reader].reads) {
        if (!(read.value == kAbsent ? draw_absence(reader, read) : draw_read(reader, read))) {
          return false;
        }
      }
    }
    return true;
  }

  bool draw_read(uint32_t reader, const HistoryRead& read) {
    const std::string what =
        name(reader) + " read " + key_text(read.key) + " as written by " + name_text(read.value);
    const auto origin = origins_.find(read.value);
    if (origin == origins_.end())
      return fail(Anomaly::impossible_read, what + ", which was never written");
    const auto& [writer, version, intermediate] = origin->second;
    if (!history_[writer].committed) return fail(Anomaly::aborted_read, what + ", which aborted");
    if (intermediate) return fail(Anomaly::intermediate_read, what + ", which wrote it again");
    const Versions& versions = versions_[read.key];
    if (version >= versions.all().size() || versions.all()[version].value != read.value ||
        versions.all()[version].absent) {
      return fail(Anomaly::impossible_read, what + ", which wrote that elsewhere");
    }
    if (versions.overwritten_before(version, history_[reader].begin_ns)) {
      return fail(Anomaly::impossible_read, what + ", overwritten by " +
                                                name(versions.all()[version + 1].writer) +
                                                " before the reader began");
    }
    graph_.add(writer, reader, Dependency::wr, read.key);
    draw_anti(reader, read, versions, version);
    return true;
  }

  bool draw_absence(uint32_t reader, const HistoryRead& read) {
    const auto found = versions_.find(read.key);
    if (found == versions_.end()) return true;  // no transaction wrote the key
    const Versions& versions = found->second;
    // The reader saw a version that is older than its own write of the key, so this write is the
    // limit.
    const uint32_t own = own_version(reader, read.key);
    const uint32_t limit = own != 0 ? own : static_cast<uint32_t>(versions.all().size());
    uint32_t earliest = 0;
    uint32_t latest = 0;
    if (!versions.possible_absences(history_[reader].begin_ns, history_[reader].end_ns, limit,
                                    earliest, latest)) {
      return fail(Anomaly::impossible_read, name(reader) + " found " + key_text(read.key) +
                                                " absent, but it existed all the time");
    }
    // It is unknown which absence the reader saw. In any case the reader comes after the writer of
    // the earliest possible absence, and before the transaction that ended the latest one.
    if (earliest != 0) {
      graph_.add(versions.all()[earliest].writer, reader, Dependency::wr, read.key);
    }
    draw_anti(reader, read, versions, latest);
    return true;
  }

  uint32_t own_version(uint32_t reader, uint64_t key) const {
    for (const HistoryWrite& write : history_[reader].writes) {
      if (write.key == key && write.intermediate == 0) return origins_.at(write.value).version;
    }
    return 0;
  }

  void draw_anti(uint32_t reader, const HistoryRead& read, const Versions& versions,
                 uint32_t version) {
    if (version + 1 >= versions.all().size()) return;
    graph_.add(reader, versions.all()[version + 1].writer,
               read.predicate != 0 ? Dependency::rw_predicate : Dependency::rw_item, read.key);
  }

  void draw_writes() {
    for (const auto& [key, versions] : versions_) {
      for (size_t i = 2; i < versions.all().size(); ++i) {
        graph_.add(versions.all()[i - 1].writer, versions.all()[i].writer, Dependency::ww, key);
      }
    }
  }

  void draw_sessions() {
    std::vector<uint32_t> order;
    for (uint32_t index = 0; index < history_.size(); ++index) {
      if (history_[index].committed) order.push_back(index);
    }
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return history_[a].name < history_[b].name; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (history_[order[i - 1]].name >> 56 != history_[order[i]].name >> 56) continue;
      graph_.add(order[i - 1], order[i], Dependency::session, 0);
    }
  }

  void look_for_cycles() {
    struct Look {
      Dependency strongest;
      bool one_anti;
      Anomaly anomaly;
    };
    constexpr Look kLooks[] = {{Dependency::ww, false, Anomaly::write_cycle},
                               {Dependency::session, false, Anomaly::information_cycle},
                               {Dependency::rw_item, true, Anomaly::single_cycle},
                               {Dependency::rw_predicate, true, Anomaly::predicate_cycle},
                               {Dependency::rw_item, false, Anomaly::item_cycle},
                               {Dependency::rw_predicate, false, Anomaly::predicate_cycle}};
    for (const Look& look : kLooks) {
      const std::vector<Edge> cycle = graph_.find_cycle(look.strongest, look.one_anti);
      if (cycle.empty()) continue;
      fail(look.anomaly, cycle_text(cycle));
      return;
    }
  }

  std::string cycle_text(const std::vector<Edge>& cycle) const {
    constexpr const char* kVerbs[] = {"wrote before it (ww)", "wrote what it read (wr)",
                                      "came first in the session", "read what it overwrote (rw)",
                                      "saw absent or scanned what it wrote (rw, predicate)"};
    std::string text;
    for (const Edge& edge : cycle) {
      text += "\n  " + name(edge.from) + " -> " + name(edge.to) + ": " +
              kVerbs[static_cast<size_t>(edge.dependency)];
      if (edge.dependency != Dependency::session) text += ", " + key_text(edge.key);
    }
    return text;
  }

  const History& history_;
  Graph graph_;
  Verdict verdict_;
  std::unordered_map<uint64_t, Versions> versions_;
  std::unordered_map<uint64_t, Origin> origins_;
};

}  // namespace

Verdict check_history(const History& history) { return Checker(history).run(); }

}  // namespace atolldb::test
