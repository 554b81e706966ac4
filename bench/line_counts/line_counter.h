// Counts the accesses of workers to cache lines of shared memory. Instrumented code calls it for
// each access (tsan_hooks.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/line_counts/line_model.h"

namespace atolldb::bench {

inline constexpr uint64_t kLineBytes = 64;

/// Where the memory of a line is, as a worker sees it.
enum class Home : uint8_t {
  own_node,
  other_node,
  cluster,  // the control segment, which exists once
};
inline constexpr uint32_t kHomes = 3;
inline constexpr std::array<const char*, kHomes> kHomeNames = {"own", "other", "cluster"};

/// Accesses of one worker to lines with the same kind of home.
struct HomeCounts {
  uint64_t accesses = 0;  // an access to several lines counts once for each
  uint64_t writes = 0;    // those that write, with atomic read-modify-writes
  uint64_t lines = 0;     // distinct lines of each transaction, summed over the transactions
  uint64_t firsts = 0;    // see Touch; includes those of dirty lines
  uint64_t firsts_of_dirty = 0;
  uint64_t misses = 0;
  uint64_t upgrades = 0;
};
using WorkerCounts = std::array<HomeCounts, kHomes>;  // by Home

/// Accesses of all workers to one line, without those of the clock.
struct LineUse {
  uint32_t writes = 0;
  uint32_t firsts_other = 0;     // first accesses of workers of other nodes
  uint32_t firsts_of_dirty = 0;  // of workers of all nodes
  uint32_t upgrades = 0;
  uint32_t misses_own = 0;  // by workers of the home node; all misses if the line has no home node
  uint32_t misses_other = 0;
  uint16_t writer = 0;        // first writer + 1; 0: no writer
  bool is_contended = false;  // several workers have written it

  uint64_t fetches() const {
    return uint64_t{misses_own} + misses_other + firsts_of_dirty + upgrades;
  }
  bool is_used() const { return writes + fetches() + firsts_other != 0; }
};

/// Follows the caches from the start, but counts only after `start_counting`. Thread: one at a
/// time.
class LineCounter {
 public:
  static constexpr uint16_t kNoNode = 0xffff;

  /// A part of memory whose lines are counted. Segments begin and end at a small page.
  struct Segment {
    const std::byte* begin;
    uint64_t bytes;
    uint16_t node;  // kNoNode: the segment belongs to the whole cluster
  };

  /// One cache for each worker, and one for the coordinator's clock. Worker i is on node
  /// i / workers_per_node.
  LineCounter(uint32_t nodes, uint32_t workers_per_node, const std::vector<Segment>& segments);

  uint32_t workers() const { return workers_; }
  uint32_t clock() const { return workers_; }  // number of the clock's cache

  /// Sets all counters to 0.
  void start_counting();
  /// Counts one access of `worker`. Ignores memory that is in no segment.
  void access(uint32_t worker, const void* address, uint64_t bytes, bool is_write);
  /// From now on the worker's distinct lines are those of its next transaction.
  void begin_transaction(uint32_t worker) { ++visited_[worker].generation; }

  const WorkerCounts& counts_of(uint32_t worker) const { return counts_[worker]; }
  /// Calls `visit(address, use)` for each line with an entry in its LineUse.
  template <typename Visit>
  void for_each_used_line(Visit&& visit) const {
    for (uint64_t page = 0; page < pages_; ++page) {
      if (segment_of_page_[page] == 0 || page_is_used_[page] == 0) continue;
      for (uint64_t line = page * kLinesPerPage; line < (page + 1) * kLinesPerPage; ++line) {
        const LineUse& use = uses_[line];
        if (use.is_used()) visit(begin_ + line * kLineBytes, use);
      }
    }
  }

 private:
  static constexpr uint64_t kSmallPageBytes = 4096;
  static constexpr uint64_t kLinesPerPage = kSmallPageBytes / kLineBytes;

  /// The lines that a worker has touched in its transaction: a hash table whose entries are valid
  /// if they have the current generation. At most half of the entries are valid.
  struct Visited {
    struct Entry {
      uint64_t line;
      uint64_t generation;
    };

    Visited() : entries(1 << 14) {}
    /// Returns whether the line is new in this transaction.
    bool add(uint64_t line);
    /// Returns the valid entry of the line, or the invalid one that it may take.
    Entry& entry_for(uint64_t line);
    void grow();

    std::vector<Entry> entries;  // their number is a power of two
    uint64_t generation = 1;
    uint64_t counted_generation = 0;
    uint64_t size = 0;
  };

  void access_line(uint32_t worker, uint64_t line, bool is_write);
  static void count_touch(HomeCounts& counts, Touch touch);
  static void count_use(LineUse& use, uint32_t worker, Touch touch, bool is_write, Home home);

  uint32_t workers_;
  uint32_t workers_per_node_;
  bool is_counting_ = false;
  uintptr_t begin_address_ = 0;
  const std::byte* begin_ = nullptr;       // of the first segment
  uint64_t pages_ = 0;                     // from there to the end of the last segment
  ZeroedArray<uint32_t> segment_of_page_;  // node + 2, or 1 without a node; 0: not counted
  ZeroedArray<uint8_t> page_is_used_;
  ZeroedArray<LineUse> uses_;
  LineModel model_;
  std::vector<WorkerCounts> counts_;
  std::vector<Visited> visited_;
};

}  // namespace atolldb::bench
