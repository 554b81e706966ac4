// A key-value store that bench/memory compares with Atoll. Keys order as byte strings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace atolldb::peers {

/// The part of a store that one thread uses. Each call is a transaction of its own.
class Session {
 public:
  virtual ~Session() = default;

  /// Copies the value of a key. Returns false if the key does not exist or its value has another
  /// size.
  virtual bool read(std::string_view key, std::span<char> value) = 0;
  /// Inserts or replaces the value of a key.
  virtual void write(std::string_view key, std::string_view value) = 0;
  /// Copies the values of up to `count` keys of [first, last] to `value`, one after the other.
  /// Returns the number of keys.
  virtual uint32_t scan(std::string_view first, std::string_view last, uint32_t count,
                        std::span<char> value) = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  /// Adds a key that is greater than all keys of the store.
  virtual void append(std::string_view key, std::string_view value) = 0;
  /// Ends the load: all appended keys are on the device.
  virtual void end_load() = 0;
  /// Thread: the one that uses the session, and that also destroys it.
  virtual std::unique_ptr<Session> open_session() = 0;
};

struct StoreOptions {
  std::string directory;     // exists and is empty
  uint64_t data_bytes = 0;   // keys and values after the load
  uint64_t cache_bytes = 0;  // memory for cached data
  uint32_t threads = 1;
};

/// Opens a new store. Each program links one store.
std::unique_ptr<Store> open_store(const StoreOptions& options);

/// Prints an error and ends the program.
[[noreturn]] void fail(const std::string& message);

}  // namespace atolldb::peers
