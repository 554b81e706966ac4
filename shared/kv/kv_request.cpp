#include "shared/kv/kv_request.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr std::string_view kNames[] = {
    "none",   "get",     "put",  "insert",          "delete",      "add",
    "append", "compare", "scan", "compare_version", "compare_scan"};
static_assert(std::size(kNames) == static_cast<size_t>(KvCode::count_));

uint8_t required(bool require) { return require ? uint8_t{kKvRequire} : uint8_t{0}; }

uint8_t scan_flags(const KvScan& range) {
  return static_cast<uint8_t>((range.reverse ? kKvReverse : 0) |
                              (range.keys_only ? kKvKeysOnly : 0) |
                              (range.has_low ? kKvHasLow : 0) | (range.has_high ? kKvHasHigh : 0) |
                              (range.unordered ? kKvUnordered : 0));
}

/// Returns the flags that an operation may have.
uint8_t allowed_flags(KvCode code) {
  DCHECK(code >= KvCode::get && code < KvCode::count_);
  constexpr uint8_t kScan = kKvReverse | kKvKeysOnly | kKvHasLow | kKvHasHigh | kKvUnordered;
  switch (code) {
    case KvCode::get:
    case KvCode::insert:
    case KvCode::erase:
      return kKvRequire;
    case KvCode::add:
      return kKvRequire | kKvReturnsValue | kKvBlind;
    case KvCode::compare:
      return kKvAbsent;
    case KvCode::scan:
    case KvCode::compare_scan:
      return kScan;
    default:
      return 0;
  }
}

std::string over(std::string_view what, uint64_t got, uint64_t limit) {
  DCHECK(got > limit);
  return std::string(what) + " of " + std::to_string(got) + " bytes is longer than " +
         std::to_string(limit);
}

