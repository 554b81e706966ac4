// Control messages: requests, answers, garbage and limits.
#include "shared/message/control_message.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
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

TEST(ControlMessageTest, RequestsAndAnswersSurviveTheWire) {
  const auto request = parse_request(encode_request("job.start", {{"name", "x"}}));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->op, "job.start");
  EXPECT_EQ(get_text(*request, "name").value(), "x");
  EXPECT_FALSE(get_number(*request, "name"));
  EXPECT_EQ(get_number_or(*request, "missing", 5).value(), 5u);

  const auto answer = parse_answer(encode_answer(Json{{"job", 3}}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->at("job"), 3);
  const auto error = parse_answer(encode_answer(make_error(ExitCode::resources, "too little")));
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
      parse_answer(encode_answer(Json{{"text", std::string(kMaxControlBytes, 'x')}}));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find(std::to_string(kMaxControlBytes)), std::string::npos);
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
          if (request.op == "echo") return reply(request.body);
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
  const auto echoed = client.call("echo", {{"number", 7}}, kTimeout);
  ASSERT_TRUE(echoed) << echoed.error().message;
  EXPECT_EQ(echoed->at("number"), 7);
  EXPECT_EQ(client.call("fail", {}, kTimeout).error().message, "as asked");
  const auto late = client.call("late", {}, kTimeout);
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_TRUE(late->at("late"));
}

TEST_F(ControlServerTest, WithoutAnAnswerTheCallerIsToldSo) {
  const ControlClient client(endpoint_);
  EXPECT_EQ(client.call("echo", {}, kTimeout).error().code, ExitCode::coordinator_unreachable);
  start();
  const auto never = client.call("never", {}, std::chrono::milliseconds(50));
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().message.find("50 ms"), std::string::npos) << never.error().message;
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
  const std::string request = encode_request("echo", {{"number", 8}});
  socket.send(zmq::buffer(request), zmq::send_flags::none);
  zmq::message_t answer;
  ASSERT_TRUE(socket.recv(answer));
  EXPECT_EQ(parse_answer(answer.to_string_view())->at("number"), 8);
  EXPECT_EQ(server_->garbage_count(), kFrames);
  EXPECT_TRUE(client.call("echo", {}, kTimeout));
}

}  // namespace
}  // namespace atolldb
