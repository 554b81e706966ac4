#include "soc/kv/kv_executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/hash/hash_key.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr bool has(const KvOperationView& operation, KvFlag flag) {
  return (operation.head.flags & flag) != 0;
}

static_assert(kMaxKvKeyBytes == MasterTree::kMaxKeyBytes);
static_assert(kMaxKvValueBytes >= MasterTree::kMaxPayloadBytes &&
              kMaxKvValueBytes >= Array::kMaxPayloadBytes &&
              kMaxKvValueBytes >= Sequential::kMaxPayloadBytes);
static_assert(static_cast<int>(KvNumber::i32) == static_cast<int>(IncrementType::i32) &&
              static_cast<int>(KvNumber::f64) == static_cast<int>(IncrementType::f64));

/// Returns why a comparison has failed.
const char* why_unequal(const KvOperationView& operation, bool exists) {
  if (!exists) return "compare failed: the key does not exist";
  const bool by_version = operation.head.code == KvCode::compare_version;
  const bool is_absent_wanted =
      by_version ? operation.head.version == 0 : has(operation, kKvAbsent);
  if (is_absent_wanted) return "compare failed: the key exists";
  return by_version ? "compare failed: the version differs" : "compare failed: the value differs";
}

bool same(KvBytes left, KvBytes right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

}  // namespace

Status KvExecutor::fail(Status status, std::string why) {
  fault_ = std::move(why);
  return status;
}

Status KvExecutor::unsupported(const KvOperationView& operation, const char* type) {
  return fail(Status::operation_not_supported,
              "storage \"" + std::string(operation.storage) + "\" is " + type);
}

Status KvExecutor::finish(const KvOperationView& operation, Status status, KvBytes value,
                          uint64_t version) {
  DCHECK(value.size() <= kMaxKvValueBytes);
  const bool is_answer = status == Status::not_found || status == Status::already_exists;
  if (status != Status::ok && (!is_answer || has(operation, kKvRequire))) return status;
  reply_.add(status, value, version);
  return Status::ok;
}

Status KvExecutor::run(const KvOperationView& operation) {
  DCHECK(operation.head.code < KvCode::count_ && txn_.is_active());
  StorageControl* storage = context_.storage(operation.storage, StorageType::none);
  if (storage == nullptr) {
    return fail(Status::storage_not_found,
                "storage \"" + std::string(operation.storage) + "\" does not exist");
  }
  switch (storage->type) {
    case StorageType::mastertree:
      return run_on_tree(operation, MasterTree(*storage), operation.key);
    case StorageType::hash:
      return run_on_hash(operation, MasterTree(*storage));
    case StorageType::array:
      return run_on_array(operation, Array(*storage));
    case StorageType::sequential:
      return run_on_heap(operation, Sequential(*storage));
    case StorageType::none:
      break;
  }
  return unsupported(operation, "of an unknown type");
}

Status KvExecutor::compare(const KvOperationView& operation, Status found, KvBytes value,
                           uint64_t version) {
  DCHECK(operation.head.code == KvCode::compare || operation.head.code == KvCode::compare_version);
  if (found != Status::ok && found != Status::not_found) return found;
  const bool exists = found == Status::ok;
  bool holds = false;
  if (operation.head.code == KvCode::compare_version) {
    holds = operation.head.version == (exists ? version : 0);
  } else if (has(operation, kKvAbsent)) {
    holds = !exists;
  } else {
    holds = exists && same(value, operation.value);
  }
  // A failed comparison is an abort by the user. So the transaction verifies its reads before it
  // reports the failure (R20).
  if (!holds) return fail(Status::user_abort, why_unequal(operation, exists));
  reply_.add(Status::ok);
  return Status::ok;
}

