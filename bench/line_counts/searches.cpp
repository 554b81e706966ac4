#include "bench/line_counts/searches.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "bench/line_counts/crew.h"
#include "bench/line_counts/line_counter.h"
#include "engine/format/tree_page.h"
#include "shared/base/check.h"

namespace atolldb::bench {

namespace {

using Lines = std::set<uint64_t>;  // numbers within a page

// Slices and separators are multiples of kStep. The searches end in slot 50, so they read slots 48
// to 63, after the guides.
constexpr uint64_t kStep = 10;
constexpr uint64_t kFound = 50;
constexpr uint32_t kSlots = 100;
static_assert(kSearchStride == 16 && kBorderGuides == 4 && kSlots <= kMaxBorderSlots);

struct alignas(kPageBytes) SearchedPage {
  std::byte bytes[kPageBytes];
};

/// A load that is one search.
class OneSearch : public CountedLoad {
 public:
  explicit OneSearch(std::function<uint32_t()> search) : search_(std::move(search)) {}
  void populate() override {
    active_crew->become(1);
    CHECK(search_() == kFound);
  }
  bool run_one(uint32_t) override { return true; }
  void tick() override {}

 private:
  std::function<uint32_t()> search_;
};

/// Returns the lines of the page that `search` reads. They are first accesses of another node.
Lines lines_of(const SearchedPage& page, std::function<uint32_t()> search) {
  LineCounter counter(2, 1, {{&page.bytes[0], sizeof(page), 0}});
  counter.start_counting();
  OneSearch load(std::move(search));
  Crew(counter, load, {}).populate();
  Lines lines;
  counter.for_each_used_line([&](const std::byte* line, const LineUse& use) {
    CHECK(use.writes == 0 && use.firsts_other == 1);
    lines.insert(static_cast<uint64_t>(line - &page.bytes[0]) / kLineBytes);
  });
  return lines;
}

void search_in_border(SearchedPage& memory) {
  auto& page = reinterpret_cast<BorderPage&>(memory);
  page.set_slot_capacity(kSlots);
  for (uint32_t slot = 0; slot < kSlots; ++slot) page.set_slice(slot, slot * kStep);
  const auto line_of = [](uint64_t slot) {
    return (sizeof(TreePage) + slot * sizeof(uint64_t)) / kLineBytes;
  };
  // The last two strides have no guide.
  const Lines ascending = {offsetof(TreePage, border_guide) / kLineBytes, line_of(48), line_of(63),
                           line_of(80), line_of(96)};
  CHECK(lines_of(memory, [&] { return page.find_lower_bound(kFound * kStep, kSlots); }) ==
        ascending);
  Lines linear;
  for (uint64_t slot = 0; slot <= kFound; ++slot) linear.insert(line_of(slot));
  CHECK(lines_of(memory, [&] { return find_equal(page.slices(), 0, kSlots, kFound * kStep); }) ==
        linear);
}

void search_in_interior(SearchedPage& memory) {
  auto& page = reinterpret_cast<InteriorPage&>(memory);
  for (uint32_t i = 0; i < kInteriorCapacity; ++i) page.separators[i] = i * kStep;
  page.set_sorted(kInteriorCapacity);
  const auto line_of = [&](const auto& member) {
    return static_cast<uint64_t>(reinterpret_cast<const std::byte*>(&member) - &memory.bytes[0]) /
           kLineBytes;
  };
  constexpr uint32_t kUsedGuides = (kInteriorCapacity - 1) / kSearchStride;
  const Lines expected = {line_of(page.header.slots), line_of(page.guide[0]),
                          line_of(page.guide[kUsedGuides - 1]), line_of(page.separators[48]),
                          line_of(page.separators[63])};
  CHECK(lines_of(memory, [&] { return page.find(kFound * kStep, kInteriorCapacity); }) == expected);
}

}  // namespace

void check_that_searches_are_counted() {
  const auto pages = std::make_unique<SearchedPage[]>(2);
  search_in_border(pages[0]);
  search_in_interior(pages[1]);
}

}  // namespace atolldb::bench
