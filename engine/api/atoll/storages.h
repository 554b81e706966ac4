// Transactions, storages and cursors of a procedure. <atoll/procedure.h> includes this header.
//
//   storage      key                               payload                calls
//   Array        index 0 .. record_count() - 1     fixed, 1 .. 2000 bytes  get, update, increment
//   Mastertree   0 .. 1024 bytes, ordered as by    0 .. 2048 bytes         get, insert, upsert,
//                memcmp (`ordered_key` for uint64)                         update, increment,
//                                                                          add, remove
//   Sequential   none: append-only                 0 .. 2048 bytes         append
//
// Guarantees:
// * No call returns an address of engine memory. All reads copy into memory of the caller, and
//   cursors copy into themselves.
// * A Transaction, Place or cursor that is used after the end of its attempt, or on another thread,
//   gives invalid_argument. The call then reads and writes nothing.
// * A storage is a small value without addresses. After a drop of the storage all calls return
//   storage_not_found, also if another storage of that name exists. A default-constructed storage
//   does so, too.
// * A transaction sees its own writes. Other transactions see them after the commit.
//
// Speed: a look-up waits for memory several times. A call for many records overlaps these waits. It
// also reads up to 16 of their missing snapshot pages at the same time, if the worker has missed
// such pages lately. In a transaction that reads a snapshot, trees read them one after the other.
// * Look records up together as soon as their keys are known, and read them afterwards: `find_many`
//   and `find_many_for_update` of arrays, `get_many` and `get_many_for_update` of trees.
// * A Place saves the second look-up of a record that is read and then written.
// * `insert_many` inserts ascending keys under one page lock, `next_many` reads rows of a scan.
// * `Transaction::prefetch` names records of several storages; `Prefetch` names those of the next
//   call.
// * `increment`, `add`, `upsert`, and `update` of an array do not read the record. So transactions
//   that use only these calls on a record do not conflict.
//
// Read set: each record that a call reads takes an entry, also in a scan. So does each insert, and
// each update or removal of a record of a tree. Consecutive reads of one record share one entry.
// Look-ups with `find_many`, prefetches, increments, and updates of arrays take none. An increment
// at a second offset of a record reads the record. Transactions that read a snapshot take none for
// reads. The limits are the config keys memory.read_set, and memory.write_set for records that are
// written; past them a call returns transaction_too_large. A transaction of at most 256 entries can
// lock contended records early, which saves many aborts.
//
// Pointer set: a serializable transaction also remembers where pages were missing. Look-ups of
// records that are in no page of memory take entries, also with `find_many`. Consecutive look-ups
// share the entry of a missing page. Past 1,024 entries a call returns transaction_too_large.
//
// Units: offsets, counts and capacities are bytes. Increments use the machine's byte order.
// Every call may return an abort status (`is_abort`). Every writing call may return
// read_only_transaction. Needs C++17.
#pragma once

#include <atoll/abi.h>

#include <array>
#include <initializer_list>
#include <type_traits>

namespace atoll_api {

inline constexpr uint32_t kMaxArrayPayloadBytes = 2000;
inline constexpr uint32_t kMaxKeyBytes = 1024;
inline constexpr uint32_t kMaxHashKeyBytes = 1016;  // keys of hash storages
inline constexpr uint32_t kMaxPayloadBytes = 2048;
/// Number of cursors that a transaction may have open at a time.
inline constexpr uint32_t kMaxOpenCursors = 64;

/// Records that a transaction will use, of one storage. Made by `Array::wanted` and
/// `Mastertree::wanted`. It refers to the storage, the indexes and the keys.
using Wanted = abi::Wanted;

/// The transaction that runs the procedure. A small value that is cheap to copy. A copy that
/// outlives the attempt is refused by all calls.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const abi::NodeFunctions& node, uint64_t attempt) : node_(&node), attempt_(attempt) {}

  /// Returns whether this thread still runs this attempt of the transaction.
  bool is_current() const { return node_ != nullptr && node_->is_current(attempt_); }

