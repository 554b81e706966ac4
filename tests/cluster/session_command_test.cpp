// `atoll session ls` and `atoll session kill` with real processes. The clients are in the process
// of the test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "shared/client/session_client.h"
#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

class SessionCommandTest : public ::testing::Test {
 protected:
  SessionCommandTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  std::unique_ptr<SessionClient> connect(const std::string& cluster, uint32_t node) const {
    auto client = SessionClient::connect(folder_.path() + "/atoll/" + cluster, node);
    if (!client) ADD_FAILURE() << client.error().message;
    return client ? *std::move(client) : nullptr;
  }
  /// Returns the name of a session as the commands write it.
  static std::string name_of(SessionClient& client) {
    return std::to_string(client.node()) + "/" + std::to_string(client.segment().session);
  }
  /// Returns whether the node answers the session.
  static bool is_answered(SessionClient& client) {
    return client.call("no.such", {}).status == Status::procedure_not_found;
  }
  nlohmann::json list(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"session", "ls", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = runner_.atoll(words);
    EXPECT_EQ(ran.code, 0) << ran.error;
    const auto whole = nlohmann::json::parse(ran.out, nullptr, false);
    if (!whole.is_object()) {
      ADD_FAILURE() << ran.out;
      return nlohmann::json::array();
    }
    EXPECT_EQ(whole.value("schema_version", 0), 1);
    return whole.value("sessions", nlohmann::json::array());
  }
  void expect_refused(const std::vector<std::string>& words, int code,
                      const std::string& part) const {
    const Ran ran = runner_.atoll(words);
    EXPECT_EQ(ran.code, code) << words.back() << "\n" << ran.error;
    EXPECT_NE(ran.error.find(part), std::string::npos) << ran.error;
    EXPECT_EQ(ran.out, "") << words.back();
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(SessionCommandTest, SessionsAreListedAndAKilledOneEndsWhileTheOthersContinue) {
  CliCluster cluster(runner_, runner_.config("sessions"));
  const Ran none = runner_.atoll({"session", "ls"});
  EXPECT_EQ(none.code, 0) << none.error;
  EXPECT_EQ(none.out.find("SESSION  STATE"), 0u) << none.out;
  EXPECT_TRUE(list().empty());

  const auto idle = connect("sessions", 0);
  const auto victim = connect("sessions", 0);
  const auto other = connect("sessions", 1);
  ASSERT_TRUE(idle != nullptr && victim != nullptr && other != nullptr);
  EXPECT_TRUE(is_answered(*victim));
  EXPECT_TRUE(is_answered(*victim));

  const auto sessions = list();
  ASSERT_EQ(sessions.size(), 3u) << sessions;
  std::string program = read_text("/proc/self/comm");
  program.pop_back();  // the line end
  for (const auto& session : sessions) {
    EXPECT_EQ(session.value("state", ""), "open");
    EXPECT_EQ(session.value("pid", 0), getpid());
    EXPECT_EQ(session.value("uid", ~0u), geteuid());
    EXPECT_EQ(session.value("program", ""), program);
    EXPECT_EQ(session.value("in_flight", 1), 0);
    EXPECT_GE(session.value("age_s", -1.0), 0.0);
    EXPECT_FALSE(session.contains("oldest_procedure"));
  }
  EXPECT_EQ(sessions[1].value("node", 7u), 0u);
  EXPECT_EQ(sessions[1].value("session", ~0u), victim->segment().session);
  EXPECT_EQ(sessions[1].value("answered", 0), 2);
  EXPECT_GE(sessions[1].value("last_request_s", -1.0), 0.0);
  EXPECT_EQ(sessions[0].value("answered", 7), 0);
  EXPECT_FALSE(sessions[0].contains("last_request_s"));
  EXPECT_EQ(sessions[2].value("node", 7u), 1u);
  EXPECT_EQ(list({"--node", "1"}).size(), 1u);
  EXPECT_EQ(list({"--connect", "atoll:sessions"}).size(), 3u);
  const auto of_one = list({"--connect", "atoll:sessions?node=1"});
  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_EQ(of_one[0].value("node", 7u), 1u);
  expect_refused({"session", "kill", name_of(*victim), "--connect", "atoll:sessions?node=1"}, 2,
                 "--connect reaches node 1 only");
  const Ran table = runner_.atoll({"session", "ls"});
  EXPECT_NE(table.out.find(std::to_string(getpid())), std::string::npos) << table.out;
  EXPECT_NE(table.out.find(name_of(*other)), std::string::npos) << table.out;

  const Ran killed = runner_.atoll({"session", "kill", name_of(*victim)});
  EXPECT_EQ(killed.code, 0) << killed.error;
  EXPECT_EQ(killed.out, "session " + name_of(*victim) + " ended: requests in flight: 0\n");
  EXPECT_FALSE(victim->is_open());
  EXPECT_FALSE(victim->submit("no.such", {}));
  EXPECT_TRUE(is_answered(*idle));
  EXPECT_TRUE(is_answered(*other));
  EXPECT_EQ(list().size(), 2u);

  // A session that does not exist does not keep the others alive.
  const Ran two = runner_.atoll({"session", "kill", name_of(*victim), name_of(*idle)});
  EXPECT_EQ(two.code, 1);
  EXPECT_EQ(two.error,
            "atoll: session " + name_of(*victim) + ": does not exist: see `atoll session ls`\n");
  EXPECT_EQ(two.out, "session " + name_of(*idle) + " ended: requests in flight: 0\n");
  EXPECT_FALSE(idle->is_open());

  const auto again = connect("sessions", 0);
  ASSERT_NE(again, nullptr);
  EXPECT_TRUE(is_answered(*again));
  const Ran all = runner_.atoll({"session", "kill", "--all"});
  EXPECT_EQ(all.code, 0) << all.error;
  EXPECT_NE(all.out.find("session " + name_of(*again) + " ended"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("session " + name_of(*other) + " ended"), std::string::npos) << all.out;
  EXPECT_FALSE(again->is_open());
  EXPECT_FALSE(other->is_open());
  EXPECT_TRUE(list().empty());
  EXPECT_EQ(runner_.atoll({"session", "kill", "--all"}).out, "no session is open\n");
}

TEST_F(SessionCommandTest, WrongArgumentsAreRefusedWithTheirExitCodes) {
  expect_refused({"session"}, 2, "choose one of ls, kill");
  expect_refused({"session", "kill"}, 2, "no session given: give NODE/SESSION");
  for (const char* wrong : {"0", "0/", "/3", "0-3", "0/3x", "0/3/1", " 0/3", "0/+3", "x/3",
                            "0/4294967296", "4294967296/0"}) {
    expect_refused({"session", "kill", wrong}, 2, "expected NODE/SESSION, for example 0/3");
  }
  expect_refused({"session", "kill", "0/3", "0:3"}, 2, "\"0:3\": expected NODE/SESSION");
  expect_refused({"session", "kill", "--all", "0/3"}, 2, "excludes");
  expect_refused({"session", "kill", "-1/3"}, 2, "see `atoll session");
  expect_refused({"session", "ls", "--node", "-1"}, 2, "--node");
  expect_refused({"session", "ls"}, 3, "no cluster runs");
  expect_refused({"session", "kill", "0/3"}, 3, "no cluster runs");
  expect_refused({"session", "kill", "--all"}, 3, "no cluster runs");

  CliCluster cluster(runner_, runner_.config("refused"));
  const auto client = connect("refused", 0);
  ASSERT_NE(client, nullptr);
  expect_refused({"session", "ls", "--node", "2"}, 2, "has nodes 0 to 1");
  expect_refused({"session", "kill", name_of(*client), "2/0"}, 2,
                 "session 2/0: cluster \"refused\" has nodes 0 to 1");
  expect_refused({"session", "kill", "0/99"}, 1,
                 "session 0/99: does not exist: see `atoll session ls`");
  EXPECT_TRUE(is_answered(*client)) << "a refused command ends no session";
}

}  // namespace
}  // namespace atolldb::test
