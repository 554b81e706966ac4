// The commit protocol's steps for appends to sequential storages (R17).
#include "engine/transaction/commit.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"

namespace atolldb {

Status CommitProtocol::prepare_appends() {
  if (txn_.appends_.empty()) return Status::ok;
  for (const auto& append : txn_.appends_) {
    const Status status = prepare_list(worker_, storage_of(append.storage_id));
    if (status != Status::ok) return status;
  }
  // In the worst case every append starts a new page.
  return worker_.reserve_pages(txn_.appends_.size()) ? Status::ok : Status::volatile_pool_exhausted;
}

void CommitProtocol::begin_appends() {
  // Makes the version words of the lists odd, before the commit publishes its in-commit epoch. So
  // no scan can verify an even word after this commit has got its epoch (R17).
  DCHECK(worker_.slot().in_commit_epoch.load(std::memory_order_relaxed) == 0);
  for (const auto& append : txn_.appends_) begin_append(worker_, storage_of(append.storage_id));
}

void CommitProtocol::apply_appends() {
  DCHECK(worker_.slot().in_commit_epoch.load(std::memory_order_relaxed) != 0);
  for (const auto& append : txn_.appends_) {
    LogRecord& log = txn_.log_.at(append.log_offset);
    DCHECK(log.type == LogType::append && log.storage_id == append.storage_id);
    log.vid = vid_.word();
    apply_append(worker_, storage_of(append.storage_id), log, vid_);
  }
  for (const auto& append : txn_.appends_) end_append(worker_, storage_of(append.storage_id));
}

void CommitProtocol::cancel_appends() {
  for (const auto& append : txn_.appends_) cancel_append(worker_, storage_of(append.storage_id));
}

Status CommitProtocol::verify_lists() {
  for (const WordEntry& entry : txn_.words_) {
    uint64_t now = entry.word->load(std::memory_order_seq_cst);
    // If the list is this worker's own, this commit has made the word odd. During the scan the word
    // was even, because only this worker changes it. So the even value counts.
    if (now == entry.seen + 1 && is_own_list(entry.word)) now = entry.seen;
    if (now != entry.seen) return Status::phantom;
  }
  return Status::ok;
}

bool CommitProtocol::is_own_list(const std::atomic<uint64_t>* word) const {
  for (const auto& append : txn_.appends_) {
    if (own_list_version(worker_, storage_of(append.storage_id)) == word) return true;
  }
  return false;
}

}  // namespace atolldb