  /// Prefetches records of several storages. If the worker has missed snapshot pages lately, it
  /// also reads their missing pages, up to 16 at the same time, and waits for them. It reads no
  /// page of a tree if the transaction reads a snapshot. A hint: it registers nothing. It ignores
  /// records that do not exist, and storages that were dropped. Returns storage_not_found for a
  /// storage that was never found, or out_of_range for bytes past the payload, before it prefetches
  /// anything.
  ///
  ///   txn.prefetch({customers.wanted(&customer, 1), stock.wanted(items, count, 0, 16)});
  Status prefetch(std::initializer_list<Wanted> wanted) const {
    return call(&abi::NodeFunctions::prefetch_wanted, wanted.begin(), wanted.size(),
                sizeof(Wanted));
  }

 private:
  friend class Array;
  friend class Mastertree;
  friend class Sequential;
  friend class Context;
  friend class Input;
  friend class Cursor;

  /// Calls a function of the node. A default-constructed transaction never began.
  template <typename Function, typename... Arguments>
  Status call(Function abi::NodeFunctions::* function, Arguments... arguments) const {
    if (node_ == nullptr) return Status::invalid_argument;
    return (node_->*function)(attempt_, arguments...);
  }

  const abi::NodeFunctions* node_ = nullptr;
  uint64_t attempt_ = 0;
};

/// Returns the number type of an arithmetic type. Increments need one of these five types.
template <typename T>
constexpr NumberType number_type() {
  static_assert(std::is_arithmetic_v<T>);
  if (std::is_same_v<T, double>) return NumberType::f64;
  if (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4) return NumberType::i32;
  if (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8) return NumberType::i64;
  if (std::is_integral_v<T> && sizeof(T) == 4) return NumberType::u32;
  return std::is_integral_v<T> && sizeof(T) == 8 ? NumberType::u64 : NumberType::none;
}

/// Returns a key that orders as an unsigned integer: the big-endian bytes of `value`.
inline std::array<std::byte, 8> ordered_key(uint64_t value) {
  std::array<std::byte, 8> key{};
  const uint64_t swapped = __builtin_bswap64(value);
  __builtin_memcpy(key.data(), &swapped, 8);
  return key;
}

/// Place of a record that a call has found. A read or write with it needs no second look-up. Valid
/// until the end of the attempt.
class Place {
 public:
  Place() = default;

 private:
  friend class Array;
  friend class Mastertree;
  friend class Cursor;
  abi::Place place_;
};
static_assert(sizeof(Place) == sizeof(abi::Place));  // calls pass arrays of places

/// Receives the payload of a record of a Master-tree.
class Payload {
 public:
  Bytes bytes() const { return {bytes_.data(), size_}; }
  std::string_view text() const { return bytes().text(); }
  uint32_t size() const { return size_; }

 private:
  friend class Mastertree;
  std::array<std::byte, kMaxPayloadBytes> bytes_;
  uint32_t size_ = 0;
};

/// An array storage. Every record always exists, and is zero until it is written.
class Array {
 public:
  static constexpr abi::StorageType kType = abi::StorageType::array;

  uint64_t record_count() const { return handle_.record_count; }
  uint32_t payload_bytes() const { return handle_.payload_bytes; }

