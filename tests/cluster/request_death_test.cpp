// Requests in flight when their cluster dies, and messages that attack a cluster (R64).
#include <zmq.hpp>

#include "ops/cluster/cluster.h"
#include "shared/message/control_client.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Maximum time for which a command may wait after its cluster has died.
constexpr std::chrono::milliseconds kLongestReply{1'000};

/// Returns true if the process has a socket: it has sent its request, or is about to.
bool has_socket(pid_t pid) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
    const auto target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.starts_with("socket:")) return true;
  }
  return false;
}

struct Killed {
  const char* victim;
  std::vector<std::string> command;
  const char* op;
  const char* asked;  // process that gets the request, and is stopped before it answers
};

void PrintTo(const Killed& killed, std::ostream* out) {
  *out << killed.op << " while " << killed.victim << " is killed";
}

class RequestDeathTest : public testing::TestWithParam<Killed> {
 protected:
  RequestDeathTest() : runner_(folder_) {}

  /// Starts a cluster, stops the process `asked`, and runs the command that sends a request to it.
  /// Then kills the victim, and checks how the command ends.
  void kill_amid(const std::string& more, bool is_started_again) {
    const Killed& killed = GetParam();
    const std::string file = runner_.config("dies", more);
    if (is_started_again) {
      std::string text = read_text(file);
      text.insert(text.find("[nodes]"), "restart = \"recover\"\n");
      std::ofstream(file) << text;
    }
    const CliCluster cluster(runner_, file);
    ASSERT_EQ(cluster.up().code, 0);
    const std::string victim_role = killed.victim;
    const pid_t asked = processes_of("dies", killed.asked).at(0);
    const pid_t victim =
        victim_role == "launcher" ? launcher_of(asked) : processes_of("dies", victim_role).at(0);
    ASSERT_NO_FATAL_FAILURE(stop_process(asked));
    const std::string error = folder_.path() + "/command.err";
    const pid_t command = runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll", killed.command,
                                        folder_.path() + "/command.out", error);
    EXPECT_TRUE(eventually([&] { return has_socket(command); }));
    const auto begin = Clock::now();
    kill(victim, SIGKILL);
    int status = 0;
    waitpid(command, &status, 0);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    EXPECT_LT(took, kLongestReply);
    const std::string text = read_text(error);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::coordinator_unreachable)) << text;
    EXPECT_NE(text.find(killed.op), std::string::npos) << text;
    if (victim_role != "launcher") {
      EXPECT_NE(text.find(victim_role + " (pid " + std::to_string(victim) + ") was killed"),
                std::string::npos)
          << text;
    }
    if (!is_started_again) return;
    EXPECT_TRUE(eventually(
        [&] { return runner_.atoll({"storage", "ls", "--cluster", "dies"}).code == 0; }));
  }

  /// Returns the parent of a process.
  static pid_t launcher_of(pid_t child) {
    const std::string status = read_text("/proc/" + std::to_string(child) + "/status");
    return static_cast<pid_t>(std::stol(status.substr(status.find("PPid:") + 5)));
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_P(RequestDeathTest, ACommandEndsWithinASecond) { kill_amid("", false); }

const std::vector<std::string> kTake = {"snapshot", "take"};
const std::vector<std::string> kDamage = {"snapshot", "damage"};
const std::vector<std::string> kCreate = {"storage", "create", "s", "--type", "sequential"};
const std::vector<std::string> kCall = {"procedure", "call", "tpcc.no_such"};

INSTANTIATE_TEST_SUITE_P(
    Victims, RequestDeathTest,
    testing::Values(Killed{"launcher", kTake, "snapshot.take", "coordinator"},
                    Killed{"coordinator", kTake, "snapshot.take", "coordinator"},
                    Killed{"node1", kTake, "snapshot.take", "coordinator"},
                    Killed{"node1", kDamage, "snapshot.damage", "coordinator"},
                    Killed{"launcher", kCreate, "storage.create", "coordinator"},
                    Killed{"node0", kCreate, "storage.create", "coordinator"},
                    Killed{"coordinator", kCreate, "storage.create", "coordinator"},
                    Killed{"launcher", kCall, "tpcc.no_such", "node0"},
                    Killed{"node0", kCall, "tpcc.no_such", "node0"},
                    Killed{"node1", kCall, "tpcc.no_such", "node0"},
                    Killed{"coordinator", kCall, "tpcc.no_such", "node0"}));

class RestartedRequestTest : public RequestDeathTest {};

TEST_P(RestartedRequestTest, ACommandDoesNotWaitForTheClusterThatIsStartedAgain) {
  kill_amid("[durability]\nmode = \"durable\"\n", true);
}

INSTANTIATE_TEST_SUITE_P(Victims, RestartedRequestTest,
                         testing::Values(Killed{"node1", kTake, "snapshot.take", "coordinator"},
                                         Killed{"node1", kCall, "tpcc.no_such", "node0"}));

/// A job in flight, started by a program that launched its own cluster.
TEST(RequestDeathJobTest, AJobInFlightEndsWithTheCluster) {
  TestFolder folder;
  const Config config = folder.config("job");
  auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_TRUE(cluster) << cluster.error().message;
  const pid_t node = processes_of("job", "node0").at(0);
  ASSERT_NO_FATAL_FAILURE(stop_process(node));
  Clock::time_point begin;
  std::thread killer([&] {
    begin = Clock::now();
    kill(processes_of("job", "node1").at(0), SIGKILL);
  });
  const auto answer =
      (*cluster)->call(0, ControlOperation::job_wait, Json{{"job", 1}}, std::chrono::hours(1));
  const auto took = Clock::now() - begin;
  killer.join();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("node1"), std::string::npos) << answer.error().message;
  EXPECT_LT(took, kLongestReply);
  cluster->reset();
}

