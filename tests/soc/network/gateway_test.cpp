// Tests of the network port of a node: keys, limits of sessions, frames of hostile clients, and
// clients that vanish. No request runs here: the node refuses all of them.
#include "soc/network/gateway.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <zmq.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/unique_fd.h"
#include "shared/client/network_client.h"
#include "shared/kv/kv_request.h"
#include "tests/soc/network/gateway_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

TEST_F(NetworkGatewayTest, AClientWithAnAuthorisedKeyIsAnswered) {
  ASSERT_TRUE(start());
  auto client = NetworkClient::connect(address());
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ((*client)->incarnation(), 5u);
  EXPECT_EQ((*client)->session().key_name, "alice");
  const SessionReply reply = (*client)->call("any", {});
  EXPECT_EQ(reply.status, Status::recovering);
  EXPECT_EQ(reply.message, "nothing runs here");
  EXPECT_EQ((*client)->call("other", {}).status, Status::procedure_not_found);
  EXPECT_EQ((*client)->call("", {}).status, Status::invalid_argument);
  const uint32_t most = PayloadLimits().max_input_bytes;
  EXPECT_EQ((*client)->call("any", std::vector<std::byte>(kSessionPartBytes)).status,
            Status::recovering);
  EXPECT_EQ((*client)->call("any", std::vector<std::byte>(most)).status, Status::recovering);
  EXPECT_EQ((*client)->call("any", std::vector<std::byte>(most + 1)).status,
            Status::payload_too_long);
  EXPECT_EQ(get(metrics_.requests), 4u);
  EXPECT_EQ(get(metrics_.open), 1u);
  client->reset();
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 0; }));
  EXPECT_EQ(get(metrics_.malformed), 0u);
}

TEST_F(NetworkGatewayTest, WrongAndMissingKeysAreRefusedWithTheWayOut) {
  ASSERT_TRUE(start());
  expect_fails(address("bob"), ExitCode::failed, "atoll keys show");
  EXPECT_EQ(get(metrics_.refused_key), 1u);
  NetworkAddress wrong = address();
  wrong.server_key = bob_;
  expect_fails(wrong, ExitCode::failed, "is not its key");
  NetworkAddress keyless = address();
  keyless.server_key.reset();
  expect_fails(keyless, ExitCode::failed, "accepts only clients with keys");
  NetworkAddress missing = address("absent");
  expect_fails(missing, ExitCode::config, "absent.key");
  const uint16_t used = port();
  gateway_.reset();
  NetworkAddress unused_port = wrong;
  unused_port.port = used;
  expect_fails(unused_port, ExitCode::not_running, "no node listens there");
  EXPECT_GE(get(metrics_.failed_handshakes), 1u);
}

TEST_F(NetworkGatewayTest, WithoutKeysEveryClientIsAnswered) {
  ASSERT_TRUE(start(false));
  NetworkAddress keyless = address();
  keyless.server_key.reset();
  auto client = NetworkClient::connect(keyless);
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_TRUE(is_answered(**client));
  EXPECT_EQ((*client)->session().rights, kAllNetworkRights);
  expect_fails(address(), ExitCode::failed, "or it uses none");
}

