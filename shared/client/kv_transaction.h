// A transaction of a client over several requests. It validates its reads when it commits.
//
// Each read is a request of its own, and the client keeps the version of what it has read. Writes
// stay in the client. `commit` sends all versions and writes as one `kv.commit`: it commits only
// if nothing that was read has changed (R42). Before the commit, two reads may therefore have seen
// different states of the database. Such a transaction cannot commit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/status.h"
#include "shared/client/client_transport.h"
#include "shared/kv/kv_reply.h"
#include "shared/kv/kv_request.h"

namespace atolldb {

struct KvFailure {
  Status status = Status::ok;
  std::string message;  // the reason, if `status` alone does not say it
};
template <typename T>
using KvOutcome = std::expected<T, KvFailure>;

/// A record that a scan has returned.
struct KvRecord {
  std::vector<std::byte> key;
  std::vector<std::byte> value;
  uint64_t version = 0;  // 0: this transaction has written the record
};
struct KvRows {
  std::vector<KvRecord> rows;
  bool has_more = false;  // the scan ended at its limit; continue after the last row
};

/// A storage, and whether it is an array. The key of an array is ordered_index_key(index).
struct KvStorage {
  std::string_view name;
  bool is_array = false;
};

struct KvCommit {
  uint64_t epoch = 0;    // as SessionReply::commit_epoch
  uint64_t version = 0;  // version of all written records; 0: none was written
};

/// Reads and buffered writes of one transaction. After a failure of a single call the transaction
/// continues, except after outcome_unknown and unavailable: then the session has ended, and
/// `commit` fails. Thread: one.
class KvTransaction {
 public:
  /// `snapshot`: 0 for a serializable transaction. Otherwise all reads are of the snapshot with
  /// this id, the newest or a pinned one, and writes are refused. REQUIRES: `client` outlives the
  /// transaction.
  explicit KvTransaction(ClientTransport& client, uint32_t snapshot = 0);

  /// Returns the record as this transaction sees it, with its own writes, or nothing if there is
  /// none. A second read of a key returns the result of the first.
  KvOutcome<std::optional<std::vector<std::byte>>> get(KvStorage storage, KvBytes key);
  /// Returns the rows of a Master-tree in [low, high), merged with the transaction's own writes. A
  /// call returns at most as many rows as one reply holds (kMaxKvScanBytes).
  KvOutcome<KvRows> scan(KvStorage storage, const KvScan& range);

  /// Inserts or overwrites a whole record. On an array: overwrites its first bytes.
  KvOutcome<void> put(KvStorage storage, KvBytes key, KvBytes value);
  /// Overwrites bytes of a record from `offset` on. On a Master-tree it reads the record, and fails
  /// with not_found if there is none, or with out_of_range past its end.
  KvOutcome<void> put_at(KvStorage storage, KvBytes key, uint32_t offset, KvBytes value);
  /// Fails with already_exists, after a read.
  KvOutcome<void> insert(KvStorage storage, KvBytes key, KvBytes value);
  /// Fails with not_found, after a read.
  KvOutcome<void> erase(KvStorage storage, KvBytes key);
  /// Adds a number to a record. It reads nothing, so other additions do not conflict with it. The
  /// commit fails if the record does not exist.
  KvOutcome<void> add(KvStorage storage, KvBytes key, KvNumber number, KvBytes delta,
                      uint32_t offset);
  /// Appends a record to a sequential storage.
  KvOutcome<void> append(KvStorage storage, KvBytes value);

  /// Ends the transaction. Fails with user_abort if something that it has read has changed since;
  /// nothing is committed then. With outcome_unknown it may have committed.
  KvOutcome<KvCommit> commit(AnswerAt answer_at = AnswerAt::durable);

  /// Returns whether the transaction has written this key.
  bool has_written(KvStorage storage, KvBytes key) const {
    return writes_of_.contains(Place(storage.name, Bytes(key.begin(), key.end())));
  }
  ClientTransport& client() const { return client_; }
  /// Returns the number of compared reads and of writes. At most kMaxKvOperations together.
  size_t operations() const { return reads_.size() + scans_.size() + writes_.size(); }

 private:
  using Bytes = std::vector<std::byte>;
  using Place = std::pair<std::string, Bytes>;  // name of the storage, key

  struct Read {
    std::optional<Bytes> value;
    uint64_t version = 0;  // 0: the key was absent, or the array record never written
  };
  struct Scanned {
    std::string storage;
    Bytes low;
    Bytes high;
    KvScan range;  // its keys are `low` and `high`, set when the commit is built
    uint64_t digest = 0;
  };
  struct Write {
    KvCode code = KvCode::put;
    Place place;
    Bytes value;
    uint32_t offset = 0;
    KvNumber number = KvNumber::none;
    bool is_part = false;  // put on an array: overwrites a part of the record
  };

  /// Sends a request with one operation that reads. The result points into `reply`.
  KvOutcome<KvResultView> ask(std::string_view procedure, const KvRequest& request,
                              SessionReply& reply);
  /// Reads the committed record once, and keeps its version.
  KvOutcome<const Read*> base_of(const Place& place);
  /// Changes `value`, the committed record, as the writes of this transaction do.
  void apply_writes(const Place& place, std::optional<Bytes>& value) const;
  /// Returns whether the writes alone decide the record.
  bool is_overwritten(const Place& place) const;
  /// Merges the rows of a reply with the transaction's own writes in the range that they cover.
  /// Returns how many records of the range this transaction has erased.
  uint32_t erased_within(KvStorage storage, const KvScan& range) const;
  std::vector<KvRecord> merge(KvStorage storage, const KvScan& range,
                              const KvResultView& scanned) const;
  KvOutcome<void> buffer(Write write);
  /// Returns the error text of a transaction that has kMaxKvOperations operations.
  static std::string too_many();

  ClientTransport& client_;
  const uint32_t snapshot_;
  const uint64_t incarnation_;
  std::map<Place, Read> reads_;
  std::vector<Scanned> scans_;
  std::vector<Write> writes_;
  std::map<Place, std::vector<size_t>> writes_of_;  // indexes in writes_, in order
};

}  // namespace atolldb