  /// Reads bytes [offset, offset+count) of record `index`. Returns out_of_range for an index past
  /// the last record, or for bytes past its payload.
  Status get(Transaction txn, uint64_t index, void* out, uint32_t offset, uint32_t count) const {
    return txn.call(&abi::NodeFunctions::array_get, &handle_, index, offset, count, out);
  }
  template <typename T>
  Status get(Transaction txn, uint64_t index, T& out, uint32_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return get(txn, index, &out, offset, uint32_t{sizeof(T)});
  }
  /// Does the same at a place of this array. Returns out_of_range also for the place of an index
  /// past the last record.
  Status get(Transaction txn, const Place& place, void* out, uint32_t offset,
             uint32_t count) const {
    return txn.call(&abi::NodeFunctions::array_get_at, &handle_, &place.place_, offset, count, out);
  }
  template <typename T>
  Status get(Transaction txn, const Place& place, T& out, uint32_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return get(txn, place, &out, offset, uint32_t{sizeof(T)});
  }
  /// Reads a record that the transaction will write, and sets `place`.
  template <typename T>
  Status get_for_update(Transaction txn, uint64_t index, T& out, Place& place,
                        uint32_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return txn.call(&abi::NodeFunctions::array_get_for_update, &handle_, index, offset,
                    uint32_t{sizeof(T)}, static_cast<void*>(&out), &place.place_);
  }
  /// Looks records up without reading them: sets places[i] to the place of record indexes[i]. Their
  /// cache misses overlap, and so do most reads of their missing snapshot pages. Prefetches bytes
  /// [offset, offset + bytes) of each record. An index may occur twice, and may be past the last
  /// record. Returns out_of_range for bytes past the payload. After any other result than ok, the
  /// places must not be used.
  Status find_many(Transaction txn, const uint64_t* indexes, size_t count, Place* places,
                   uint32_t offset, uint32_t bytes) const {
    return find(txn, indexes, count, places, offset, bytes, false);
  }
  Status find_many(Transaction txn, const uint64_t* indexes, size_t count, Place* places) const {
    return find(txn, indexes, count, places, 0, payload_bytes(), false);
  }
  /// Does the same for records that the transaction will write. `update` at a place of `find_many`
  /// returns invalid_argument if the record was in no page of memory.
  Status find_many_for_update(Transaction txn, const uint64_t* indexes, size_t count, Place* places,
                              uint32_t offset, uint32_t bytes) const {
    return find(txn, indexes, count, places, offset, bytes, true);
  }
  Status find_many_for_update(Transaction txn, const uint64_t* indexes, size_t count,
                              Place* places) const {
    return find(txn, indexes, count, places, 0, payload_bytes(), true);
  }
  /// Reads whole records to `out + i * payload_bytes()`, with overlapping cache misses. Stops with
  /// out_of_range at an index past the last record; the records before it are copied. Returns
  /// invalid_argument if `out_bytes` is too small.
  Status get_many(Transaction txn, const uint64_t* indexes, size_t count, void* out,
                  size_t out_bytes) const {
    return txn.call(&abi::NodeFunctions::array_get_many, &handle_, indexes, count, out, out_bytes);
  }
  /// Prefetches the cache lines that `get` of these records will touch. If the worker has missed
  /// snapshot pages lately, it also reads their missing pages, up to 16 at the same time, and waits
  /// for them. A hint.
  Status prefetch(Transaction txn, const uint64_t* indexes, size_t count) const {
    return txn.call(&abi::NodeFunctions::array_prefetch, &handle_, indexes, count);
  }
  /// Names these records, or bytes [offset, offset + bytes) of each, for a prefetch of several
  /// storages.
  Wanted wanted(const uint64_t* indexes, size_t count, uint32_t offset, uint32_t bytes) const {
    Wanted made;
    made.storage = &handle_;
    made.count = count;
    made.indexes = indexes;
    made.offset = offset;
    made.bytes = bytes;
    return made;
  }
  Wanted wanted(const uint64_t* indexes, size_t count) const {
    return wanted(indexes, count, 0, payload_bytes());
  }

  /// Overwrites bytes of a record from `offset` on, without reading it.
  Status update(Transaction txn, uint64_t index, Bytes bytes, uint32_t offset = 0) const {
    return txn.call(&abi::NodeFunctions::array_update, &handle_, index, offset, bytes);
  }
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Status update(Transaction txn, uint64_t index, const T& value, uint32_t offset = 0) const {
    return update(txn, index, Bytes(&value, sizeof(T)), offset);
  }
  Status update(Transaction txn, const Place& place, Bytes bytes, uint32_t offset = 0) const {
    return txn.call(&abi::NodeFunctions::array_update_at, &handle_, &place.place_, offset, bytes);
  }
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Status update(Transaction txn, const Place& place, const T& value, uint32_t offset = 0) const {
    return update(txn, place, Bytes(&value, sizeof(T)), offset);
  }
  /// Adds `delta` to the number at `offset`. In a serializable transaction the commit adds it, and
  /// this call does not read the record. So increments do not conflict with each other.
  template <typename T>
  Status increment(Transaction txn, uint64_t index, T delta, uint32_t offset = 0) const {
    static_assert(number_type<T>() != NumberType::none);
    return txn.call(&abi::NodeFunctions::array_increment, &handle_, index, offset, number_type<T>(),
                    static_cast<const void*>(&delta));
  }

