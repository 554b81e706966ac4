// Network sessions with real processes: keys and rights, lists of sessions, nodes that are killed
// during requests, hostile clients, and configs that are refused.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/unique_fd.h"
#include "shared/client/kv_transaction.h"
#include "shared/client/network_client.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/metrics_http.h"
#include "tests/cluster/procedure_library.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Input of `hold`: a file to create, a file to wait for, and padding, with blanks between them.
constexpr const char* kHoldSource = R"cpp(
#include <atoll/procedure.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

  using namespace atoll_api;
  static Status hold(Context& context) {
    const std::string_view input = context.input().text();
    const size_t first = input.find(' ');
    const size_t second = input.find(' ', first + 1);
    const std::string begun(input.substr(0, first));
    const std::string go(input.substr(first + 1, second - first - 1));
    close(open(begun.c_str(), O_CREAT | O_WRONLY, 0600));
    while (access(go.c_str(), F_OK) != 0) usleep(1000);
    return context.set_output("held");
  }
  ATOLL_LIBRARY(nullptr, {"hold", hold});
)cpp";

class NetworkTest : public ::testing::Test {
 protected:
  NetworkTest() : runner_(folder_) {
    generate("node");
    const std::string alice = generate("alice");
    const std::string reader = generate("reader");
    generate("stranger");
    std::ofstream(path("clients")) << alice << " alice read,write,procedures\n"
                                   << reader << " reader read\n";
  }

  ~NetworkTest() override { unsetenv("ATOLL_CLUSTER_RESTART"); }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  /// Makes a file of keys, and returns the public key.
  std::string generate(const std::string& name) const {
    const Ran ran = runner_.atoll({"keys", "generate", path(name + ".key")});
    EXPECT_EQ(ran.code, 0) << ran.error;
    const Ran shown = runner_.atoll({"keys", "show", path(name + ".key")});
    EXPECT_EQ(shown.out, ran.out) << shown.error;
    return ran.out.substr(0, ran.out.find('\n'));
  }
  std::string config(const std::string& more = "") const {
    return runner_.config(
        "net",
        "[network]\nenabled = true\nkey_file = \"node.key\"\nauthorised_keys = \"clients\"\n" +
            more,
        1);
  }
  void start(const std::string& more = "") {
    cluster_ = std::make_unique<CliCluster>(runner_, config(more));
    const Ran made = runner_.atoll({"storage", "create", "t", "--type", "mastertree"});
    ASSERT_EQ(made.code, 0) << made.error;
  }
  nlohmann::json node_process() const {
    const nlohmann::json status = cluster_->status();
    for (const auto& process : status["processes"]) {
      if (process.value("role", "") == "node0") return process;
    }
    ADD_FAILURE() << "no node runs";
    return {};
  }
  NetworkAddress address(const std::string& client) const {
    const nlohmann::json network = node_process()["network"];
    const std::string endpoint = network.value("endpoint", "");
    NetworkAddress to;
    to.host = "127.0.0.1";
    to.port = static_cast<uint16_t>(std::stoi(endpoint.substr(endpoint.find(':') + 1)));
    to.server_key = curve_key_of_hex(network.value("key", ""));
    to.key_file = path(client + ".key");
    return to;
  }
  std::unique_ptr<NetworkClient> connect(const std::string& client) const {
    auto connected = NetworkClient::connect(address(client));
    if (!connected) ADD_FAILURE() << connected.error().message;
    return connected ? *std::move(connected) : nullptr;
  }
  static KvRequest put_request(const std::string& key, const std::string& value) {
    KvRequest request;
    request.put("t", kv_bytes(key), kv_bytes(value));
    return request;
  }

  TestFolder folder_;
  CliRunner runner_;
  std::unique_ptr<CliCluster> cluster_;
};

