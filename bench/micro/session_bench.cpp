// Measures requests through a session's shared memory to one worker and back. The procedure is
// empty, so only the transfer is measured.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/micro/loaded.h"
#include "bench/micro/local_cluster.h"
#include "shared/base/check.h"
#include "shared/client/session_client.h"
#include "soc/session/session_server.h"

namespace atolldb::bench {

namespace {

Status nothing(ProcedureContext&) { return Status::ok; }
ATOLL_REGISTER_PROCEDURE(kNothing, "bench.nothing", nothing);

/// The worker and the session thread of a node, without the node.
class Served {
 public:
  Served() : cluster_(1, 1, uint64_t{16} << 20), answers_(*cluster_.view().control) {
    auto registry = ProcedureRegistry::load({});
    CHECK(registry);
    registry_ = *std::move(registry);
    WorkerSettings settings;
    settings.view = &cluster_.view();
    settings.pool = &cluster_.pool(0);
    settings.metrics = &metrics_;
    local_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, settings.limits.local_bytes())));
    settings.local = local_.get();
    worker_ = std::make_unique<Worker>(std::move(settings), make_silent_logger("bench"));
    worker_->start();
    answers_.start();
    SessionServices services;
    services.incarnation = 1;
    services.procedures = &registry_;
    services.workers = {worker_.get()};
    services.answers = &answers_;
    services.metrics = &session_metrics_;
    procedure_metrics_ = std::make_unique<ProcedureMetrics>(registry_.procedure_names(), 1);
    services.procedure_metrics = procedure_metrics_.get();
    services.refusal = [](Isolation) { return std::optional<Refusal>(); };
    services.deadline_epoch = [] { return kMaxEpoch; };
    server_ = std::make_unique<SessionServer>(std::move(services), make_silent_logger("bench"));
    CHECK(server_->start());
  }
  ~Served() {
    worker_->stop();
    answers_.stop(std::chrono::milliseconds(1000));
    server_->stop();
  }
  std::unique_ptr<SessionClient> connect() {
    auto socket = server_->connect();
    CHECK(socket);
    auto client = SessionClient::over(*std::move(socket));
    CHECK(client);
    return *std::move(client);
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  LocalCluster cluster_;
  WorkerMetrics metrics_;
  SessionMetrics session_metrics_{};
  std::unique_ptr<std::byte, Free> local_;
  ProcedureRegistry registry_;
  std::unique_ptr<ProcedureMetrics> procedure_metrics_;
  DurableAnswers answers_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<SessionServer> server_;
};

/// Keeps `range(0)` requests in flight. With one request, it measures the time of a round trip.
void session_request(benchmark::State& state) {
  Served served;
  const auto client = served.connect();
  const std::vector<std::byte> input(100);
  std::vector<SessionTicket> tickets(static_cast<size_t>(state.range(0)));
  const auto submit = [&] {
    const auto ticket =
        client->submit("bench.nothing", input, {.answer_at = AnswerAt::precommitted});
    CHECK(ticket);
    return *ticket;
  };
  for (SessionTicket& ticket : tickets) ticket = submit();
  size_t oldest = 0;
  for ([[maybe_unused]] auto _ : state) {
    expect_ok(client->wait(tickets[oldest]).status);
    tickets[oldest] = submit();
    oldest = (oldest + 1) % tickets.size();
  }
  for (const SessionTicket ticket : tickets) expect_ok(client->wait(ticket).status);
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(session_request)->Arg(1)->Arg(16)->Arg(200)->UseRealTime();

}  // namespace

}  // namespace atolldb::bench
