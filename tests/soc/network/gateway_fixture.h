// Base of the tests of the network port: a gateway, keys of two clients, and clients that send any
// frames. No request runs here: the node refuses all of them.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <zmq.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "shared/base/hex.h"
#include "shared/client/network_client.h"
#include "soc/network/gateway.h"

namespace atolldb {

inline CurveKeyPair make_keys() {
  std::array<char, 41> public_text{};
  std::array<char, 41> secret_text{};
  CurveKeyPair keys;
  EXPECT_EQ(zmq_curve_keypair(public_text.data(), secret_text.data()), 0);
  zmq_z85_decode(reinterpret_cast<uint8_t*>(keys.public_key.data()), public_text.data());
  zmq_z85_decode(reinterpret_cast<uint8_t*>(keys.secret_key.data()), secret_text.data());
  return keys;
}

/// Clients that send any frames, without keys. They share one context of ZeroMQ.
class RawClients {
 public:
  RawClients() = default;
  RawClients(const RawClients&) = delete;
  RawClients& operator=(const RawClients&) = delete;
  ~RawClients() {
    for (void* const dealer : dealers_) zmq_close(dealer);
    zmq_ctx_term(context_);
  }

  /// Returns the number of the client.
  size_t connect(const std::string& endpoint) {
    dealers_.push_back(zmq_socket(context_, ZMQ_DEALER));
    const int no_wait = 0;
    zmq_setsockopt(dealers_.back(), ZMQ_LINGER, &no_wait, sizeof(no_wait));
    EXPECT_EQ(zmq_connect(dealers_.back(), ("tcp://" + endpoint).c_str()), 0);
    return dealers_.size() - 1;
  }
  void close_last() {
    zmq_close(dealers_.back());
    dealers_.pop_back();
  }
  /// Sends a frame, and returns the answer. Its views are valid until the next call.
  const WireFrame& ask(size_t client, std::span<const std::byte> bytes) {
    EXPECT_GE(zmq_send(dealers_[client], bytes.data(), bytes.size(), 0), 0);
    const int got = zmq_recv(dealers_[client], buffer_.data(), buffer_.size(), 0);
    const auto answer = std::as_bytes(std::span(buffer_.data(), static_cast<size_t>(got)));
    EXPECT_TRUE(got > 0 && read_wire_frame(answer, frame_));
    return frame_;
  }

 private:
  void* context_ = zmq_ctx_new();
  std::vector<void*> dealers_;
  std::array<char, 1000> buffer_{};
  WireFrame frame_;
};

class NetworkGatewayTest : public ::testing::Test {
 protected:
  NetworkGatewayTest()
      : logger_(std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_))) {
    std::string pattern = (std::filesystem::temp_directory_path() / "atoll-net-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    server_keys_ = make_keys();
    EXPECT_TRUE(write_key_file(folder_ + "/server.key", server_keys_));
    alice_ = make_client("alice");
    bob_ = make_client("bob");
    allow(to_hex(alice_) + " alice read,write,procedures\n");
    SessionServices services;
    services.incarnation = 5;
    services.metrics = &session_metrics_;
    const ProcedureEntry entry{"any", [](ProcedureContext&) { return Status::ok; }};
    EXPECT_TRUE(registry_.add_library({kProcedureApiVersion, 1, &entry}, "test"));
    const ProcedureEntry kv{"kv.txn", [](ProcedureContext&) { return Status::ok; }};
    EXPECT_TRUE(registry_.add_library({kProcedureApiVersion, 1, &kv}, "built in"));
    services.procedures = &registry_;
    services.refusal = [](Isolation) { return Refusal{Status::recovering, "nothing runs here"}; };
    sink_ = std::make_unique<RequestSink>(std::move(services));
  }
  ~NetworkGatewayTest() override {
    gateway_.reset();
    std::filesystem::remove_all(folder_);
  }

  CurveKey make_client(const std::string& name) const {
    const CurveKeyPair keys = make_keys();
    EXPECT_TRUE(write_key_file(folder_ + "/" + name + ".key", keys));
    return keys.public_key;
  }
  /// Replaces the file at once, so that the node never reads a part of it.
  void allow(const std::string& lines) const {
    std::ofstream(folder_ + "/new") << lines;
    std::filesystem::rename(folder_ + "/new", folder_ + "/authorised");
  }
  Result<void> start(bool with_keys = true) {
    NetworkSettings settings;
    settings.endpoints = endpoints_;
    settings.address = "127.0.0.1";
    if (with_keys) {
      settings.key_file = folder_ + "/server.key";
      settings.authorised_keys = folder_ + "/authorised";
    }
    auto gateway = NetworkGateway::start(std::move(settings), *sink_, metrics_, logger_);
    if (!gateway) return std::unexpected(gateway.error());
    gateway_ = *std::move(gateway);
    return {};
  }
  uint16_t port() const {
    return static_cast<uint16_t>(
        std::stoi(gateway_->endpoint().substr(gateway_->endpoint().rfind(':') + 1)));
  }
  NetworkAddress address(const std::string& client = "alice") const {
    return {.host = "127.0.0.1",
            .port = port(),
            .server_key = server_keys_.public_key,
            .key_file = folder_ + "/" + client + ".key"};
  }
  static uint64_t get(const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  }
  static void expect_fails(const NetworkAddress& to, ExitCode code, const std::string& part) {
    const auto client = NetworkClient::connect(to);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().code, code) << client.error().message;
    EXPECT_NE(client.error().message.find(part), std::string::npos) << client.error().message;
  }
  static bool is_answered(NetworkClient& client) {
    return client.call("any", {}).status == Status::recovering;
  }

  std::ostringstream log_;
  Logger logger_;
  std::string folder_;
  NetworkAdministration::Endpoints endpoints_;
  CurveKeyPair server_keys_;
  CurveKey alice_{};
  CurveKey bob_{};
  SessionMetrics session_metrics_{};
  NetworkMetrics metrics_;
  ProcedureRegistry registry_;
  std::unique_ptr<RequestSink> sink_;
  std::unique_ptr<NetworkGateway> gateway_;
};

}  // namespace atolldb
