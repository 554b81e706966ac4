// Tests of answers to control requests over the network. The node may be of another version.
#include "ops/shell/connection.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

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

TEST(ShellConnection, AListInPartsIsReadToItsEnd) {
  std::vector<Json> asked;
  const auto list_of = [&](const std::vector<const char*>& answers) {
    asked.clear();
    const auto entries = whole_list(
        [&](const Json& body) -> Result<Json> {
          asked.push_back(body);
          return Json::parse(answers.at(asked.size() - 1));
        },
        "storages", "name");
    return entries ? entries->dump() : entries.error().message;
  };
  EXPECT_EQ(list_of({R"({"storages": [{"name": "a"}, {"name": "b"}], "more": true})",
                     R"({"storages": [{"name": "c"}], "more": false})"}),
            R"([{"name":"a"},{"name":"b"},{"name":"c"}])");
  EXPECT_EQ(asked, (std::vector<Json>{Json::object(), {{"after", "b"}}}));
  // A cluster of this machine answers with the whole list.
  EXPECT_EQ(list_of({R"({"storages": [{"name": "a"}]})"}), R"([{"name":"a"}])");
  // Answers of a node of another version end the list, too.
  for (const char* wrong : {R"({"storages": [], "more": true})", R"({"storages": 7, "more": true})",
                            R"({"more": true})", R"({"storages": [], "more": "yes"})"}) {
    EXPECT_EQ(list_of({wrong}), "[]") << wrong;
  }
  const auto failed = whole_list(
      [](const Json&) -> Result<Json> { return make_error(ExitCode::failed, "no answer"); },
      "storages", "name");
  EXPECT_FALSE(failed);
}

}  // namespace
}  // namespace atolldb::shell