TEST_F(NetworkTest, ClientsDoWhatTheirKeysAllowAndAreListedAndKilled) {
  start("[durability]\nmode = \"durable\"\n");
  const auto alice = connect("alice");
  const auto reader = connect("reader");
  ASSERT_TRUE(alice != nullptr && reader != nullptr);
  const SessionReply put = alice->call("kv.txn", put_request("k", "v").bytes());
  ASSERT_EQ(put.status, Status::ok) << put.message;
  EXPECT_EQ(put.answered_at, AnswerAt::durable);
  EXPECT_NE(put.commit_version, 0u);
  KvTransaction transaction(*reader);
  const auto read = transaction.get({"t"}, kv_bytes("k"));
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->size(), 1u);
  EXPECT_EQ(reader->call("kv.txn", put_request("k", "w").bytes()).status,
            Status::permission_denied);
  const auto stranger = NetworkClient::connect(address("stranger"));
  ASSERT_FALSE(stranger);
  EXPECT_NE(stranger.error().message.find("refuses the key of"), std::string::npos);

  const Ran list = runner_.atoll({"session", "ls", "--json"});
  const auto sessions = nlohmann::json::parse(list.out)["sessions"];
  ASSERT_EQ(sessions.size(), 2u) << list.out << list.error;
  const std::string name = "0/" + std::to_string(alice->session().number);
  const Ran text = runner_.atoll({"session", "ls"});
  EXPECT_NE(text.out.find("alice"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("127.0.0.1:"), std::string::npos) << text.out;
  EXPECT_EQ(runner_.atoll({"session", "kill", name}).code, 0);
  EXPECT_TRUE(eventually([&] { return !alice->is_open(); }));
  EXPECT_TRUE(reader->is_open());
  EXPECT_EQ(runner_.atoll({"session", "kill", name}).code, 1) << "it has ended";
  EXPECT_EQ(runner_.atoll({"session", "kill", "--all"}).code, 0);
  EXPECT_TRUE(eventually([&] { return !reader->is_open(); }));
}

