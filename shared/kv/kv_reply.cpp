#include "shared/kv/kv_reply.h"

#include <cstring>

#include "shared/base/check.h"

namespace atolldb {
namespace {

template <typename T>
bool take(KvBytes& bytes, T& value) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes = bytes.subspan(sizeof(T));
  return true;
}

bool take_bytes(KvBytes& bytes, size_t count, KvBytes& taken) {
  if (bytes.size() < count) return false;
  taken = bytes.first(count);
  bytes = bytes.subspan(count);
  return true;
}

bool read_rows(KvBytes bytes, uint32_t count, std::vector<KvRowView>& rows) {
  for (uint32_t i = 0; i < count; ++i) {
    KvRow head{};
    KvRowView row;
    if (!take(bytes, head) || !take_bytes(bytes, head.key_bytes, row.key) ||
        !take_bytes(bytes, head.value_bytes, row.value)) {
      return false;
    }
    row.version = head.version;
    rows.push_back(row);
  }
  return bytes.empty();
}

}  // namespace

void KvReplyWriter::put(KvBytes bytes) {
  DCHECK(bytes.empty() || bytes.data() != nullptr);
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

KvReplyWriter::KvReplyWriter() {
  // Most replies have one small value, and need no larger memory.
  constexpr size_t kUsualBytes = 256;
  const KvReplyHeader header{kKvVersion, 0};
  bytes_.reserve(kUsualBytes);
  put(std::as_bytes(std::span(&header, 1)));
}

void KvReplyWriter::add(Status status, KvBytes value, uint64_t version) {
  DCHECK(status < Status::count_);
  DCHECK(value.size() <= UINT32_MAX);
  DCHECK(count_ < kMaxKvOperations);
  const KvResult result{static_cast<uint8_t>(status), 0, 0, static_cast<uint32_t>(value.size()),
                        version};
  put(std::as_bytes(std::span(&result, 1)));
  put(value);
  ++count_;
  std::memcpy(bytes_.data() + offsetof(KvReplyHeader, count), &count_, sizeof(count_));
}

void KvReplyWriter::begin_scan() {
  DCHECK(bytes_.size() >= sizeof(KvReplyHeader));
  scan_at_ = bytes_.size();
  rows_ = 0;
  add(Status::ok);
}

void KvReplyWriter::row(KvBytes key, KvBytes value, uint64_t version) {
  DCHECK(scan_at_ != 0 && bytes_.size() >= scan_at_ + sizeof(KvResult));
  DCHECK(key.size() <= UINT16_MAX && value.size() <= UINT32_MAX);
  DCHECK(rows_ < kMaxKvScanRows);
  const KvRow head{static_cast<uint16_t>(key.size()), 0, static_cast<uint32_t>(value.size()),
                   version};
  put(std::as_bytes(std::span(&head, 1)));
  put(key);
  put(value);
  ++rows_;
}

static_assert(kMaxKvScanRows <= UINT16_MAX);  // KvResult::rows has 16 bits

void KvReplyWriter::end_scan(uint64_t digest, bool has_more) {
  DCHECK(scan_at_ != 0);
  DCHECK(bytes_.size() - scan_at_ >= sizeof(KvResult) + rows_ * sizeof(KvRow));
  const KvResult result{static_cast<uint8_t>(Status::ok),
                        has_more ? static_cast<uint8_t>(kKvMore) : uint8_t{0},
                        static_cast<uint16_t>(rows_),
                        static_cast<uint32_t>(bytes_.size() - scan_at_ - sizeof(KvResult)), digest};
  std::memcpy(bytes_.data() + scan_at_, &result, sizeof(result));
}

std::optional<std::vector<KvResultView>> read_kv_reply(KvBytes bytes, KvBytes request) {
  KvRequestHeader asked{};
  KvReplyHeader header{};
  if (!take(request, asked) || !take(bytes, header) || header.version != kKvVersion ||
      header.count != asked.count || header.count > kMaxKvOperations || header.count == 0) {
    return std::nullopt;
  }
  DCHECK(header.count >= 1 && header.count <= kMaxKvOperations);
  std::vector<KvResultView> results(header.count);
  for (uint32_t i = 0; i < header.count; ++i) {
    KvResult head{};
    KvBytes value;
    KvCode code{};
    if (!take_kv_code(request, code) || !take(bytes, head) ||
        !take_bytes(bytes, head.bytes, value) || head.status >= kStatusCount) {
      return std::nullopt;
    }
    KvResultView& result = results[i];
    result.status = static_cast<Status>(head.status);
    result.has_more = (head.flags & kKvMore) != 0;
    result.version = head.version;
    if (code != KvCode::scan) {
      result.value = value;
    } else if (!read_rows(value, head.rows, result.rows)) {
      return std::nullopt;
    }
  }
  return bytes.empty() ? std::optional(std::move(results)) : std::nullopt;
}

}  // namespace atolldb