TEST_F(NetworkGatewayTest, AClientMayOnlySendWhatItsKeyAllows) {
  allow(to_hex(alice_) + " alice read\n" + to_hex(bob_) + " bob write\n");
  ASSERT_TRUE(start());
  auto reader = NetworkClient::connect(address());
  auto writer = NetworkClient::connect(address("bob"));
  ASSERT_TRUE(reader && writer);
  KvRequest get_one;
  get_one.get("t", kv_bytes("k"));
  KvRequest put_one;
  put_one.put("t", kv_bytes("k"), kv_bytes("v"));
  EXPECT_EQ((*reader)->call("kv.txn", get_one.bytes()).status, Status::recovering) << "allowed";
  const SessionReply denied = (*reader)->call("kv.txn", put_one.bytes());
  EXPECT_EQ(denied.status, Status::permission_denied);
  EXPECT_NE(denied.message.find("lacks the right write"), std::string::npos) << denied.message;
  EXPECT_EQ((*writer)->call("kv.txn", put_one.bytes()).status, Status::recovering);
  EXPECT_EQ((*writer)->call("kv.txn", get_one.bytes()).status, Status::permission_denied);
  KvRequest add_one;
  add_one.add_i64("t", kv_bytes("k"), 1, 0, true);
  EXPECT_EQ((*writer)->call("kv.txn", add_one.bytes()).status, Status::permission_denied);
  EXPECT_EQ((*reader)->call("any", {}).status, Status::permission_denied);
  EXPECT_EQ(get(metrics_.denied), 4u);
  // Each of both rights suffices to ask for the type of a storage.
  EXPECT_EQ(missing_rights("atoll.storage.describe", {}, kMayRead), 0u);
  EXPECT_EQ(missing_rights("atoll.storage.describe", {}, kMayWrite), 0u);
  EXPECT_EQ(missing_rights("atoll.storage.describe", {}, kMayAdminister), uint32_t{kMayRead});
  EXPECT_EQ(missing_rights("atoll.storage.list", {}, kMayWrite), uint32_t{kMayRead});
  // A job needs both rights.
  const uint32_t of_job = kMayAdminister | kMayCallProcedures;
  EXPECT_EQ(missing_rights("atoll.job.start", {}, of_job), 0u);
  EXPECT_EQ(missing_rights("atoll.job.start", {}, kMayAdminister), uint32_t{kMayCallProcedures});
  EXPECT_EQ(missing_rights("atoll.job.start", {}, kMayCallProcedures), uint32_t{kMayAdminister});
  EXPECT_EQ(missing_rights("atoll.job.start", {}, kMayRead), of_job);
}

TEST_F(NetworkGatewayTest, AChangedFileOfKeysHoldsAtOnce) {
  ASSERT_TRUE(start());
  auto client = NetworkClient::connect(address());
  ASSERT_TRUE(client);
  EXPECT_TRUE(is_answered(**client));
  allow("this is no line\n");  // the keys of before remain
  allow(to_hex(alice_) + " alice read\n");
  EXPECT_TRUE(test::eventually(
      [&] { return (*client)->call("any", {}).status == Status::permission_denied; }));
  allow(to_hex(bob_) + " bob read,procedures\n");
  EXPECT_TRUE(test::eventually([&] { return !(*client)->is_open(); }));
  auto other = NetworkClient::connect(address("bob"));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_TRUE(is_answered(**other));
  expect_fails(address(), ExitCode::failed, "refuses the key");
}

TEST_F(NetworkGatewayTest, ARevokedClientThatStaysLosesItsConnection) {
  allow(to_hex(alice_) + " alice read,procedures\n" + to_hex(bob_) + " bob read,procedures\n");
  ASSERT_TRUE(start());
  auto stays = NetworkLink::open(address(), NetworkClient::kHandshakeTimeout);
  auto other = NetworkClient::connect(address("bob"));
  ASSERT_TRUE(stays && other);
  EXPECT_EQ(get(metrics_.connections), 2u);
  allow(to_hex(bob_) + " bob read,procedures\n");
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 1; }));
  // The link closes nothing by itself. It gets the reason first.
  std::optional<RefusalCode> refusal;
  EXPECT_TRUE(test::eventually([&] {
    const auto bytes = (*stays)->receive();
    WireFrame frame;
    if (bytes && read_wire_frame(*bytes, frame)) refusal = frame.refusal.code;
    return refusal.has_value();
  }));
  EXPECT_EQ(refusal, RefusalCode::revoked);
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.connections) == 1; }));
  EXPECT_TRUE(is_answered(**other));
}

