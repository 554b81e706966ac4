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

struct Case {
  bool puts = false;
  bool is_batch = false;   // requests of kBatch records, each a transaction or a command
  uint32_t in_flight = 1;  // requests of a client; above 1: pipelined

  uint32_t records() const { return is_batch ? kBatch : 1; }
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

/// Writes all records with a client, in batches.
void write_all(Client& batch_client);
constexpr Case kWriteAll{.puts = true, .is_batch = true, .in_flight = 1};

/// Ends the program with this message.
[[noreturn]] void fail(const std::string& message);

/// Parses `ARGUMENTS... CASE CLIENTS SECONDS`, measures, and prints records per second. CASE is
/// get or put, with -batch or without, and perhaps with -pipelined or -pipelined:IN_FLIGHT at its
/// end. `prepare` writes all records, and is called first. `connect` makes a client; it runs in the
/// thread of the client.
int measure(int argc, char** argv, int arguments, const std::string& usage,
            const std::function<void()>& prepare,
            const std::function<std::unique_ptr<Client>(const Case&)>& connect);

}  // namespace atolldb::rates
