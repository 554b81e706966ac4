// Tests of the merge of sorted inputs, compared with a sort of all records.
#include "engine/gleaner/record_merge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "shared/file/io_buffer.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kMergeChunk = SortedRunWriter::kMinChunkBytes;

/// A record, and its place in the order of the merged records.
struct Made {
  uint32_t storage = 0;
  std::string key;
  uint64_t version = 0;
  size_t input = 0;
  uint64_t number = 0;  // ordinal among all records that were made
  std::vector<uint64_t> words;

  const LogRecord& record() const { return *reinterpret_cast<const LogRecord*>(words.data()); }
  auto place() const { return std::tie(storage, key, version, input, number); }
};

enum class Size : uint8_t {
  small,   // the windows of the merge have room for all records of an input
  many,    // many inputs, so their windows are small
  skewed,  // few inputs, of which one has most records, and fills its window many times
};

/// Random inputs and the records that a merge of them returns.
class Inputs {
 public:
  Inputs(uint64_t seed, Size size) : random_(seed) {
    CHECK(files_.make_directory("/data").has_value());
    storages_ = 1 + random_() % 4;
    key_values_ = 1 + random_() % 6;
    is_long_ = random_() % 4 == 0;
    is_covered_ = random_() % 3 == 0;
    const size_t count = size == Size::many ? 100 + random_() % 600 : random_() % 10;
    const size_t longest = count == 0 || size == Size::small ? count : random_() % count;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t most = i == longest ? 5 * RecordMerge::kMaxWindow : 200;
      inputs_.push_back(make_input(i, size == Size::many && i != longest ? 40 : most));
    }
    for (const auto& input : inputs_) all_.insert(all_.end(), input.begin(), input.end());
    std::ranges::sort(all_, {}, &Made::place);
  }

  void add_to(RecordMerge& merge) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (random_() % 2 == 0) {
        merge.add(std::as_bytes(std::span(memory_of(inputs_[i]))));
      } else {
        merge.add(run_of(i));
      }
    }
  }

  std::vector<const Made*> expected() const {
    std::vector<const Made*> kept;
    for (size_t i = 0; i < all_.size(); ++i) {
      const bool is_last = i + 1 == all_.size() || all_[i].storage != all_[i + 1].storage ||
                           all_[i].key != all_[i + 1].key;
      if (is_last || !covers(all_[i + 1].record(), all_[i].record())) kept.push_back(&all_[i]);
    }
    return kept;
  }
  size_t count() const { return all_.size(); }

 private:
  std::string random_key() {
    constexpr size_t kLengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 24, 40};
    std::string key(kLengths[random_() % 10], random_() % 2 == 0 ? '\0' : '\xff');
    if (!key.empty()) key.back() = static_cast<char>(random_() % key_values_);
    if (!key.empty() && random_() % 4 == 0) key[key.size() / 2] = 'm';
    return random_() % 8 == 0 ? std::string(16, '\xff') : key;
  }

  Made make(size_t input) {
    Made made;
    made.storage = static_cast<uint32_t>(1 + random_() % storages_);
    // Each input has ascending keys in a range of its own, so that the merge takes many records in
    // sequence from one input.
    made.number = next_++;
    const uint64_t number = __builtin_bswap64(input << 32 | made.number);
    made.key = is_covered_ || random_() % 3 == 0
                   ? random_key()
                   : std::string(reinterpret_cast<const char*>(&number), sizeof number);
    const Vid vid = Vid::make(1 + random_() % 3, random_() % 50, random_() % 64);
    made.version = vid.version();
    made.input = input;
    const uint64_t most = is_long_ ? 3800 : 60;
    const auto payload_bytes = static_cast<uint32_t>(8 + random_() % most);
    const auto key_bytes = static_cast<uint32_t>(made.key.size());
    made.words.resize(LogRecord::bytes(key_bytes, payload_bytes) / 8);
    for (uint64_t& word : made.words) word = random_();  // random padding, too
    auto& record = *reinterpret_cast<LogRecord*>(made.words.data());
    record.type = random_() % 4 == 0 ? LogType::insert : LogType::update;
    record.key_bytes = static_cast<uint16_t>(key_bytes);
    record.length = LogRecord::bytes(key_bytes, payload_bytes);
    record.storage_id = made.storage;
    record.payload_offset = 0;
    record.payload_bytes = static_cast<uint16_t>(payload_bytes);
    record.vid = vid.word();
    if (key_bytes != 0) std::memcpy(record.key(), made.key.data(), key_bytes);
    return made;
  }

  std::vector<Made> make_input(size_t input, uint64_t most) {
    std::vector<Made> records;
    const size_t count = random_() % most;
    for (size_t i = 0; i < count; ++i) records.push_back(make(input));
    std::ranges::sort(records, {}, &Made::place);
    return records;
  }

  const std::vector<uint64_t>& memory_of(const std::vector<Made>& records) {
    auto& words = *memory_.emplace_back(std::make_unique<std::vector<uint64_t>>());
    for (const Made& made : records)
      words.insert(words.end(), made.words.begin(), made.words.end());
    return words;
  }

  std::unique_ptr<SortedRunReader> run_of(size_t input) {
    uint64_t bytes = 0;
    for (const Made& made : inputs_[input]) bytes += made.record().length;
    IoBuffer buffer(2 * kMergeChunk);
    auto writer = SortedRunWriter::create(files_, fmt::format("/data/run{}", input),
                                          {8, 1, static_cast<uint32_t>(input)}, bytes, kMergeChunk,
                                          buffer.bytes());
    CHECK(writer.has_value());
    for (const Made& made : inputs_[input]) CHECK(writer->add(made.record()).has_value());
    const auto run = writer->finish();
    CHECK(run.has_value());
    auto reader = SortedRunReader::open(files_, *run, static_cast<uint32_t>(1 + random_() % 3));
    CHECK(reader.has_value());
    return *std::move(reader);
  }

  std::mt19937_64 random_;
  MemoryFileSystem files_;
  uint64_t storages_ = 0;
  uint64_t key_values_ = 0;
  uint64_t next_ = 0;
  bool is_long_ = false;     // long records: a chunk of a sorted run holds only a few
  bool is_covered_ = false;  // many records have the same key
  std::vector<std::vector<Made>> inputs_;
  std::vector<Made> all_;
  std::vector<std::unique_ptr<std::vector<uint64_t>>> memory_;
};

