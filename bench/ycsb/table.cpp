#include "bench/ycsb/table.h"

#include <algorithm>

#include "bench/job/step_scan.h"
#include "bench/job/try.h"

namespace atolldb::ycsb {

namespace {

StorageType type_of(const JobInput& input) {
  if (input.is_array) return StorageType::array;
  return input.is_hash ? StorageType::hash : StorageType::mastertree;
}

}  // namespace

std::vector<bench::StorageSpec> storage_specs(const JobInput& input, uint32_t nodes) {
  return {{kRecordsStorage, type_of(input), input.shape.record_bytes,
           input.is_array ? input.keyspace(nodes).array_records() : 0},
          {kControlStorage, StorageType::array, kControlBytes, lane_row_at(nodes, 0)}};
}

Result<Table> Table::open(ControlSegment& control, const JobInput& input, uint32_t nodes) {
  if (input.records < nodes) {
    return make_error(ExitCode::usage, "ycsb: " + std::to_string(input.records) + " records on " +
                                           std::to_string(nodes) +
                                           " nodes: use at least one per node");
  }
  bench::StorageOpener opener(control, storage_specs(input, nodes));
  StorageControl& records = opener.find(kRecordsStorage);
  const Array control_array = opener.array(kControlStorage);
  if (!opener.fault().empty()) {
    return make_error(ExitCode::failed, "ycsb: " + opener.fault() + ": use `atoll bench ycsb`");
  }
  // The handle of the other type is never used. An Array needs an array storage, so it gets the
  // control storage.
  return Table(input, nodes, input.is_array ? Array(records) : control_array, MasterTree(records),
               control_array);
}

void Table::check(uint64_t id, const std::byte* record, uint32_t bytes, Observed& observed) const {
  if (bytes != shape_.record_bytes || !looks_whole(record, shape_.field_bytes(), id, 0)) {
    ++observed.torn;
  }
}

Status Table::read(Transaction& txn, uint64_t id, Observed& observed) {
  uint32_t bytes = shape_.record_bytes;
  if (keyspace_.is_array()) {
    BENCH_TRY(array_.get(txn, id, record_.data()));
  } else {
    BENCH_TRY(tree_.get(txn, StoredId(id, is_hash_), record_.data(), shape_.record_bytes, bytes));
  }
  check(id, record_.data(), bytes, observed);
  return Status::ok;
}

Status Table::read_for_update(Transaction& txn, uint64_t id, uint32_t bytes, RecordRef& ref) {
  if (keyspace_.is_array()) return array_.get_for_update(txn, id, 0, bytes, record_.data(), ref);
  uint32_t whole = 0;
  return tree_.get_for_update(txn, StoredId(id, is_hash_), record_.data(), bytes, whole, ref);
}

Status Table::write_field(Transaction& txn, uint64_t id, uint32_t field, const RecordRef& ref) {
  const uint32_t offset = shape_.offset_of(field);
  const uint32_t bytes = shape_.field_bytes();
  std::byte* const at = record_.data() + offset;
  fill_field(at, bytes, id, field, updates_of(at) + 1);
  if (keyspace_.is_array()) return array_.update(txn, ref, id, offset, bytes, at);
  return tree_.update_range(txn, ref, StoredId(id, is_hash_), offset, {at, bytes});
}

Status Table::update(Transaction& txn, uint64_t id, uint32_t field) {
  // Only the update count of the field is needed, but the tree reads a record from its beginning.
  const uint32_t bytes = shape_.offset_of(field) + static_cast<uint32_t>(sizeof(uint64_t));
  RecordRef ref;
  BENCH_TRY(read_for_update(txn, id, bytes, ref));
  return write_field(txn, id, field, ref);
}

Status Table::read_modify_write(Transaction& txn, uint64_t id, uint32_t field, Observed& observed) {
  RecordRef ref;
  BENCH_TRY(read_for_update(txn, id, shape_.record_bytes, ref));
  check(id, record_.data(), ref.payload_bytes, observed);
  return write_field(txn, id, field, ref);
}

Status Table::overwrite(Transaction& txn, uint64_t id) {
  DCHECK(!keyspace_.is_array());
  fill_record(record_.data(), shape_, id);
  return tree_.upsert(txn, StoredId(id, is_hash_), {record_.data(), shape_.record_bytes});
}

Status Table::insert(Transaction& txn, uint64_t id) {
  fill_record(record_.data(), shape_, id);
  return tree_.insert(txn, StoredId(id, is_hash_), {record_.data(), shape_.record_bytes});
}

Status Table::write_loaded(Transaction& txn, uint64_t id) {
  if (!keyspace_.is_array()) return insert(txn, id);
  fill_record(record_.data(), shape_, id);
  return array_.update(txn, id, 0, shape_.record_bytes, record_.data());
}

Status Table::scan(Transaction& txn, uint64_t id, uint32_t length, Observed& observed) {
  DCHECK(!is_hash_);
  const uint64_t last = keyspace_.last_of_partition(id);
  if (keyspace_.is_array()) {
    for (const uint64_t end = std::min(last, id + length - 1); id <= end; ++id) {
      BENCH_TRY(read(txn, id, observed));
      ++observed.scanned;
    }
    return Status::ok;
  }
  const bench::KeyRange keys(id, last);
  MasterTreeCursor cursor(tree_, txn, keys.range(), true);
  const size_t at_once = std::min(kScanRows, kScanBytes / shape_.record_bytes);
  for (uint32_t left = length; left > 0;) {
    const ScanBatch batch{.rows = std::span(rows_).first(std::min<size_t>(left, at_once)),
                          .payloads = scanned_,
                          .stride = shape_.record_bytes,
                          .keys = row_keys_};
    uint32_t count = 0;
    const Status status = cursor.next_many(batch, count);
    if (status == Status::end_of_scan) return Status::ok;
    if (status != Status::ok) return status;
    for (uint32_t i = 0; i < count; ++i) {
      check(bench::key_value(rows_[i].key), scanned_.data() + size_t{i} * batch.stride,
            rows_[i].payload_bytes, observed);
    }
    observed.scanned += count;
    left -= count;
  }
  return Status::ok;
}

void Table::prefetch(Transaction& txn, std::span<const uint64_t> ids) {
  if (keyspace_.is_array()) return array_.prefetch(txn, ids);
  constexpr size_t kPrefetched = 32;
  for (; !ids.empty(); ids = ids.subspan(std::min(kPrefetched, ids.size()))) {
    const size_t count = std::min(kPrefetched, ids.size());
    std::array<StoredId, kPrefetched> keys;
    std::array<Bytes, kPrefetched> bytes;
    for (size_t i = 0; i < count; ++i) bytes[i] = keys[i].set(ids[i], is_hash_);
    tree_.prefetch(txn, std::span(bytes).first(count));
  }
}

}  // namespace atolldb::ycsb