TEST_F(NetworkTest, RecordsStoragesAndTheShellAreUsedFromAnotherMachine) {
  const std::string admin = generate("admin");
  std::ofstream(path("clients"), std::ios::app)
      << admin << " admin read,write,procedures,administration\n";
  start("[durability]\nmode = \"durable\"\n");
  const nlohmann::json network = node_process()["network"];
  const std::string node =
      "atoll+tcp://" + network.value("endpoint", "") + "?server_key=" + network.value("key", "");
  // Without the cluster's run folder, nothing is found on this machine.
  const auto remote = [&](const std::string& client, std::vector<std::string> words) {
    words.insert(words.end(), {"--connect", node, "--key-file", path(client + ".key")});
    return runner_.atoll(words);
  };
  const auto expect = [&](const Ran& ran, int code, const std::string& part) {
    EXPECT_EQ(ran.code, code) << ran.out << ran.error;
    EXPECT_NE((code == 0 ? ran.out : ran.error).find(part), std::string::npos)
        << part << " is missing in: " << ran.out << ran.error;
  };
  expect(remote("alice", {"kv", "put", "t", "k", "v"}), 0, "ok");
  expect(remote("reader", {"kv", "get", "t", "k"}), 0, "v\n");
  expect(remote("reader", {"kv", "scan", "t", "--json"}), 0, "\"key\":\"k\"");
  // The same exit codes and messages as on the machine of the cluster.
  for (const std::vector<std::string>& words : {std::vector<std::string>{"kv", "get", "t", "none"},
                                                {"kv", "insert", "t", "k", "w"},
                                                {"kv", "get", "none", "k"},
                                                {"procedure", "call", "no.such"},
                                                {"kv", "get", "t", std::string(1025, 'k')},
                                                {"shell", "-e", "create t"},
                                                {"shell", "-e", "drop none"},
                                                {"shell", "-e", "commit"},
                                                {"shell", "-e", "create x --type array"}}) {
    const Ran local = runner_.atoll(words);
    const Ran far = remote("admin", words);
    EXPECT_NE(local.code, 0);
    EXPECT_EQ(far.code, local.code) << far.error << local.error;
    EXPECT_EQ(far.error, local.error);
  }
  expect(remote("reader", {"kv", "put", "t", "k", "w"}), 1, "permission_denied");
  expect(remote("reader", {"kv", "put", "t", "k", "w"}), 1, "lacks the right write");
  expect(remote("reader", {"procedure", "call", "no.such"}), 1, "lacks the right procedures");
  expect(remote("alice", {"shell", "-e", "create u"}), 1, "lacks the right administration");
  expect(remote("admin", {"session", "ls"}), 0, "key admin");
  expect(remote("admin", {"session", "ls", "--json"}), 0, "\"key\": \"admin\"");
  expect(remote("alice", {"session", "ls"}), 1, "lacks the right administration");
  const auto victim = connect("reader");
  ASSERT_NE(victim, nullptr);
  const std::string number = std::to_string(victim->session().number);
  expect(remote("admin", {"session", "kill", "0/" + number}), 0, "session 0/" + number + " ended");
  EXPECT_TRUE(eventually([&] { return !victim->is_open(); }));
  expect(remote("admin", {"session", "kill", "0/" + number}), 1, number);
  expect(remote("admin", {"session", "kill", "1/" + number}), 2, "reaches node 0 only");
  expect(remote("admin", {"session", "kill", "--all"}), 2, "excludes");
  expect(remote("stranger", {"kv", "get", "t", "k"}), 1, "refuses the key of");
  expect(remote("none", {"kv", "get", "t", "k"}), 78, "none.key: No such file");
  expect(runner_.atoll({"kv", "get", "t", "k", "--connect", node}), 2, "belong together");
  // A connection string may also name a cluster of this machine.
  const std::string run_dir = "atoll://" + folder_.path() + "/atoll/net";
  for (const std::string& local : {std::string("atoll:net"), run_dir, run_dir + "?node=0"}) {
    expect(runner_.atoll({"kv", "get", "t", "k", "--connect", local}), 0, "v\n");
    expect(runner_.atoll({"storage", "describe", "t", "--connect", local}), 0, "mastertree");
    expect(runner_.atoll({"session", "ls", "--connect", local}), 0, "SESSION");
  }
  expect(runner_.atoll({"kv", "get", "t", "k", "--connect", run_dir + "?node=1"}), 2, "--node 1");
  for (const char* command : {"storage", "session"}) {
    const auto list = [&](const std::string& where) {
      return runner_.atoll({command, "ls", "--connect", where});
    };
    expect(list(run_dir + "?node=1"), 2, "has nodes 0 to 0");
    for (const std::string& where :
         {run_dir + "?", node + "&key_file=" + path("alice.key") + "&"}) {
      expect(list(where + "acknowledge=visible"), 2, "acknowledge=visible has no effect here");
    }
  }
  for (const char* parameter : {"node=0", "acknowledge=visible"}) {
    expect(runner_.atoll({"bench", "ycsb", "verify", "--connect", run_dir + "?" + parameter}), 2,
           std::string(parameter) + " has no effect here");
  }
  expect(runner_.atoll({"kv", "get", "t", "k", "--connect", "atoll:none"}), 3, "`atoll up`");
  expect(runner_.atoll({"kv", "get", "t", "k", "--connect", node, "--node", "0"}), 2, "--node");
  expect(runner_.atoll({"kv", "get", "t", "k", "--connect", node + "&acknowledge=visible",
                        "--key-file", path("alice.key")}),
         2, "use --acknowledge visible");
  expect(runner_.atoll({"kv", "get", "t", "k", "--key-file", "x"}), 2, "--connect");

  expect(remote("admin", {"shell", "-e", "create u", "-e", "begin", "-e", "put u k 7", "-e",
                          "commit", "-e", "get u k", "-e", "storages"}),
         0, "\n7\n");
  expect(remote("reader", {"storage", "ls"}), 0, "u ");
  expect(remote("reader", {"storage", "describe", "u", "--json"}), 0, "\"name\": \"u\"");
  expect(remote("reader", {"storage", "describe", "none"}), 1, "none");
  const std::vector<std::string> creation = {"storage", "create", "w", "--type", "sequential"};
  for (const char* reader : {"reader", "alice"}) {
    expect(remote(reader, creation), 1, "lacks the right administration");
    expect(remote(reader, {"storage", "drop", "u"}), 1, "change network.authorised_keys");
  }
  expect(remote("admin", creation), 0, "storage \"w\" created");
  // The list has the same columns as on the machine of the cluster.
  const Ran listed = runner_.atoll({"storage", "ls"});
  EXPECT_EQ(remote("reader", {"storage", "ls"}).out, listed.out);
  expect(remote("admin", {"storage", "drop", "w", "--json"}), 0, "pages_freed");
  const Ran taken = runner_.atoll({"snapshot", "take"});
  EXPECT_EQ(taken.code, 0) << taken.out << taken.error;
  expect(remote("reader", {"shell", "-e", "begin snapshot", "-e", "get u k", "-e", "commit"}), 0,
         "\n7\n");
  expect(remote("admin", {"shell", "-e", "drop u", "-e", "get u k"}), 1, "u");
}

