#include "tests/engine/history/random_worker.h"

#include <cstring>
#include <vector>

namespace atolldb::test {

namespace {
constexpr uint64_t kKeysPerSlice = 4;
constexpr size_t kMostPayloadBytes = 120;
Bytes bytes_view(const std::string& text) { return std::as_bytes(std::span(text)); }
}  // namespace

std::string RandomWorker::run(TestWorker& worker, uint64_t transactions) {
  for (uint64_t i = 0; i < transactions; ++i) {
    user_abort_ = random_() % 10 == 0;
    bool open = false;
    const Status status = worker.run([&](Transaction& txn) {
      if (open) close_attempt(false, false, txn);
      open = true;
      return attempt(txn);
    });
    const bool committed = status == Status::ok;
    if (!committed && status != Status::user_abort) {
      return "a transaction ended with " + std::string(to_string(status));
    }
    // An attempt may see nonsense, but must not get away with it.
    if (!attempt_problem_.empty()) return attempt_problem_;
    close_attempt(committed, true, *worker.transaction);
  }
  return {};
}

Status RandomWorker::attempt(Transaction& txn) {
  attempt_problem_.clear();
  record_ = {};
  own_.clear();
  for (uint64_t left = 1 + random_() % 6; left > 0; --left) {
    const Status status = operate(txn);
    if (is_abort(status)) return status;
  }
  return user_abort_ ? Status::user_abort : Status::ok;
}

void RandomWorker::close_attempt(bool committed, bool reads_verified, const Transaction& txn) {
  record_.id = uint64_t{self_} * 1'000'000 + next_id_++;
  record_.committed = committed;
  record_.order = committed && !record_.writes.empty() ? txn.last_vid().version() : 0;
  if (!committed && reads_verified) {
    // A user abort: its reads were true (R20), its writes never happened.
    TransactionRecord reader = record_;
    reader.id = uint64_t{self_} * 1'000'000 + next_id_++;
    reader.committed = true;
    reader.writes.clear();
    history_.push_back(std::move(reader));
  }
  if (!committed && record_.writes.empty()) return;
  if (!committed) {
    record_.reads.clear();
    record_.predicates.clear();
  }
  history_.push_back(std::move(record_));
}

Item RandomWorker::random_item() {
  return {static_cast<uint32_t>(random_() % HistoryTables::kCount), random_() % key_count_};
}

Status RandomWorker::operate(Transaction& txn) {
  const Item item = random_item();
  const bool is_array = item.table == HistoryTables::kArray;
  bool found = false;
  switch (random_() % 8) {
    case 0:
    case 1:
      return read(txn, item, found);
    case 2: {  // read, then write
      const Status status = read(txn, item, found);
      if (is_abort(status) || !found) return status;
      return write(txn, item);
    }
    case 3:  // write without a look
      return write(txn, item);
    case 4: {  // look up, then insert
      if (is_array) return write(txn, item);
      const Status status = read(txn, item, found);
      if (is_abort(status) || found) return status;
      return insert(txn, item);
    }
    case 5:
      return is_array ? read(txn, item, found) : insert(txn, item);
    case 6:
      return is_array ? read(txn, item, found) : erase(txn, item);
    default:
      return is_array ? read(txn, item, found) : scan(txn, item.table);
  }
}

// -- Records of what happened ---------------------------------------------------------------------

void RandomWorker::note_write(const Item& item, Version version, bool erases) {
  for (ItemWrite& write : record_.writes) {
    if (write.item == item) write.intermediate = true;
  }
  record_.writes.push_back({.item = item, .version = version, .erases = erases});
  own_[item] = erases ? kAbsent : version;
}

void RandomWorker::check_own(const Item& item, Version version) {
  if (own_.at(item) == version) return;
  complain("own write of table " + std::to_string(item.table) + " key " + std::to_string(item.key) +
           " not seen: wanted version " + std::to_string(own_.at(item)) + ", got " +
           std::to_string(version));
}

void RandomWorker::note_read(const Item& item, Version version) {
  if (own_.contains(item)) {
    check_own(item, version);
  } else {
    record_.reads.push_back({item, version});
  }
}

// -- Keys -----------------------------------------------------------------------------------------

std::string RandomWorker::key_of(const Item& item) const {
  const bool layered = item.table == HistoryTables::kLayered;
  const auto slice = ordered_key(layered ? item.key / kKeysPerSlice : item.key);
  std::string key(reinterpret_cast<const char*>(slice.data()), slice.size());
  // Suffixes that differ late: a few layers deep.
  const uint64_t rest = item.key % kKeysPerSlice;
  if (layered && rest != 0) key += "same-pre" + std::string(1, static_cast<char>(rest));
  return key;
}

uint64_t RandomWorker::number_of(uint32_t table, Bytes key) const {
  uint64_t slice = 0;
  std::memcpy(&slice, key.data(), 8);
  slice = __builtin_bswap64(slice);
  if (table != HistoryTables::kLayered) return slice;
  return slice * kKeysPerSlice + (key.size() == 8 ? 0 : static_cast<uint64_t>(key.back()));
}

// -- Operations -----------------------------------------------------------------------------------

Status RandomWorker::read(Transaction& txn, const Item& item, bool& found) {
  Version version = kAbsent;
  Status status = Status::ok;
  if (item.table == HistoryTables::kArray) {
    status = tables_.array.get(txn, item.key, 0, sizeof(version), &version);
  } else {
    uint32_t bytes = 0;
    status = tables_.tree(item.table)
                 .get(txn, bytes_view(key_of(item)), &version, sizeof(version), bytes);
  }
  if (is_abort(status)) return status;
  found = status == Status::ok;
  note_read(item, found ? version : kAbsent);
  return status;
}

Status RandomWorker::put_version(Transaction& txn, const Item& item, bool insert) {
  const Version version = (uint64_t{self_ + 1} << 40) | next_version_++;
  Status status = Status::ok;
  if (item.table == HistoryTables::kArray) {
    status = tables_.array.update(txn, item.key, 0, sizeof(version), &version);
  } else {
    // Of many sizes: records outgrow their places.
    std::string payload(sizeof(version) + random_() % kMostPayloadBytes, 'p');
    std::memcpy(payload.data(), &version, sizeof(version));
    const MasterTree& tree = tables_.tree(item.table);
    const std::string key = key_of(item);
    status = insert ? tree.insert(txn, bytes_view(key), bytes_view(payload))
                    : tree.upsert(txn, bytes_view(key), bytes_view(payload));
  }
  if (status == Status::ok) note_write(item, version, false);
  return status;
}

Status RandomWorker::write(Transaction& txn, const Item& item) {
  return put_version(txn, item, false);
}

Status RandomWorker::insert(Transaction& txn, const Item& item) {
  const auto own = own_.find(item);
  const bool known = own != own_.end();
  const bool was_there = known && own->second != kAbsent;
  const Status status = put_version(txn, item, true);
  if (is_abort(status)) return status;
  if (known && was_there != (status == Status::already_exists)) {
    complain("insert after an own write answered " + std::string(to_string(status)));
  }
  if (status == Status::ok && !known) record_.reads.push_back({item, kAbsent});
  bool found = false;
  return status == Status::already_exists ? read(txn, item, found) : status;
}

Status RandomWorker::erase(Transaction& txn, const Item& item) {
  bool found = false;
  Status status = read(txn, item, found);
  if (is_abort(status)) return status;
  status = tables_.tree(item.table).erase(txn, bytes_view(key_of(item)));
  if (is_abort(status)) return status;
  if (found != (status == Status::ok)) {
    // Somebody came between: this attempt must not verify.
    complain("read and erase of one key disagree");
  }
  if (status == Status::ok) {
    note_write(item, (uint64_t{self_ + 1} << 40) | next_version_++, true);
  }
  return status;
}

Status RandomWorker::scan(Transaction& txn, uint32_t table) {
  const bool forward = random_() % 2 == 0;
  PredicateRead predicate{};
  predicate.table = table;
  predicate.first = random_() % key_count_;
  predicate.last = predicate.first + random_() % (key_count_ / 4);
  for (const auto& [item, version] : own_) {
    if (item.table == table) predicate.own_keys.push_back(item.key);
  }
  const std::map<Item, Version> own_before = own_;
  const std::string low = key_of({table, predicate.first});
  const std::string high = key_of({table, predicate.last});
  const ScanRange range{.low = bytes_view(low),
                        .has_low = true,
                        .high = bytes_view(high),
                        .has_high = true,
                        .high_inclusive = true};
  MasterTreeCursor cursor(tables_.tree(table), txn, range, forward);
  Status status = Status::ok;
  uint64_t key = 0;
  for (uint64_t left = random_() % 8 == 0 ? 2 : key_count_; left > 0; --left) {
    status = scan_step(txn, cursor, predicate, key);
    if (status != Status::ok) break;
    if (left == 1) (forward ? predicate.last : predicate.first) = key;  // stopped early
  }
  if (is_abort(status)) return status;
  // Own records in the part that was walked: each must have been returned, own erases not.
  std::map<uint64_t, Version> found(predicate.found.begin(), predicate.found.end());
  for (const auto& [item, version] : own_before) {
    if (item.table != table || item.key < predicate.first || item.key > predicate.last) continue;
    const auto it = found.find(item.key);
    check_own(item, it == found.end() ? kAbsent : it->second);
  }
  std::erase_if(predicate.found,
                [&](const auto& one) { return own_before.contains({table, one.first}); });
  record_.predicates.push_back(std::move(predicate));
  return Status::ok;
}

Status RandomWorker::scan_step(Transaction& txn, MasterTreeCursor& cursor, PredicateRead& predicate,
                               uint64_t& key) {
  Status status = cursor.next();
  if (status != Status::ok) return status;
  key = number_of(predicate.table, cursor.key());
  Version version = 0;
  status = cursor.get(&version, sizeof(version));
  if (status != Status::ok) return status;
  if (key < predicate.first || key > predicate.last) complain("a scan left its range");
  predicate.found.emplace_back(key, version);
  // Now and then change the record under the cursor: it must go on behind it.
  const Item item{predicate.table, key};
  if (random_() % 16 != 0 || own_.contains(item)) return Status::ok;
  return write(txn, item);
}

}  // namespace atolldb::test
