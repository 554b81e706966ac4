#include "shared/client/kv_transaction.h"

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"

namespace atolldb {
namespace {

std::vector<std::byte> copy_of(KvBytes bytes) { return {bytes.begin(), bytes.end()}; }

std::string text_of(KvBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unexpected<KvFailure> failure(Status status, std::string message = {}) {
  return std::unexpected(KvFailure{status, std::move(message)});
}

std::string longer(const char* what, size_t bytes, uint32_t limit) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes is longer than " +
         std::to_string(limit);
}

template <typename Number>
void add_as(std::byte* at, const std::byte* delta) {
  Number sum;
  Number more;
  std::memcpy(&sum, at, sizeof(sum));
  std::memcpy(&more, delta, sizeof(more));
  sum = static_cast<Number>(sum + more);
  std::memcpy(at, &sum, sizeof(sum));
}

/// Adds a number to another one, both little-endian. Integers wrap around, as in the engine, so
/// they are added without a sign.
void add_number(KvNumber number, std::byte* at, const std::byte* delta) {
  switch (number) {
    case KvNumber::i32:
    case KvNumber::u32:
      return add_as<uint32_t>(at, delta);
    case KvNumber::i64:
    case KvNumber::u64:
      return add_as<uint64_t>(at, delta);
    case KvNumber::f64:
      return add_as<double>(at, delta);
    case KvNumber::none:
      break;
  }
  CHECK(false);
}

bool is_within(const KvScan& range, KvBytes key) {
  const auto is_less = [](KvBytes left, KvBytes right) {
    return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
  };
  return (!range.has_low || !is_less(key, range.low)) &&
         (!range.has_high || is_less(key, range.high));
}

}  // namespace

KvTransaction::KvTransaction(ClientTransport& client, uint32_t snapshot)
    : client_(client), snapshot_(snapshot), incarnation_(client.incarnation()) {
  CHECK(incarnation_ != 0);  // kv.commit refuses 0
}

KvOutcome<KvResultView> KvTransaction::ask(std::string_view procedure, const KvRequest& request,
                                           SessionReply& reply) {
  DCHECK(request.count() == 1);
  if (request.bytes().empty()) return failure(Status::key_too_long);
  // The transaction's commit waits until what it has read is durable, so its reads need not wait.
  SessionOptions options{.answer_at = AnswerAt::precommitted};
  if (snapshot_ != 0) {
    options.isolation = Isolation::snapshot_read_only;
    options.snapshot = snapshot_;
  }
  reply = client_.call(procedure, request.bytes(), options);
  if (reply.status != Status::ok) return failure(reply.status, reply.message);
  auto results = read_kv_reply(reply.output, request.bytes());
  if (!results || results->size() != 1) {
    return failure(Status::procedure_failed, "the reply does not fit the request");
  }
  return std::move(results->front());
}

KvOutcome<const KvTransaction::Read*> KvTransaction::base_of(const Place& place) {
  const auto known = reads_.find(place);
  if (known != reads_.end()) return &known->second;
  if (snapshot_ == 0 && operations() >= kMaxKvOperations) {
    return failure(Status::transaction_too_large, too_many());
  }
  KvRequest request(incarnation_);
  request.get(place.first, place.second);
  SessionReply reply;
  const auto result = ask("kv.get", request, reply);
  if (!result) return std::unexpected(result.error());
  DCHECK(result->status != Status::not_found || result->value.empty());
  Read read;
  if (result->status == Status::ok) {
    // The version of an array record is 0 until its first write.
    read.value = copy_of(result->value);
    read.version = result->version;
  } else if (result->status != Status::not_found) {
    return failure(result->status);
  }
  return &reads_.emplace(place, std::move(read)).first->second;
}

bool KvTransaction::is_overwritten(const Place& place) const {
  const auto writes = writes_of_.find(place);
  if (writes == writes_of_.end()) return false;
  return std::any_of(writes->second.begin(), writes->second.end(), [&](size_t index) {
    const Write& write = writes_[index];
    return write.code != KvCode::add && !write.is_part;
  });
}

void KvTransaction::apply_writes(const Place& place, std::optional<Bytes>& value) const {
  const auto writes = writes_of_.find(place);
  if (writes == writes_of_.end()) return;
  for (const size_t index : writes->second) {
    DCHECK(index < writes_.size());
    const Write& write = writes_[index];
    DCHECK(write.place == place && write.code != KvCode::append);
    const bool fits = value && write.offset <= value->size() &&
                      write.value.size() <= value->size() - write.offset;
    switch (write.code) {
      case KvCode::erase:
        value.reset();
        break;
      case KvCode::add:
        // The commit reports a number that lies outside of the record.
        if (fits) add_number(write.number, value->data() + write.offset, write.value.data());
        break;
      default:
        if (!write.is_part) {
          value = write.value;
        } else if (fits) {
          std::ranges::copy(write.value, value->data() + write.offset);
        }
    }
  }
}

KvOutcome<std::optional<std::vector<std::byte>>> KvTransaction::get(KvStorage storage,
                                                                    KvBytes key) {
  const Place place(storage.name, copy_of(key));
  std::optional<Bytes> value;
  if (!is_overwritten(place)) {
    const auto base = base_of(place);
    if (!base) return std::unexpected(base.error());
    value = (*base)->value;
  }
  apply_writes(place, value);
  return value;
}

std::vector<KvRecord> KvTransaction::merge(KvStorage storage, const KvScan& range,
                                           const KvResultView& scanned) const {
  // If the scan has ended early, it covers the range only up to its last row.
  KvScan covered = range;
  Bytes past_last;
  if (scanned.has_more) {
    CHECK(!scanned.rows.empty());  // `scan` has checked it
    const KvBytes last = scanned.rows.back().key;
    past_last = key_after(last);
    if (range.reverse) {
      covered.low = last;
      covered.has_low = true;
    } else if (!past_last.empty()) {
      covered.high = past_last;
      covered.has_high = true;
    }
  }
  // By text, because GCC 12 has a false warning for maps of vectors of bytes here. The order is the
  // same.
  std::map<std::string, KvRecord> records;
  for (const KvRowView& row : scanned.rows) {
    KvRecord record{copy_of(row.key), copy_of(row.value), row.version};
    const Place place(storage.name, record.key);
    if (writes_of_.contains(place)) {
      std::optional<Bytes> value = std::move(record.value);
      apply_writes(place, value);
      if (!value) continue;
      record.value = *std::move(value);
      record.version = 0;
    }
    std::string key = text_of(record.key);
    records.emplace(std::move(key), std::move(record));
  }
  const Place first(storage.name, covered.has_low ? copy_of(covered.low) : Bytes());
  for (auto own = writes_of_.lower_bound(first);
       own != writes_of_.end() && own->first.first == storage.name; ++own) {
    const Bytes& key = own->first.second;
    if (!is_within(covered, key)) break;
    std::string text = text_of(key);
    if (!is_overwritten(own->first) || records.contains(text)) continue;
    std::optional<Bytes> value;
    apply_writes(own->first, value);
    if (value) records.emplace(std::move(text), KvRecord{key, *std::move(value), 0});
  }
  DCHECK(scanned.rows.size() <= kMaxKvScanRows);
  std::vector<KvRecord> rows;
  rows.reserve(records.size());
  for (auto& [key, record] : records) {
    if (range.keys_only) record.value.clear();
    rows.push_back(std::move(record));
  }
  if (range.reverse) std::ranges::reverse(rows);
  return rows;
}

uint32_t KvTransaction::erased_within(KvStorage storage, const KvScan& range) const {
  uint32_t erased = 0;
  const Place first(storage.name, range.has_low ? copy_of(range.low) : Bytes());
  for (auto own = writes_of_.lower_bound(first); own != writes_of_.end(); ++own) {
    if (own->first.first != storage.name || !is_within(range, own->first.second)) break;
    if (!is_overwritten(own->first)) continue;
    std::optional<Bytes> value;
    apply_writes(own->first, value);
    if (!value) ++erased;
  }
  DCHECK(erased <= writes_.size());
  return erased;
}

KvOutcome<KvRows> KvTransaction::scan(KvStorage storage, const KvScan& range) {
  // A comparison of a whole range must see one row more than the scan has returned.
  constexpr uint32_t kMost = kMaxKvScanRows - 1;
  const uint32_t limit = range.limit == 0 ? kMost : std::min(range.limit, kMost);
  Bytes low = copy_of(range.low);
  Bytes high = copy_of(range.high);
  KvScan rest = range;
  rest.unordered = false;  // own writes are merged in key order
  // Rows that this transaction has erased must not use up the limit. Otherwise each scan of a loop
  // that erases the first row would need more requests than the scan before.
  rest.limit = std::min(limit + erased_within(storage, range), kMost);
  KvRows found;
  do {
    if (snapshot_ == 0 && operations() >= kMaxKvOperations) {
      return failure(Status::transaction_too_large, too_many());
    }
    rest.low = low;
    rest.high = high;
    KvRequest request(incarnation_);
    request.scan(storage.name, rest);
    SessionReply reply;
    const auto result = ask("kv.scan", request, reply);
    if (!result) return std::unexpected(result.error());
    if (result->rows.size() > rest.limit || (result->has_more && result->rows.empty())) {
      return failure(Status::procedure_failed, "the reply does not fit the request");
    }
    if (snapshot_ == 0) {
      Scanned scanned{std::string(storage.name), low, high, rest, result->version};
      // The commit compares the rows that were returned, or the range as a whole.
      scanned.range.limit = result->has_more ? static_cast<uint32_t>(result->rows.size()) : 0;
      scanned.range.keys_only = false;
      scans_.push_back(std::move(scanned));
    }
    found.rows = merge(storage, rest, *result);
    found.has_more = result->has_more;
    if (!result->has_more) break;
    const KvBytes last = result->rows.back().key;
    if (range.reverse) {
      high = copy_of(last);
      rest.has_high = true;
    } else {
      low = key_after(last);
      rest.has_low = true;
      if (low.empty()) {  // no key can follow
        found.has_more = false;
        break;
      }
    }
  } while (found.rows.empty());  // this transaction has erased all rows of the reply
  DCHECK(std::ranges::is_sorted(found.rows, {}, &KvRecord::key) || range.reverse);
  if (found.rows.size() > limit) {
    found.rows.resize(limit);
    found.has_more = true;
  }
  return found;
}

std::string KvTransaction::too_many() {
  return "a transaction has at most " + std::to_string(kMaxKvOperations) +
         " reads and writes: commit it and begin another one";
}

KvOutcome<void> KvTransaction::buffer(Write write) {
  if (snapshot_ != 0) {
    return failure(Status::read_only_transaction,
                   "the transaction reads snapshot " + std::to_string(snapshot_));
  }
  if (operations() >= kMaxKvOperations) return failure(Status::transaction_too_large, too_many());
  if (write.place.first.empty() || write.place.first.size() > kMaxKvStorageName) {
    return failure(Status::invalid_argument, "the name of a storage has 1 to " +
                                                 std::to_string(kMaxKvStorageName) + " bytes");
  }
  if (write.place.second.size() > kMaxKvKeyBytes) {
    return failure(Status::key_too_long,
                   longer("a key", write.place.second.size(), kMaxKvKeyBytes));
  }
  if (write.value.size() > kMaxKvValueBytes) {
    return failure(Status::payload_too_long,
                   longer("a value", write.value.size(), kMaxKvValueBytes));
  }
  DCHECK(!write.is_part || write.code == KvCode::put);
  DCHECK((write.code == KvCode::add) == (write.number != KvNumber::none));
  if (write.code != KvCode::append) writes_of_[write.place].push_back(writes_.size());
  writes_.push_back(std::move(write));
  return {};
}

KvOutcome<void> KvTransaction::put(KvStorage storage, KvBytes key, KvBytes value) {
  return buffer({.code = KvCode::put,
                 .place = {std::string(storage.name), copy_of(key)},
                 .value = copy_of(value),
                 .is_part = storage.is_array});
}

KvOutcome<void> KvTransaction::put_at(KvStorage storage, KvBytes key, uint32_t offset,
                                      KvBytes value) {
  if (storage.is_array) {
    return buffer({.code = KvCode::put,
                   .place = {std::string(storage.name), copy_of(key)},
                   .value = copy_of(value),
                   .offset = offset,
                   .is_part = true});
  }
  // The commit compares the version of this read, so it may write the record as a whole.
  auto record = get(storage, key);
  if (!record) return std::unexpected(record.error());
  if (!*record) return failure(Status::not_found);
  Bytes whole = **std::move(record);
  DCHECK(whole.size() <= kMaxKvValueBytes);
  if (offset > whole.size() || value.size() > whole.size() - offset) {
    return failure(Status::out_of_range, "the record has " + std::to_string(whole.size()) +
                                             " bytes, the write ends at byte " +
                                             std::to_string(offset + value.size()));
  }
  std::ranges::copy(value, whole.data() + offset);
  return put(storage, key, whole);
}

KvOutcome<void> KvTransaction::insert(KvStorage storage, KvBytes key, KvBytes value) {
  const auto record = get(storage, key);
  if (!record) return std::unexpected(record.error());
  if (*record) return failure(Status::already_exists);
  return buffer({.code = KvCode::insert,
                 .place = {std::string(storage.name), copy_of(key)},
                 .value = copy_of(value)});
}

KvOutcome<void> KvTransaction::erase(KvStorage storage, KvBytes key) {
  const auto record = get(storage, key);
  if (!record) return std::unexpected(record.error());
  if (!*record) return failure(Status::not_found);
  return buffer(
      {.code = KvCode::erase, .place = {std::string(storage.name), copy_of(key)}, .value = {}});
}

KvOutcome<void> KvTransaction::add(KvStorage storage, KvBytes key, KvNumber number, KvBytes delta,
                                   uint32_t offset) {
  if (delta.size() != kv_number_bytes(number)) {
    return failure(Status::invalid_argument,
                   "the number has " + std::to_string(kv_number_bytes(number)) +
                       " bytes, the argument " + std::to_string(delta.size()));
  }
  return buffer({.code = KvCode::add,
                 .place = {std::string(storage.name), copy_of(key)},
                 .value = copy_of(delta),
                 .offset = offset,
                 .number = number});
}

KvOutcome<void> KvTransaction::append(KvStorage storage, KvBytes value) {
  return buffer(
      {.code = KvCode::append, .place = {std::string(storage.name), {}}, .value = copy_of(value)});
}

KvOutcome<KvCommit> KvTransaction::commit(AnswerAt answer_at) {
  if (snapshot_ != 0 || operations() == 0) return KvCommit{};
  CHECK(operations() <= kMaxKvOperations);
  KvRequest request(incarnation_);
  for (const auto& [place, read] : reads_) {
    request.compare_version(place.first, place.second, read.version);
  }
  for (Scanned& scanned : scans_) {
    scanned.range.low = scanned.low;
    scanned.range.high = scanned.high;
    request.compare_scan(scanned.storage, scanned.range, scanned.digest);
  }
  for (const Write& write : writes_) {
    const auto& [storage, key] = write.place;
    switch (write.code) {
      case KvCode::put:
        request.put(storage, key, write.value, write.offset);
        break;
      case KvCode::insert:
        request.insert(storage, key, write.value);
        break;
      case KvCode::erase:
        request.erase(storage, key);
        break;
      case KvCode::add:
        request.add(storage, key, write.number, write.value, write.offset);
        break;
      case KvCode::append:
        request.append(storage, write.value);
        break;
      default:
        CHECK(false);
    }
  }
  if (request.bytes().size() > kMaxKvRequestBytes) {
    return failure(Status::payload_too_long,
                   "the reads and writes of the transaction have " +
                       std::to_string(request.bytes().size()) + " bytes, the limit is " +
                       std::to_string(kMaxKvRequestBytes) + ": write less in one transaction");
  }
  const SessionReply reply = client_.call("kv.commit", request.bytes(), {.answer_at = answer_at});
  if (reply.status != Status::ok) return failure(reply.status, reply.message);
  return KvCommit{reply.commit_epoch, reply.commit_version};
}

}  // namespace atolldb