TEST_F(NetworkTest, AListOfStoragesOfAnyLengthArrivesInParts) {
  const std::string admin = generate("admin");
  std::ofstream(path("clients"), std::ios::app) << admin << " admin read,administration\n";
  start();
  const auto client = connect("admin");
  ASSERT_NE(client, nullptr);
  const std::string long_name(50, 'n');
  constexpr int kStorages = 300;  // more than one answer has room for
  for (int i = 0; i < kStorages; ++i) {
    const std::string body =
        nlohmann::json{{"name", long_name + std::to_string(i)}, {"type", "sequential"}}.dump();
    const SessionReply made = client->call("atoll.storage.create", std::as_bytes(std::span(body)));
    ASSERT_EQ(made.status, Status::ok) << made.message;
  }
  const SessionReply first = client->call("atoll.storage.list", {});
  ASSERT_EQ(first.status, Status::ok) << first.message;
  const auto* const begin = reinterpret_cast<const char*>(first.output.data());
  EXPECT_EQ(nlohmann::json::parse(begin, begin + first.output.size())["more"], true);
  const nlohmann::json network = node_process()["network"];
  const Ran listed = runner_.atoll({"shell", "-e", "storages", "--connect",
                                    "atoll+tcp://" + network.value("endpoint", "") +
                                        "?server_key=" + network.value("key", "") +
                                        "&key_file=" + path("admin.key")});
  EXPECT_EQ(listed.code, 0) << listed.error;
  EXPECT_EQ(std::ranges::count(listed.out, '\n'), kStorages + 2);  // the header, and "t"
}

TEST_F(NetworkTest, AKilledNodeLosesNoPutThatItHasAcknowledged) {
  ASSERT_EQ(setenv("ATOLL_CLUSTER_RESTART", "recover", 1), 0);  // as cluster.restart
  start("base_port = " + std::to_string(free_port()) + "\n[durability]\nmode = \"durable\"\n");
  auto client = connect("alice");
  ASSERT_NE(client, nullptr);
  const NetworkAddress to = address("alice");
  const int pid = node_process().value("pid", 0);
  ASSERT_GT(pid, 1);
  std::vector<uint64_t> acknowledged;
  uint64_t unknown = 0;
  uint64_t other = 0;
  uint64_t number = 0;
  bool is_killed = false;
  while (client->is_open()) {
    const std::string key = "key" + std::to_string(number);
    const auto sent = client->submit("kv.txn", put_request(key, key).bytes(), {},
                                     [&, number](SessionTicket, const SessionReply& reply) {
                                       if (reply.status == Status::ok) {
                                         acknowledged.push_back(number);
                                       } else if (reply.status == Status::outcome_unknown) {
                                         ++unknown;
                                       } else {
                                         ++other;
                                       }
                                     });
    if (!sent) break;
    ++number;
    if (acknowledged.size() > 500 && !is_killed) {
      is_killed = true;
      ASSERT_EQ(kill(pid, SIGKILL), 0);
    }
  }
  while (client->dispatch(std::chrono::seconds(1)) != 0) {
  }
  EXPECT_EQ(client->in_flight(), 0u);
  EXPECT_EQ(acknowledged.size() + unknown + other, number);
  EXPECT_GT(unknown, 0u);
  const uint64_t before = client->incarnation();
  auto again = connect_until_running(
      [&]() -> Result<std::unique_ptr<ClientTransport>> { return NetworkClient::connect(to); },
      std::chrono::seconds(60), {}, Isolation::serializable, "node 0");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_NE((*again)->incarnation(), before);
  for (const uint64_t each : acknowledged) {
    KvRequest get_one;
    const std::string key = "key" + std::to_string(each);
    get_one.get("t", kv_bytes(key), true);
    ASSERT_EQ((*again)->call("kv.txn", get_one.bytes()).status, Status::ok) << key;
  }
}

