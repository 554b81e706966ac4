// The binary interface between a node and a procedure library: a table of the node's functions, and
// the list that a library exports. Applications include <atoll/procedure.h> instead.
//
// A change that breaks built libraries increments kAbiMajor. A member added at the end of
// NodeFunctions, Procedure or Wanted increments kAbiMinor. A node loads a library of its own major
// version, and of its own minor version or an older one. Needs C++17.
#pragma once

#include <atoll/status.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace atoll_api {

class Context;
class Library;
class Prefetch;

/// A view of bytes that a call reads. Made from any contiguous container of one-byte elements, so
/// `get(txn, "alice", ...)` and `get(txn, ordered_key(7), ...)` work. A call copies what it keeps.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr Bytes(const void* data, size_t size)
      : data_(static_cast<const std::byte*>(data)), size_(size) {}
  Bytes(std::string_view text) : Bytes(text.data(), text.size()) {}
  Bytes(const char* text) : Bytes(std::string_view(text)) {}
  template <typename Container,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Container>, Bytes> &&
                                        sizeof(*std::declval<const Container&>().data()) == 1>>
  constexpr Bytes(const Container& container)
      : Bytes(static_cast<const void*>(container.data()), container.size()) {}

  constexpr const std::byte* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const std::byte* begin() const { return data_; }
  constexpr const std::byte* end() const { return data_ + size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};
static_assert(std::is_trivially_copyable_v<Bytes> && sizeof(Bytes) == 16);

enum class Isolation : uint8_t {
  /// The result is that of some serial order of all transactions.
  serializable,
  /// Reads the latest snapshot and its own writes. Aborts with snapshot_conflict if a record that
  /// it writes has changed since the snapshot.
  snapshot,
  /// Reads the latest snapshot, writes nothing, and never aborts because of other transactions.
  snapshot_read_only,
  count_,
};

/// Type of the number that an increment changes.
enum class NumberType : uint8_t { none = 0, i32, i64, u32, u64, f64 };

namespace abi {

inline constexpr uint32_t kMagic = 0x4c4f5441;  // "ATOL"
inline constexpr uint32_t kAbiMajor = 1;
inline constexpr uint32_t kAbiMinor = 2;

enum class StorageType : uint32_t { none = 0, array, mastertree, sequential, hash };

/// Names a storage. The node fills it, and checks it at each call. It holds no address that a
/// library uses, and is valid in all transactions of this process.
struct StorageHandle {
  StorageType type = StorageType::none;
  uint32_t payload_bytes = 0;  // array: size of a record
  uint64_t record_count = 0;   // array: number of records
  alignas(8) std::byte node[64] = {};
};

/// Place of a record, valid in one attempt of a transaction. The node checks it at each call.
struct Place {
  uint64_t attempt = 0;
  uint64_t record = 0;  // array: index of the record; Master-tree: hash of its key
  alignas(8) std::byte node[32] = {};
};

/// Range of a scan. Arrays: records first .. last. Sequential storages: commit epochs first ..
/// last. Master-trees: keys from `low`, inclusive, to `high`, exclusive. Hash storages: all keys,
/// forward.
struct ScanRange {
  uint64_t first = 0;
  uint64_t last = ~uint64_t{0};
  Bytes low;
  Bytes high;
  bool has_low = false;
  bool has_high = false;
  bool forward = true;
  bool keys_only = false;
};

/// Receives one row of a scan. The library owns the buffers.
struct ScanRow {
  std::byte* key = nullptr;  // room for kMaxKeyBytes bytes
  std::byte* value = nullptr;
  uint32_t value_capacity = 0;
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;  // whole length of the payload
  uint64_t number = 0;       // array: index; sequential: commit epoch
};

/// Lengths of one row of ScanRows.
struct ScannedRow {
  uint64_t number = 0;       // array: index; sequential: commit epoch
  uint32_t key_at = 0;       // offset of the key in ScanRows::keys
  uint32_t key_bytes = 0;    // 0 if no keys are wanted
  uint32_t value_bytes = 0;  // whole length of the payload
  uint32_t spare = 0;
};

/// Receives several rows of a scan. The library owns the buffers.
struct ScanRows {
  ScannedRow* rows = nullptr;
  uint32_t capacity = 0;        // rows; at least 1
  uint32_t count = 0;           // result: number of rows
  std::byte* values = nullptr;  // first bytes of value i: at i * value_stride
  uint32_t value_stride = 0;    // bytes of each value to copy
  uint32_t spare = 0;
  std::byte* keys = nullptr;  // one key after the other; null: no keys are wanted
  size_t key_capacity = 0;    // at least kMaxKeyBytes, unless no keys are wanted
};

/// Records of one storage that a transaction will use. Since minor version 2. Later versions may
/// add members at the end, because prefetch_wanted gets the size. They must have a default.
struct Wanted {
  const StorageHandle* storage = nullptr;
  size_t count = 0;                   // number of indexes or keys
  const uint64_t* indexes = nullptr;  // of an array
  const Bytes* keys = nullptr;        // of a Master-tree or a hash storage
  uint32_t offset = 0;                // array: bytes [offset, offset + bytes) of each record
  uint32_t bytes = 0;
  uint32_t records = 1;  // tree: records from each key on; 0: the start of their page
  uint32_t spare = 0;
};

/// The functions of the node. `attempt`: number of an attempt of a transaction, unique in the
/// process. Each call compares it with the attempt that the calling thread runs. If they differ, it
/// returns invalid_argument and touches nothing.
struct NodeFunctions {
  uint32_t abi_major;
  uint32_t abi_minor;