Status KvExecutor::add_on_tree(const KvOperationView& operation, const MasterTree& tree,
                               KvBytes key) {
  const KvOperation& head = operation.head;
  DCHECK(operation.value.size() == head.value_bytes);
  const auto type = static_cast<IncrementType>(head.number);
  const std::byte* delta = operation.value.data();
  Status status = has(operation, kKvBlind) ? tree.add(txn_, key, head.offset, type, delta)
                                           : tree.increment(txn_, key, head.offset, type, delta);
  if (status != Status::ok || !has(operation, kKvReturnsValue)) return finish(operation, status);
  status = tree.get_range(txn_, key, head.offset, head.value_bytes, buffer_.data());
  return finish(operation, status, KvBytes(buffer_).first(head.value_bytes));
}

Status KvExecutor::run_on_tree(const KvOperationView& operation, MasterTree tree, KvBytes key) {
  switch (operation.head.code) {
    case KvCode::get:
    case KvCode::compare:
    case KvCode::compare_version: {
      uint32_t bytes = 0;
      Vid seen;
      const Status status = tree.get(txn_, key, buffer_.data(), kMaxKvValueBytes, bytes, seen);
      const bool is_found = status == Status::ok;
      const uint64_t version = is_found ? seen.version() : 0;
      const KvBytes value = KvBytes(buffer_).first(is_found ? bytes : 0);
      if (operation.head.code != KvCode::get) return compare(operation, status, value, version);
      return finish(operation, status, value, version);
    }
    case KvCode::put:
      if (operation.head.offset != 0) {
        return finish(operation,
                      tree.update_range(txn_, key, operation.head.offset, operation.value));
      }
      return finish(operation, tree.upsert(txn_, key, operation.value));
    case KvCode::insert:
      return finish(operation, tree.insert(txn_, key, operation.value));
    case KvCode::erase:
      return finish(operation, tree.erase(txn_, key));
    case KvCode::add:
      return add_on_tree(operation, tree, key);
    case KvCode::scan:
    case KvCode::compare_scan:
      return scan(operation, tree);
    default:
      return unsupported(operation, "a mastertree: put or insert there");
  }
}

Status KvExecutor::run_on_hash(const KvOperationView& operation, MasterTree tree) {
  switch (operation.head.code) {
    case KvCode::scan:
      return scan_hash(operation, tree);
    case KvCode::compare_scan:
      return unsupported(operation, "a hash storage: a transaction of a client cannot scan it");
    case KvCode::append:
      return unsupported(operation, "a hash storage: put or insert there");
    default:
      return run_on_tree(operation, tree, HashKey(operation.key).stored());
  }
}

Status KvExecutor::scan_hash(const KvOperationView& operation, const MasterTree& tree) {
  DCHECK(operation.head.code == KvCode::scan);
  const bool is_plain = !has(operation, kKvHasHigh) && !has(operation, kKvReverse);
  if (!has(operation, kKvUnordered) || !is_plain) {
    return unsupported(operation,
                       "a hash storage, whose keys have no order: scan all of it, forward, without "
                       "bounds, and outside of transactions and batches");
  }
  ScanRange range;
  if (!has(operation, kKvHasLow)) return scan_range(operation, tree, range, true);
  // The rows follow the record before the bound. key_after has appended a zero byte to its key.
  const bool is_next = !operation.key.empty() && operation.key.back() == std::byte{0};
  if (!is_next) {
    return fail(Status::invalid_argument, "the low bound is not the key after a row's key");
  }
  const HashKey last(operation.key.first(operation.key.size() - 1));
  range.low = last.stored();
  range.has_low = true;
  range.low_inclusive = false;
  return scan_range(operation, tree, range, true);
}

Status KvExecutor::scan(const KvOperationView& operation, const MasterTree& tree) {
  ScanRange range;
  range.low = operation.key;
  range.has_low = has(operation, kKvHasLow);
  range.high = operation.high;
  range.has_high = has(operation, kKvHasHigh);
  return scan_range(operation, tree, range, false);
}

