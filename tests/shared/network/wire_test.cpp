// Tests of the frames of network sessions: what is written is read, limits hold, and no sequence of
// bytes misleads the reader.
#include "shared/network/wire.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "shared/base/hex.h"
#include "shared/network/curve_key.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

using Bytes = std::vector<std::byte>;

Bytes copy_of_frame(std::span<const std::byte> frame) { return {frame.begin(), frame.end()}; }

WireRequest sample_request(uint64_t id, std::span<const std::byte> input) {
  WireRequest request;
  request.id = id;
  request.procedure = "kv.txn";
  request.input = input;
  request.affinity = 7;
  request.worker = 1;
  request.answer_at = AnswerAt::precommitted;
  request.isolation = 3;
  request.snapshot = 12;
  request.start_within_ms = 500;
  return request;
}

/// Reads a frame with the schema alone, as a client in another language does. Returns null after a
/// failure.
nlohmann::json read_by_schema(std::span<const std::byte> frame) {
  std::string folder = "/tmp/atoll-wire-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return nullptr;
  std::ofstream(folder + "/frame.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(frame.data()),
             static_cast<std::streamsize>(frame.size()));
  const std::string command = "flatc --json --strict-json -o " + folder +
                              " " ATOLL_SOURCE_DIR "/shared/network/wire.fbs -- " + folder +
                              "/frame.bin";
  const int code = std::system(command.c_str());  // NOLINT(cert-env33-c): a tool of the build
  EXPECT_EQ(code, 0) << command;
  std::ifstream file(folder + "/frame.json");
  const nlohmann::json read = nlohmann::json::parse(file, nullptr, false);
  std::filesystem::remove_all(folder);
  return read.is_discarded() ? nlohmann::json() : read;
}

TEST(WireTest, AReaderThatIsGeneratedFromTheSchemaReadsTheFrames) {
  const Bytes input(3, std::byte{0x5a});
  WireWriter writer;
  writer.add(sample_request(41, input));
  const nlohmann::json requests = read_by_schema(writer.finish_requests());
  ASSERT_TRUE(requests.is_object());
  EXPECT_EQ(requests["body_type"], "Requests");
  const nlohmann::json& request = requests["body"]["requests"][0];
  EXPECT_EQ(request["id"], 41);
  EXPECT_EQ(request["procedure"], "kv.txn");
  EXPECT_EQ(request["input"], nlohmann::json({0x5a, 0x5a, 0x5a}));
  EXPECT_EQ(request["start_within_ms"], 500);
  const nlohmann::json refusal = read_by_schema(writer.refusal(RefusalCode::no_session, "why"));
  ASSERT_TRUE(refusal.is_object());
  EXPECT_EQ(refusal["body_type"], "Refusal");
  EXPECT_EQ(refusal["body"]["message"], "why");
}

TEST(WireTest, RequestsAndAnswersAreReadAsTheyWereWritten) {
  const Bytes input(300, std::byte{0x5a});
  WireWriter writer;
  WireFrame frame;
  for (int round = 0; round < 3; ++round) {  // the writer is used again
    writer.add(sample_request(41, input));
    writer.add(sample_request(42, {}));
    ASSERT_TRUE(read_wire_frame(writer.finish_requests(), frame));
    ASSERT_EQ(frame.kind, WireFrame::Kind::requests);
    ASSERT_EQ(frame.requests.size(), 2u);
    const WireRequest& first = frame.requests[0];
    EXPECT_EQ(first.id, 41u);
    EXPECT_EQ(first.procedure, "kv.txn");
    EXPECT_TRUE(std::ranges::equal(first.input, input));
    EXPECT_EQ(first.affinity, 7u);
    EXPECT_EQ(first.worker, 1u);
    EXPECT_EQ(first.answer_at, AnswerAt::precommitted);
    EXPECT_EQ(first.isolation, 3u);
    EXPECT_EQ(first.snapshot, 12u);
    EXPECT_EQ(first.start_within_ms, 500u);
    EXPECT_TRUE(frame.requests[1].input.empty());

    writer.add(WireAnswer{.id = 9,
                          .status = Status::user_abort,
                          .commit_epoch = 3,
                          .commit_version = 4,
                          .incarnation = 5,
                          .output = input,
                          .message = "why"});
    ASSERT_TRUE(read_wire_frame(writer.finish_answers(77), frame));
    ASSERT_EQ(frame.kind, WireFrame::Kind::answers);
    EXPECT_EQ(frame.session, 77u);
    ASSERT_EQ(frame.answers.size(), 1u);
    EXPECT_EQ(frame.answers[0].status, Status::user_abort);
    EXPECT_EQ(frame.answers[0].commit_version, 4u);
    EXPECT_EQ(frame.answers[0].incarnation, 5u);
    EXPECT_EQ(frame.answers[0].message, "why");
    EXPECT_EQ(frame.answers[0].output.size(), input.size());
  }
}

