// Bodies of tests of held answers (R19). A body returns an error text, or an empty text if all is
// right.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "shared/sync/wait_word.h"
#include "soc/session/durable_answers.h"

namespace atolldb::test {

/// The answer to a commit is held until the commit's epoch is durable.
inline std::string answers_wait_for_durability() {
  const auto control = std::make_unique<ControlSegment>();
  control->state.store(static_cast<uint32_t>(ClusterState::running), std::memory_order_release);
  control->epochs.durable.store(10, std::memory_order_release);
  std::atomic<uint32_t> told{0};
  std::atomic<bool> is_durable{false};
  DurableAnswers answers(*control);
  answers.start();
  answers.add(11, [&](bool durable) {
    is_durable.store(durable, std::memory_order_relaxed);
    told.store(1, std::memory_order_release);
    wake(told, kWakeAll);
  });
  if (told.load(std::memory_order_acquire) != 0) return "an answer comes before it is durable";
  control->epochs.durable.store(11, std::memory_order_release);
  control->epochs.durable_signal.fetch_add(1, std::memory_order_release);
  wake(control->epochs.durable_signal, kWakeAll);
  while (told.load(std::memory_order_acquire) == 0) wait_on(told, 0, kMaxSleep);
  return is_durable.load(std::memory_order_relaxed) ? "" : "a durable answer is called unknown";
}

}  // namespace atolldb::test