 private:
  friend class Context;
  friend class Library;
  friend class Prefetch;
  friend class Cursor;

  Status find(Transaction txn, const uint64_t* indexes, size_t count, Place* places,
              uint32_t offset, uint32_t bytes, bool for_update) const {
    return txn.call(&abi::NodeFunctions::array_find_many, &handle_, indexes, count, offset, bytes,
                    for_update, places == nullptr ? nullptr : &places->place_);
  }

  abi::StorageHandle handle_;
};

/// A Master-tree: an ordered map from byte strings to byte strings. Longer keys than kMaxKeyBytes
/// give key_too_long, longer payloads than kMaxPayloadBytes give payload_too_long.
class Mastertree {
 public:
  static constexpr abi::StorageType kType = abi::StorageType::mastertree;

  /// Returns not_found if there is no record of this key.
  Status get(Transaction txn, Bytes key, Payload& payload) const {
    return get(txn, key, payload.bytes_.data(), kMaxPayloadBytes, payload.size_);
  }
  /// Copies at most `capacity` bytes, and sets `payload_bytes` to the whole length.
  Status get(Transaction txn, Bytes key, void* out, uint32_t capacity,
             uint32_t& payload_bytes) const {
    return txn.call(&abi::NodeFunctions::tree_get, &handle_, key, out, capacity, &payload_bytes);
  }
  /// Reads sizeof(T) bytes from `offset` on. Returns out_of_range if the payload is shorter.
  template <typename T>
  Status get(Transaction txn, Bytes key, T& out, uint32_t offset = 0) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return txn.call(&abi::NodeFunctions::tree_get_range, &handle_, key, offset, uint32_t{sizeof(T)},
                    static_cast<void*>(&out));
  }
  /// Does the same as `get`, and sets `place` to the record's place, for `update_range` and
  /// `remove`.
  Status get_for_update(Transaction txn, Bytes key, Payload& payload, Place& place) const {
    return txn.call(&abi::NodeFunctions::tree_get_for_update, &handle_, key,
                    static_cast<void*>(payload.bytes_.data()), kMaxPayloadBytes, &payload.size_,
                    &place.place_);
  }
  /// Writes one outcome per key to `results`, and payload i to `out + i * stride`, at most `stride`
  /// bytes. Returns ok, or the first abort status, which is then the outcome of all later keys,
  /// too.
  Status get_many(Transaction txn, const Bytes* keys, size_t count, void* out, uint32_t stride,
                  Status* results) const {
    return txn.call(&abi::NodeFunctions::tree_get_many, &handle_, keys, count, out, stride,
                    results);
  }
  /// Does the same as `get_for_update` for several keys, with overlapping cache misses. Writes one
  /// outcome per key to `results`, payload i to `out + i * stride`, at most `stride` bytes, and its
  /// whole length to payload_bytes[i], if that is not null. If results[i] is ok, sets places[i]. A
  /// key may occur twice. Returns ok, or the first abort status, which is then the outcome of all
  /// later keys, too.
  Status get_many_for_update(Transaction txn, const Bytes* keys, size_t count, void* out,
                             uint32_t stride, Status* results, Place* places,
                             uint32_t* payload_bytes = nullptr) const {
    return txn.call(&abi::NodeFunctions::tree_get_many_for_update, &handle_, keys, count, out,
                    stride, payload_bytes, results, places == nullptr ? nullptr : &places->place_);
  }
  /// Prefetches what `get` of these keys, or scans of `records` records from these keys, will
  /// touch. Some 16 keys at a time are best. A hint.
  Status prefetch(Transaction txn, const Bytes* keys, size_t count, uint32_t records = 1) const {
    return txn.call(&abi::NodeFunctions::tree_prefetch, &handle_, keys, count, records);
  }
  /// Names the records of these keys, or `records` records from each key on, for a prefetch of
  /// several storages. 0: only the start of their page, for keys to insert.
  Wanted wanted(const Bytes* keys, size_t count, uint32_t records = 1) const {
    Wanted made;
    made.storage = &handle_;
    made.count = count;
    made.keys = keys;
    made.records = records;
    return made;
  }

  /// Returns already_exists if there is a record of this key.
  Status insert(Transaction txn, Bytes key, Bytes payload) const {
    return txn.call(&abi::NodeFunctions::tree_insert, &handle_, key, payload);
  }
  /// Inserts several records, one after the other. Keys that ascend and follow all others of their
  /// page share one page lock. Returns the first status other than ok, for instance already_exists
  /// for a key that exists or occurs twice. Some of the records are inserted then: roll back.
  Status insert_many(Transaction txn, const Bytes* keys, const Bytes* payloads,
                     size_t count) const {
    return txn.call(&abi::NodeFunctions::tree_insert_many, &handle_, keys, payloads, count);
  }
  /// Inserts or replaces the record.
  Status upsert(Transaction txn, Bytes key, Bytes payload) const {
    return txn.call(&abi::NodeFunctions::tree_upsert, &handle_, key, payload);
  }
  /// Replaces the whole payload. Returns not_found if there is no record of this key.
  Status update(Transaction txn, Bytes key, Bytes payload) const {
    return txn.call(&abi::NodeFunctions::tree_update, &handle_, key, payload);
  }
  /// Overwrites bytes from `offset` on. Returns not_found, or out_of_range if the bytes would end
  /// after the payload.
  Status update_range(Transaction txn, Bytes key, uint32_t offset, Bytes bytes) const {
    return txn.call(&abi::NodeFunctions::tree_update_range, &handle_, key, offset, bytes);
  }
  /// Does the same at a place. Returns invalid_argument if it is not the place of this key.
  Status update_range(Transaction txn, const Place& place, Bytes key, uint32_t offset,
                      Bytes bytes) const {
    return txn.call(&abi::NodeFunctions::tree_update_at, &handle_, &place.place_, key, offset,
                    bytes);
  }
  /// Adds `delta` to the number at `offset`, at the commit. Returns not_found or out_of_range.
  template <typename T>
  Status increment(Transaction txn, Bytes key, T delta, uint32_t offset = 0) const {
    static_assert(number_type<T>() != NumberType::none);
    return txn.call(&abi::NodeFunctions::tree_increment, &handle_, key, offset, number_type<T>(),
                    static_cast<const void*>(&delta));
  }
  /// Adds `delta` to the number at `offset`, at the commit. If there is no record, or if it is too
  /// short, the missing bytes count as zeros, and the record gets them. Unlike `increment`, this
  /// call need not read a record that is in a snapshot only. Returns payload_too_long if the number
  /// would end after kMaxPayloadBytes.
  template <typename T>
  Status add(Transaction txn, Bytes key, T delta, uint32_t offset = 0) const {
    static_assert(number_type<T>() != NumberType::none);
    return txn.call(&abi::NodeFunctions::tree_add, &handle_, key, offset, number_type<T>(),
                    static_cast<const void*>(&delta));
  }
  /// Returns not_found if there is no record of this key.
  Status remove(Transaction txn, Bytes key) const {
    return txn.call(&abi::NodeFunctions::tree_remove, &handle_, key);
  }
  Status remove(Transaction txn, const Place& place, Bytes key) const {
    return txn.call(&abi::NodeFunctions::tree_remove_at, &handle_, &place.place_, key);
  }

 private:
  friend class Context;
  friend class Library;
  friend class Prefetch;
  friend class Cursor;
  abi::StorageHandle handle_;
};

