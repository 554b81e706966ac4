#include "bench/ycsb_driver/client_port.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <vector>

#include "bench/common/random.h"
#include "bench/driver/client_loop.h"
#include "bench/ycsb/generator.h"
#include "bench/ycsb/record.h"
#include "bench/ycsb/run_result.h"
#include "bench/ycsb/table.h"
#include "shared/base/try.h"
#include "shared/kv/kv_request.h"

namespace atolldb::ycsb {
namespace {

/// The operations of one client. Thread: one.
class ClientWork {
 public:
  struct Planned : ycsb::Planned {
    Operation type;
  };
  using Counts = RunResult;
  static constexpr const char* kBenchmark = "ycsb";

  ClientWork(const JobInput& input, uint32_t node, uint32_t nodes, uint32_t index,
             const bench::ClientOptions& options)
      : input_(input),
        mean_think_ns_(options.think_ms * 1e6),
        think_random_(~input.times.seed_of(input.seed, node, index)),
        generator_(input_, node, nodes, index, input_.times.seed_of(input_.seed, node, index)),
        record_(input_.shape.record_bytes) {}

  Planned plan() {
    ycsb::Planned planned{};
    generator_.plan(std::span(&planned, 1));
    return {planned, planned.operation};
  }

  bool thinks() const { return mean_think_ns_ != 0; }
  uint64_t think_ns(const Planned& /*previous*/, const Planned& /*next*/) {
    return static_cast<uint64_t>(think_random_.think_time(mean_think_ns_));
  }

  const char* request(const Planned& planned, std::span<const std::byte>& input) {
    const auto key = ordered_index_key(planned.id);
    request_.clear();
    const char* procedure = "kv.get";
    if (planned.type != Operation::update) request_.get(kRecordsStorage, key, true);
    if (planned.type != Operation::read) {
      procedure = planned.type == Operation::update ? "kv.put" : "kv.txn";
      fill_record(record_.data(), input_.shape, planned.id);
      request_.put(kRecordsStorage, key, record_);
    }
    input = request_.bytes();
    return procedure;
  }

  void sent(const Planned& planned) {
    const ycsb::Planned& operation = planned;
    generator_.committed(std::span(&operation, 1));
  }

  std::optional<bool> take(const Planned& planned, Status status, std::span<const std::byte> output,
                           bool /*is_measured*/, RunResult& counts) const {
    if (status != Status::ok) return std::nullopt;
    if (planned.type == Operation::read && !is_whole(planned.id, output)) ++counts.torn_reads;
    return true;
  }

  static std::string describe(const Planned& planned) {
    return fmt::format("{} of record {:#x}", kTypeNames[static_cast<uint32_t>(planned.type)],
                       planned.id);
  }

 private:
  /// Checks the record that a read returned. It is at the end of the reply (shared/kv).
  bool is_whole(uint64_t id, std::span<const std::byte> output) const {
    const uint32_t bytes = input_.shape.record_bytes;
    return output.size() >= bytes &&
           looks_whole(output.last(bytes).data(), input_.shape.field_bytes(), id, 0);
  }

  const JobInput input_;
  const double mean_think_ns_;
  bench::Random think_random_;
  Generator generator_;
  std::vector<std::byte> record_;
  KvRequest request_;
};

}  // namespace

Result<ClientPort::RunClient> ClientPort::client_of(const std::string& input) {
  ATOLL_ASSIGN(const JobInput parsed, JobInput::parse(input));
  return bench::client_with<ClientWork>(parsed, node_count(), options());
}

}  // namespace atolldb::ycsb
