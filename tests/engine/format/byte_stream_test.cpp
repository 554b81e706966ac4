// The archives of byte_stream.h: bytes of each kind of field, round trips, damaged bytes.
#include "engine/format/byte_stream.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/format/hex.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

enum class Tide : uint8_t { low = 1, high = 2 };

struct Beacon {
  uint16_t number = 0;
  std::string name;

  bool operator==(const Beacon&) const = default;
};

template <typename Archive>
void fields(Archive& archive, Described<Archive, Beacon>& beacon) {
  archive(beacon.number, beacon.name);
}

struct Chart {
  Tide tide = Tide::low;
  bool is_lit = false;
  uint64_t depth = 0;
  SnapshotPointer page;
  std::optional<uint32_t> edition;
  std::array<uint8_t, 3> code = {};
  std::vector<Beacon> beacons;
  std::vector<Beacon> buoys;

  bool operator==(const Chart&) const = default;
};

template <typename Archive>
void fields(Archive& archive, Described<Archive, Chart>& chart) {
  archive.enumerator(chart.tide, Tide::low, Tide::high);
  archive(chart.is_lit, chart.depth, chart.page, chart.edition, chart.code, chart.beacons);
  archive.list(chart.buoys, [&](auto& buoy) { archive(buoy.name, buoy.number); });
}

Chart chart_of(std::mt19937_64& random) {
  Chart chart;
  chart.tide = random() % 2 == 0 ? Tide::low : Tide::high;
  chart.is_lit = random() % 2 == 0;
  chart.depth = random();
  chart.page = SnapshotPointer(random());
  if (random() % 2 == 0) chart.edition = static_cast<uint32_t>(random());
  for (uint8_t& byte : chart.code) byte = static_cast<uint8_t>(random());
  for (auto* beacons : {&chart.beacons, &chart.buoys}) {
    beacons->resize(random() % 4);
    for (Beacon& beacon : *beacons) {
      beacon = {static_cast<uint16_t>(random()), std::string(random() % 9, 'b')};
    }
  }
  return chart;
}

TEST(ByteStream, WritesTheBytesThatItsHeaderTells) {
  Chart chart;
  chart.tide = Tide::high;
  chart.is_lit = true;
  chart.depth = 0x0807060504030201;
  chart.page = SnapshotPointer::make(1, 2, 3);
  chart.code = {0xa, 0xb, 0xc};
  chart.beacons = {{0x1234, "up"}};
  chart.buoys = {{7, ""}, {8, "b"}};
  ByteWriter writer;
  writer(chart);
  EXPECT_EQ(hex_of(writer.bytes()),
            "02"
            "01"
            "0102030405060708"
            "0300000002010000"
            "0000000000"
            "0a0b0c"
            "01000000"
            "341202007570"
            "02000000"
            "00000700"
            "0100620800");
}

TEST(ByteStream, ReadsWhatItWrote) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 200; ++i) {
    const Chart chart = chart_of(random);
    ByteWriter writer;
    writer(chart);
    ByteReader reader(writer.bytes());
    Chart read;
    reader(read);
    EXPECT_TRUE(reader.is_at_end());
    EXPECT_EQ(read, chart);
  }
}

TEST(ByteStream, FailsIfBytesAreMissingOrLeft) {
  std::mt19937_64 random(seed());
  const Chart chart = chart_of(random);
  ByteWriter writer;
  writer(chart);
  for (size_t count = 0; count < writer.bytes().size(); ++count) {
    ByteReader reader(writer.bytes().first(count));
    Chart read;
    reader(read);
    EXPECT_FALSE(reader.is_good()) << count;
  }
  writer(true);
  ByteReader reader(writer.bytes());
  Chart read;
  reader(read);
  EXPECT_TRUE(reader.is_good());
  EXPECT_FALSE(reader.is_at_end());
}

TEST(ByteStream, FailsForEnumsOutsideTheirRange) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::byte bytes[] = {static_cast<std::byte>(byte)};
    ByteReader reader(bytes);
    Tide tide = Tide::low;
    reader.enumerator(tide, Tide::low, Tide::high);
    EXPECT_EQ(reader.is_at_end(), byte == 1 || byte == 2) << byte;
  }
}

}  // namespace
}  // namespace atolldb::test
