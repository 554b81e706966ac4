// Shared memory segments: sizes, attachment, publication and huge pages.
#include "shared/memory/segment_space.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "shared/base/pointer.h"
#include "shared/base/process_id.h"
#include "shared/memory/segment_file.h"

namespace atolldb {
namespace {

constexpr uint64_t kBytes = uint64_t{4} << 20;

class SegmentTest : public testing::Test {
 protected:
  SegmentTest() : file_(*create_segment_file("node3.pool", kBytes, false)) {
    identity_.cluster_uuid[0] = 11;
    identity_.cluster_uuid[1] = 12;
    identity_.config_digest = 13;
  }
  std::map<std::string, int> files() const { return {{"node3.pool", file_.get()}}; }
  SegmentHeader& publish(SegmentSpace& owner) {
    auto base = owner.prepare(SegmentKind::pool, 3, {});
    EXPECT_TRUE(base) << base.error().message;
    owner.publish(SegmentKind::pool, 3);
    return *reinterpret_cast<SegmentHeader*>(*base);
  }

  UniqueFd file_;
  SegmentIdentity identity_;
};

TEST_F(SegmentTest, AttachingSeesWhatTheOwnerWroteAtAnotherAddress) {
  SegmentSpace owner(files(), identity_, 3);
  SegmentHeader& header = publish(owner);
  EXPECT_EQ(header.owner_pid, getpid());
  EXPECT_EQ(header.owner_start_time, this_process().start_time);
  EXPECT_EQ(header.size_bytes, kBytes);
  EXPECT_TRUE(header.real_page_bytes == 4096 || header.real_page_bytes == 2u << 20);
  reinterpret_cast<std::byte*>(&header)[kBytes - 1] = std::byte{42};

  SegmentSpace peer(files(), identity_, 4);
  const auto base = peer.attach(SegmentKind::pool, 3, true);
  ASSERT_TRUE(base) << base.error().message;
  EXPECT_NE(static_cast<void*>(*base), static_cast<void*>(&header));
  EXPECT_EQ((*base)[kBytes - 1], std::byte{42});
  EXPECT_EQ(*peer.attach(SegmentKind::pool, 3, true), *base);
}

TEST_F(SegmentTest, AnUnpublishedSegmentIsRefused) {
  SegmentSpace peer(files(), identity_, 4);
  const auto base = peer.attach(SegmentKind::pool, 3, false);
  ASSERT_FALSE(base);
  EXPECT_NE(base.error().message.find("magic"), std::string::npos) << base.error().message;
  EXPECT_FALSE(peer.attach(SegmentKind::pool, 4, false));
}

TEST_F(SegmentTest, EveryWrongFieldOfTheHeaderIsNamed) {
  SegmentSpace owner(files(), identity_, 3);
  SegmentHeader& header = publish(owner);
  const SegmentHeader good = header;
  struct Case {
    const char* field;
    void (*damage)(SegmentHeader&);
  };
  const Case cases[] = {
      {"magic", [](SegmentHeader& h) { h.magic ^= 1; }},
      {"layout_version", [](SegmentHeader& h) { ++h.layout_version; }},
      {"layout_hash", [](SegmentHeader& h) { ++h.layout_hash; }},
      {"kind", [](SegmentHeader& h) { h.kind = SegmentKind::local; }},
      {"node", [](SegmentHeader& h) { ++h.node; }},
      {"cluster_uuid", [](SegmentHeader& h) { ++h.cluster_uuid[0]; }},
      {"cluster_uuid", [](SegmentHeader& h) { ++h.cluster_uuid[1]; }},
      {"config_digest", [](SegmentHeader& h) { ++h.config_digest; }},
      {"size_bytes", [](SegmentHeader& h) { h.size_bytes -= 4096; }},
  };
  for (const Case& wrong : cases) {
    header = good;
    wrong.damage(header);
    SegmentSpace peer(files(), identity_, 4);
    const auto base = peer.attach(SegmentKind::pool, 3, false);
    ASSERT_FALSE(base) << wrong.field;
    EXPECT_NE(base.error().message.find(std::string(wrong.field) + " is"), std::string::npos)
        << base.error().message;
  }
}

TEST(SegmentPlanTest, WhatDoesNotFitIsRefusedWithTheReason) {
  const uint64_t sizes[] = {uint64_t{64} << 20, uint64_t{2} << 20};  // 33 huge pages
  MemoryAvailable plenty;
  plenty.bytes = uint64_t{1} << 30;
  plenty.huge_pages = 33;
  EXPECT_EQ(plan_huge_pages(sizes, HugePages::require, plenty).value(), true);
  EXPECT_EQ(plan_huge_pages(sizes, HugePages::advise, plenty).value(), true);
  EXPECT_EQ(plan_huge_pages(sizes, HugePages::off, plenty).value(), false);

  MemoryAvailable few = plenty;
  few.huge_pages = 30;
  few.huge_pages_total = 40;
  EXPECT_EQ(plan_huge_pages(sizes, HugePages::advise, few).value(), false);
  const auto missing = plan_huge_pages(sizes, HugePages::require, few);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ExitCode::resources);
  EXPECT_NE(missing.error().message.find("3 huge pages"), std::string::npos);
  EXPECT_NE(missing.error().message.find("vm.nr_hugepages=43"), std::string::npos);

  MemoryAvailable little = plenty;
  little.huge_pages = 0;
  little.bytes = uint64_t{65} << 20;
  const auto memory = plan_huge_pages(sizes, HugePages::advise, little);
  ASSERT_FALSE(memory);
  EXPECT_NE(memory.error().message.find("66 MiB"), std::string::npos) << memory.error().message;

  MemoryAvailable limited = plenty;
  limited.file_limit_bytes = uint64_t{32} << 20;
  EXPECT_NE(plan_huge_pages(sizes, HugePages::off, limited).error().message.find("ulimit -f"),
            std::string::npos);
  limited = plenty;
  limited.address_limit_bytes = uint64_t{32} << 20;
  EXPECT_NE(plan_huge_pages(sizes, HugePages::off, limited).error().message.find("ulimit -v"),
            std::string::npos);
}

}  // namespace
}  // namespace atolldb