  bool (*is_current)(uint64_t attempt);
  Status (*set_output)(uint64_t attempt, Bytes output);
  Status (*set_message)(uint64_t attempt, Bytes message);
  Status (*find_storage)(uint64_t attempt, Bytes name, StorageType type, StorageHandle* found);

  Status (*array_get)(uint64_t attempt, const StorageHandle* array, uint64_t index, uint32_t offset,
                      uint32_t count, void* out);
  Status (*array_get_for_update)(uint64_t attempt, const StorageHandle* array, uint64_t index,
                                 uint32_t offset, uint32_t count, void* out, Place* place);
  Status (*array_get_many)(uint64_t attempt, const StorageHandle* array, const uint64_t* indexes,
                           size_t count, void* out, size_t out_bytes);
  Status (*array_prefetch)(uint64_t attempt, const StorageHandle* array, const uint64_t* indexes,
                           size_t count);
  Status (*array_update)(uint64_t attempt, const StorageHandle* array, uint64_t index,
                         uint32_t offset, Bytes bytes);
  Status (*array_update_at)(uint64_t attempt, const StorageHandle* array, const Place* place,
                            uint32_t offset, Bytes bytes);
  Status (*array_increment)(uint64_t attempt, const StorageHandle* array, uint64_t index,
                            uint32_t offset, NumberType type, const void* delta);

  Status (*tree_get)(uint64_t attempt, const StorageHandle* tree, Bytes key, void* out,
                     uint32_t capacity, uint32_t* payload_bytes);
  Status (*tree_get_range)(uint64_t attempt, const StorageHandle* tree, Bytes key, uint32_t offset,
                           uint32_t count, void* out);
  Status (*tree_get_for_update)(uint64_t attempt, const StorageHandle* tree, Bytes key, void* out,
                                uint32_t capacity, uint32_t* payload_bytes, Place* place);
  Status (*tree_get_many)(uint64_t attempt, const StorageHandle* tree, const Bytes* keys,
                          size_t count, void* out, uint32_t stride, Status* results);
  Status (*tree_prefetch)(uint64_t attempt, const StorageHandle* tree, const Bytes* keys,
                          size_t count, uint32_t records);
  Status (*tree_insert)(uint64_t attempt, const StorageHandle* tree, Bytes key, Bytes payload);
  Status (*tree_upsert)(uint64_t attempt, const StorageHandle* tree, Bytes key, Bytes payload);
  Status (*tree_update)(uint64_t attempt, const StorageHandle* tree, Bytes key, Bytes payload);
  Status (*tree_update_range)(uint64_t attempt, const StorageHandle* tree, Bytes key,
                              uint32_t offset, Bytes bytes);
  Status (*tree_update_at)(uint64_t attempt, const StorageHandle* tree, const Place* place,
                           Bytes key, uint32_t offset, Bytes bytes);
  Status (*tree_increment)(uint64_t attempt, const StorageHandle* tree, Bytes key, uint32_t offset,
                           NumberType type, const void* delta);
  Status (*tree_remove)(uint64_t attempt, const StorageHandle* tree, Bytes key);
  Status (*tree_remove_at)(uint64_t attempt, const StorageHandle* tree, const Place* place,
                           Bytes key);

  Status (*sequential_append)(uint64_t attempt, const StorageHandle* sequential, Bytes payload);

  /// Opens a cursor. `range` is copied. The node closes it at the end of the attempt at the latest.
  Status (*scan_open)(uint64_t attempt, const StorageHandle* storage, const ScanRange* range,
                      uint64_t* cursor);
  /// Copies the next row. Returns end_of_scan after the last one.
  Status (*scan_next)(uint64_t attempt, uint64_t cursor, ScanRow* row);
  /// Does nothing if the cursor or the attempt has ended.
  void (*scan_close)(uint64_t attempt, uint64_t cursor);

