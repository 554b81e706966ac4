// Tests of the errors of control requests over the network. The node may be of another version.
#include "ops/shell/connection.h"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace atolldb::shell {
namespace {

Error error_for(const std::string& output) {
  SessionReply reply;
  reply.status = Status::procedure_failed;
  reply.message = "the message of the answer";
  const auto bytes = std::as_bytes(std::span(output));
  reply.output = {bytes.begin(), bytes.end()};
  return error_of_reply("storage.drop", reply);
}

TEST(ShellConnection, TheErrorOfAControlRequestHasItsCodeAndText) {
  const Error error = error_for(R"({"code": 7, "message": "damaged"})");
  EXPECT_EQ(error.code, ExitCode::corruption);
  EXPECT_EQ(error.message, "damaged");
  EXPECT_EQ(error_for(R"({"code": 78, "message": "c"})").code, ExitCode::config);
  EXPECT_EQ(error_for(R"({"code": 12, "message": "c"})").code, ExitCode::condition);
}

TEST(ShellConnection, UnknownCodesAndWrongMembersAreAFailure) {
  for (const char* code : {"0", "13", "77", "79", "-1", "256", "18446744073709551615", "1.5",
                           "\"7\"", "null", "[7]", "{}"}) {
    const Error error = error_for(R"({"message": "m", "code": )" + std::string(code) + "}");
    EXPECT_EQ(error.code, ExitCode::failed) << code;
    EXPECT_EQ(error.message, "m") << code;
  }
  for (const char* text : {"1", "null", "[]", "{}"}) {
    const Error error = error_for(R"({"code": 7, "message": )" + std::string(text) + "}");
    EXPECT_EQ(error.code, ExitCode::corruption) << text;
    EXPECT_NE(error.message.find("gives no reason"), std::string::npos) << text;
  }
  EXPECT_NE(error_for(R"({"code": 7})").message.find("gives no reason"), std::string::npos);
}

TEST(ShellConnection, WithoutAnObjectTheAnswersStatusDecides) {
  for (const char* output : {"", "{", "[7]", "7", "{}", "\xff"}) {
    const Error error = error_for(output);
    EXPECT_EQ(error.code, ExitCode::failed) << output;
    EXPECT_NE(error.message.find("the message of the answer"), std::string::npos) << output;
  }
}

}  // namespace
}  // namespace atolldb::shell
