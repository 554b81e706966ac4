// Control messages: requests, answers, garbage and limits.
#include "shared/message/control_message.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "shared/base/base64.h"
#include "shared/message/control_client.h"
#include "shared/message/control_server.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

TEST(ControlMessageTest, MembersThatAreNoObjectAreNoneWithAndWithoutTheWire) {
  for (const Json& members : {Json(), Json(7), Json::array({1})}) {
    const auto sent = parse_request(encode_request("status", members).json);
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_FALSE(get_text(*sent, "name"));
    const ControlRequest within(ControlOperation::status, members);
    EXPECT_EQ(within.body, Json::object()) << members.dump();
    // If the body were null instead of an empty object, this call would throw.
    EXPECT_EQ(within.body.value("now", Json(false)), false);
  }
}

TEST(ControlMessageTest, RequestsAndAnswersSurviveTheWire) {
  const auto request = parse_request(encode_request("job.start", {{"name", "x"}}).json);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->op, "job.start");
  EXPECT_EQ(request->operation, ControlOperation::job_start);
  EXPECT_EQ(get_text(*request, "name").value(), "x");
  EXPECT_FALSE(get_number(*request, "name"));
  EXPECT_EQ(get_number_or(*request, "missing", 5).value(), 5u);

  const auto answer = parse_answer(encode_answer(Json{{"job", 3}}).json);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->at("job"), 3);
  const auto error =
      parse_answer(encode_answer(make_error(ExitCode::resources, "too little")).json);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, ExitCode::resources);
  EXPECT_EQ(error.error().message, "too little");
}

TEST(ControlMessageTest, GarbageIsToldFromRequests) {
  for (const std::string& frame : std::vector<std::string>{
           "", "x", "[]", "7", "{}", R"({"v":1})", R"({"op":"a"})", R"({"v":2,"op":"a"})",
           R"({"v":"1","op":"a"})", R"({"v":1,"op":7})", R"({"v":1,"op":""})",
           R"({"v":1,"op":")" + std::string(kMaxOpBytes + 1, 'a') + "\"}",
           std::string(kMaxControlBytes + 1, ' ')}) {
    EXPECT_FALSE(parse_request(frame)) << frame.substr(0, 100);
  }
}

TEST(ControlMessageTest, AnAnswerThatIsTooLongBecomesAnErrorThatNamesTheLimit) {
  const auto answer =
      parse_answer(encode_answer(Json{{"text", std::string(kMaxControlBytes, 'x')}}).json);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find(std::to_string(kMaxControlBytes)), std::string::npos);
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Parses a request as a server does, with its binary frame if it has one.
Result<ControlRequest> received(const ControlFrames& frames) {
  if (!frames.binary) return parse_request(frames.json);
  return parse_request(frames.json, std::as_bytes(std::span(*frames.binary)));
}

TEST(ControlMessageTest, ABinaryMemberTravelsInAFrameOfItsOwn) {
  const std::string plan("\0plan\xff", 6);
  const ControlFrames frames =
      encode_request("glean.prepare", {{"plan", to_binary(bytes_of(plan))}, {"reserve", 7}});
  ASSERT_TRUE(frames.binary);
  EXPECT_EQ(frames.binary->size(), plan.size());
  EXPECT_EQ(Json::parse(frames.json).at("binary"), "plan");
  const auto request = received(frames);
  ASSERT_TRUE(request) << request.error().message;
  const auto bytes = get_binary(*request, "plan");
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_TRUE(std::ranges::equal(*bytes, bytes_of(plan)));
  EXPECT_EQ(get_number(*request, "reserve").value(), 7u);
  EXPECT_FALSE(get_binary(*request, "reserve"));
  EXPECT_FALSE(get_binary(*request, "missing"));
  EXPECT_FALSE(request->body.contains("binary"));

  const ControlFrames answered = encode_answer(Json{{"output", to_binary({})}});
  ASSERT_TRUE(answered.binary);
  const auto answer = parse_answer(answered.json, std::as_bytes(std::span(*answered.binary)));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(find_binary(*answer, "output"));
  EXPECT_TRUE(find_binary(*answer, "output")->empty());
}