/// Returns the first fault that the head of an operation shows, or an empty string.
std::string fault_of(const KvOperation& head) {
  if (head.code < KvCode::get || head.code >= KvCode::count_) {
    return "unknown code " + std::to_string(static_cast<uint32_t>(head.code));
  }
  const auto odd = static_cast<uint8_t>(head.flags & ~allowed_flags(head.code));
  if (odd != 0) return "flags " + std::to_string(odd) + " are not allowed for this operation";
  if (head.storage_bytes == 0) return "it names no storage";
  if (head.storage_bytes > kMaxKvStorageName) {
    return over("a storage name", head.storage_bytes, kMaxKvStorageName);
  }
  if (head.key_bytes > kMaxKvKeyBytes) return over("a key", head.key_bytes, kMaxKvKeyBytes);
  if (head.high_bytes > kMaxKvKeyBytes) return over("a key", head.high_bytes, kMaxKvKeyBytes);
  if (head.value_bytes > kMaxKvValueBytes) {
    return over("a value", head.value_bytes, kMaxKvValueBytes);
  }
  const bool is_scan = head.code == KvCode::scan || head.code == KvCode::compare_scan;
  if (is_scan && head.offset > kMaxKvScanRows) {
    return "a limit of " + std::to_string(head.offset) + " rows is higher than " +
           std::to_string(kMaxKvScanRows);
  }
  if (!is_scan && head.high_bytes != 0) return "only a scan has a high key";
  if (head.code == KvCode::add) {
    const uint32_t bytes = kv_number_bytes(head.number);
    if (bytes == 0) {
      return "unknown number type " + std::to_string(static_cast<uint32_t>(head.number));
    }
    if (head.value_bytes != bytes) {
      return "its number has " + std::to_string(bytes) + " bytes, the value " +
             std::to_string(head.value_bytes);
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(KvCode code) {
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

uint32_t kv_number_bytes(KvNumber number) {
  switch (number) {
    case KvNumber::i32:
    case KvNumber::u32:
      return 4;
    case KvNumber::i64:
    case KvNumber::u64:
    case KvNumber::f64:
      return 8;
    default:
      return 0;
  }
}

std::array<std::byte, 8> ordered_index_key(uint64_t index) {
  std::array<std::byte, 8> key{};
  const uint64_t swapped = __builtin_bswap64(index);
  std::memcpy(key.data(), &swapped, 8);
  return key;
}

KvRequest::KvRequest(uint64_t incarnation) {
  // Most requests have one operation, and need no larger memory.
  constexpr size_t kUsualBytes = 256;
  const KvRequestHeader header{kKvVersion, 0, incarnation};
  bytes_.reserve(kUsualBytes);
  bytes_.resize(sizeof(header));
  std::memcpy(bytes_.data(), &header, sizeof(header));
}

KvRequest& KvRequest::operation(KvOperation head, std::string_view storage, KvBytes key,
                                KvBytes high, KvBytes value) {
  // A length that does not fit its field would be truncated, and the node would read a wrong one.
  DCHECK(head.code >= KvCode::get && head.code < KvCode::count_);
  DCHECK((head.flags & ~allowed_flags(head.code)) == 0);
  DCHECK(bytes_.size() >= sizeof(KvRequestHeader) + count_ * sizeof(KvOperation));
  is_broken_ = is_broken_ || storage.size() > UINT8_MAX || key.size() > UINT16_MAX ||
               high.size() > UINT16_MAX || value.size() > UINT32_MAX;
  if (is_broken_) return *this;
  head.storage_bytes = static_cast<uint8_t>(storage.size());
  head.key_bytes = static_cast<uint16_t>(key.size());
  head.high_bytes = static_cast<uint16_t>(high.size());
  head.value_bytes = static_cast<uint32_t>(value.size());
  const KvBytes parts[] = {std::as_bytes(std::span(&head, 1)), kv_bytes(storage), key, high, value};
  for (const KvBytes part : parts) bytes_.insert(bytes_.end(), part.begin(), part.end());
  ++count_;
  std::memcpy(bytes_.data() + offsetof(KvRequestHeader, count), &count_, sizeof(count_));
  return *this;
}

void KvRequest::clear() {
  DCHECK(bytes_.size() >= sizeof(KvRequestHeader));
  bytes_.resize(sizeof(KvRequestHeader));
  count_ = 0;
  is_broken_ = false;
  std::memcpy(bytes_.data() + offsetof(KvRequestHeader, count), &count_, sizeof(count_));
}

bool take_kv_code(KvBytes& operations, KvCode& code) {
  KvOperation head;
  if (operations.size() < sizeof(head)) return false;
  std::memcpy(&head, operations.data(), sizeof(head));
  const size_t bytes = sizeof(head) + head.storage_bytes + head.key_bytes + head.high_bytes +
                       size_t{head.value_bytes};
  if (operations.size() < bytes) return false;
  operations = operations.subspan(bytes);
  code = head.code;
  return true;
}

KvRequest& KvRequest::get(std::string_view storage, KvBytes key, bool require) {
  KvOperation head{.code = KvCode::get, .flags = required(require)};
  return operation(head, storage, key, {}, {});
}

KvRequest& KvRequest::put(std::string_view storage, KvBytes key, KvBytes value, uint32_t offset) {
  KvOperation head{.code = KvCode::put};
  head.offset = offset;
  return operation(head, storage, key, {}, value);
}

KvRequest& KvRequest::insert(std::string_view storage, KvBytes key, KvBytes value, bool require) {
  KvOperation head{.code = KvCode::insert, .flags = required(require)};
  return operation(head, storage, key, {}, value);
}

KvRequest& KvRequest::erase(std::string_view storage, KvBytes key, bool require) {
  KvOperation head{.code = KvCode::erase, .flags = required(require)};
  return operation(head, storage, key, {}, {});
}

KvRequest& KvRequest::add(std::string_view storage, KvBytes key, KvNumber number, KvBytes delta,
                          uint32_t offset, bool returns_value, bool is_blind) {
  KvOperation head{.code = KvCode::add};
  head.flags = static_cast<uint8_t>(kKvRequire | (returns_value ? kKvReturnsValue : 0) |
                                    (is_blind ? kKvBlind : 0));
  head.number = number;
  head.offset = offset;
  return operation(head, storage, key, {}, delta);
}

KvRequest& KvRequest::add_i64(std::string_view storage, KvBytes key, int64_t delta, uint32_t offset,
                              bool returns_value) {
  return add(storage, key, KvNumber::i64, std::as_bytes(std::span(&delta, 1)), offset,
             returns_value);
}

KvRequest& KvRequest::append(std::string_view storage, KvBytes value) {
  return operation({.code = KvCode::append}, storage, {}, {}, value);
}

KvRequest& KvRequest::compare(std::string_view storage, KvBytes key, KvBytes expected) {
  return operation({.code = KvCode::compare}, storage, key, {}, expected);
}

KvRequest& KvRequest::compare_absent(std::string_view storage, KvBytes key) {
  return operation({.code = KvCode::compare, .flags = kKvAbsent}, storage, key, {}, {});
}

KvRequest& KvRequest::scan(std::string_view storage, const KvScan& range) {
  KvOperation head{.code = KvCode::scan, .flags = scan_flags(range)};
  head.offset = range.limit;
  return operation(head, storage, range.low, range.high, {});
}

KvRequest& KvRequest::compare_version(std::string_view storage, KvBytes key, uint64_t version) {
  KvOperation head{.code = KvCode::compare_version};
  head.version = version;
  return operation(head, storage, key, {}, {});
}

KvRequest& KvRequest::compare_scan(std::string_view storage, const KvScan& range, uint64_t digest) {
  KvOperation head{.code = KvCode::compare_scan, .flags = scan_flags(range)};
  head.offset = range.limit;
  head.digest = digest;
  return operation(head, storage, range.low, range.high, {});
}

std::expected<std::vector<KvOperationView>, std::string> read_kv_request(KvBytes bytes,
                                                                         uint64_t& incarnation) {
  KvRequestHeader header;
  if (bytes.size() < sizeof(header)) {
    return std::unexpected("request of " + std::to_string(bytes.size()) +
                           " bytes is shorter than its header of " +
                           std::to_string(sizeof(header)));
  }
  if (bytes.size() > kMaxKvRequestBytes) {
    return std::unexpected("request of " + std::to_string(bytes.size()) + " bytes is longer than " +
                           std::to_string(kMaxKvRequestBytes));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kKvVersion) {
    return std::unexpected("request has version " + std::to_string(header.version) +
                           ", this node reads version " + std::to_string(kKvVersion));
  }
  if (header.count == 0 || header.count > kMaxKvOperations) {
    return std::unexpected("request has " + std::to_string(header.count) +
                           " operations, allowed are 1 to " + std::to_string(kMaxKvOperations));
  }
  incarnation = header.incarnation;
  bytes = bytes.subspan(sizeof(header));
  std::vector<KvOperationView> operations(header.count);
  for (uint32_t i = 0; i < header.count; ++i) {
    KvOperationView& one = operations[i];
    const auto wrong = [&](const std::string& why) {
      return std::unexpected("operation " + std::to_string(i) + " (" +
                             std::string(to_string(one.head.code)) + "): " + why);
    };
    if (bytes.size() < sizeof(one.head)) return wrong("the request ends before it");
    std::memcpy(&one.head, bytes.data(), sizeof(one.head));
    bytes = bytes.subspan(sizeof(one.head));
    if (const std::string fault = fault_of(one.head); !fault.empty()) return wrong(fault);
    const size_t length = size_t{one.head.storage_bytes} + one.head.key_bytes +
                          one.head.high_bytes + one.head.value_bytes;
    if (bytes.size() < length) return wrong("the request ends within it");
    const auto take = [&bytes](size_t count) {
      DCHECK(count <= bytes.size());
      const KvBytes taken = bytes.first(count);
      bytes = bytes.subspan(count);
      return taken;
    };
    const KvBytes name = take(one.head.storage_bytes);
    one.storage = {reinterpret_cast<const char*>(name.data()), name.size()};
    one.key = take(one.head.key_bytes);
    one.high = take(one.head.high_bytes);
    one.value = take(one.head.value_bytes);
  }
  if (!bytes.empty()) {
    return std::unexpected(std::to_string(bytes.size()) + " bytes follow the last operation");
  }
  return operations;
}

std::vector<std::byte> key_after_prefix(KvBytes prefix) {
  while (!prefix.empty() && prefix.back() == std::byte{255}) {
    prefix = prefix.first(prefix.size() - 1);
  }
  std::vector<std::byte> key(prefix.begin(), prefix.end());
  if (!key.empty()) key.back() = static_cast<std::byte>(std::to_integer<int>(key.back()) + 1);
  DCHECK(key.empty() || std::ranges::lexicographical_compare(prefix, key));
  return key;
}

std::vector<std::byte> key_after(KvBytes key) {
  if (key.size() >= kMaxKvKeyBytes) return key_after_prefix(key);
  std::vector<std::byte> next;
  next.reserve(key.size() + 1);
  next.assign(key.begin(), key.end());
  next.push_back(std::byte{0});
  DCHECK(next.size() <= kMaxKvKeyBytes);
  return next;
}

}  // namespace atolldb