/// A hash storage: a map from byte strings to byte strings, without an order of keys. It has the
/// operations of a Master-tree, and faster look-ups of single keys. Longer keys than
/// kMaxHashKeyBytes give key_too_long. A Cursor visits all records, each once, in no order that has
/// a meaning. Its `next` returns operation_not_supported if it has a bound, or goes backward.
class Hash : public Mastertree {
 public:
  static constexpr abi::StorageType kType = abi::StorageType::hash;
};

/// A sequential storage: append-only.
class Sequential {
 public:
  static constexpr abi::StorageType kType = abi::StorageType::sequential;

  /// Returns payload_too_long for more than kMaxPayloadBytes bytes.
  Status append(Transaction txn, Bytes payload) const {
    return txn.call(&abi::NodeFunctions::sequential_append, &handle_, payload);
  }

 private:
  friend class Context;
  friend class Library;
  friend class Cursor;
  abi::StorageHandle handle_;
};

enum class Direction : uint8_t { forward, backward };

/// Buffers for `Cursor::next_many`: at most kRows rows, with the first kPayloadBytes bytes of each
/// payload. kWithKeys: whether the rows have keys. Data is valid until the next call of next_many.
template <uint32_t kRows, uint32_t kPayloadBytes, bool kWithKeys = true>
class Rows {
 public:
  Rows() {
    rows_.rows = infos_.data();
    rows_.capacity = kRows;
    rows_.values = values_.data();
    rows_.value_stride = kPayloadBytes;
    rows_.keys = kWithKeys ? keys_.data() : nullptr;
    rows_.key_capacity = keys_.size();
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  uint32_t size() const { return rows_.count; }
  /// Key of row i of a Master-tree or a hash storage; empty without keys.
  Bytes key(uint32_t i) const { return {keys_.data() + infos_[i].key_at, infos_[i].key_bytes}; }
  /// The copied part of the payload of row i.
  Bytes payload(uint32_t i) const {
    const uint32_t bytes = infos_[i].value_bytes;
    return {values_.data() + size_t{i} * kPayloadBytes,
            bytes < kPayloadBytes ? bytes : kPayloadBytes};
  }
  /// Whole length of the payload of row i.
  uint32_t payload_bytes(uint32_t i) const { return infos_[i].value_bytes; }
  /// Index of row i of an array; commit epoch of row i of a sequential storage.
  uint64_t number(uint32_t i) const { return infos_[i].number; }

 private:
  static_assert(kRows != 0 && kPayloadBytes != 0);
  friend class Cursor;

  // Rows with keys of up to 32 bytes fill the batch. Longer keys may end it earlier.
  std::array<std::byte, kWithKeys ? kMaxKeyBytes + kRows * 32 : 1> keys_;
  std::array<std::byte, size_t{kRows} * kPayloadBytes> values_;
  std::array<abi::ScannedRow, kRows> infos_;
  abi::ScanRows rows_;
};

/// Scans a range in order. The first `next` opens it; its destructor closes it. Row data is in the
/// cursor itself, valid until the next call of `next`.
class Cursor {
 public:
  /// Records [first, last] of an array.
  Cursor(const Array& array, Transaction txn, uint64_t first, uint64_t last,
         Direction direction = Direction::forward)
      : Cursor(array.handle_, txn, direction) {
    range_.first = first;
    range_.last = last;
  }
  /// All records of a Master-tree. `from` and `until` limit the range.
  Cursor(const Mastertree& tree, Transaction txn, Direction direction = Direction::forward)
      : Cursor(tree.handle_, txn, direction) {}
  /// Records with commit epochs in [first_epoch, last_epoch], in the order of epochs. Own appends
  /// come last.
  Cursor(const Sequential& sequential, Transaction txn, uint64_t first_epoch = 0,
         uint64_t last_epoch = ~uint64_t{0})
      : Cursor(sequential.handle_, txn, Direction::forward) {
    range_.first = first_epoch;
    range_.last = last_epoch;
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  ~Cursor() { close(); }

  /// Sets the lowest key, inclusive. Copies it. REQUIRES: `next` was not called yet.
  Cursor& from(Bytes key) {
    range_.low = copy_bound(key, key_.data());
    range_.has_low = true;
    return *this;
  }
  /// Sets the end of the keys, exclusive. Copies it. REQUIRES: `next` was not called yet.
  Cursor& until(Bytes key) {
    range_.high = copy_bound(key, value_.data());
    range_.has_high = true;
    return *this;
  }
  /// Leaves the payloads out. REQUIRES: `next` was not called yet.
  Cursor& keys_only() {
    range_.keys_only = true;
    return *this;
  }

  /// Moves to the next record. Returns end_of_scan after the last one. The first call returns
  /// key_too_long for a bound of more than kMaxKeyBytes bytes, and transaction_too_large if more
  /// than kMaxOpenCursors cursors would be open.
  Status next() {
    const Status opened = open();
    return opened == Status::ok ? txn_.call(&abi::NodeFunctions::scan_next, cursor_, &row_)
                                : opened;
  }
  /// Moves over the next records and copies them to `rows`, at least one. The batch need not be
  /// full. Faster than `next` for scans of more than a few records. Afterwards there is no current
  /// record, and `next` or `next_many` continues after the batch. Returns end_of_scan after the
  /// last record, and invalid_argument if the rows of an array do not fit kPayloadBytes. Other
  /// errors: as for `next`. A write to a record of the batch does not change the batch.
  template <uint32_t kRows, uint32_t kPayloadBytes, bool kWithKeys>
  Status next_many(Rows<kRows, kPayloadBytes, kWithKeys>& rows) {
    rows.rows_.count = 0;
    row_.key_bytes = row_.value_bytes = 0;
    const Status opened = open();
    return opened == Status::ok
               ? txn_.call(&abi::NodeFunctions::scan_next_many, cursor_, &rows.rows_)
               : opened;
  }
  /// Sets `place` to that of the current record of a Master-tree or a hash storage, for
  /// `update_range` and `remove`. Returns invalid_argument if there is no current record, and
  /// operation_not_supported for other storages.
  Status get_place(Place& place) const {
    return txn_.call(&abi::NodeFunctions::scan_place, cursor_, &place.place_);
  }
  /// Key of the current record of a Master-tree.
  Bytes key() const { return {key_.data(), row_.key_bytes}; }
  /// Payload of the current record; empty with `keys_only`.
  Bytes payload() const { return {value_.data(), row_.value_bytes}; }
  /// Index of the current record of an array.
  uint64_t index() const { return row_.number; }
  /// Commit epoch of the current record of a sequential storage; 0 for an own append.
  uint64_t epoch() const { return row_.number; }

  void close() {
    if (cursor_ != 0) txn_.node_->scan_close(txn_.attempt_, cursor_);
    cursor_ = 0;
  }

 private:
  Cursor(const abi::StorageHandle& handle, Transaction txn, Direction direction)
      : handle_(handle), txn_(txn) {
    range_.forward = direction == Direction::forward;
    row_.key = key_.data();
    row_.value = value_.data();
    row_.value_capacity = kMaxPayloadBytes;
  }

  Status open() {
    if (cursor_ != 0) return Status::ok;
    const Status opened = txn_.call(&abi::NodeFunctions::scan_open, &handle_, &range_, &cursor_);
    if (opened == Status::ok) range_.low = range_.high = Bytes();
    return opened;
  }

  /// Until the cursor is open, the buffers of rows hold the bounds. The node refuses a bound that
  /// is too long by its size, and does not read it.
  static Bytes copy_bound(Bytes key, std::byte* room) {
    static_assert(kMaxKeyBytes <= kMaxPayloadBytes);
    const size_t bytes = key.size() < kMaxKeyBytes ? key.size() : kMaxKeyBytes;
    for (size_t i = 0; i < bytes; ++i) room[i] = key.data()[i];
    return {room, key.size()};
  }

  abi::StorageHandle handle_;
  Transaction txn_;
  uint64_t cursor_ = 0;  // 0: not open
  abi::ScanRange range_;
  abi::ScanRow row_;
  std::array<std::byte, kMaxKeyBytes> key_;
  std::array<std::byte, kMaxPayloadBytes> value_;
};

}  // namespace atoll_api
