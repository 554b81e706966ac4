// Bit layouts of all words that two processes must interpret alike, up to their limits.
#include "shared/base/pointer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/format/vid.h"
#include "shared/memory/page_header.h"

namespace atolldb {
namespace {

TEST(VolatilePointer, KeepsItsFieldsApartAtTheirLimits) {
  constexpr uint64_t kMaxIndex = VolatilePointer::kIndexMask;
  constexpr uint64_t kMaxGeneration = VolatilePointer::kGenerationMask;
  for (const uint64_t index : {uint64_t{1}, kMaxIndex}) {
    for (const uint64_t generation : {uint64_t{0}, kMaxGeneration}) {
      for (const uint32_t node : {0u, kMaxNodes}) {
        const auto pointer = VolatilePointer::make(node, generation, index);
        EXPECT_EQ(pointer.node(), node);
        EXPECT_EQ(pointer.generation(), generation);
        EXPECT_EQ(pointer.index(), index);
        EXPECT_FALSE(pointer.is_null());
        EXPECT_FALSE(pointer.is_frozen());
      }
    }
  }
}

TEST(VolatilePointer, AGenerationThatWrapsDoesNotReachTheNode) {
  const auto pointer = VolatilePointer::make(7, VolatilePointer::kGenerationMask + 1, 9);
  EXPECT_EQ(pointer.node(), 7u);
  EXPECT_EQ(pointer.generation(), 0u);
}

TEST(VolatilePointer, FreezingChangesNothingElseAndCanBeUndone) {
  const auto pointer = VolatilePointer::make(255, 0xabcdef, 0x12345678);
  EXPECT_TRUE(pointer.frozen().is_frozen());
  EXPECT_NE(pointer.frozen(), pointer);
  EXPECT_EQ(pointer.frozen().thawed(), pointer);
  EXPECT_EQ(pointer.frozen().index(), pointer.index());
  EXPECT_EQ(pointer.frozen().generation(), pointer.generation());
  // A frozen null word is still null.
  EXPECT_TRUE(VolatilePointer().frozen().is_null());
}

TEST(VolatilePointer, NullWordsBeforeAndAfterADropDiffer) {
  const VolatilePointer never;
  const VolatilePointer once = VolatilePointer::null_of(1);
  const VolatilePointer twice = VolatilePointer::null_of(2);
  EXPECT_TRUE(once.is_null());
  EXPECT_TRUE(twice.is_null());
  EXPECT_FALSE(once.is_frozen());
  EXPECT_NE(never, once);
  EXPECT_NE(once, twice);
}

TEST(UniversalName, OrdersByNodeThenPageThenOffset) {
  const auto name = [](uint32_t node, uint64_t index, uint64_t offset) {
    return UniversalName::make(VolatilePointer::make(node, 5, index), offset);
  };
  std::vector<UniversalName> names = {
      name(1, 1, 0),    name(0, 0x7fffffff, 4095),   name(0, 2, 0),
      name(0, 1, 4095), name(255, 0x7fffffff, 4095), name(0, 1, 64)};
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names.front(), name(0, 1, 64));
  EXPECT_EQ(names[1], name(0, 1, 4095));
  EXPECT_EQ(names[3], name(0, 0x7fffffff, 4095));
  EXPECT_EQ(names.back(), name(255, 0x7fffffff, 4095));
  EXPECT_EQ(names.back().node(), 255u);
  EXPECT_EQ(names.back().pool_offset(), 0x7fffffffull * kPageBytes + 4095);
}

TEST(UniversalName, DoesNotDependOnTheGenerationOfThePage) {
  EXPECT_EQ(UniversalName::make(VolatilePointer::make(3, 1, 8), 64),
            UniversalName::make(VolatilePointer::make(3, 2, 8), 64));
}

TEST(PageVersion, AnInsertChangesCounterAndCountAndMayEndTheOrder) {
  const auto version = PageVersion::make(41, 7, PageVersion::kAscending);
  const PageVersion in_order = version.with_insert(true);
  EXPECT_EQ(in_order.counter(), 42u);
  EXPECT_EQ(in_order.count(), 8u);
  EXPECT_TRUE(in_order.is_ascending());
  EXPECT_FALSE(version.with_insert(false).is_ascending());
}

TEST(PageVersion, EveryKindOfChangeGivesAnotherWord) {
  const auto version = PageVersion::make(9, 3, 0);
  const std::vector<uint64_t> words = {version.word(), version.with_insert(false).word(),
                                       version.with_change().word(),
                                       version.with_status(PageVersion::kMoved).word(),
                                       version.with_status(PageVersion::kDropped).word()};
  for (size_t i = 0; i < words.size(); ++i) {
    for (size_t j = i + 1; j < words.size(); ++j) EXPECT_NE(words[i], words[j]) << i << " " << j;
  }
}

TEST(PageVersion, StatusBitsStayWhenThePageChangesAgain) {
  const PageVersion moved = PageVersion::make(1, 1, 0).with_status(PageVersion::kMoved);
  EXPECT_TRUE(moved.with_change().is_moved());
  EXPECT_TRUE(moved.with_insert(false).is_moved());
  EXPECT_TRUE(moved.with_status(PageVersion::kDropped).is_moved());
  EXPECT_FALSE(moved.is_dropped());
}

TEST(Vid, HoldsTheLastEpochAndTheLastOrdinal) {
  const Vid vid = Vid::make(kMaxEpoch, Vid::kMaxOrdinal, Vid::kFlagsMask);
  EXPECT_EQ(vid.epoch(), kMaxEpoch);
  EXPECT_EQ(vid.ordinal(), Vid::kMaxOrdinal);
  EXPECT_TRUE(vid.is_being_written());
  EXPECT_TRUE(vid.is_deleted());
  EXPECT_TRUE(vid.is_moved());
  EXPECT_TRUE(vid.is_next_layer());
}

TEST(Vid, FlagsDoNotTakePartInTheVersion) {
  const Vid vid = Vid::make(12, 34);
  EXPECT_EQ(vid.with(Vid::kDeleted | Vid::kMoved).version(), vid.version());
}

TEST(Vid, GrowsWithTheOrdinalAndWithTheEpochUpToTheHorizon) {
  EXPECT_LT(Vid::make(5, 1).version(), Vid::make(5, 2).version());
  EXPECT_LT(Vid::make(5, Vid::kMaxOrdinal).version(), Vid::make(6, 0).version());
  EXPECT_LT(Vid::make(kMaxEpoch - 1, Vid::kMaxOrdinal).version(),
            Vid::make(kMaxEpoch, 0).version());
}

TEST(Vid, AReservedRecordIsDeletedAndIsNoCommit) {
  const Vid vid = Vid::reserved(kMaxEpoch);
  EXPECT_EQ(vid.epoch(), kMaxEpoch);
  EXPECT_EQ(vid.ordinal(), 0u);
  EXPECT_TRUE(vid.is_deleted());
  EXPECT_FALSE(vid.is_relocated());
}

}  // namespace
}  // namespace atolldb
