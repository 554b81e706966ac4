// Random transactions on storages of all types, and the content that they leave.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/array/array.h"
#include "engine/hash/hash.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

inline std::span<const std::byte> as_key(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// One storage of each type, with the same ids in every cluster.
struct StagedStorages {
  static constexpr uint64_t kArrayRecords = 400;
  static constexpr uint32_t kArrayBytes = 24;

  explicit StagedStorages(TestCluster& cluster)
      : array(&cluster.create("array", StorageType::array, kArrayBytes, kArrayRecords)),
        tree(&cluster.create("tree", StorageType::mastertree)),
        hash(&cluster.create("hash", StorageType::hash)),
        heap(&cluster.create("heap", StorageType::sequential)) {}

  std::array<StorageControl*, 4> all() const { return {array, tree, hash, heap}; }

  StorageControl* array;
  StorageControl* tree;
  StorageControl* hash;
  StorageControl* heap;
};

/// Content of the storages.
struct Content {
  std::map<std::string, std::string> array;  // by the bytes of the index; without unwritten records
  std::map<std::string, std::string> tree;
  std::map<std::string, std::string> hash;
  std::multiset<std::string> heap;

  bool operator==(const Content&) const = default;

  std::map<std::string, std::string>& map(StorageType type) {
    return type == StorageType::array ? array : type == StorageType::hash ? hash : tree;
  }
  const std::map<std::string, std::string>& map(StorageType type) const {
    return type == StorageType::array ? array : type == StorageType::hash ? hash : tree;
  }
  std::string sizes() const {
    return std::to_string(array.size()) + " array, " + std::to_string(tree.size()) + " tree, " +
           std::to_string(hash.size()) + " hash, " + std::to_string(heap.size()) + " heap";
  }
};

struct Change {
  enum class Kind : uint8_t { put, erase, range, append };

  Kind kind;
  StorageType type;
  std::string key;
  uint32_t offset = 0;
  std::string bytes;

  void apply_to(Content& content) const {
    switch (kind) {
      case Kind::put:
        content.map(type)[key] = bytes;
        break;
      case Kind::erase:
        content.map(type).erase(key);
        break;
      case Kind::range: {
        std::string& payload = content.map(type)[key];
        if (type == StorageType::array) payload.resize(StagedStorages::kArrayBytes, '\0');
        payload.replace(offset, bytes.size(), bytes);
        break;
      }
      case Kind::append:
        content.heap.insert(bytes);
        break;
    }
  }
};

struct Committed {
  uint64_t epoch = 0;
  std::vector<Change> changes;
};

template <typename Tree>
Status change_tree(const Tree& tree, Transaction& txn, const Change& change,
                   const std::map<std::string, std::string>& before) {
  const auto key = as_key(change.key);
  const auto bytes = as_key(change.bytes);
  switch (change.kind) {
    case Change::Kind::erase:
      return tree.erase(txn, key);
    case Change::Kind::range:
      return tree.update_range(txn, key, change.offset, bytes);
    default:
      return before.contains(change.key) ? tree.update(txn, key, bytes)
                                         : tree.insert(txn, key, bytes);
  }
}

/// Plans the change. `before`: the content before it.
inline Status execute_change(Transaction& txn, const StagedStorages& storages, const Change& change,
                             const Content& before) {
  const auto bytes = as_key(change.bytes);
  switch (change.type) {
    case StorageType::array: {
      uint64_t index = 0;
      std::memcpy(&index, change.key.data(), sizeof index);
      return Array(*storages.array)
          .update(txn, index, change.offset, static_cast<uint32_t>(bytes.size()), bytes.data());
    }
    case StorageType::mastertree:
      return change_tree(MasterTree(*storages.tree), txn, change, before.tree);
    case StorageType::hash:
      return change_tree(Hash(*storages.hash), txn, change, before.hash);
    default:
      return Sequential(*storages.heap).append(txn, bytes);
  }
}

/// The transactions of one worker. Keys of different workers differ, so each worker knows the
/// content of its own keys.
class RandomWork {
 public:
  RandomWork(uint64_t seed_value, uint32_t self, uint32_t workers)
      : random_(seed_value * 1000 + self), self_(self), workers_(workers) {}

  /// Commits one transaction. Returns an empty text, or what went wrong.
  std::string step(TestWorker& worker, const StagedStorages& storages) {
    const uint64_t seed_value = random_();
    std::vector<Change> changes;
    const Status status = worker.run([&](Transaction& txn) {
      changes.clear();
      Content after = content_;
      std::mt19937_64 random(seed_value);
      for (uint64_t left = 1 + random() % 6; left > 0; --left) {
        Change change = next_change(random, after);
        const Status one = execute_change(txn, storages, change, after);
        if (one != Status::ok) return one;
        change.apply_to(after);
        changes.push_back(std::move(change));
      }
      return Status::ok;
    });
    if (status != Status::ok) return "a transaction ended with " + std::string(to_string(status));
    for (const Change& change : changes) change.apply_to(content_);
    committed_.push_back({worker.transaction->commit_epoch(), std::move(changes)});
    return {};
  }

  const std::vector<Committed>& committed() const { return committed_; }

 private:
  std::string make_key(std::mt19937_64& random, StorageType type) const {
    if (type == StorageType::array) {
      const uint64_t index =
          random() % (StagedStorages::kArrayRecords / workers_) * workers_ + self_;
      std::string key(sizeof index, '\0');
      std::memcpy(key.data(), &index, sizeof index);
      return key;
    }
    std::string key;
    switch (random() % 4) {
      case 0:  // long common prefixes over several layers
        key = std::string(random() % 2 == 0 ? 31 : 40, 'p') + std::to_string(random() % 60);
        break;
      case 1:  // remainders of all lengths, with zero bytes
        key.resize(random() % 12, '\0');
        for (char& byte : key) byte = static_cast<char>(random() % 2);
        break;
      case 2:
        key = "aaaaaaaa";
        if (random() % 2 == 0) key += "bbbbbbbb";
        key += std::string(random() % 3, static_cast<char>('a' + random() % 2));
        break;
      default:
        key = "user" + std::to_string(random() % 300);
    }
    return key + static_cast<char>('A' + self_);
  }

  std::string make_payload(std::mt19937_64& random, StorageType type) const {
    const size_t size = type == StorageType::array ? StagedStorages::kArrayBytes
                        : random() % 20 == 0       ? 200 + random() % 100
                                                   : random() % 24;
    std::string payload(size, '\0');
    for (char& byte : payload) byte = static_cast<char>(random());
    return payload;
  }

  Change next_change(std::mt19937_64& random, const Content& now) const {
    constexpr std::array kTypes = {StorageType::array, StorageType::mastertree,
                                   StorageType::mastertree, StorageType::hash,
                                   StorageType::sequential};
    const StorageType type = kTypes[random() % kTypes.size()];
    if (type == StorageType::sequential) {
      return {Change::Kind::append,
              type,
              {},
              0,
              std::to_string(self_) + "-" + std::to_string(random())};
    }
    Change change{Change::Kind::put, type, make_key(random, type), 0, make_payload(random, type)};
    const auto& map = now.map(type);
    const auto found = map.find(change.key);
    const bool exists = found != map.end();
    const uint64_t choice = random() % 4;
    if (type == StorageType::array || exists) {
      const size_t size = exists ? found->second.size() : StagedStorages::kArrayBytes;
      if (choice == 0 && type != StorageType::array) {
        change.kind = Change::Kind::erase;
        change.bytes.clear();
      } else if (choice <= 2) {
        change.kind = Change::Kind::range;
        change.offset = static_cast<uint32_t>(random() % (size + 1));
        change.bytes.resize(random() % (size - change.offset + 1), 'r');
      }
    }
    return change;
  }

  std::mt19937_64 random_;
  uint32_t self_;
  uint32_t workers_;
  Content content_;
  std::vector<Committed> committed_;
};

/// Returns the content after all transactions with epochs up to `epoch`.
inline Content content_at(const std::vector<RandomWork>& works, uint64_t epoch) {
  Content content;
  for (const RandomWork& work : works) {
    for (const Committed& committed : work.committed()) {
      if (committed.epoch > epoch) continue;
      for (const Change& change : committed.changes) change.apply_to(content);
    }
  }
  return content;
}

template <typename Cursor>
Status read_all(Cursor& cursor, std::map<std::string, std::string>& into) {
  Status status = cursor.next();
  for (; status == Status::ok; status = cursor.next()) {
    std::string payload(cursor.payload_bytes(), '\0');
    const Status read = cursor.get(payload.data(), cursor.payload_bytes());
    if (read != Status::ok) return read;
    const auto own = cursor.key();  // the key of a hash storage is a value of its own
    const Bytes key = own;
    into[std::string(reinterpret_cast<const char*>(key.data()), key.size())] = std::move(payload);
  }
  return status == Status::end_of_scan ? Status::ok : status;
}

/// Reads all records in one transaction. Sets `problem` if that fails, or if the epochs of the heap
/// descend.
inline Content read_content(TestWorker& worker, const StagedStorages& storages,
                            std::string& problem) {
  Content content;
  problem.clear();
  const Status status = worker.run([&](Transaction& txn) {
    content = Content();
    const Array array(*storages.array);
    for (uint64_t index = 0; index < StagedStorages::kArrayRecords; ++index) {
      std::string payload(StagedStorages::kArrayBytes, '\0');
      Vid seen;
      const Status read = array.get(txn, index, payload.data(), seen);
      if (read != Status::ok) return read;
      std::string key(sizeof index, '\0');
      std::memcpy(key.data(), &index, sizeof index);
      if (seen.ordinal() != 0) content.array[key] = payload;
    }
    MasterTreeCursor tree(MasterTree(*storages.tree), txn, ScanRange{}, true);
    Status read = read_all(tree, content.tree);
    if (read != Status::ok) return read;
    HashCursor hash(Hash(*storages.hash), txn);
    read = read_all(hash, content.hash);
    if (read != Status::ok) return read;
    SequentialCursor heap(Sequential(*storages.heap), txn);
    uint64_t epoch = 0;
    for (read = heap.next(); read == Status::ok; read = heap.next()) {
      if (heap.epoch() < epoch) problem = "the epochs of the heap descend";
      epoch = heap.epoch();
      const auto payload = heap.payload();
      content.heap.insert({reinterpret_cast<const char*>(payload.data()), payload.size()});
    }
    return read == Status::end_of_scan ? Status::ok : read;
  });
  if (status != Status::ok) problem = "reading ended with " + std::string(to_string(status));
  return content;
}

}  // namespace atolldb::test