Status KvExecutor::scan_range(const KvOperationView& operation, const MasterTree& tree,
                              const ScanRange& range, bool is_hash) {
  const bool is_compared = operation.head.code == KvCode::compare_scan;
  MasterTreeCursor cursor(tree, txn_, range, !has(operation, kKvReverse));
  const uint32_t limit = operation.head.offset == 0 ? kMaxKvScanRows : operation.head.offset;
  KvScanDigest digest;
  bool has_more = false;
  if (!is_compared) reply_.begin_scan();
  Status status = cursor.next();
  for (uint32_t rows = 0; status == Status::ok; ++rows, status = cursor.next()) {
    // A comparison returns no rows, so only its number of rows is limited. The client has set it to
    // what its scan has returned.
    if (rows == limit || (!is_compared && scanned_bytes_ >= kMaxKvScanBytes)) {
      has_more = true;
      break;
    }
    const bool has_value = !is_compared && !has(operation, kKvKeysOnly);
    const uint32_t bytes = has_value ? cursor.payload_bytes() : 0;
    DCHECK(bytes <= buffer_.size());
    if (bytes != 0) {
      const Status copied = cursor.get(buffer_.data(), bytes);
      if (copied != Status::ok) return copied;
    }
    const uint64_t version = cursor.vid().version();
    std::optional<OriginalKey> original;
    if (is_hash) original.emplace(cursor.key());
    const KvBytes key = original ? original->bytes() : cursor.key();
    digest.add(key, version);
    if (is_compared) continue;
    scanned_bytes_ += sizeof(KvRow) + key.size() + bytes;
    reply_.row(key, KvBytes(buffer_).first(bytes), version);
  }
  if (status != Status::ok && status != Status::end_of_scan) return status;
  if (!is_compared) {
    reply_.end_scan(digest.value(), has_more);
    return Status::ok;
  }
  if (digest.value() != operation.head.digest) {
    return fail(Status::user_abort, "compare failed: the range has changed");
  }
  reply_.add(Status::ok);
  return Status::ok;
}

Status KvExecutor::run_on_array(const KvOperationView& operation, const Array& array) {
  const KvOperation& head = operation.head;
  if (operation.key.size() != 8) {
    return fail(Status::invalid_argument,
                "the key of an array has 8 bytes, not " + std::to_string(operation.key.size()));
  }
  uint64_t index = 0;
  std::memcpy(&index, operation.key.data(), sizeof(index));
  index = __builtin_bswap64(index);
  const auto bytes = static_cast<uint32_t>(operation.value.size());
  DCHECK(bytes <= buffer_.size() && array.payload_bytes() <= buffer_.size());
  switch (head.code) {
    case KvCode::get:
    case KvCode::compare:
    case KvCode::compare_version: {
      Vid seen;
      const Status status = array.get(txn_, index, buffer_.data(), seen);
      const KvBytes value =
          KvBytes(buffer_).first(status == Status::ok ? array.payload_bytes() : 0);
      const uint64_t version = status == Status::ok ? seen.version() : 0;
      if (head.code != KvCode::get) return compare(operation, status, value, version);
      return finish(operation, status, value, version);
    }
    case KvCode::put:
      return finish(operation,
                    array.update(txn_, index, head.offset, bytes, operation.value.data()));
    case KvCode::add: {
      Status status =
          array.increment(txn_, index, head.offset, static_cast<IncrementType>(head.number),
                          operation.value.data());
      if (status != Status::ok || !has(operation, kKvReturnsValue)) {
        return finish(operation, status);
      }
      status = array.get(txn_, index, head.offset, bytes, buffer_.data());
      return finish(operation, status, KvBytes(buffer_).first(bytes));
    }
    default:
      return unsupported(operation, "an array: its records can be read, put and added to");
  }
}

Status KvExecutor::run_on_heap(const KvOperationView& operation, const Sequential& heap) {
  if (operation.head.code != KvCode::append) {
    return unsupported(operation, "sequential: it can be appended to");
  }
  return finish(operation, heap.append(txn_, operation.value));
}

}  // namespace atolldb
