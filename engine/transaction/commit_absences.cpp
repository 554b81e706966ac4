// Absent keys of delta trees: their registration, and the steps of the commit that verify them
// (R108).
#include <algorithm>

#include "engine/hooks/mutants.h"
#include "engine/transaction/commit.h"
#include "engine/transaction/storage_ops.h"
#include "shared/base/check.h"

namespace atolldb {

Status Transaction::register_absence(PageHeader* page, PageVersion seen,
                                     std::span<const std::byte> key, Vid below) {
  DCHECK(is_active() && page != nullptr && page->is_delta != 0 && !seen.is_moved());
  if (fault::no_page_registration) return Status::ok;
  if (key.size() > AbsenceEntry::kMaxKeyBytes) return register_page(page, seen);
  AbsenceEntry entry;
  entry.page = page;
  entry.seen = seen;
  entry.below = Vid(below.version());
  entry.key_bytes = static_cast<uint16_t>(key.size());
  std::ranges::copy(key, entry.key.begin());
  return absences_.push(entry) ? Status::ok : register_page(page, seen);
}

void Transaction::absences_changed(const PageHeader* page, PageVersion before, PageVersion after) {
  DCHECK(before.counter() < after.counter() && !after.is_moved());
  for (AbsenceEntry& entry : absences_) {
    if (entry.page == page && entry.seen == before) entry.seen = after;
  }
}

bool Transaction::absences_replaced(const PageHeader* page, PageVersion before) {
  DCHECK(page != nullptr && !before.is_moved());
  bool found = false;
  for (uint32_t i = 0; i < absences_.size();) {
    if (absences_[i].page != page || absences_[i].seen != before) {
      ++i;
      continue;
    }
    absences_.remove(i);
    found = true;
  }
  return found;
}

/// All loads come after the locks of the write set and after the load of the commit epoch (R21).
Status CommitProtocol::verify_absences() {
  DCHECK(txn_.is_serializable() && txn_.absences_.size() <= Transaction::kMaxAbsences);
  for (const AbsenceEntry& entry : txn_.absences_) {
    const uint64_t now = entry.page->version_word.load(std::memory_order_seq_cst);
    if (now != entry.seen.word() && !is_still_absent(entry)) return Status::phantom;
  }
  return Status::ok;
}

/// A record of the key is no change as long as no commit has written it: it is reserved or open, or
/// a copy of the snapshot's record. The record may be this transaction's own. It is checked like a
/// record that was read, so another transaction that is about to write it is noticed.
bool CommitProtocol::is_still_absent(const AbsenceEntry& entry) {
  RecordHead* record = nullptr;
  if (!search_absent_key(worker_, entry, record)) return false;
  DCHECK(record == nullptr || page_of(record)->is_delta != 0);
  if (record == nullptr || fault::found_keys_are_absent) return true;
  const Vid seen = record->load_acquire();
  if (!seen.is_in_place() || seen.is_next_layer()) return false;
  const bool is_committed = seen.ordinal() != 0 && seen.version() != entry.below.version();
  if (is_committed) return false;
  return fault::absences_ignore_locks || verify_read({record, seen}) == Status::ok;
}

}  // namespace atolldb