TEST_F(NetworkTest, HostileClientsLeaveTheMemoryOfTheNodeFlat) {
  start();
  const auto bystander = connect("alice");
  ASSERT_NE(bystander, nullptr);
  const NetworkAddress to = address("alice");
  const std::string statm = "/proc/" + std::to_string(node_process().value("pid", 0)) + "/statm";
  const auto resident_pages = [&] {
    uint64_t size = 0;
    uint64_t resident = 0;
    std::ifstream(statm) >> size >> resident;
    return resident;
  };
  std::mt19937_64 random(seed());
  const auto misbehave = [&](uint64_t frames, uint64_t connections) {
    auto link = NetworkLink::open(to, NetworkClient::kHandshakeTimeout);
    ASSERT_TRUE(link) << link.error().message;
    for (uint64_t i = 0; i < frames; ++i) {
      std::vector<std::byte> frame(random() % 4000);
      for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
      if (frame.size() > 8 && i % 2 == 0) std::memcpy(frame.data() + 4, "ATN1", 4);
      ASSERT_TRUE((*link)->send(frame));
      while ((*link)->receive()) {
      }
    }
    for (uint64_t i = 0; i < connections; ++i) {
      const sockaddr_in peer = loopback(to.port);
      const UniqueFd raw(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::connect(raw.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
      const std::string text(i % 80 + 1, 'x');
      ASSERT_GT(send(raw.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
    }
  };
  misbehave(200, 50);  // buffers get their size
  ASSERT_EQ(bystander->call("no.such", {}).status, Status::procedure_not_found);
  const uint64_t before = resident_pages();
  misbehave(rounds(1'000, 10'000), rounds(100, 1'000));
  ASSERT_EQ(bystander->call("no.such", {}).status, Status::procedure_not_found);
  constexpr uint64_t kMostPages = 8 * 256;  // 8 MiB
  EXPECT_LT(resident_pages(), before + kMostPages);
  EXPECT_EQ(cluster_->down().code, 0);
}

TEST_F(NetworkTest, UploadsWithoutMemoryAreRefusedAndDoNotPileUpInTheNode) {
  std::ofstream(path("hold.cpp")) << kHoldSource;
  ASSERT_FALSE(build_procedures(runner_, path("hold.cpp"), "hold").empty());
  start(
      "[procedures]\nlibraries = [\"hold.so\"]\ntime_limit = \"1min\"\nmax_input = \"32MiB\"\n"
      "max_output = \"1MiB\"\npayload_memory = \"33MiB\"\n");
  const NetworkAddress to = address("alice");
  const pid_t node = node_process().value("pid", 0);
  const auto holder = connect("alice");
  ASSERT_NE(holder, nullptr);
  // This input takes nearly all memory of long inputs until `go` exists.
  std::string input = path("begun") + " " + path("go") + " ";
  input.resize(size_t{32} << 20, 'x');
  const auto ticket = holder->submit("hold", kv_bytes(input));
  ASSERT_TRUE(ticket);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path("begun")); }));

  constexpr int kUploads = 3;
  const uint64_t before = peak_bytes(node);
  ASSERT_GT(before, input.size());
  std::atomic<int> refused{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      const auto client = NetworkClient::connect(to);
      for (int upload = 0; client && upload < kUploads; ++upload) {
        const SessionReply reply = (*client)->call("hold", kv_bytes(input));
        const bool is_clear = reply.status == Status::unavailable &&
                              reply.message.contains("raise procedures.payload_memory");
        refused.fetch_add(is_clear ? 1 : 0, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(refused.load(std::memory_order_relaxed), 8 * kUploads);
  // The clients have up to 256 MiB to send at a time. ZeroMQ keeps 4 parts of each.
  EXPECT_LT(peak_bytes(node), before + (uint64_t{32} << 20));

  std::ofstream(path("go")) << "go";
  const SessionReply held = holder->wait(*ticket);
  EXPECT_EQ(held.status, Status::ok) << held.message;
  const SessionReply next = holder->call("hold", kv_bytes(input));
  EXPECT_EQ(next.status, Status::ok) << "there is room again: " << next.message;
}

TEST_F(NetworkTest, ConfigsWithoutKeysAreRefusedUnlessTheySaySo) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"enabled = true\n", "network.key_file: expected a file of keys"},
      {"enabled = true\nlisten = \"0.0.0.0\"\n", "network.key_file: expected a file of keys"},
      {"enabled = true\nlisten = \"0.0.0.0\"\nwithout_keys = true\n",
       "network.without_keys: expected false with an address beyond loopback"},
      {"enabled = true\nkey_file = \"node.key\"\n", "network.authorised_keys: expected a file"},
      {"enabled = true\nkey_file = \"none.key\"\nauthorised_keys = \"clients\"\n",
       "none.key: No such file"},
      {"base_port = 65535\n", "network.base_port: expected 0, or at most 65534"}};
  for (const auto& [lines, part] : wrong) {
    const Ran up = runner_.atoll({"up", "-c", runner_.config("wrong", "[network]\n" + lines)});
    EXPECT_NE(up.code, 0) << lines;
    EXPECT_NE(up.error.find(part), std::string::npos) << up.error;
  }
  const Ran checked =
      runner_.atoll({"config", "check", runner_.config("last", "[network]\nbase_port = 65534\n")});
  EXPECT_EQ(checked.code, 0) << checked.error;
}

}  // namespace
}  // namespace atolldb::test
