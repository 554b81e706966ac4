#include "tests/engine/serializability/history.h"

#include "shared/base/check.h"

namespace atolldb::test {

std::string name_text(uint64_t value) {
  if (value == 0) return "the initial state";
  return "w" + std::to_string(value >> 56) + "#" + std::to_string((value >> 16) & 0xffffffffffull);
}

std::vector<uint64_t> pack(const History& history) {
  std::vector<uint64_t> words;
  for (const HistoryTransaction& txn : history) {
    words.insert(words.end(),
                 {txn.name, txn.committed ? uint64_t{1} : 0, static_cast<uint64_t>(txn.begin_ns),
                  static_cast<uint64_t>(txn.end_ns), txn.reads.size(), txn.writes.size()});
    for (const HistoryRead& read : txn.reads) {
      words.insert(words.end(), {read.key, read.value, read.predicate});
    }
    for (const HistoryWrite& write : txn.writes) {
      words.insert(words.end(),
                   {write.key, write.value, write.erases, write.intermediate, write.order});
    }
  }
  return words;
}

void unpack(const std::vector<uint64_t>& words, History& history) {
  for (size_t at = 0; at < words.size();) {
    const auto next = [&] {
      CHECK(at < words.size());
      return words[at++];
    };
    HistoryTransaction txn;
    txn.name = next();
    txn.committed = next() != 0;
    txn.begin_ns = static_cast<int64_t>(next());
    txn.end_ns = static_cast<int64_t>(next());
    txn.reads.resize(next());
    txn.writes.resize(next());
    for (HistoryRead& read : txn.reads) {
      read.key = next();
      read.value = next();
      read.predicate = next();
    }
    for (HistoryWrite& write : txn.writes) {
      write.key = next();
      write.value = next();
      write.erases = next();
      write.intermediate = next();
      write.order = next();
    }
    history.push_back(std::move(txn));
  }
}

}  // namespace atolldb::test