TEST(WireTest, TheFramesOfASessionAreReadAsTheyWereWritten) {
  WireWriter writer;
  WireFrame frame;
  ASSERT_TRUE(read_wire_frame(writer.hello("a program"), frame));
  EXPECT_EQ(frame.kind, WireFrame::Kind::hello);
  EXPECT_EQ(frame.hello.client, "a program");
  ASSERT_TRUE(read_wire_frame(writer.hello(std::string(kMaxClientNameBytes + 9, 'n')), frame));
  EXPECT_EQ(frame.hello.client.size(), kMaxClientNameBytes);
  ASSERT_TRUE(
      read_wire_frame(writer.welcome({1, 2, 3, 4, 5, kMayRead | kMayWrite, "alice"}), frame));
  EXPECT_EQ(frame.kind, WireFrame::Kind::welcome);
  EXPECT_EQ(frame.welcome.incarnation, 3u);
  EXPECT_EQ(frame.welcome.rights, 3u);
  EXPECT_EQ(frame.welcome.key_name, "alice");
  ASSERT_TRUE(read_wire_frame(writer.refusal(RefusalCode::limit, "full"), frame));
  EXPECT_EQ(frame.kind, WireFrame::Kind::refusal);
  EXPECT_EQ(frame.refusal.code, RefusalCode::limit);
  EXPECT_EQ(frame.refusal.message, "full");
  ASSERT_TRUE(read_wire_frame(writer.goodbye(), frame));
  EXPECT_EQ(frame.kind, WireFrame::Kind::goodbye);
  ASSERT_TRUE(read_wire_frame(writer.probe(), frame));
  EXPECT_EQ(frame.kind, WireFrame::Kind::probe);
}

TEST(WireTest, RequestsAtTheLimitsAreReadAndThosePastThemAreNot) {
  WireWriter writer;
  WireFrame frame;
  WireRequest request = sample_request(1, {});
  const std::string longest(kMaxSessionProcedureName, 'p');
  request.procedure = longest;
  const Bytes most(kSessionPartBytes, std::byte{1});
  request.input = most;
  writer.add(request);
  EXPECT_TRUE(read_wire_frame(writer.finish_requests(), frame));
  const std::string too_long = longest + "p";
  request.procedure = too_long;
  writer.add(request);
  auto read = read_wire_frame(writer.finish_requests(), frame);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("61 bytes, more than 60"), std::string::npos)
      << read.error().message;
  for (const char* wrong : {"answer_at", "isolation", "name"}) {
    request = sample_request(1, {});
    if (wrong == std::string("answer_at")) request.answer_at = static_cast<AnswerAt>(2);
    if (wrong == std::string("isolation")) request.isolation = 4;
    if (wrong == std::string("name")) request.procedure = "";
    writer.add(request);
    read = read_wire_frame(writer.finish_requests(), frame);
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().message.find(wrong), std::string::npos) << read.error().message;
  }
}

