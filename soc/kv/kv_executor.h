// Runs the operations of one `kv.*` request within a transaction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"
#include "soc/procedure/procedure.h"

namespace atolldb {

/// Runs the operations of one attempt of a transaction. If `run` returns a status other than ok,
/// the transaction must end with that status. `fault` then returns the reason, or "" if the status
/// alone says it.
class KvExecutor {
 public:
  explicit KvExecutor(ProcedureContext& context) : context_(context), txn_(context.transaction()) {}

  Status run(const KvOperationView& operation);
  const KvReplyWriter& reply() const { return reply_; }
  const std::string& fault() const { return fault_; }

 private:
  using Buffer = std::array<std::byte, kMaxKvValueBytes>;

  /// `key`: the operation's key as the tree stores it.
  Status run_on_tree(const KvOperationView& operation, MasterTree tree, KvBytes key);
  Status run_on_hash(const KvOperationView& operation, MasterTree tree);
  Status run_on_array(const KvOperationView& operation, const Array& array);
  Status run_on_heap(const KvOperationView& operation, const Sequential& heap);
  Status add_on_tree(const KvOperationView& operation, const MasterTree& tree, KvBytes key);
  Status compare(const KvOperationView& operation, Status found, KvBytes value, uint64_t version);
  Status scan(const KvOperationView& operation, const MasterTree& tree);
  Status scan_hash(const KvOperationView& operation, const MasterTree& tree);
  Status scan_range(const KvOperationView& operation, const MasterTree& tree,
                    const ScanRange& range, bool is_hash);
  Status unsupported(const KvOperationView& operation, const char* type);
  /// If `status` lets the transaction continue, adds the result to the reply and returns ok.
  /// Otherwise returns `status`.
  Status finish(const KvOperationView& operation, Status status, KvBytes value = {},
                uint64_t version = 0);
  Status fail(Status status, std::string why);

  ProcedureContext& context_;
  Transaction& txn_;
  KvReplyWriter reply_;
  std::string fault_;
  size_t scanned_bytes_ = 0;
  Buffer buffer_;
};

}  // namespace atolldb
