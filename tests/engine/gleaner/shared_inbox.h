// An inbox in memory that its mappers and its reducer see at two addresses.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <utility>

#include "engine/gleaner/exchange.h"
#include "shared/base/check.h"

namespace atolldb::test {

/// One block of memory, which is mapped at two addresses.
class TwoMappings {
 public:
  explicit TwoMappings(uint64_t bytes) : bytes_(bytes) {
    const int file = memfd_create("inbox", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0);
    for (void*& base : bases_) {
      base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      CHECK(base != MAP_FAILED);
    }
    CHECK(close(file) == 0);
  }
  TwoMappings(const TwoMappings&) = delete;
  TwoMappings& operator=(const TwoMappings&) = delete;
  ~TwoMappings() {
    for (void* base : bases_) munmap(base, bytes_);
  }
  std::byte* base(uint32_t which) const { return static_cast<std::byte*>(bases_[which]); }

 private:
  uint64_t bytes_;
  void* bases_[2] = {};
};

struct SharedInbox {
  explicit SharedInbox(uint64_t half_bytes)
      : memory(ReducerInbox::bytes_for(half_bytes)),
        is_over(false),
        reducer((ReducerInbox::format(memory.base(0), ReducerInbox::bytes_for(half_bytes)),
                 memory.base(0)),
                [this] { return is_over.load(std::memory_order_relaxed); }),
        mappers(memory.base(1), [this] { return is_over.load(std::memory_order_relaxed); }) {}

  TwoMappings memory;
  std::atomic<bool> is_over;  // true: the cluster has failed
  ReducerInbox reducer;
  ReducerInbox mappers;
};

}  // namespace atolldb::test
