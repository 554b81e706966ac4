// Tests of CopiedRecords: which slots and payloads of a page are copied, and what their bytes are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/compose/tree_builder.h"
#include "engine/format/tree_key.h"
#include "engine/mastertree/build.h"
#include "engine/mastertree/copied_records.h"

namespace atolldb::test {
namespace {

constexpr SnapshotPointer kPage = SnapshotPointer::make(3, 0, 17);
constexpr SnapshotPointer kOther = SnapshotPointer::make(3, 0, 18);

/// A page as composers write it. Key i is its slice. Record i has the suffix "end", and a payload
/// of 3 * i bytes.
class ComposedPage {
 public:
  static constexpr uint32_t kCount = 4;
  static constexpr uint16_t kRemainder = 11;

  ComposedPage() {
    format_border(buffer_, 0, kCount,
                  kCount * (TreeRecord::bytes_with(kRemainder, 3 * kCount) + kSlotBytes), {});
    for (uint32_t i = 0; i < kCount; ++i) {
      const std::string payload = payload_of(i);
      const auto bytes = static_cast<uint32_t>(payload.size());
      TreeRecord* record =
          write_slot(&page(), i, i, kRemainder, reinterpret_cast<const std::byte*>("end"),
                     TreeRecord::capacity_for(kRemainder, bytes), Vid::make(5, i));
      record->payload_bytes.store(static_cast<uint16_t>(bytes), std::memory_order_relaxed);
      std::copy_n(reinterpret_cast<const std::byte*>(payload.data()), bytes, record->payload());
    }
  }

  BorderPage& page() { return *buffer_.as<BorderPage>(); }
  static std::string payload_of(uint32_t i) {
    return std::string(size_t{3} * i, static_cast<char>('a' + i));
  }
  uint32_t payload_at(uint32_t i) {
    return page().offsets()[i] + uint32_t{page().record(i)->payload_at()};
  }
  /// Returns the payload as the copy has it, or "-".
  std::string copied(const CopiedRecords& copy, uint32_t i, SnapshotPointer name = kPage) {
    const auto bytes = static_cast<uint32_t>(payload_of(i).size());
    const std::byte* payload = copy.payload(name, payload_at(i), bytes);
    return payload == nullptr ? "-" : std::string(reinterpret_cast<const char*>(payload), bytes);
  }

 private:
  PageBuffer buffer_{};
};

TEST(CopiedRecords, AreEmptyAtFirst) {
  const auto copy = std::make_unique<CopiedRecords>();
  ComposedPage composed;
  EXPECT_FALSE(copy->has(kPage, 0));
  EXPECT_EQ(composed.copied(*copy, 1), "-");
}

TEST(CopiedRecords, HaveTheSlotsThatWereCopiedLast) {
  ComposedPage composed;
  const auto copy = std::make_unique<CopiedRecords>();
  for (uint32_t first = 0; first < ComposedPage::kCount; ++first) {
    for (uint32_t count = 1; first + count <= ComposedPage::kCount; ++count) {
      copy->copy(composed.page(), kPage, first, count, true);
      for (uint32_t i = 0; i < ComposedPage::kCount; ++i) {
        const bool is_copied = i >= first && i < first + count;
        ASSERT_EQ(copy->has(kPage, i), is_copied) << first << ", " << count << ", " << i;
        EXPECT_FALSE(copy->has(kOther, i));
        EXPECT_EQ(composed.copied(*copy, i, kOther), "-");
        // The end of a record may be the payload of no bytes of its neighbour.
        if (i == 0) continue;
        ASSERT_EQ(composed.copied(*copy, i), is_copied ? ComposedPage::payload_of(i) : "-");
      }
      for (uint32_t i = first; i < first + count; ++i) {
        const TreeRecord* record = copy->page()->record(i);
        EXPECT_EQ(copy->page()->slices()[i], i);
        EXPECT_EQ(record->head.load_acquire(), Vid::make(5, i));
        EXPECT_EQ(record->head.remainder, ComposedPage::kRemainder);
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(record->suffix()), 3), "end");
      }
    }
  }
}

TEST(CopiedRecords, HaveAllButTheEndOfALongPayloadIfItIsNotWanted) {
  PageBuffer buffer{};
  constexpr uint32_t kBytes = 1000;
  format_border(buffer, 0, 1, TreeRecord::bytes_with(8, kBytes) + kSlotBytes, {});
  auto& page = *buffer.as<BorderPage>();
  TreeRecord* record =
      write_slot(&page, 0, 7, 8, nullptr, TreeRecord::capacity_for(8, kBytes), Vid::make(5, 1));
  record->payload_bytes.store(kBytes, std::memory_order_relaxed);
  const uint32_t at = page.offsets()[0] + uint32_t{record->payload_at()};
  const auto copy = std::make_unique<CopiedRecords>();
  copy->copy(page, kPage, 0, 1, false);
  EXPECT_TRUE(copy->has(kPage, 0));
  EXPECT_EQ(copy->page()->record(0)->payload_bytes.load(std::memory_order_relaxed), kBytes);
  EXPECT_EQ(copy->payload(kPage, at, kBytes), nullptr);
  copy->copy(page, kPage, 0, 1, true);
  EXPECT_NE(copy->payload(kPage, at, kBytes), nullptr);
}

}  // namespace
}  // namespace atolldb::test