TEST(ControlMessageTest, ABinaryFrameMustBelongToItsMessage) {
  const std::string text = "bytes";
  const auto with = [&](const std::string& members) {
    return parse_request(R"({"v":1,"op":"glean.prepare")" + members + "}", bytes_of(text));
  };
  EXPECT_TRUE(with(R"(,"binary":"plan")"));
  EXPECT_FALSE(with(""));
  EXPECT_FALSE(with(R"(,"binary":7)"));
  EXPECT_FALSE(with(R"(,"binary":"op")"));
  EXPECT_FALSE(with(R"(,"binary":"binary")"));
  EXPECT_FALSE(with(R"(,"binary":"plan","plan":"text")"));
  // Refused are a missing binary frame that the request announces, and a binary frame of an
  // operation that takes none.
  EXPECT_FALSE(parse_request(R"({"v":1,"op":"glean.prepare","binary":"plan"})"));
  EXPECT_FALSE(parse_request(R"({"v":1,"op":"glean.wait","binary":"plan"})", bytes_of(text)));
  EXPECT_FALSE(parse_request(R"({"v":1,"op":"no.such","binary":"plan"})", bytes_of(text)));
  EXPECT_FALSE(parse_answer(R"({"v":1,"ok":true})", bytes_of(text)));
}

TEST(ControlMessageTest, TheLimitOfAnOpIncludesItsBinaryFrame) {
  const auto request_of = [](size_t bytes) {
    return encode_request("job.start", {{"input", to_binary(bytes_of(std::string(bytes, 'x')))}});
  };
  const size_t frame = request_of(0).bytes();
  EXPECT_TRUE(received(request_of(kMaxCallBytes - frame)));
  EXPECT_FALSE(received(request_of(kMaxCallBytes - frame + 1)));
  const ControlFrames answer =
      encode_answer(Json{{"output", to_binary(bytes_of(std::string(kMaxControlBytes, 'x')))}});
  EXPECT_FALSE(answer.binary);
  const auto parsed = parse_answer(answer.json);
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find(std::to_string(kMaxControlBytes)), std::string::npos);
}

TEST(ControlOperationTest, EveryOperationIsFoundByItsName) {
  for (const ControlOperationEntry& entry : control_operations()) {
    EXPECT_EQ(control_operation(entry.name), entry.operation) << entry.name;
    EXPECT_EQ(to_string(entry.operation), entry.name);
    EXPECT_LE(entry.name.size(), kMaxOpBytes);
    EXPECT_NE(entry.servers, ControlServers::none) << entry.name;
    EXPECT_EQ(ControlRequest(std::string(entry.name), {}).operation, entry.operation);
    EXPECT_EQ(ControlRequest(entry.operation, {}).op, entry.name);
  }
  for (const char* name : {"", "no.such", "status ", "snapshot.", "Status"}) {
    EXPECT_EQ(control_operation(name), ControlOperation::unknown) << name;
  }
  EXPECT_TRUE(is_served_by(ControlServers::nodes, ControlOperation::snapshot_damage));
  EXPECT_TRUE(is_served_by(ControlServers::coordinator, ControlOperation::snapshot_damage));
  EXPECT_FALSE(is_served_by(ControlServers::nodes, ControlOperation::status));
  EXPECT_FALSE(is_served_by(ControlServers::coordinator, ControlOperation::unknown));
}

TEST(ControlOperationTest, AnUnknownOperationIsNamedInTheError) {
  const ControlRequest request("no.such", {});
  EXPECT_EQ(request.operation, ControlOperation::unknown);
  EXPECT_NE(unknown_op(request).error().message.find("op \"no.such\": unknown"), std::string::npos);
}