  // Since minor version 1. `run`: number of a run of a prefetch function. If the calling thread
  // does not run it, the call does nothing.
  void (*prefetch_array)(uint64_t run, const StorageHandle* array, const uint64_t* indexes,
                         size_t count);
  void (*prefetch_tree)(uint64_t run, const StorageHandle* tree, const Bytes* keys, size_t count,
                        uint32_t records);

  // Since minor version 1.
  /// Copies the next rows, at least one. Returns end_of_scan after the last one, and
  /// invalid_argument if a buffer is too small.
  Status (*scan_next_many)(uint64_t attempt, uint64_t cursor, ScanRows* rows);

  // Since minor version 1.
  Status (*tree_add)(uint64_t attempt, const StorageHandle* tree, Bytes key, uint32_t offset,
                     NumberType type, const void* delta);

  // Since minor version 2.
  /// Sets places[i] to the place of record indexes[i], and prefetches bytes [offset, offset +
  /// bytes) of it. `for_update`: the transaction will write the records.
  Status (*array_find_many)(uint64_t attempt, const StorageHandle* array, const uint64_t* indexes,
                            size_t count, uint32_t offset, uint32_t bytes, bool for_update,
                            Place* places);
  Status (*array_get_at)(uint64_t attempt, const StorageHandle* array, const Place* place,
                         uint32_t offset, uint32_t count, void* out);
  /// `payload_bytes`: null if no lengths are wanted.
  Status (*tree_get_many_for_update)(uint64_t attempt, const StorageHandle* tree, const Bytes* keys,
                                     size_t count, void* out, uint32_t stride,
                                     uint32_t* payload_bytes, Status* results, Place* places);
  Status (*tree_insert_many)(uint64_t attempt, const StorageHandle* tree, const Bytes* keys,
                             const Bytes* payloads, size_t count);
  /// Sets `place` to that of the row that scan_next has returned.
  Status (*scan_place)(uint64_t attempt, uint64_t cursor, Place* place);
  /// `run`: number of an attempt, or of a run of a prefetch function. `wanted_bytes`:
  /// sizeof(Wanted) in the library. The node uses the default of a member that the library does not
  /// have. Returns invalid_argument for less than kLeastWantedBytes.
  Status (*prefetch_wanted)(uint64_t run, const Wanted* wanted, size_t count, size_t wanted_bytes);
};

/// Members of Wanted before this offset have no default.
inline constexpr size_t kLeastWantedBytes = offsetof(Wanted, offset);

// Built libraries use these offsets and sizes. A new minor version adds the offset of its first
// function here, and changes none of the others.
static_assert(offsetof(NodeFunctions, is_current) == 8);
static_assert(offsetof(NodeFunctions, prefetch_array) == 232);   // minor version 1
static_assert(offsetof(NodeFunctions, array_find_many) == 264);  // minor version 2
static_assert(sizeof(NodeFunctions) == 312);                     // end of minor version 2
static_assert(sizeof(StorageHandle) == 80 && sizeof(Place) == 48 && sizeof(ScanRange) == 56);
static_assert(sizeof(ScanRow) == 40 && sizeof(ScannedRow) == 24 && sizeof(ScanRows) == 48);
static_assert(sizeof(Wanted) == 48);  // minor version 2

}  // namespace abi

using ProcedureFunction = Status (*)(Context&);
using LoadFunction = Status (*)(Library&);
using PrefetchFunction = void (*)(Prefetch&);

/// A procedure of a library.
struct Procedure {
  const char* name = nullptr;  // 1 to kMaxProcedureName bytes
  ProcedureFunction function = nullptr;
  /// Isolation, unless the call names another one.
  Isolation isolation = Isolation::serializable;
  /// Since minor version 1. Called before the procedure, while another transaction runs: see
  /// Prefetch. Null: none.
  PrefetchFunction prefetch = nullptr;
};

namespace abi {

/// Size of Procedure in libraries of a minor version.
constexpr size_t procedure_bytes(uint32_t abi_minor) {
  return abi_minor == 0 ? offsetof(Procedure, prefetch) : sizeof(Procedure);
}
static_assert(procedure_bytes(0) == 24 && procedure_bytes(kAbiMinor) == 32);

/// What a library exports as `atoll_library`. The first three members never change.
struct LibraryDescription {
  uint32_t magic;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t procedure_count;
  const Procedure* procedures;
  LoadFunction on_load;  // null: none
};

}  // namespace abi

}  // namespace atoll_api