TEST_F(NetworkGatewayTest, AFileOfKeysBehindLinksHoldsAtOnce) {
  namespace fs = std::filesystem;
  const auto write = [&](const std::string& name, const std::string& lines) {
    std::ofstream(folder_ + "/" + name) << lines;
  };
  const auto link = [&](const std::string& target, const std::string& name) {
    fs::create_symlink(target, folder_ + "/new");
    fs::rename(folder_ + "/new", folder_ + "/" + name);
  };
  const auto may_call = [&](const std::string& client) {
    return test::eventually([&] {
      auto connected = NetworkClient::connect(address(client));
      return connected && is_answered(**connected);
    });
  };
  for (const char* folder : {"one", "two"}) fs::create_directory(folder_ + "/" + folder);
  write("one/keys", to_hex(alice_) + " alice read,procedures\n");
  write("two/keys", to_hex(bob_) + " bob read,procedures\n");
  link("one", "current");
  link("current/keys", "authorised");
  ASSERT_TRUE(start());
  EXPECT_TRUE(may_call("alice"));
  link("two", "current");  // a folder on the way
  EXPECT_TRUE(may_call("bob"));
  expect_fails(address("alice"), ExitCode::failed, "refuses the key");
  write("two/new", to_hex(alice_) + " alice read,procedures\n");
  fs::rename(folder_ + "/two/new", folder_ + "/two/keys");  // the file itself
  EXPECT_TRUE(may_call("alice"));
  fs::remove(folder_ + "/authorised");  // while there is no file, the keys of before remain
  EXPECT_TRUE(may_call("alice"));
  fs::create_symlink(folder_ + "/one/../three", folder_ + "/authorised");
  write("three", to_hex(bob_) + " bob read,procedures\n");
  EXPECT_TRUE(may_call("bob"));
}

TEST_F(NetworkGatewayTest, APermissionARemovalAndAHardLinkOfTheFileOfKeysAreNoticed) {
  namespace fs = std::filesystem;
  const auto may_call = [&](const std::string& client) {
    return test::eventually([&] {
      auto connected = NetworkClient::connect(address(client));
      return connected && is_answered(**connected);
    });
  };
  ASSERT_TRUE(start());
  const auto group_may_write =
      fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_write;
  std::ofstream(folder_ + "/new") << to_hex(bob_) << " bob procedures\n";
  fs::permissions(folder_ + "/new", group_may_write);
  fs::rename(folder_ + "/new", folder_ + "/authorised");
  EXPECT_TRUE(may_call("alice")) << "the previous keys remain in use";
  fs::permissions(folder_ + "/authorised", fs::perms::group_write, fs::perm_options::remove);
  EXPECT_TRUE(may_call("bob"));
  expect_fails(address("alice"), ExitCode::failed, "refuses the key");
  std::ofstream(folder_ + "/other") << to_hex(alice_) << " alice procedures\n";
  fs::remove(folder_ + "/authorised");
  fs::create_hard_link(folder_ + "/other", folder_ + "/authorised");
  EXPECT_TRUE(may_call("alice"));
  expect_fails(address("bob"), ExitCode::failed, "refuses the key");
}

TEST_F(NetworkGatewayTest, AFileOfKeysWithAWrongLineIsNotUsed) {
  const std::string key = to_hex(alice_);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {key + " alice\n", ":1: a line is KEY NAME RIGHTS"},
      {"# a comment\n\n12 alice read\n", ":3: the key \"12\""},
      {key + " al/ice read\n", "the name \"al/ice\""},
      {key + " alice read,fly\n", "the rights \"read,fly\""},
      {key + " alice read more\n", "a line is KEY NAME RIGHTS"},
      {key + " alice read\n" + key + " again read\n", ":2: the key of \"again\""}};
  for (const auto& [text, part] : wrong) {
    allow(text);
    const auto started = start();
    ASSERT_FALSE(started) << text;
    EXPECT_EQ(started.error().code, ExitCode::config);
    EXPECT_NE(started.error().message.find(part), std::string::npos) << started.error().message;
  }
  const std::string longest(Authorisation::kMaxNameBytes, 'n');
  EXPECT_TRUE(Authorisation::parse(key + " " + longest + " read\n", "f"));
  EXPECT_FALSE(Authorisation::parse(key + " " + longest + "n read\n", "f"));
}