TEST(WireTest, LongInputsAndOutputsHaveParts) {
  WireWriter writer;
  WireFrame frame;
  const Bytes most(kMaxWirePartBytes, std::byte{1});
  ASSERT_TRUE(read_wire_frame(writer.part({7, 300'000, most}), frame));
  EXPECT_EQ(frame.kind, WireFrame::Kind::part);
  EXPECT_EQ(frame.part.id, 7u);
  EXPECT_EQ(frame.part.total_bytes, 300'000u);
  EXPECT_EQ(frame.part.bytes.size(), most.size());
  EXPECT_FALSE(read_wire_frame(writer.part({7, kMaxWirePartBytes - 1, most}), frame));
  WireRequest request = sample_request(1, {});
  request.input = {};
  request.input_bytes = kSessionPartBytes + 1;
  writer.add(request);
  ASSERT_TRUE(read_wire_frame(writer.finish_requests(), frame));
  EXPECT_EQ(frame.requests[0].input_bytes, kSessionPartBytes + 1);
  request.input_bytes = kSessionPartBytes;
  writer.add(request);
  EXPECT_FALSE(read_wire_frame(writer.finish_requests(), frame)) << "it fits into the request";
  ASSERT_TRUE(read_wire_frame(writer.hello("old", false), frame));
  EXPECT_FALSE(frame.hello.takes_parts);
  ASSERT_TRUE(read_wire_frame(writer.hello("new"), frame));
  EXPECT_TRUE(frame.hello.takes_parts);
  ASSERT_TRUE(read_wire_frame(writer.welcome({1, 2, 3, 4, 5, 6, "k", 70'000, 80'000}), frame));
  EXPECT_EQ(frame.welcome.max_input_bytes, 70'000u);
  EXPECT_EQ(frame.welcome.max_output_bytes, 80'000u);
}

TEST(WireTest, AFrameIsFullBeforeItIsTooLong) {
  WireWriter writer;
  WireFrame frame;
  const Bytes most(kSessionPartBytes, std::byte{1});
  uint32_t count = 0;
  for (; !writer.is_full(); ++count) writer.add(sample_request(count, most));
  const auto large = writer.finish_requests();
  EXPECT_LE(large.size(), kMaxWireFrameBytes);
  EXPECT_GE(large.size(), kFullWireFrameBytes);
  ASSERT_TRUE(read_wire_frame(large, frame));
  EXPECT_EQ(frame.requests.size(), count);
  for (count = 0; !writer.is_full(); ++count) writer.add(sample_request(count, {}));
  EXPECT_EQ(count, kMaxWireItems);
  ASSERT_TRUE(read_wire_frame(writer.finish_requests(), frame));
  EXPECT_EQ(frame.requests.size(), kMaxWireItems);
  const Bytes too_large(kMaxWireFrameBytes + 1);
  EXPECT_FALSE(read_wire_frame(too_large, frame));
}

TEST(WireTest, AFrameOfAnotherVersionIsTold) {
  WireWriter writer;
  WireFrame frame;
  Bytes bytes = copy_of_frame(writer.hello("old"));
  bytes[7] = std::byte{'9'};
  auto read = read_wire_frame(bytes, frame);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, RefusalCode::version);
  EXPECT_NE(read.error().message.find("ATN1"), std::string::npos);
  bytes[4] = std::byte{'X'};
  read = read_wire_frame(bytes, frame);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, RefusalCode::malformed);
}

TEST(WireTest, DamagedFramesAreReadWithinTheirBytes) {
  WireWriter writer;
  const Bytes input(40, std::byte{7});
  std::vector<Bytes> frames = {copy_of_frame(writer.hello("x")),
                               copy_of_frame(writer.welcome({1, 2, 3, 4, 5, 6, "k"}))};
  writer.add(sample_request(1, input));
  writer.add(sample_request(2, input));
  frames.push_back(copy_of_frame(writer.finish_requests()));
  writer.add(WireAnswer{.id = 1, .output = input, .message = "m"});
  frames.push_back(copy_of_frame(writer.finish_answers(1)));
  std::mt19937_64 random(test::seed());
  WireFrame frame;
  size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = frames[random() % frames.size()];
    for (uint64_t changes = random() % 4; changes != 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
    bytes.shrink_to_fit();  // so that a sanitizer sees each access past the end
    if (!read_wire_frame(bytes, frame)) {
      ++refused;
      continue;
    }
    // All views lie within the frame.
    size_t sum = 0;
    for (const WireRequest& one : frame.requests) {
      for (const std::byte byte : one.input) sum += static_cast<size_t>(byte);
      sum += one.procedure.size();
    }
    for (const WireAnswer& one : frame.answers) {
      for (const std::byte byte : one.output) sum += static_cast<size_t>(byte);
    }
    EXPECT_LE(sum, 255 * bytes.size() * kMaxWireItems);
  }
  EXPECT_GT(refused, 1000u);
}

class CurveKeyTest : public ::testing::Test {
 protected:
  CurveKeyTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "atoll-key-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    for (size_t i = 0; i < kCurveKeyBytes; ++i) {
      keys_.public_key[i] = static_cast<std::byte>(i);
      keys_.secret_key[i] = static_cast<std::byte>(255 - i);
    }
  }
  ~CurveKeyTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  CurveKeyPair keys_;
};

TEST_F(CurveKeyTest, AKeyFileHasMode600AndIsReadAsItWasWritten) {
  const std::string path = folder_ + "/alice.key";
  ASSERT_TRUE(write_key_file(path, keys_));
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto read = read_key_file(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->public_key, keys_.public_key);
  EXPECT_EQ(read->secret_key, keys_.secret_key);
  const auto again = write_key_file(path, keys_);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("exists already"), std::string::npos);
}

TEST_F(CurveKeyTest, AKeyFileThatOthersMayReadOrThatHasNoKeysIsRefused) {
  const std::string path = folder_ + "/bob.key";
  ASSERT_TRUE(write_key_file(path, keys_));
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  auto read = read_key_file(path);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("its mode is 640, not 600"), std::string::npos)
      << read.error().message;
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  std::ofstream(path) << "public 12\n";
  read = read_key_file(path);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("64 hexadecimal digits"), std::string::npos);
  read = read_key_file(folder_ + "/none.key");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("atoll keys generate"), std::string::npos);
}

TEST_F(CurveKeyTest, AKeyAsTextHasExactly64HexadecimalDigits) {
  const std::string text = to_hex(keys_.public_key);
  EXPECT_EQ(text.size(), 64u);
  EXPECT_EQ(curve_key_of_hex(text), keys_.public_key);
  std::string longer = text;
  longer.push_back('0');
  EXPECT_FALSE(curve_key_of_hex(longer));
  EXPECT_FALSE(curve_key_of_hex(text.substr(1)));
  std::string wrong = text;
  wrong.back() = 'g';
  EXPECT_FALSE(curve_key_of_hex(wrong));
}

}  // namespace
}  // namespace atolldb
