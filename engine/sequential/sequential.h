// Sequential storage: append-only heap; every worker has a list of pages of its own (R17).
#pragma once

#include <cstdint>
#include <span>

#include "engine/transaction/transaction.h"
#include "shared/memory/control_layout.h"
#include "shared/status.h"

namespace atolldb {

/// A light handle; copy it freely.
class Sequential {
 public:
  static constexpr uint32_t kMaxPayloadBytes = 2048;

  explicit Sequential(StorageControl& storage) : storage_(&storage) {}

  /// Applied at commit, after verification; conflicts with nobody but serializable scans.
  Status append(Transaction& txn, std::span<const std::byte> payload) const;

 private:
  StorageControl* storage_;
};

}  // namespace atolldb
