// The mutant of adoptions. Only the engine for mutant tests compiles this file.
#include <utility>

#include "engine/hooks/mutants.h"
#include "engine/mastertree/descent.h"

namespace atolldb {

/// Exchanges the last two children, which R3 forbids.
void after_adoption(InteriorPage* parent, uint32_t last) {
  if (!fault::move_separators || last <= parent->sorted_count()) return;
  std::swap(parent->separators[last - 1], parent->separators[last]);
  std::atomic<uint64_t>& left = parent->children[last - 1].volatile_word;
  std::atomic<uint64_t>& right = parent->children[last].volatile_word;
  right.store(left.exchange(right.load(std::memory_order_relaxed), std::memory_order_relaxed),
              std::memory_order_release);
}

}  // namespace atolldb
