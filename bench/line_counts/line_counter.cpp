#include "bench/line_counts/line_counter.h"

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb::bench {

namespace {

uintptr_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

const LineCounter::Segment& first_of(const std::vector<LineCounter::Segment>& segments) {
  return *std::ranges::min_element(segments, {}, [](const auto& s) { return address_of(s.begin); });
}

uint64_t pages_of(const std::vector<LineCounter::Segment>& segments, uint64_t page_bytes) {
  uintptr_t end = 0;
  for (const LineCounter::Segment& segment : segments) {
    end = std::max(end, address_of(segment.begin) + segment.bytes);
  }
  return (end - address_of(first_of(segments).begin) + page_bytes - 1) / page_bytes;
}

}  // namespace

LineCounter::LineCounter(uint32_t nodes, uint32_t workers_per_node,
                         const std::vector<Segment>& segments)
    : workers_(nodes * workers_per_node),
      workers_per_node_(workers_per_node),
      begin_address_(address_of(first_of(segments).begin)),
      begin_(first_of(segments).begin),
      pages_(pages_of(segments, kSmallPageBytes)),
      segment_of_page_(pages_),
      page_is_used_(pages_),
      uses_(pages_ * kLinesPerPage),
      model_(workers_ + 1, pages_ * kLinesPerPage),
      counts_(workers_ + 1),
      visited_(workers_ + 1) {
  for (const Segment& segment : segments) {
    CHECK(address_of(segment.begin) % kSmallPageBytes == 0);
    const uint64_t first = (address_of(segment.begin) - begin_address_) / kSmallPageBytes;
    const uint64_t count = (segment.bytes + kSmallPageBytes - 1) / kSmallPageBytes;
    for (uint64_t page = first; page < first + count; ++page) {
      CHECK(segment_of_page_[page] == 0);
      segment_of_page_[page] = segment.node == kNoNode ? 1 : segment.node + 2u;
    }
  }
}

void LineCounter::start_counting() {
  std::ranges::fill(counts_, WorkerCounts{});
  uses_.clear();
  page_is_used_.clear();
  is_counting_ = true;
}

bool LineCounter::Visited::add(uint64_t line) {
  if (counted_generation != generation) {
    counted_generation = generation;
    size = 0;
  }
  Entry& entry = entry_for(line);
  if (entry.generation == generation) return false;
  entry = {line, generation};
  if (++size == entries.size() / 2) grow();
  return true;
}

LineCounter::Visited::Entry& LineCounter::Visited::entry_for(uint64_t line) {
  const uint64_t last = entries.size() - 1;
  uint64_t at = line * 0x9e3779b97f4a7c15ull & last;
  while (entries[at].generation == generation && entries[at].line != line) at = (at + 1) & last;
  return entries[at];
}

/// A tick of the clock reads lines of each worker of the cluster, of which there may be 63,750.
void LineCounter::Visited::grow() {
  std::vector<Entry> old(2 * entries.size());
  old.swap(entries);
  for (const Entry& entry : old) {
    if (entry.generation == generation) entry_for(entry.line) = entry;
  }
}

void LineCounter::access(uint32_t worker, const void* address, uint64_t bytes, bool is_write) {
  const uint64_t offset = address_of(address) - begin_address_;  // huge before the first segment
  if (offset >= pages_ * kSmallPageBytes || bytes == 0) return;
  const uint64_t last = (offset + bytes - 1) / kLineBytes;
  for (uint64_t line = offset / kLineBytes; line <= last; ++line) {
    access_line(worker, line, is_write);
  }
}

void LineCounter::access_line(uint32_t worker, uint64_t line, bool is_write) {
  const uint32_t segment = segment_of_page_[line / kLinesPerPage];
  if (segment == 0) return;
  const Touch touch = is_write ? model_.write(worker, line) : model_.read(worker, line);
  if (!is_counting_) return;
  const bool is_own = segment == worker / workers_per_node_ + 2;
  const Home home = segment == 1 ? Home::cluster : is_own ? Home::own_node : Home::other_node;
  HomeCounts& counts = counts_[worker][static_cast<uint32_t>(home)];
  ++counts.accesses;
  if (visited_[worker].add(line)) ++counts.lines;
  if (is_write) ++counts.writes;
  count_touch(counts, touch);
  if (worker == clock() || (touch == Touch::hit && !is_write)) return;
  page_is_used_[line / kLinesPerPage] = 1;
  count_use(uses_[line], worker, touch, is_write, home);
}

void LineCounter::count_touch(HomeCounts& counts, Touch touch) {
  switch (touch) {
    case Touch::hit:
      break;
    case Touch::first_of_dirty:
      ++counts.firsts_of_dirty;
      [[fallthrough]];
    case Touch::first:
      ++counts.firsts;
      break;
    case Touch::miss:
      ++counts.misses;
      break;
    case Touch::upgrade:
      ++counts.upgrades;
      break;
  }
}

void LineCounter::count_use(LineUse& use, uint32_t worker, Touch touch, bool is_write, Home home) {
  if (is_write) {
    ++use.writes;
    if (use.writer == 0) use.writer = static_cast<uint16_t>(worker + 1);
    if (use.writer != worker + 1) use.is_contended = true;
  }
  const bool is_other = home == Home::other_node;
  switch (touch) {
    case Touch::hit:
      break;
    case Touch::first_of_dirty:
      ++use.firsts_of_dirty;
      [[fallthrough]];
    case Touch::first:
      if (is_other) ++use.firsts_other;
      break;
    case Touch::miss:
      ++(is_other ? use.misses_other : use.misses_own);
      break;
    case Touch::upgrade:
      ++use.upgrades;
      break;
  }
}

}  // namespace atolldb::bench
