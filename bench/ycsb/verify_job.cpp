// Job "ycsb.verify": each worker reads its share of its node's partition. All workers together read
// the whole partition. REQUIRES: the run has stopped.
#include <fmt/format.h>

#include <algorithm>

#include "bench/job/step_scan.h"
#include "bench/job/try.h"
#include "bench/ycsb/table.h"
#include "bench/ycsb/verify_result.h"
#include "engine/hash/hash_key.h"
#include "shared/base/try.h"
#include "soc/procedure/procedure.h"

namespace atolldb::ycsb {

namespace {

class Verifier {
 public:
  Verifier(JobContext& context, const JobInput& input, const Table& table)
      : context_(context), shape_(input.shape), table_(table), keyspace_(table.keyspace()) {
    result_.node = context.node();
    result_.worker = context.worker_ordinal();
  }

  Status go() {
    BENCH_TRY(read_lane());
    if (keyspace_.is_array()) return read_array();
    if (table_.is_hash()) return read_hash();
    // The ranges of all workers together cover every possible key of the partition, including keys
    // that should not exist.
    const uint64_t workers = context_.workers_on_node();
    const uint64_t worker = context_.worker_ordinal();
    const bool is_last = worker + 1 == workers;
    if (!keyspace_.is_ordered()) {
      const uint64_t share = (kNumberMask + 1) / workers;
      return read_tree(share * worker, is_last ? kNumberMask : share * (worker + 1) - 1);
    }
    const uint64_t loaded = keyspace_.records_of(context_.node());
    const uint64_t first = loaded * worker / workers;
    const uint64_t end = is_last ? kSequenceMask + 1 : loaded * (worker + 1) / workers;
    const auto lane = static_cast<uint32_t>(1 + worker);
    if (first != end) BENCH_TRY(read_tree(first, end - 1));
    return read_tree(number_of(lane, 0), is_last ? kNumberMask : number_of(lane + 1, 0) - 1);
  }

  std::string to_json() const { return result_.to_json(); }

 private:
  /// Reads how many records this worker has inserted. The last run has stored the final count.
  Status read_lane() {
    LaneRow row{};
    BENCH_TRY(run(context_.transaction(), context_.backoff(), kMaxEpoch, [&](Transaction& txn) {
      return table_.control().get(txn, lane_row_at(context_.node(), context_.worker_ordinal()), 0,
                                  sizeof(row), &row);
    }));
    result_.inserted = row.inserted;
    return Status::ok;
  }

  /// `low` and `high`: keys without their node bits.
  Status read_tree(uint64_t low, uint64_t high) {
    // A buffer for the longest records would waste space for short ones.
    constexpr size_t kShort = 128;
    return shape_.record_bytes <= kShort ? read_tree_of<kShort>(low, high)
                                         : read_tree_of<kMaxRecordBytes>(low, high);
  }

  template <size_t kPayload>
  Status read_tree_of(uint64_t low, uint64_t high) {
    const uint64_t node = uint64_t{context_.node()} << kNumberBits;
    uint64_t previous = 0;
    bool is_first = true;
    return bench::scan_in_steps<kPayload>(
        context_.transaction(), context_.backoff(), table_.tree(), node | low, node | high,
        [&](const bench::ScannedRecord<kPayload>& record) {
          if (!is_first && record.key <= previous) {
            result_.violate(fmt::format("record {:#x} was found twice", record.key));
          }
          is_first = false;
          previous = record.key;
          check(record.key, record.payload.data(), record.payload_bytes);
        });
  }

  /// The records of the partition are anywhere in a hash storage. So the workers of each node
  /// together read all of it, and skip the records of other nodes.
  Status read_hash() {
    const uint64_t share = ~uint64_t{0} / context_.workers_on_node();
    const uint64_t first = share * context_.worker_ordinal();
    const bool is_last = context_.worker_ordinal() + 1 == context_.workers_on_node();
    const bench::KeyRange hashes(first, first + share);
    ScanRange range = hashes.range();
    range.high_inclusive = false;
    range.has_high = !is_last;
    bool is_stored = true;
    const Status status = bench::scan_range_in_steps<kMaxRecordBytes>(
        context_.transaction(), context_.backoff(), table_.tree(), range,
        [&](Bytes stored) {
          is_stored = is_stored && is_stored_form(stored);
          return bench::key_value(OriginalKey(stored));
        },
        [&](const bench::ScannedRecord<kMaxRecordBytes>& record) {
          if (record.key >> kNumberBits != context_.node()) return;
          check(record.key, record.payload.data(), record.payload_bytes);
        });
    if (!is_stored) result_.violate("a key does not begin with its hash");
    return status;
  }

  Status read_array() {
    const uint64_t records = keyspace_.records_of(context_.node());
    const uint64_t end = records * (context_.worker_ordinal() + 1) / context_.workers_on_node();
    std::array<std::byte, kMaxRecordBytes> record;
    uint64_t item = records * context_.worker_ordinal() / context_.workers_on_node();
    for (; item < end; ++item) {
      const uint64_t id = keyspace_.id_of(context_.node(), item);
      BENCH_TRY(run(context_.transaction(), context_.backoff(), kMaxEpoch,
                    [&](Transaction& txn) { return table_.array().get(txn, id, record.data()); }));
      check(id, record.data(), shape_.record_bytes);
    }
    return Status::ok;
  }

  void check(uint64_t id, const std::byte* record, uint32_t bytes) {
    const uint64_t number = keyspace_.number_of_id(id);
    result_.add_record(lane_of(number), sequence_of(number));
    if (bytes != shape_.record_bytes) {
      result_.violate(
          fmt::format("record {:#x} has {} bytes, not {}", id, bytes, shape_.record_bytes));
      return;
    }
    for (uint32_t field = 0; field < shape_.fields; ++field) {
      const std::byte* const at = record + shape_.offset_of(field);
      result_.updates += updates_of(at);
      if (is_whole(at, shape_.field_bytes(), id, field)) continue;
      result_.violate(
          fmt::format("record {:#x}: field {} is torn: it is not the value of update {}", id, field,
                      updates_of(at)));
    }
  }

  JobContext& context_;
  RecordShape shape_;
  const Table& table_;
  Keyspace keyspace_;
  VerifyResult result_;
};

Result<std::string> verify(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  ATOLL_ASSIGN(const Table table, Table::open(context.control(), input, context.node_count()));
  Verifier verifier(context, input, table);
  const Status status = verifier.go();
  if (status != Status::ok) {
    return make_error(ExitCode::failed,
                      fmt::format("ycsb: verify on node {}: {}: the records could not be read",
                                  context.node(), to_string(status)));
  }
  return verifier.to_json();
}

ATOLL_REGISTER_JOB(kVerify, kVerifyJob, verify);

}  // namespace

}  // namespace atolldb::ycsb