TEST(ControlMessageTest, Base64GivesBackWhatItTook) {
  std::mt19937 random(static_cast<uint32_t>(test::seed()));
  for (size_t length = 0; length < 70; ++length) {
    std::vector<std::byte> bytes(length);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  EXPECT_EQ(to_base64(std::as_bytes(std::span("Atoll", 5))), "QXRvbGw=");
  for (const char* wrong : {"A", "AAA", "A===", "AA=A", "AAA\n", "===="}) {
    EXPECT_FALSE(from_base64(wrong)) << wrong;
  }
}

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    std::string pattern = "/tmp/atoll-message-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    endpoint_ = "ipc://" + folder_ + "/server.sock";
  }
  ~ControlServerTest() override {
    late_.join();
    std::filesystem::remove_all(folder_);
  }
  void start() {
    auto server =
        ControlServer::start(endpoint_, [this](const ControlRequest& request, ControlReply reply) {
          if (request.op == "echo" || request.operation == ControlOperation::job_start) {
            return reply(request.body);
          }
          if (request.op == "fail") return reply(make_error(ExitCode::failed, "as asked"));
          if (request.op == "never") return;
          if (late_.joinable()) late_.join();
          late_ = std::thread([reply = std::move(reply)] { reply(Json{{"late", true}}); });
        });
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }

  static constexpr std::chrono::milliseconds kTimeout{30'000};
  std::string folder_;
  std::string endpoint_;
  std::thread late_ = std::thread([] {});
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, AnswersAtOnceOrLaterFromAnotherThread) {
  start();
  const ControlClient client(endpoint_);
  const auto echoed = client.call_by_name("echo", {{"number", 7}}, kTimeout);
  ASSERT_TRUE(echoed) << echoed.error().message;
  EXPECT_EQ(echoed->at("number"), 7);
  EXPECT_EQ(client.call_by_name("fail", {}, kTimeout).error().message, "as asked");
  const auto late = client.call_by_name("late", {}, kTimeout);
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_TRUE(late->at("late"));
}

TEST_F(ControlServerTest, WithoutAnAnswerTheCallerIsToldSo) {
  const ControlClient client(endpoint_);
  EXPECT_EQ(client.call_by_name("echo", {}, kTimeout).error().code,
            ExitCode::coordinator_unreachable);
  start();
  const auto never = client.call_by_name("never", {}, std::chrono::milliseconds(50));
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().message.find("50 ms"), std::string::npos) << never.error().message;
}

TEST_F(ControlServerTest, BinaryMembersArriveBothWays) {
  start();
  const std::string input("\0\1in\xff", 5);
  const auto answer = ControlClient(endpoint_).call(
      ControlOperation::job_start, {{"input", to_binary(bytes_of(input))}}, kTimeout);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto output = find_binary(*answer, "input");
  ASSERT_TRUE(output);
  EXPECT_TRUE(std::ranges::equal(*output, bytes_of(input)));
  EXPECT_EQ(server_->garbage_count(), 0u);
}

TEST_F(ControlServerTest, AMessageWithTooManyPartsIsCountedAndDropped) {
  start();
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.connect(endpoint_);
  const std::string request = R"({"v":1,"op":"job.start","binary":"input"})";
  for (const int parts : {3, 4, 1000}) {
    socket.send(zmq::buffer(request), zmq::send_flags::sndmore);
    for (int part = 2; part < parts; ++part) {
      socket.send(zmq::str_buffer("x"), zmq::send_flags::sndmore);
    }
    socket.send(zmq::str_buffer("x"), zmq::send_flags::none);
  }
  const std::string valid = encode_request("echo", Json::object()).json;
  socket.send(zmq::buffer(valid), zmq::send_flags::none);
  zmq::message_t answer;
  ASSERT_TRUE(socket.recv(answer));
  EXPECT_TRUE(parse_answer(answer.to_string_view()));
  EXPECT_EQ(server_->garbage_count(), 3u);
}

TEST_F(ControlServerTest, GarbageFramesAreCountedAndDropped) {
  start();
  const ControlClient client(endpoint_);
  zmq::context_t context;
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.connect(endpoint_);
  std::mt19937 random(static_cast<uint32_t>(test::seed()));
  constexpr uint64_t kFrames = 200;
  for (uint64_t i = 0; i < kFrames; ++i) {
    std::string frame(random() % 100, '\0');
    for (char& c : frame) c = static_cast<char>(random());
    if (i % 3 == 0) socket.send(zmq::buffer(frame), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(frame), zmq::send_flags::none);
  }
  // A connection keeps the order of messages, so this answer comes after all the garbage.
  const std::string request = encode_request("echo", {{"number", 8}}).json;
  socket.send(zmq::buffer(request), zmq::send_flags::none);
  zmq::message_t answer;
  ASSERT_TRUE(socket.recv(answer));
  EXPECT_EQ(parse_answer(answer.to_string_view())->at("number"), 8);
  EXPECT_EQ(server_->garbage_count(), kFrames);
  EXPECT_TRUE(client.call_by_name("echo", {}, kTimeout));
}

}  // namespace
}  // namespace atolldb
