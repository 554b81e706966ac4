// Measures how many records per second the clients of a system read or write. Each program of this
// folder connects the clients of one system.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace atolldb::rates {

inline constexpr uint64_t kRecords = 10'000;
inline constexpr uint32_t kValueBytes = 100;
inline constexpr uint32_t kBatch = 100;

enum class Way : uint8_t {
  single,     // one request, then its answer
  pipelined,  // many requests of one record each in flight
  batch,      // requests of kBatch records, each a transaction or a command
};

struct Case {
  bool puts = false;
  Way way = Way::single;
  uint32_t in_flight = 256;  // requests of a client, if pipelined
};

/// One client. Each has a thread of its own.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;
  /// Sends request `number` of this client. May return before its answer.
  virtual void step(uint64_t number) = 0;
  /// Waits for the answers of all requests.
  virtual void finish() {}
};

/// Returns the key of record `number % kRecords`.
const std::string& key_of(uint64_t number);
const std::string& value();

/// Ends the program with this message.
[[noreturn]] void fail(const std::string& message);

/// Parses `ARGUMENTS... CASE CLIENTS SECONDS`, measures, and prints records per second. CASE is
/// get or put, perhaps with -pipelined, -pipelined:IN_FLIGHT or -batch. `prepare` writes all
/// records, and is called first. `connect` makes a client; it runs in the thread of the client.
int measure(int argc, char** argv, int arguments, const std::string& usage,
            const std::function<void()>& prepare,
            const std::function<std::unique_ptr<Client>(const Case&)>& connect);

}  // namespace atolldb::rates
