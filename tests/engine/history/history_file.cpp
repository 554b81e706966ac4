#include "tests/engine/history/history_file.h"

#include <unistd.h>

namespace atolldb::test {

namespace {

class Reader {
 public:
  explicit Reader(const std::vector<uint64_t>& words) : words_(words) {}
  bool at_end() const { return at_ >= words_.size(); }
  uint64_t next() { return at_end() ? 0 : words_[at_++]; }

 private:
  const std::vector<uint64_t>& words_;
  size_t at_ = 0;
};

void put(std::vector<uint64_t>& words, const PredicateRead& predicate) {
  words.insert(words.end(), {predicate.table, predicate.first, predicate.last});
  words.push_back(predicate.found.size());
  for (const auto& [key, version] : predicate.found) words.insert(words.end(), {key, version});
  words.push_back(predicate.own_keys.size());
  words.insert(words.end(), predicate.own_keys.begin(), predicate.own_keys.end());
}

void put(std::vector<uint64_t>& words, const TransactionRecord& record) {
  words.insert(words.end(), {record.id, record.committed ? 1u : 0u, record.order});
  words.push_back(record.reads.size());
  for (const ItemRead& read : record.reads) {
    words.insert(words.end(), {read.item.table, read.item.key, read.version});
  }
  words.push_back(record.predicates.size());
  for (const PredicateRead& predicate : record.predicates) put(words, predicate);
  words.push_back(record.writes.size());
  for (const ItemWrite& write : record.writes) {
    words.insert(words.end(), {write.item.table, write.item.key, write.version,
                               write.erases ? 1u : 0u, write.intermediate ? 1u : 0u, write.order});
  }
}

Item get_item(Reader& reader) {
  const auto table = static_cast<uint32_t>(reader.next());
  return {table, reader.next()};
}

TransactionRecord get_record(Reader& reader) {
  TransactionRecord record;
  record.id = reader.next();
  record.committed = reader.next() != 0;
  record.order = reader.next();
  for (uint64_t left = reader.next(); left > 0; --left) {
    const Item item = get_item(reader);
    record.reads.push_back({item, reader.next()});
  }
  for (uint64_t left = reader.next(); left > 0; --left) {
    PredicateRead predicate{};
    predicate.table = static_cast<uint32_t>(reader.next());
    predicate.first = reader.next();
    predicate.last = reader.next();
    for (uint64_t found = reader.next(); found > 0; --found) {
      const uint64_t key = reader.next();
      predicate.found.emplace_back(key, reader.next());
    }
    for (uint64_t own = reader.next(); own > 0; --own) predicate.own_keys.push_back(reader.next());
    record.predicates.push_back(std::move(predicate));
  }
  for (uint64_t left = reader.next(); left > 0; --left) {
    ItemWrite write{.item = get_item(reader), .version = 0};
    write.version = reader.next();
    write.erases = reader.next() != 0;
    write.intermediate = reader.next() != 0;
    write.order = reader.next();
    record.writes.push_back(write);
  }
  return record;
}

}  // namespace

bool write_history(int fd, const History& history) {
  std::vector<uint64_t> words;
  for (const TransactionRecord& record : history) put(words, record);
  const auto* bytes = reinterpret_cast<const char*>(words.data());
  for (size_t left = words.size() * sizeof(uint64_t); left > 0;) {
    const ssize_t written = write(fd, bytes, left);
    if (written <= 0) return false;
    bytes += written;
    left -= static_cast<size_t>(written);
  }
  return true;
}

bool read_history(int fd, History& history) {
  const off_t size = lseek(fd, 0, SEEK_END);
  if (size < 0 || static_cast<size_t>(size) % sizeof(uint64_t) != 0) return false;
  std::vector<uint64_t> words(static_cast<size_t>(size) / sizeof(uint64_t));
  auto* bytes = reinterpret_cast<char*>(words.data());
  for (off_t at = 0; at < size;) {
    const ssize_t got = pread(fd, bytes + at, static_cast<size_t>(size - at), at);
    if (got <= 0) return false;
    at += got;
  }
  for (Reader reader(words); !reader.at_end();) history.push_back(get_record(reader));
  return true;
}

}  // namespace atolldb::test
