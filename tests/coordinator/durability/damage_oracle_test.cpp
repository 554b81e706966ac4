// Damage of every kind to a data directory whose cluster was killed when idle. It hits some blocks
// of all files, or every block in the long form. A start-up must refuse the damage, or have
// everything acknowledged.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "tests/coordinator/durability/cut_history.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Block = std::vector<std::byte>;

std::vector<Block> blocks_of(FileSystem& files, const std::string& path) {
  std::vector<Block> blocks;
  auto file = files.open_for_reading(path);
  if (!file) return blocks;
  const uint64_t bytes = (*file)->size().value_or(0);
  for (uint64_t offset = 0; offset + kIoBlockBytes <= bytes; offset += kIoBlockBytes) {
    Block block(kIoBlockBytes);
    CHECK((*file)->read(offset, block) == kIoBlockBytes);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

bool is_zero(const Block& block) {
  return std::ranges::all_of(block, [](std::byte byte) { return byte == std::byte{}; });
}

enum class Damage : uint8_t { flip, zero, swap, stale, misdirected, truncate, count_ };
const char* to_string(Damage damage) {
  constexpr const char* kNames[] = {"flip", "zero", "swap", "stale", "misdirected", "truncate"};
  return kNames[static_cast<size_t>(damage)];
}

/// Damages copies of one data directory, and starts a cluster on each. A start must either refuse
/// the damage, or have every acknowledged commit.
class Damages {
 public:
  Damages(CutHistory& history, uint64_t seed) : history_(history), random_(seed) {
    for (const std::string& path : files_of(history.disk())) {
      files_[path] = blocks_of(history.disk(), path);
    }
  }

  /// Tries each kind of damage on blocks with content, and on the block after the last block with
  /// content. If there are more than `most` of these blocks, it damages only `most` of them, of all
  /// files in turn. Returns the undetected damages, or an empty text.
  std::string try_all(uint64_t most) {
    constexpr size_t kMostText = 4000;
    Places places = places_with_content();
    std::ranges::shuffle(places, random_);
    take_files_in_turn(places);
    if (places.size() > most) places.resize(most);
    std::string problems;
    for (const auto& [path, block] : places) {
      for (uint8_t damage = 0; damage < static_cast<uint8_t>(Damage::count_); ++damage) {
        problems += try_one(path, block, static_cast<Damage>(damage));
        if (problems.size() > kMostText) return problems;
      }
    }
    return problems;
  }

  uint64_t tried = 0;
  std::map<std::string, uint64_t> noticed;  // number of detected damages, by kind

 private:
  using Places = std::vector<std::pair<std::string, size_t>>;  // path and number of a block

  /// Sorts the places: first one of each file, then a second one of each file, and so on.
  static void take_files_in_turn(Places& places) {
    std::map<std::string, size_t> turns;
    std::vector<std::pair<size_t, Places::value_type>> sorted;
    for (auto& place : places) sorted.emplace_back(turns[place.first]++, std::move(place));
    std::ranges::sort(sorted, {}, [](const auto& each) { return each.first; });
    places.clear();
    for (auto& [turn, place] : sorted) places.push_back(std::move(place));
  }

  Places places_with_content() const {
    Places places;
    for (const auto& [path, blocks] : files_) {
      bool was_written = true;
      for (size_t block = 0; block < blocks.size(); ++block) {
        const bool is_written = !is_zero(blocks[block]);
        if (is_written || was_written) places.emplace_back(path, block);
        was_written = is_written;
      }
    }
    return places;
  }
  /// Returns false if the damage would change nothing.
  bool apply(PowerCutFileSystem& image, const std::string& path, size_t block, Damage damage) {
    const std::vector<Block>& blocks = files_.at(path);
    const uint64_t offset = block * kIoBlockBytes;
    const auto put = [&](size_t at, const Block& content) {
      CHECK(image.replace(path, at * kIoBlockBytes, content).has_value());
    };
    switch (damage) {
      case Damage::flip: {
        const auto mask = static_cast<uint8_t>(1 << random_() % 8);
        // Half of the damaged bytes are at the begin of a block, where headers are.
        const uint64_t byte = random_() % (random_() % 2 == 0 ? 64 : kIoBlockBytes);
        return image.corrupt(path, offset + byte, mask).has_value();
      }
      case Damage::zero:
        put(block, Block(kIoBlockBytes));
        return !is_zero(blocks[block]);
      case Damage::swap: {
        const size_t other = random_() % blocks.size();
        put(block, blocks[other]);
        put(other, blocks[block]);
        return blocks[other] != blocks[block];
      }
      case Damage::stale: {
        const std::vector<Block> older = blocks_of(history_.before(), path);
        if (block >= older.size() || older[block] == blocks[block]) return false;
        put(block, older[block]);
        return true;
      }
      case Damage::misdirected: {
        auto other = files_.begin();
        std::advance(other, random_() % files_.size());
        if (other->first == path || block >= other->second.size()) return false;
        put(block, other->second[block]);
        return other->second[block] != blocks[block];
      }
      default:
        return image.truncate(path, offset).has_value();
    }
  }

  std::string try_one(const std::string& path, size_t block, Damage damage) {
    const auto image = history_.disk().cut_losing_nothing();
    if (!apply(*image, path, block, damage)) return "";
    ++tried;
    const auto started = history_.start_on(*image);
    if (started) return "";
    ++noticed[to_string(damage)];
    const bool is_refused = started.error().code == ExitCode::corruption;
    if (is_refused) return "";
    return fmt::format("{} of block {} of {}: exit code {}: {}\n", to_string(damage), block, path,
                       static_cast<int>(started.error().code), started.error().message);
  }

  CutHistory& history_;
  std::mt19937_64 random_;
  std::map<std::string, std::vector<Block>> files_;
};

std::string damage_everything(uint64_t seed, bool notes, DurabilityScheme scheme) {
  CutHistory history(seed, {}, scheme);
  std::string problem = history.run_killed_when_idle(notes);
  if (!problem.empty()) return problem;
  Damages damages(history, seed);
  constexpr uint64_t kAll = UINT64_MAX;
  problem = damages.try_all(rounds(40, kAll));
  if (!problem.empty()) return fmt::format("ATOLL_SEED={}: {}", seed, problem);
  for (const auto& [kind, count] : damages.noticed) {
    std::printf("%s: %llu noticed\n", kind.c_str(), static_cast<unsigned long long>(count));
  }
  std::printf("%llu damages\n", static_cast<unsigned long long>(damages.tried));
  if (damages.tried < 80) return "next to nothing was damaged: this has shown nothing";
  return "";
}

/// The counter-example of R51: flips a bit in each written block of each log file, one block per
/// copy. Returns the number of damages that lost commits silently.
uint64_t silent_losses_of_the_last_epoch(uint64_t seed, bool is_idle, DurabilityScheme scheme) {
  CutHistory history(seed, {}, scheme);
  CHECK(is_idle ? history.run_killed_when_idle(false).empty()
                : history.run_killed_at_once().empty());
  uint64_t silent = 0;
  for (const std::string& path : files_of(history.disk())) {
    if (!path.contains("/log_")) continue;
    const std::vector<Block> blocks = blocks_of(history.disk(), path);
    for (size_t block = 0; block < blocks.size(); ++block) {
      if (is_zero(blocks[block])) continue;
      const auto started = history.start_with_damage(path, block * kIoBlockBytes + 4, 1);
      if (!started && started.error().message.contains("WRONG")) ++silent;
    }
  }
  return silent;
}

class DamageOracle : public testing::TestWithParam<DurabilityScheme> {};
INSTANTIATE_TEST_SUITE_P(Schemes, DamageOracle, all_schemes(), name_of_scheme);

TEST_P(DamageOracle, WithoutClosingMarkersDamageToTheLastEpochIsSilent) {
  EXPECT_EQ(silent_losses_of_the_last_epoch(1, true, GetParam()), 0u);
  EXPECT_GT(silent_losses_of_the_last_epoch(1, false, GetParam()), 0u)
      << "closing markers change nothing: the test above has shown nothing";
}

TEST_P(DamageOracle, ADamagedCreationIsNoticedAsSoonAsItWasAcknowledged) {
  CutHistory history(seed(), {}, GetParam());
  ASSERT_EQ(history.run_undisturbed(), "");
  ASSERT_EQ(history.run_killed_after_creation(), "");
  const std::string path = "/data/coordinator/ddl_000000.atlog";
  const std::vector<Block> blocks = blocks_of(history.disk(), path);
  size_t last = 0;
  while (last + 1 < blocks.size() && !is_zero(blocks[last + 1])) ++last;
  const auto started = history.start_with_damage(path, last * kIoBlockBytes + 50, 1);
  ASSERT_FALSE(started) << "the storage is gone";
  EXPECT_EQ(started.error().code, ExitCode::corruption) << started.error().message;
  EXPECT_TRUE(started.error().message.contains("records were durable")) << started.error().message;
}

TEST_P(DamageOracle, NoDamageOfAnyBlockOfAnIdleClusterIsSilent) {
  const uint64_t first = seed();
  for (uint64_t i = 0; i < rounds(1, 40); ++i) {
    EXPECT_EQ(damage_everything(first + i, true, GetParam()), "");
  }
}

}  // namespace
}  // namespace atolldb::test
