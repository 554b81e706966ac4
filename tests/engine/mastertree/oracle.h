// Master-tree oracle: workers change one tree, and each checks every answer about its own keys
// against a std::map.
//
// The keys of different workers are interleaved, so they share pages, splits, layers, compactions
// and merges. Only its owner changes a key, so the owner knows the right answer of every read. An
// attempt is optimistic: it may see inconsistent data, but then it must not commit. Therefore a
// mismatch counts only if the attempt is reported as committed or as a user abort.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/hash/hash_key.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "tests/engine/mastertree/cursor_reader.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

inline Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// `hashed`: stored keys of a hash storage. One key in four has a hash of three bits only, so that
/// many keys have equal hashes.
enum class KeyShape { integers, layered, hashed };
inline StorageType storage_type_of(KeyShape shape) {
  return shape == KeyShape::hashed ? StorageType::hash : StorageType::mastertree;
}
enum class OracleMix { reads_and_writes, reads };  // reads: get and scan

struct OracleOptions {
  KeyShape shape = KeyShape::integers;
  uint64_t keys_per_worker = 150;
  uint64_t transactions = 1000;
  uint32_t workers = 1;
  uint64_t seed = 1;
};

class OracleWorker {
 public:
  OracleWorker(const OracleOptions& options, uint32_t self)
      : options_(options), self_(self), random_(options.seed * 1000 + self) {}

  /// Returns the first mismatch of an attempt that ended with ok or user_abort, or an empty text.
  /// Attempts that ended with a conflict do not count.
  std::string run(TestWorker& worker, const MasterTree& tree,
                  OracleMix mix = OracleMix::reads_and_writes) {
    for (uint64_t i = 0; i < options_.transactions; ++i) {
      const uint64_t seed = random_();
      const bool abort = random_() % 10 == 0;
      Model model;
      std::string mismatch;
      const Status status = worker.run([&](Transaction& txn) {
        model = model_;
        mismatch.clear();
        std::mt19937_64 random(seed);
        for (uint64_t left = 1 + random() % 5; left > 0; --left) {
          const Status one = operate(txn, tree, mix, random, model, mismatch);
          if (is_abort(one)) return one;
        }
        return abort ? Status::user_abort : Status::ok;
      });
      if (status != Status::ok && status != Status::user_abort) {
        return "transaction ended with " + std::string(to_string(status));
      }
      if (!mismatch.empty()) return mismatch + " in transaction " + std::to_string(i);
      if (status == Status::ok) model_ = std::move(model);
    }
    return {};
  }

  using Model = std::map<std::string, std::string>;

  size_t size() const { return model_.size(); }
  /// The committed content.
  const Model& model() const { return model_; }

 private:
  std::string make_key(std::mt19937_64& random) const {
    if (options_.shape != KeyShape::layered) {
      const uint64_t value = random() % options_.keys_per_worker * options_.workers + self_;
      const auto key = ordered_key(value);
      std::string text(reinterpret_cast<const char*>(key.data()), key.size());
      return options_.shape == KeyShape::integers ? text : stored_key(text, value);
    }
    // Makes keys with long common prefixes, zero bytes and remainders of every length, to test
    // layers and their boundaries.
    static const std::string prefixes[] = {"aaaaaaaa", "bbbbbbbb", "aaaabbbb",
                                           std::string(8, '\0')};
    std::string key;
    for (uint64_t parts = random() % 3; parts > 0; --parts) key += prefixes[random() % 4];
    for (uint64_t rest = random() % 4; rest > 0; --rest) {
      key += random() % 3 == 0 ? '\0' : static_cast<char>('a' + random() % 2);
    }
    return key + static_cast<char>('A' + self_);
  }

  /// Keys have 8 or 9 bytes, because these two have different stored forms.
  static std::string stored_key(std::string key, uint64_t value) {
    const bool is_coarse = value % 4 == 0;
    if (is_coarse || value % 4 == 1) key += '.';
    const HashKey hashed(bytes_of(key));
    std::string stored(reinterpret_cast<const char*>(hashed.stored().data()),
                       hashed.stored().size());
    if (is_coarse) {
      stored[0] = static_cast<char>(static_cast<unsigned char>(stored[0]) & 0xe0);
      std::memset(stored.data() + 1, 0, kHashBytes - 1);
    }
    return stored;
  }

  static std::string text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool is_mine(const std::string& key) const {
    if (options_.shape == KeyShape::layered) return key.back() == static_cast<char>('A' + self_);
    uint64_t value = 0;
    if (options_.shape == KeyShape::hashed) {
      const OriginalKey original(bytes_of(key));
      std::memcpy(&value, original.bytes().data(), 8);
    } else {
      std::memcpy(&value, key.data(), 8);
    }
    return __builtin_bswap64(value) % options_.workers == self_;
  }

