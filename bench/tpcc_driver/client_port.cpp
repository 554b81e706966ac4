#include "bench/tpcc_driver/client_port.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "bench/common/random.h"
#include "bench/driver/client_loop.h"
#include "bench/tpcc/call.h"
#include "bench/tpcc/run_result.h"
#include "bench/tpcc/terminals.h"
#include "bench/tpcc/transactions.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {
namespace {

/// The transactions of one client. Thread: one.
class ClientWork {
 public:
  struct Planned {
    TransactionType type;
    uint32_t home;  // warehouse
  };
  using Counts = RunResult;
  static constexpr const char* kBenchmark = "tpcc";

  ClientWork(const JobInput& input, uint32_t node, uint32_t nodes, uint32_t index,
             const bench::ClientOptions& /*options*/)
      : scale_(input.scale),
        think_scale_(input.think_scale),
        think_random_(~input.times.seed_of(input.seed, node, index)),
        warehouses_(warehouses_of_node(input.warehouses, node, nodes)),
        generator_(input.workload(), input.times.seed_of(input.seed, node, index)) {
    CHECK(!warehouses_.empty());
  }

  Planned plan() {
    const auto homes = static_cast<uint32_t>(warehouses_.size());
    const TransactionType type = generator_.next_type();
    return {type, warehouses_[generator_.next_home(homes)]};
  }

  bool thinks() const { return think_scale_ != 0; }
  /// The terminal thinks about the answer, and then keys the next transaction in.
  uint64_t think_ns(const Planned& previous, const Planned& next) {
    return tpcc::think_ns(previous.type, think_scale_, think_random_) +
           keying_ns(next.type, think_scale_);
  }

  const char* request(const Planned& planned, std::span<const std::byte>& input) {
    const CallHead head{planned.type, scale_};
    switch (planned.type) {
      case TransactionType::new_order:
        write_call(head, generator_.new_order(planned.home), request_);
        break;
      case TransactionType::payment:
        write_call(head, generator_.payment(planned.home), request_);
        break;
      case TransactionType::order_status:
        write_call(head, generator_.order_status(planned.home), request_);
        break;
      case TransactionType::delivery:
        write_call(head, generator_.delivery(planned.home), request_);
        break;
      case TransactionType::stock_level:
        write_call(head, generator_.stock_level(planned.home), request_);
        break;
    }
    input = request_;
    return kCallProcedure;
  }

  static void sent(const Planned& /*planned*/) {}

  static std::optional<bool> take(const Planned& planned, Status status,
                                  std::span<const std::byte> output, bool is_measured,
                                  RunResult& counts) {
    if (status == Status::user_abort && planned.type == TransactionType::new_order) {
      if (is_measured) ++counts.user_aborts;
      return false;
    }
    if (status != Status::ok) return std::nullopt;
    if (is_measured && planned.type == TransactionType::delivery) count_orders(output, counts);
    return true;
  }

  static std::string describe(const Planned& planned) {
    return fmt::format("{} of warehouse {}", kTransactionNames[static_cast<uint32_t>(planned.type)],
                       planned.home);
  }

 private:
  static void count_orders(std::span<const std::byte> output, RunResult& counts) {
    DeliveryOutput delivered;
    if (output.size() != sizeof(delivered)) return;
    std::memcpy(&delivered, output.data(), sizeof(delivered));
    counts.delivered_orders += delivered.delivered;
    counts.skipped_deliveries += kDistricts - delivered.delivered;
  }

  const Scale scale_;
  const double think_scale_;  // factor of the specification's times; 0: none
  bench::Random think_random_;
  const std::vector<uint32_t> warehouses_;
  InputGenerator generator_;
  std::vector<std::byte> request_;
};

}  // namespace

Result<ClientPort::RunClient> ClientPort::client_of(const std::string& input) {
  ATOLL_ASSIGN(const JobInput parsed, JobInput::parse(input));
  return bench::client_with<ClientWork>(parsed, node_count(), options());
}

}  // namespace atolldb::tpcc