TEST_F(NetworkGatewayTest, TheLastSessionWithinTheLimitOpensAndTheNextOneDoesNot) {
  ASSERT_TRUE(start(false));
  NetworkAddress keyless = address();
  keyless.server_key.reset();
  RawClients clients;
  WireWriter writer;
  for (size_t i = 0; i < NetworkGateway::kMaxSessions; ++i) {
    const WireFrame& answer = clients.ask(clients.connect(gateway_->endpoint()), writer.hello("x"));
    ASSERT_EQ(answer.kind, WireFrame::Kind::welcome) << i;
  }
  expect_fails(keyless, ExitCode::resources, "has 256 network sessions already");
  EXPECT_EQ(get(metrics_.refused_limit), 1u);
  clients.close_last();
  EXPECT_TRUE(test::eventually([&] { return NetworkClient::connect(keyless).has_value(); }));
}

TEST_F(NetworkGatewayTest, MalformedFramesAreCountedAndAnsweredAndOthersContinue) {
  ASSERT_TRUE(start(false));
  NetworkAddress keyless = address();
  keyless.server_key.reset();
  auto bystander = NetworkClient::connect(keyless);
  auto link = NetworkLink::open(keyless, NetworkClient::kHandshakeTimeout);
  ASSERT_TRUE(bystander && link);
  std::mt19937_64 random(test::seed());
  const uint64_t rounds = test::rounds(1'000, 10'000);
  uint64_t answers = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    std::vector<std::byte> frame(random() % 200);
    for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
    if (frame.size() > 8 && i % 2 == 0) std::memcpy(frame.data() + 4, "ATN1", 4);
    ASSERT_TRUE((*link)->send(frame));
    while ((*link)->receive()) ++answers;
  }
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.malformed) >= rounds; }))
      << get(metrics_.malformed);
  EXPECT_TRUE(is_answered(**bystander));
  EXPECT_TRUE(test::eventually([&] {
    while ((*link)->receive()) ++answers;
    return answers != 0;
  }));
}

TEST_F(NetworkGatewayTest, AFrameWithoutASessionAndASecondHelloAreRefused) {
  ASSERT_TRUE(start(false));
  RawClients clients;
  const size_t client = clients.connect(gateway_->endpoint());
  WireWriter writer;
  writer.add(WireRequest{.id = 1, .procedure = "any"});
  EXPECT_EQ(clients.ask(client, writer.finish_requests()).refusal.code, RefusalCode::no_session);
  EXPECT_EQ(clients.ask(client, writer.hello("x")).kind, WireFrame::Kind::welcome);
  EXPECT_EQ(clients.ask(client, writer.hello("x")).refusal.code, RefusalCode::malformed);
  EXPECT_EQ(clients.ask(client, writer.probe()).refusal.code, RefusalCode::malformed)
      << "only nodes send it";
  writer.add(WireRequest{.id = 7, .procedure = "any"});
  const WireFrame& frame = clients.ask(client, writer.finish_requests());
  ASSERT_EQ(frame.kind, WireFrame::Kind::answers);
  EXPECT_EQ(frame.answers.at(0).id, 7u);
  clients.close_last();
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 0; }));
}

TEST_F(NetworkGatewayTest, ConnectionsThatSpeakAnotherProtocolOrVanishLeaveNothing) {
  ASSERT_TRUE(start());
  auto bystander = NetworkClient::connect(address());
  ASSERT_TRUE(bystander);
  const uint64_t rounds = test::rounds(100, 1'000);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (uint64_t i = 0; i < rounds; ++i) {
    const UniqueFd raw(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(raw.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    const std::string text(i % 100, 'x');
    const ssize_t sent = send(raw.get(), text.data(), text.size(), MSG_NOSIGNAL);
    ASSERT_EQ(sent, static_cast<ssize_t>(text.size()));
  }
  for (uint64_t i = 0; i < rounds / 10; ++i) {
    auto link = NetworkLink::open(address(), NetworkClient::kHandshakeTimeout);
    ASSERT_TRUE(link) << link.error().message;
  }
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 1; })) << get(metrics_.open);
  EXPECT_TRUE(is_answered(**bystander));
}