  Status operate(Transaction& txn, const MasterTree& tree, OracleMix mix, std::mt19937_64& random,
                 Model& model, std::string& mismatch) {
    const std::string key = make_key(random);
    std::string payload(random() % 20, static_cast<char>('A' + random() % 26));
    if (random() % 20 == 0) payload.resize(200, 'z');  // larger than the record that it replaces
    const bool exists = model.contains(key);
    const uint64_t operation = random() % 10;
    if (operation == 9) return scan(txn, tree, random, model, mismatch);
    if (operation < 3 || mix == OracleMix::reads) return get(txn, tree, key, model, mismatch);
    Status status = Status::ok;
    Status expected = Status::ok;
    if (operation < 5) {
      status = tree.insert(txn, bytes_of(key), bytes_of(payload));
      expected = exists ? Status::already_exists : Status::ok;
      model.try_emplace(key, payload);
    } else if (operation < 6) {
      status = tree.upsert(txn, bytes_of(key), bytes_of(payload));
      model[key] = payload;
    } else if (operation < 7) {
      status = tree.update(txn, bytes_of(key), bytes_of(payload));
      expected = exists ? Status::ok : Status::not_found;
      if (exists) model[key] = payload;
    } else {
      status = tree.erase(txn, bytes_of(key));
      expected = exists ? Status::ok : Status::not_found;
      model.erase(key);
    }
    if (!is_abort(status) && status != expected) {
      mismatch = "operation " + std::to_string(operation) + " answered " +
                 std::string(to_string(status)) + ", expected " + std::string(to_string(expected));
    }
    return status;
  }

  static Status get(Transaction& txn, const MasterTree& tree, const std::string& key,
                    const Model& model, std::string& mismatch) {
    char buffer[MasterTree::kMaxPayloadBytes];
    uint32_t length = 0;
    const Status status = tree.get(txn, bytes_of(key), buffer, sizeof(buffer), length);
    if (is_abort(status)) return status;
    const auto it = model.find(key);
    const bool right = it == model.end()
                           ? status == Status::not_found
                           : status == Status::ok && it->second == std::string(buffer, length);
    if (!right) mismatch = "get answered " + std::string(to_string(status)) + " or wrong bytes";
    return status;
  }

  Status scan(Transaction& txn, const MasterTree& tree, std::mt19937_64& random, const Model& model,
              std::string& mismatch) {
    const std::string low = make_key(random);
    const std::string high = make_key(random);
    ScanRange range{.low = bytes_of(low),
                    .has_low = random() % 4 != 0,
                    .low_inclusive = random() % 2 == 0,
                    .high = bytes_of(high),
                    .has_high = random() % 4 != 0,
                    .high_inclusive = random() % 2 == 0};
    const bool forward = random() % 2 == 0;
    std::vector<std::pair<std::string, std::string>> wanted;
    for (const auto& [key, payload] : model) {
      if (range.has_low && (key < low || (key == low && !range.low_inclusive))) continue;
      if (range.has_high && (key > high || (key == high && !range.high_inclusive))) continue;
      wanted.emplace_back(key, payload);
    }
    if (!forward) std::reverse(wanted.begin(), wanted.end());

    MasterTreeCursor cursor(tree, txn, range, forward);
    CursorReader reader(cursor, random() % 2 == 0 ? 0 : 1 + random() % 12);
    std::vector<std::pair<std::string, std::string>> found;
    std::string last;
    bool ended = false;
    for (int left = 40; left > 0 && !ended; --left) {
      const Status status = reader.next();
      if (is_abort(status)) return status;
      ended = status == Status::end_of_scan;
      if (ended) break;
      const std::string key = text_of(reader.key());
      if (!last.empty() && (forward ? key <= last : key >= last)) mismatch = "scan out of order";
      last = key;
      if (is_mine(key)) found.emplace_back(key, text_of(reader.payload()));
    }
    if (!ended) {
      std::erase_if(wanted, [&](const auto& entry) {
        return forward ? entry.first > last : entry.first < last;
      });
    }
    if (found != wanted) {
      mismatch = "scan found " + std::to_string(found.size()) + " own records, expected " +
                 std::to_string(wanted.size()) + ", or wrong bytes";
    }
    return Status::ok;
  }

  OracleOptions options_;
  uint32_t self_;
  std::mt19937_64 random_;
  Model model_;
};

}  // namespace atolldb::test
