// Copies of all small sizes, at places of all alignments.
#include "shared/base/copy_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace atolldb {
namespace {

constexpr size_t kLongest = 300;
constexpr size_t kMargin = 64;  // before and after the copy
using Buffer = std::array<unsigned char, kLongest + 2 * kMargin>;

TEST(CopyBytes, CopiesAllBytesAndNoOthers) {
  Buffer from;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i % 251 + 1);
  for (size_t bytes = 0; bytes <= kLongest; ++bytes) {
    for (size_t shift = 0; shift < 8; ++shift) {
      Buffer to{};
      Buffer expected{};
      copy_bytes(&to[kMargin + shift], &from[kMargin / 2 + shift * 3], bytes);
      std::memcpy(&expected[kMargin + shift], &from[kMargin / 2 + shift * 3], bytes);
      ASSERT_EQ(to, expected) << bytes << " bytes, shift " << shift;
    }
  }
}

}  // namespace
}  // namespace atolldb