/// A client of ZeroMQ's protocol without ZeroMQ, which sends parts of a message that does not end.
/// ZeroMQ sends whole messages only.
class EndlessClient {
 public:
  explicit EndlessClient(uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    std::string greeting("\xff\0\0\0\0\0\0\0\0\x7f\3\1NULL", 16);
    greeting.resize(64);
    // A command: its type of frame, its length, its name, and one property.
    const std::string ready("\4\x1c\5READY\x0bSocket-Type\0\0\0\6DEALER", 30);
    EXPECT_TRUE(send(greeting + ready));
    // The node sends its READY when it has accepted the client. Until then, it takes a message for
    // a part of the handshake, and closes the connection.
    EXPECT_EQ(receive(64).size(), 64u);
    const std::string head = receive(2);
    CHECK(head.size() == 2 && head[0] == '\4');
    EXPECT_EQ(receive(static_cast<uint8_t>(head[1])).substr(0, 6), "\5READY");
  }

  /// Returns false if the node has closed the connection. A send that waits for room does not
  /// notice that for a minute: the kernel of a closed end only repeats that it has no room.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      pollfd item{socket_.get(), POLLOUT | POLLRDHUP, 0};
      if (::poll(&item, 1, -1) != 1 || (item.revents & (POLLRDHUP | POLLHUP)) != 0) return false;
      const auto sent =
          ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EAGAIN) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  /// A whole message of one part with up to 255 bytes.
  bool send_message(std::span<const std::byte> bytes) const {
    CHECK(bytes.size() < 256);
    const auto* const begin = reinterpret_cast<const char*>(bytes.data());
    return send(std::string{'\0', static_cast<char>(bytes.size())} +
                std::string(begin, begin + bytes.size()));
  }
  /// A part of 64 KiB, after which more follow.
  bool send_part() const {
    return send(std::string("\3\0\0\0\0\0\1\0\0", 9)) && send(std::string(1u << 16, 'x'));
  }

 private:
  std::string receive(size_t bytes) const {
    std::string received(bytes, '\0');
    const auto got = ::recv(socket_.get(), received.data(), bytes, MSG_WAITALL);
    received.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return received;
  }

  UniqueFd socket_;
};

TEST_F(NetworkGatewayTest, AMessageThatDoesNotEndClosesItsConnection) {
  ASSERT_TRUE(start(false));
  NetworkAddress keyless = address();
  keyless.server_key.reset();
  keyless.key_file.clear();
  auto other = NetworkClient::connect(keyless);
  ASSERT_TRUE(other) << other.error().message;
  const EndlessClient client(port());
  WireWriter writer;
  ASSERT_TRUE(client.send_message(writer.hello("x")));
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 2; }));
  uint64_t sent = 0;
  while (client.send_part()) {
    sent += 1u << 16;
    ASSERT_LT(sent, uint64_t{16} << 30);
  }
  EXPECT_GT(sent, ConnectionGuard::kMaxUnfinishedBytes);
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 1; }));
  EXPECT_EQ(get(metrics_.connections_refused), 1u);
  EXPECT_EQ(get(metrics_.connections), 1u);
  EXPECT_TRUE(is_answered(**other));
  // The next one is closed within the same minute, without a second warning.
  const EndlessClient next(port());
  EXPECT_TRUE(next.send_message(writer.hello("x")));
  while (next.send_part()) {
  }
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.connections_refused) == 2; }));
  gateway_->stop();  // no thread writes the log now
  const std::string log = log_.str();
  const std::string warning = "closed so far because of a limit";
  EXPECT_NE(log.find("1 connections " + warning), std::string::npos) << log;
  EXPECT_EQ(log.find(warning), log.rfind(warning)) << log;
}

