#include "soc/snapshot/lent_page_returner.h"

#include <chrono>
#include <cstdint>

#include "shared/process/start_up.h"

namespace atolldb {

LentPageReturner::LentPageReturner(PagePool& pool, SnapshotCache& cache)
    : pool_(pool), cache_(cache), thread_([this] { work(); }) {}

LentPageReturner::~LentPageReturner() {
  ends_.store(true, std::memory_order_relaxed);
  pool_.end_wait();
  thread_.join();
}

void LentPageReturner::work() {
  // Readers that fill all lent frames now will end within this time.
  constexpr std::chrono::milliseconds kPause{1};
  name_thread("lent");
  become_prompt_thread();  // transactions may wait for the pages
  while (true) {
    // Loaded before `ends_`: if end_wait comes later, await_reclaim returns at once.
    const uint32_t signal = pool_.reclaim_signal();
    if (ends_.load(std::memory_order_relaxed)) return;
    const uint64_t wanted = pool_.pages_to_reclaim();
    if (wanted == 0) {
      pool_.await_reclaim(signal);
    } else if (cache_.return_lent(wanted) == 0) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace atolldb