std::string times(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

/// Sends frames that the process must survive, each on its own connection. Waits until the process
/// has received them.
void attack(const std::string& endpoint, const std::vector<std::string>& frames) {
  zmq::context_t context;
  for (const std::string& frame : frames) {
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 2'000);
    socket.connect(endpoint);
    socket.send(zmq::buffer(frame), zmq::send_flags::none);
    // Sends a second request on the same connection. It is answered only after the first frame was
    // dropped.
    const std::string after = encode_request("no.such", Json::object()).json;
    socket.send(zmq::buffer(after), zmq::send_flags::none);
    zmq::message_t answer;
    static_cast<void>(socket.recv(answer));
  }
}

TEST(HostileMessageTest, MessagesOfManyBytesValuesOrLevelsLeaveNoMemoryBehind) {
  TestFolder folder;
  const Config config = folder.config("hostile");
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  constexpr size_t kBytes = size_t{15} << 20;
  const std::vector<std::string> frames = {
      std::string(kBytes, '['),
      std::string(size_t{60} << 10, '['),
      times("[],", kBytes / 3),
      R"({"op":"glean.map","v":1,"x":)" + std::string(kBytes, '['),
      R"({"op":"glean.map","v":1,"x":[)" + times("{},", kBytes / 3),
      R"({"op":"storage.create","v":1,"x":[)" + times("0,", size_t{30} << 10)};
  const auto endpoint_of = [&](const std::string& role) {
    return role == "coordinator" ? config.control.endpoint : node_endpoint(config, 0);
  };
  // The coordinator receives at most 64 KiB, a node receives a whole message.
  for (const auto& [role, most] :
       {std::pair{std::string("coordinator"), uint64_t{8} << 20}, {"node0", uint64_t{40} << 20}}) {
    const pid_t pid = processes_of("hostile", role).at(0);
    const uint64_t before = peak_bytes(pid);
    ASSERT_GT(before, 0u);
    for (int round = 0; round < 3; ++round) attack(endpoint_of(role), frames);
    EXPECT_LE(peak_bytes(pid) - before, most) << role;
    const auto answer =
        ControlClient(endpoint_of(role))
            .call(role == "coordinator" ? ControlOperation::status : ControlOperation::describe,
                  Json::object(), std::chrono::seconds(10));
    EXPECT_TRUE(answer) << answer.error().message;
  }
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