/// Returns the first difference between a merge and the model, or an empty text.
std::string check_merge(uint64_t seed, Size size) {
  Inputs inputs(seed, size);
  std::mt19937_64 random(seed + 1);
  RecordMerge merge;
  inputs.add_to(merge);
  if (auto started = merge.start(); !started) return started.error().message;
  const std::vector<const Made*> expected = inputs.expected();
  for (size_t at = 0; at < expected.size();) {
    const std::span<const SortKey> batch = merge.batch();
    if (batch.empty()) return fmt::format("it ends after {} records", at);
    if (batch.size() > expected.size() - at) return "it has too many records";
    // Compares the whole batch, because all of its records are valid until the next `take`.
    for (size_t i = 0; i < batch.size(); ++i) {
      const Made& made = *expected[at + i];
      if (made.storage != merge.storage()) return fmt::format("record {}: storage", at + i);
      if (std::memcmp(batch[i].record, made.words.data(), made.record().length) != 0) {
        return fmt::format("record {} of {}: another record", at + i, expected.size());
      }
    }
    const size_t count = random() % 4 == 0 ? 1 + random() % batch.size() : batch.size();
    if (auto taken = merge.take(count); !taken) return taken.error().message;
    at += count;
  }
  if (!merge.batch().empty()) return "it does not end";
  return merge.elided() == inputs.count() - expected.size() ? "" : "another number was elided";
}

