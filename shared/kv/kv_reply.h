// Writes and parses replies to `kv.*` requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/status.h"
#include "shared/kv/kv_format.h"
#include "shared/kv/kv_request.h"

namespace atolldb {

class KvReplyWriter {
 public:
  KvReplyWriter();
  void add(Status status, KvBytes value = {}, uint64_t version = 0);
  /// For a scan, call begin_scan, then `row` for each row, then end_scan.
  void begin_scan();
  void row(KvBytes key, KvBytes value, uint64_t version);
  void end_scan(uint64_t digest, bool has_more);
  KvBytes bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  void put(KvBytes bytes);
  std::vector<std::byte> bytes_;
  uint32_t count_ = 0;
  size_t scan_at_ = 0;
  uint32_t rows_ = 0;
};

/// Views into the reply.
struct KvRowView {
  KvBytes key;
  KvBytes value;
  uint64_t version = 0;
};
struct KvResultView {
  Status status = Status::ok;
  bool has_more = false;
  uint64_t version = 0;  // for a scan: its digest
  KvBytes value;         // empty for a scan
  std::vector<KvRowView> rows;
};

/// Returns one result per operation, or nothing if the bytes are no valid reply to `request`. Of
/// `request`, which the caller has built, it checks only the lengths.
std::optional<std::vector<KvResultView>> read_kv_reply(KvBytes bytes, KvBytes request);

}  // namespace atolldb
