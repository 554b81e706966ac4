// Bounds of control messages, checked before a message is parsed (R64).
#include "shared/message/control_limits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "shared/message/control_client.h"
#include "shared/message/control_message.h"

namespace atolldb {
namespace {

/// Returns a request of this op whose member "x" has the JSON text `x`.
std::string request_of(const std::string& op, const std::string& x) {
  return R"({"op":")" + op + R"(","v":1,"x":)" + x + "}";
}

/// Repeats a text `count` times.
std::string times(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// Returns a list of `values` values.
std::string list_of(uint64_t values) { return "[0" + times(",0", values - 1) + "]"; }

/// Returns the peak resident memory of this process, in bytes.
uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib << 10;
  }
  return 0;
}

TEST(ControlLimitsTest, NestingEndsAtItsLimit) {
  // The object itself is the first level of nesting.
  const auto nested = [](size_t levels) {
    return request_of("a", times("[", levels - 1) + times("]", levels - 1));
  };
  EXPECT_TRUE(parse_request(nested(kMaxControlDepth)));
  const auto deeper = parse_request(nested(kMaxControlDepth + 1));
  ASSERT_FALSE(deeper);
  EXPECT_NE(deeper.error().message.find("limit of " + std::to_string(kMaxControlDepth)),
            std::string::npos)
      << deeper.error().message;
  // Brackets in strings do not nest, and a quote after a backslash does not end a string.
  EXPECT_TRUE(parse_request(request_of("a", "\"" + times("[", 1000) + "\\\"[[\\\\\"")));
  const std::string answer = R"({"ok":true,"v":1,"x":)";
  EXPECT_TRUE(parse_answer(answer + times("[", kMaxControlDepth - 1) +
                           times("]", kMaxControlDepth - 1) + "}"));
  EXPECT_FALSE(
      parse_answer(answer + times("[", kMaxControlDepth) + times("]", kMaxControlDepth) + "}"));
}

TEST(ControlLimitsTest, ValuesEndAtTheLimitOfTheirOp) {
  // The object, its members and the list itself count as values, too.
  for (const auto& [op, most] : {std::pair{"storage.create", kMaxSmallRequestValues},
                                 {"job.start", uint64_t{1000}},
                                 {"no.such", kMaxSmallRequestValues},
                                 {"glean.map", kMaxControlValues},
                                 {"snapshot.install", kMaxControlValues}}) {
    constexpr uint64_t kFrame = 3;
    EXPECT_TRUE(parse_request(request_of(op, list_of(most - kFrame)))) << op;
    EXPECT_FALSE(parse_request(request_of(op, list_of(most - kFrame + 1)))) << op;
  }
}

TEST(ControlLimitsTest, BytesEndAtTheLimitOfTheirOp) {
  for (const auto& [op, most] : {std::pair{"storage.create", kMaxSmallRequestBytes},
                                 {"snapshot.pin", kMaxSmallRequestBytes},
                                 {"job.start", kMaxCallBytes},
                                 {"glean.map", kMaxControlBytes},
                                 {"snapshot.install", kMaxControlBytes}}) {
    const size_t frame = request_of(op, "\"\"").size();
    const auto text = [&](size_t bytes) { return "\"" + std::string(bytes - frame, 'x') + "\""; };
    EXPECT_TRUE(parse_request(request_of(op, text(most)))) << op;
    EXPECT_FALSE(parse_request(request_of(op, text(most + 1)))) << op;
  }
}

TEST(ControlLimitsTest, AnOpThatIsWrittenInDisguiseGetsNoOtherLimits) {
  const std::string small = R"({"op":"storage.create","v":1})";
  EXPECT_TRUE(parse_request(small));
  // Disguises of an op: escapes in its member name or value, two ops, and an op below the outermost
  // object.
  EXPECT_FALSE(parse_request(R"({"\u006fp":"storage.create","v":1})"));
  EXPECT_FALSE(parse_request(R"({"op":"storage.creat\u0065","v":1})"));
  EXPECT_FALSE(parse_request(R"({"op":"glean.map","\u006fp":"storage.create","v":1})"));
  EXPECT_EQ(scan_control_message(R"({"a":{"op":"glean.map"},"op":"down","v":1})")->op, "down");
  EXPECT_EQ(scan_control_message(R"(["op","glean.map"])")->op, "");
  EXPECT_EQ(parse_request(R"({"op":"glean.map","op":"down","v":1})")->op, "down");
}

TEST(ControlLimitsTest, HostileMessagesTakeNoMemoryBeyondTheirOwn) {
  constexpr size_t kBytes = size_t{15} << 20;
  const std::string hostile[] = {
      std::string(kBytes, '['),
      times("[]", kBytes / 2),
      request_of("glean.map", std::string(kBytes, '[')),
      request_of("glean.map", times("{\"a\":", kBytes / 5)),
      request_of("glean.map", list_of(kBytes / 2)),
      request_of("storage.create", list_of(kBytes / 2)),
      "\"" + std::string(kBytes, '\\'),
  };
  // Resets the peak, so that it is measured from here on.
  std::ofstream("/proc/self/clear_refs") << "5";
  const uint64_t before = peak_bytes();
  for (const std::string& message : hostile) EXPECT_FALSE(parse_request(message));
  EXPECT_LE(peak_bytes() - before, uint64_t{4} << 20);
  // An answer may be one long string. The parser copies it into a growing buffer, so parsing an
  // answer needs more memory.
  for (const std::string& message : hostile) EXPECT_FALSE(parse_answer(message));
  EXPECT_LE(peak_bytes() - before, 3 * kMaxControlBytes);
}

TEST(ControlLimitsTest, AClientSendsNothingThatIsTooLongForItsOp) {
  const ControlClient client("ipc:///tmp/no-such-socket-of-atoll");
  const auto refused = client.call(ControlOperation::storage_create,
                                   {{"name", std::string(kMaxSmallRequestBytes, 'x')}},
                                   std::chrono::milliseconds(10));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::usage);
  EXPECT_NE(refused.error().message.find("limit of " + std::to_string(kMaxSmallRequestBytes)),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace atolldb