TEST(RecordMerge, ReturnsWhatASortOfAllInputsReturns) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(600, 50'000); ++round) {
    ASSERT_EQ(check_merge(first + round, Size::small), "") << "ATOLL_SEED=" << first + round;
  }
}

TEST(RecordMerge, FillsSmallWindowsOfManyInputs) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(12, 1000); ++round) {
    ASSERT_EQ(check_merge(first + round, Size::many), "") << "ATOLL_SEED=" << first + round;
  }
}

TEST(RecordMerge, FillsTheWindowOfOneInputManyTimes) {
  const uint64_t first = seed();
  for (uint64_t round = 0; round < rounds(60, 5000); ++round) {
    ASSERT_EQ(check_merge(first + round, Size::skewed), "") << "ATOLL_SEED=" << first + round;
  }
}

TEST(RecordMerge, ReturnsABatchOfRecordsThatOneInputHasBeforeAllOthers) {
  // Two inputs with one window each, which hold keys 0 to 99 and 100 to 199.
  std::vector<std::vector<uint64_t>> inputs(2);
  const size_t words = LogRecord::bytes(8, 0) / 8;
  for (uint64_t i = 0; i < 200; ++i) {
    std::vector<uint64_t>& input = inputs[i / 100];
    input.resize(input.size() + words);
    auto* record = reinterpret_cast<LogRecord*>(&input[input.size() - words]);
    record->type = LogType::update;
    record->key_bytes = 8;
    record->length = LogRecord::bytes(8, 0);
    record->storage_id = 3;
    record->vid = Vid::make(1, 1).word();
    const uint64_t key = __builtin_bswap64(i);
    std::memcpy(record->key(), &key, sizeof key);
  }
  RecordMerge merge;
  for (const auto& input : inputs) merge.add(std::as_bytes(std::span(input)));
  ASSERT_TRUE(merge.start());
  EXPECT_EQ(merge.storage(), 3u);
  ASSERT_EQ(merge.batch().size(), 200u);
  for (uint64_t i = 0; i < 200; ++i) EXPECT_EQ(merge.batch()[i].first, i);
  ASSERT_TRUE(merge.take(200));
  EXPECT_TRUE(merge.batch().empty());
}

TEST(RecordMerge, RefusesBytesThatAreNoRecords) {
  std::vector<uint64_t> words(2 * LogRecord::bytes(8, 8) / 8);
  const auto record = [&](size_t i) {
    return reinterpret_cast<LogRecord*>(words.data() + i * words.size() / 2);
  };
  for (size_t i = 0; i < 2; ++i) {
    record(i)->key_bytes = record(i)->payload_bytes = 8;
    record(i)->length = LogRecord::bytes(8, 8);
    record(i)->storage_id = 3;
  }
  const auto problem = [&](size_t count) -> std::string {
    RecordMerge merge;
    merge.add(std::as_bytes(std::span(words).first(count)));
    auto started = merge.start();
    return started ? "" : started.error().message;
  };
  EXPECT_EQ(problem(words.size()), "");
  EXPECT_TRUE(
      problem(words.size() - 1).starts_with("inbox of a reducer: 32 bytes are no log record"));
  EXPECT_TRUE(problem(words.size() / 2 + 1).starts_with("inbox of a reducer: 8 bytes are no log"));
  record(0)->length -= 8;  // shorter than its key and payload
  EXPECT_TRUE(problem(words.size()).starts_with("inbox of a reducer: 80 bytes are no log record"));
  // A record that is longer than any valid one is refused, because it may not fit in a chunk of a
  // sorted run.
  words.resize(kMaxGleanedBytes / 8 + 1);
  record(0)->length = kMaxGleanedBytes + 8;
  EXPECT_TRUE(problem(words.size())
                  .starts_with(fmt::format("inbox of a reducer: {} bytes are no log record",
                                           kMaxGleanedBytes + 8)));
}

}  // namespace
}  // namespace atolldb::test
