#include <unistd.h>

#include <memory>
#include <thread>

#include "bench/device_waits/workload.h"
#include "shared/base/check.h"
#include "shared/sync/run_gate.h"

namespace atolldb::bench::device_waits {
namespace {

void run_worker(Worker& worker, RunGate* gate) {
  RunGate::Pass pass;
  pass.use(gate);
  while (!worker.stops()) {
    if (!pass.try_enter()) pass.wait();
    worker.run_transaction([&](uint64_t offset, std::byte* page) {
      const RunGate::DeviceWait wait(&pass);
      const ssize_t count = pread(worker.file(), page, kIoBlockBytes, static_cast<off_t>(offset));
      CHECK(count == ssize_t{kIoBlockBytes});
    });
    pass.leave();
  }
}

}  // namespace

void run_threads(const Load& load, std::vector<Worker>& workers, uint32_t places) {
  CHECK(workers.size() == size_t{load.cpus} * load.workers);
  const auto gate = places == 0 ? nullptr : std::make_unique<RunGate>(places);
  std::vector<std::jthread> threads;
  for (Worker& worker : workers) {
    threads.emplace_back([&] { run_worker(worker, gate.get()); });
  }
}

}  // namespace atolldb::bench::device_waits
