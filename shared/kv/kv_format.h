// Binary format of `kv.*` requests and replies; the README of this folder draws it. All numbers are
// little-endian and unaligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace atolldb {

inline constexpr uint32_t kKvVersion = 1;
inline constexpr uint32_t kMaxKvOperations = 256;
inline constexpr uint32_t kMaxKvStorageName = 63;
inline constexpr uint32_t kMaxKvKeyBytes = 1024;
inline constexpr uint32_t kMaxKvValueBytes = 2048;
/// Limits of a whole request and of its reply: each fits into one part (kSessionPartBytes).
inline constexpr uint32_t kMaxKvRequestBytes = 64u << 10;
inline constexpr uint32_t kMaxKvReplyBytes = 64u << 10;
inline constexpr uint32_t kMaxKvScanRows = 10'000;
/// Maximum number of bytes of all scans of a request together. The row that reaches the limit is
/// the last row. kKvMore is set if more rows follow.
inline constexpr uint32_t kMaxKvScanBytes = 32u << 10;

enum class KvCode : uint8_t {
  get = 1,
  put,      // insert or overwrite; on an array: overwrite at `offset`
  insert,   // may return already_exists
  erase,    // may return not_found
  add,      // adds to a number at `offset`
  append,   // appends a record to a sequential storage
  compare,  // fails unless the key has this value; with kKvAbsent: unless the key is absent
  scan,
  compare_version,  // fails unless the key has this version; 0: unless the key is absent
  compare_scan,     // fails unless the scan has the digest of an earlier scan
  count_,
};
std::string_view to_string(KvCode code);

enum KvFlag : uint8_t {
  /// If the operation returns not_found or already_exists, the transaction ends. Without this flag
  /// the other operations continue, and the reply has that status for this operation.
  kKvRequire = 1,
  kKvReturnsValue = 2,  // add: the reply has the new number
  kKvReverse = 4,       // scan: from high to low
  kKvKeysOnly = 8,      // scan: rows without values
  kKvAbsent = 16,       // compare: the key must not exist
  // add: bytes that a tree's record lacks count as zeros, so the record need not be read. The bit
  // is that of kKvAbsent, which has no meaning for `add`.
  kKvBlind = 16,
  kKvHasLow = 32,   // scan: starts at `key`, inclusive
  kKvHasHigh = 64,  // scan: ends at `high`, exclusive
  kKvMore = 128,    // in a result: the scan ended early at a limit
  // scan: the client accepts rows of a hash storage, in any order. A low bound is then key_after of
  // the last row of the reply before, and there is no other bound. Storages with an order ignore
  // the flag. The bit is that of kKvMore, which only results have.
  kKvUnordered = 128,
};

/// Type of the number that `add` changes. Values equal those of the engine's IncrementType.
enum class KvNumber : uint8_t { none = 0, i32, i64, u32, u64, f64 };
/// Returns the size of a number; 0 for `none` and unknown types.
uint32_t kv_number_bytes(KvNumber number);

struct KvRequestHeader {
  uint32_t version;
  uint32_t count;        // operations that follow
  uint64_t incarnation;  // the request fails in any other incarnation; 0: any
};
static_assert(sizeof(KvRequestHeader) == 16);

/// Head of an operation. Its storage name, key, high key and value follow.
struct KvOperation {
  KvCode code = KvCode::get;
  uint8_t flags = 0;
  uint8_t storage_bytes = 0;
  KvNumber number = KvNumber::none;
  uint16_t key_bytes = 0;
  uint16_t high_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t offset = 0;   // in the record. Scan: maximum number of rows; 0: kMaxKvScanRows
  uint64_t version = 0;  // only for compare_version
  uint64_t digest = 0;   // only for compare_scan
};
static_assert(sizeof(KvOperation) == 32);

struct KvReplyHeader {
  uint32_t version;
  uint32_t count;
};
static_assert(sizeof(KvReplyHeader) == 8);

/// Result of one operation. `bytes` bytes follow: the value, or the rows of a scan.
struct KvResult {
  uint8_t status;  // a Status
  uint8_t flags;   // kKvMore, or 0
  uint16_t rows;
  uint32_t bytes;
  uint64_t version;  // get: the record's VID without flags. scan: digest of keys and versions
};
static_assert(sizeof(KvResult) == 16);

/// Head of a row in the result of a scan. Its key and value follow.
struct KvRow {
  uint16_t key_bytes;
  uint16_t spare;
  uint32_t value_bytes;
  uint64_t version;
};
static_assert(sizeof(KvRow) == 16);

/// Digest of the rows of a scan: FNV-1a over their keys and versions, in order. An adversary can
/// construct collisions.
class KvScanDigest {
 public:
  void add(std::span<const std::byte> key, uint64_t version) {
    add_word(key.size());
    for (const std::byte one : key) add_byte(static_cast<uint64_t>(one));
    add_word(version);
  }
  uint64_t value() const { return hash_; }

 private:
  void add_byte(uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  void add_word(uint64_t word) {
    for (int i = 0; i < 8; ++i) add_byte((word >> (8 * i)) & 255);
  }
  uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace atolldb