TEST_F(NetworkGatewayTest, AClientThatReadsNoAnswersIsDropped) {
  ASSERT_TRUE(start(false));
  void* const context = zmq_ctx_new();
  void* const dealer = zmq_socket(context, ZMQ_DEALER);
  const int no_wait = 0;
  const int one_frame = 1;
  const int few_bytes = 4096;
  zmq_setsockopt(dealer, ZMQ_LINGER, &no_wait, sizeof(no_wait));
  zmq_setsockopt(dealer, ZMQ_RCVHWM, &one_frame, sizeof(one_frame));
  zmq_setsockopt(dealer, ZMQ_RCVBUF, &few_bytes, sizeof(few_bytes));
  ASSERT_EQ(zmq_connect(dealer, ("tcp://" + gateway_->endpoint()).c_str()), 0);
  WireWriter writer;
  const auto hello = writer.hello("x");
  ASSERT_GE(zmq_send(dealer, hello.data(), hello.size(), 0), 0);
  for (int i = 0; i < 200; ++i) writer.add(WireRequest{.id = 1, .procedure = "other"});
  const auto requests = writer.finish_requests();
  EXPECT_TRUE(test::eventually([&] {
    zmq_send(dealer, requests.data(), requests.size(), ZMQ_DONTWAIT);
    return get(metrics_.dropped) != 0;
  }));
  EXPECT_TRUE(test::eventually([&] { return get(metrics_.open) == 0; }));
  zmq_close(dealer);
  zmq_ctx_term(context);
}

TEST_F(NetworkGatewayTest, AStoppedNodeEndsTheSessionsOfItsClients) {
  ASSERT_TRUE(start());
  auto client = NetworkClient::connect(address());
  ASSERT_TRUE(client);
  gateway_->stop();
  EXPECT_TRUE(test::eventually([&] { return !(*client)->is_open(); }));
  EXPECT_EQ((*client)->call("any", {}).status, Status::unavailable);
  EXPECT_EQ(get(metrics_.open), 0u);
}

TEST_F(NetworkGatewayTest, NamesOfProgramsAreListedWithoutControlCharacters) {
  ASSERT_TRUE(start(false));
  RawClients clients;
  WireWriter writer;
  const auto& answer =
      clients.ask(clients.connect(gateway_->endpoint()), writer.hello("a\x1b[2J\n\x7f z"));
  ASSERT_EQ(answer.kind, WireFrame::Kind::welcome);
  std::promise<Result<Json>> answered;
  gateway_->handle({ControlOperation::session_list, Json::object()},
                   [&](Result<Json> list) { answered.set_value(std::move(list)); });
  const auto list = answered.get_future().get();
  ASSERT_TRUE(list && (*list)["sessions"].size() == 1);
  EXPECT_EQ((*list)["sessions"][0]["program"], "a?[2J?? z");
}

TEST_F(NetworkGatewayTest, SessionsAreListedWithTheirKeyAndKilled) {
  ASSERT_TRUE(start());
  auto client = NetworkClient::connect(address());
  auto other = NetworkClient::connect(address());
  ASSERT_TRUE(client && other);
  EXPECT_TRUE(is_answered(**client));
  const auto ask = [&](ControlOperation operation, const Json& body) {
    std::promise<Result<Json>> answered;
    gateway_->handle({operation, body},
                     [&](Result<Json> answer) { answered.set_value(std::move(answer)); });
    return answered.get_future().get();
  };
  auto list = ask(ControlOperation::session_list, Json::object());
  ASSERT_TRUE(list);
  ASSERT_EQ((*list)["sessions"].size(), 2u) << *list;
  for (const Json& session : (*list)["sessions"]) {
    EXPECT_EQ(session.value("key", ""), "alice");
    EXPECT_EQ(session.value("address", "").rfind("127.0.0.1:", 0), 0u) << session;
    EXPECT_EQ(session.value("rights", ""), "read,write,procedures");
    EXPECT_EQ(session.value("in_flight", 9), 0);
  }
  const uint32_t number = (*client)->session().number;
  ASSERT_TRUE(ask(ControlOperation::session_kill, {{"session", number}}));
  EXPECT_TRUE(test::eventually([&] { return !(*client)->is_open(); }));
  EXPECT_TRUE(is_answered(**other));
  const auto again = ask(ControlOperation::session_kill, {{"session", number}});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("does not exist"), std::string::npos);
  list = ask(ControlOperation::session_list, Json::object());
  EXPECT_EQ((*list)["sessions"].size(), 1u);
}

}  // namespace
}  // namespace atolldb
