// Operations of the random workload. Each operation records what it read and wrote.
#include <algorithm>

#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/engine/serializability/workload.h"

namespace atolldb::test {

namespace {

constexpr uint32_t kArrayWords = 8;
constexpr uint32_t kMostWords = 24;

Bytes text_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A payload that repeats one word, so that a torn copy is visible.
struct Payload {
  Payload(uint64_t value, size_t count) : words(count, value) {}
  Bytes bytes() const { return std::as_bytes(std::span(words)); }
  std::vector<uint64_t> words;
};

}  // namespace

std::string WorkloadWorker::tree_key(Store store, uint32_t index) const {
  if (store == Store::layered) return layered_keys_[index];
  const auto key = ordered_key(index);
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

uint32_t WorkloadWorker::index_of(Store store, Bytes key) const {
  const std::string text(reinterpret_cast<const char*>(key.data()), key.size());
  for (uint32_t i = 0; i < options_.keys; ++i) {
    if (tree_key(store, i) == text) return i;
  }
  return options_.keys;
}

Status WorkloadWorker::operate(Store store) {
  const auto index = static_cast<uint32_t>(below(options_.keys));
  if (store == Store::array) return array_operation(index);
  if (below(5) == 0) {
    const uint32_t high = std::min(index + 1 + static_cast<uint32_t>(below(12)), options_.keys);
    const auto most = static_cast<uint32_t>(below(4) == 0 ? 1 + below(3) : options_.keys);
    return scan(store, index, high, below(2) == 0, most);
  }
  return tree_operation(store, index);
}

Status WorkloadWorker::array_operation(uint32_t index) {
  RecordRef ref;
  Status status = Status::ok;
  switch (below(5)) {
    case 0:
      return array_get(index, nullptr);
    case 1:
      return array_get_many(index);
    case 2:
      return array_put(index, nullptr);
    case 3:
      status = array_get(index, &ref);
      return status == Status::ok ? array_put(index, &ref) : status;
    default:
      status = array_get(index, nullptr);
      return status == Status::ok ? array_put(index, nullptr) : status;
  }
}

Status WorkloadWorker::array_get(uint32_t index, RecordRef* ref) {
  uint64_t words[kArrayWords];
  const Array array = array_of(storages_.array);
  const Status status = ref == nullptr
                            ? array.get(engine_, index, words)
                            : array.get_for_update(engine_, index, 0, sizeof(words), words, *ref);
  if (status == Status::ok)
    saw(key_of(Store::array, index), whole(key_of(Store::array, index), words, sizeof(words)),
        false);
  return status;
}

Status WorkloadWorker::array_get_many(uint32_t first) {
  constexpr size_t kMany = 3;
  uint64_t words[kMany * kArrayWords];
  uint64_t indexes[kMany];
  for (size_t i = 0; i < kMany; ++i) indexes[i] = (first + i * 7) % options_.keys;
  const Status status = array_of(storages_.array).get_many(engine_, indexes, words);
  if (status != Status::ok) return status;
  for (size_t i = 0; i < kMany; ++i) {
    const uint64_t key = key_of(Store::array, static_cast<uint32_t>(indexes[i]));
    saw(key, whole(key, words + i * kArrayWords, kArrayWords * 8), false);
  }
  return status;
}

Status WorkloadWorker::array_put(uint32_t index, const RecordRef* ref) {
  const Payload payload(next_value(key_of(Store::array, index), false), kArrayWords);
  const Array array = array_of(storages_.array);
  const auto bytes = static_cast<uint32_t>(payload.bytes().size());
  if (ref == nullptr) return array.update(engine_, index, 0, bytes, payload.words.data());
  return array.update(engine_, *ref, index, 0, bytes, payload.words.data());
}

Status WorkloadWorker::tree_operation(Store store, uint32_t index) {
  bool exists = false;
  Status status = Status::ok;
  switch (below(8)) {
    case 0:
      return tree_get(store, index, exists);
    case 1:
    case 2:
      return tree_insert(store, index);
    case 3:  // R13: look-up, then insert
      status = tree_get(store, index, exists);
      if (status != Status::ok) return status;
      return exists ? tree_write(store, index) : tree_insert(store, index);
    case 4:
      return tree_write(store, index);
    case 5:
      return tree_update_in_place(store, index);
    default:
      return tree_erase(store, index);
  }
}

Status WorkloadWorker::tree_get(Store store, uint32_t index, bool& exists) {
  uint64_t words[kMostWords];
  uint32_t bytes = 0;
  const Status status =
      tree_of(store).get(engine_, text_bytes(tree_key(store, index)), words, sizeof(words), bytes);
  exists = status == Status::ok;
  if (exists) saw(key_of(store, index), whole(key_of(store, index), words, bytes), false);
  if (status == Status::not_found) saw(key_of(store, index), kAbsent, true);
  return status == Status::not_found ? Status::ok : status;
}

Status WorkloadWorker::tree_insert(Store store, uint32_t index) {
  const uint64_t key = key_of(store, index);
  // The payload repeats the value that names this insert, if the insert takes effect.
  const Payload payload(txn_.name + txn_.writes.size() + 1, 1 + below(kMostWords));
  const Status status =
      tree_of(store).insert(engine_, text_bytes(tree_key(store, index)), payload.bytes());
  if (status == Status::already_exists) {
    bool exists = false;
    const Status got = tree_get(store, index, exists);
    if (got == Status::ok && !exists) complain("was told that an absent key exists");
    return got;
  }
  if (status != Status::ok) return status;
  saw(key, kAbsent, true);
  next_value(key, false);
  return status;
}

Status WorkloadWorker::tree_write(Store store, uint32_t index) {
  const uint64_t key = key_of(store, index);
  const Payload payload(txn_.name + txn_.writes.size() + 1, 1 + below(kMostWords));
  const std::string name = tree_key(store, index);
  const bool blind = below(2) == 0;
  const Status status = blind ? tree_of(store).upsert(engine_, text_bytes(name), payload.bytes())
                              : tree_of(store).update(engine_, text_bytes(name), payload.bytes());
  if (status == Status::not_found) {
    if (blind) complain("could not upsert an absent key");
    saw(key, kAbsent, true);
    return Status::ok;
  }
  if (status != Status::ok) return status;
  if (const auto own = own_.find(key);
      !blind && own != own_.end() && own->second.value == kAbsent) {
    complain("could update a key that it had erased");
  }
  next_value(key, false);
  return status;
}

Status WorkloadWorker::tree_update_in_place(Store store, uint32_t index) {
  const uint64_t key = key_of(store, index);
  const std::string name = tree_key(store, index);
  uint64_t words[kMostWords];
  uint32_t bytes = 0;
  RecordRef ref;
  const MasterTree tree = tree_of(store);
  Status status = tree.get_for_update(engine_, text_bytes(name), words, sizeof(words), bytes, ref);
  if (status == Status::not_found) {
    saw(key, kAbsent, true);
    return Status::ok;
  }
  if (status != Status::ok) return status;
  saw(key, whole(key, words, bytes), false);
  if (bytes < 8) return Status::ok;
  const Payload payload(txn_.name + txn_.writes.size() + 1, bytes / 8);
  status = tree.update_range(engine_, ref, text_bytes(name), 0, payload.bytes());
  if (status == Status::ok) next_value(key, false);
  return status;
}

Status WorkloadWorker::tree_erase(Store store, uint32_t index) {
  const uint64_t key = key_of(store, index);
  bool exists = true;
  const bool looks = below(2) == 0;
  if (looks) {
    const Status status = tree_get(store, index, exists);
    if (status != Status::ok) return status;
  }
  const Status status = tree_of(store).erase(engine_, text_bytes(tree_key(store, index)));
  if (status == Status::not_found) {
    if (looks && exists) complain("could not erase what it had just read");
    saw(key, kAbsent, true);
    return Status::ok;
  }
  if (status != Status::ok) return status;
  const auto own = own_.find(key);
  if (!exists || (own != own_.end() && own->second.value == kAbsent)) {
    complain("could erase an absent key");
  }
  next_value(key, true);
  return status;
}

Status WorkloadWorker::scan(Store store, uint32_t low, uint32_t high, bool forward, uint32_t most) {
  const std::string low_key = tree_key(store, low);
  const std::string high_key = high < options_.keys ? tree_key(store, high) : std::string();
  const ScanRange range{.low = text_bytes(low_key),
                        .has_low = true,
                        .high = text_bytes(high_key),
                        .has_high = high < options_.keys};
  const bool disturbs = !reads_only_ && below(3) == 0;
  MasterTreeCursor cursor(tree_of(store), engine_, range, forward);
  // A batch of several rows would not show the writes of disturb_scan.
  CursorReader reader(cursor, disturbs ? below(2) : below(8));
  // Number of keys that the cursor has passed: [low, low + passed), or the same number from the
  // high end.
  uint32_t passed = 0;
  const uint32_t all = high - low;
  for (; most > 0; --most) {
    const Status status = reader.next();
    if (is_abort(status)) return status;
    const bool ended = status == Status::end_of_scan;
    const uint32_t index = ended ? 0 : index_of(store, reader.key());
    if (!ended && (index < low || index >= high)) {
      const Bytes key = reader.key();
      complain("scanned the key " +
               std::string(reinterpret_cast<const char*>(key.data()), key.size()) +
               ", which is not " + "in [" + low_key + ", " + high_key + "), " +
               (forward ? "forward" : "backward"));
      return Status::ok;
    }
    const uint32_t position = ended ? all : forward ? index - low : high - 1 - index;
    if (position < passed) {
      complain("scanned out of order");
      return Status::ok;
    }
    for (; passed < position; ++passed) {
      saw(key_of(store, forward ? low + passed : high - 1 - passed), kAbsent, true);
    }
    if (ended) return Status::ok;
    passed = position + 1;
    visit(store, reader.payload(), index);
    if (!disturbs) continue;
    const Status visited = disturb_scan(store, reader.ref(), index, low, high);
    if (visited != Status::ok) return visited;
  }
  return Status::ok;
}

void WorkloadWorker::visit(Store store, Bytes payload, uint32_t index) {
  uint64_t words[kMostWords];
  CHECK(payload.size() <= sizeof(words));
  copy_bytes(words, payload.data(), payload.size());
  const auto bytes = static_cast<uint32_t>(payload.size());
  saw(key_of(store, index), whole(key_of(store, index), words, bytes), true);
}

/// Makes at most one write during a scan: through the cursor, or to a key before or after its
/// position.
Status WorkloadWorker::disturb_scan(Store store, const RecordRef& ref, uint32_t index, uint32_t low,
                                    uint32_t high) {
  const auto other = static_cast<uint32_t>(low + below(high - low));
  switch (below(4)) {
    case 0: {
      const Status status = tree_of(store).erase(engine_, ref, text_bytes(tree_key(store, index)));
      if (status == Status::ok) next_value(key_of(store, index), true);
      if (status != Status::not_found) return status;
      // The record was cold, so the engine has searched for it again. The attempt must not commit.
      complain("could not erase a key that it had scanned");
      return Status::ok;
    }
    case 1:
      return tree_insert(store, other);
    case 2:
      return tree_erase(store, other);
    default:
      return Status::ok;
  }
}

Status WorkloadWorker::transfer() {
  const int64_t amount = 1 + static_cast<int64_t>(below(100));
  for (const int64_t delta : {amount, -amount}) {
    const uint64_t index = below(WorkloadStorages::kCounters);
    const Status status =
        below(2) == 0
            ? array_of(storages_.counters).increment(engine_, index, 0, IncrementType::i64, &delta)
            : MasterTree(control().storage(storages_.counter_tree))
                  .increment(engine_, ordered_key(index), 0, IncrementType::i64, &delta);
    if (status != Status::ok) return status;
  }
  return below(4) == 0 ? audit() : Status::ok;
}

Status WorkloadWorker::audit() {
  int64_t sum = 0;
  for (uint64_t i = 0; i < WorkloadStorages::kCounters; ++i) {
    int64_t amount = 0;
    const Status status = array_of(storages_.counters).get(engine_, i, &amount);
    if (status != Status::ok) return status;
    sum += amount;
  }
  uint32_t found = 0;
  MasterTreeCursor cursor(MasterTree(control().storage(storages_.counter_tree)), engine_,
                          ScanRange{}, below(2) == 0);
  for (Status status = Status::ok; (status = cursor.next()) != Status::end_of_scan; ++found) {
    int64_t amount = 0;
    if (status == Status::ok) status = cursor.get(&amount, sizeof(amount));
    if (status != Status::ok) return status;
    sum += amount;
  }
  if (sum != 0 || found != WorkloadStorages::kCounters) {
    complain("found the counters add up to " + std::to_string(sum) + ", not 0");
  }
  return Status::ok;
}

}  // namespace atolldb::test
