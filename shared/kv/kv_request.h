// Builds and parses `kv.*` requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/kv/kv_format.h"

namespace atolldb {

using KvBytes = std::span<const std::byte>;

inline KvBytes kv_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct KvScan {
  KvBytes low{};
  bool has_low = false;
  KvBytes high{};
  bool has_high = false;
  uint32_t limit = 0;  // maximum number of rows; 0: kMaxKvScanRows
  bool reverse = false;
  bool keys_only = false;
  bool unordered = false;  // kKvUnordered
};

/// Builder of a list of operations. The node checks the limits. If an argument is too long for its
/// field, `bytes` returns an empty span, which every node rejects.
class KvRequest {
 public:
  /// `incarnation`: the request fails in any other incarnation; 0: any.
  explicit KvRequest(uint64_t incarnation = 0);

  /// The key of record `index` of an array is ordered_index_key(index), in all operations.
  KvRequest& get(std::string_view storage, KvBytes key, bool require = false);
  KvRequest& put(std::string_view storage, KvBytes key, KvBytes value, uint32_t offset = 0);
  KvRequest& insert(std::string_view storage, KvBytes key, KvBytes value, bool require = true);
  KvRequest& erase(std::string_view storage, KvBytes key, bool require = true);
  /// `delta`: has as many bytes as the number type. `is_blind`: bytes that a tree's record lacks
  /// count as zeros, and the record gets them; otherwise such an addition fails.
  KvRequest& add(std::string_view storage, KvBytes key, KvNumber number, KvBytes delta,
                 uint32_t offset = 0, bool returns_value = false, bool is_blind = false);
  KvRequest& add_i64(std::string_view storage, KvBytes key, int64_t delta, uint32_t offset = 0,
                     bool returns_value = false);
  KvRequest& append(std::string_view storage, KvBytes value);
  KvRequest& compare(std::string_view storage, KvBytes key, KvBytes expected);
  KvRequest& compare_absent(std::string_view storage, KvBytes key);
  KvRequest& scan(std::string_view storage, const KvScan& range);
  KvRequest& compare_version(std::string_view storage, KvBytes key, uint64_t version);
  KvRequest& compare_scan(std::string_view storage, const KvScan& range, uint64_t digest);

  /// Removes all operations, and keeps the memory.
  void clear();
  /// Valid until the next change.
  KvBytes bytes() const { return is_broken_ ? KvBytes() : KvBytes(bytes_); }
  uint32_t count() const { return count_; }

 private:
  KvRequest& operation(KvOperation head, std::string_view storage, KvBytes key, KvBytes high,
                       KvBytes value);
  std::vector<std::byte> bytes_;
  uint32_t count_ = 0;
  bool is_broken_ = false;
};

/// Returns the key of record `index` of an array: 8 bytes, big-endian.
std::array<std::byte, 8> ordered_index_key(uint64_t index);
/// Returns the first key after all keys with this prefix, or an empty key if there is none.
std::vector<std::byte> key_after_prefix(KvBytes prefix);
/// Returns the first key after `key`, or an empty key if there is none. A key of kMaxKvKeyBytes is
/// followed by none that begins with it, because a longer key is not allowed.
std::vector<std::byte> key_after(KvBytes key);

/// One parsed operation: views into the request.
struct KvOperationView {
  KvOperation head{};
  std::string_view storage;
  KvBytes key;
  KvBytes high;
  KvBytes value;
};

/// Reads the code of the first operation of `operations`, and removes the operation from it. Checks
/// only the lengths. Returns false if they are wrong.
bool take_kv_code(KvBytes& operations, KvCode& code);

/// Parses a request, and sets `incarnation` to that of its header. Checks all properties that need
/// no database: lengths, codes, flags, limits. The error names the operation and its fault.
std::expected<std::vector<KvOperationView>, std::string> read_kv_request(KvBytes bytes,
                                                                         uint64_t& incarnation);

}  // namespace atolldb
