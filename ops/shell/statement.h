// Statements on records, for example `put accounts alice 100`: their syntax, and their arguments as
// bytes. `atoll kv`, `atoll kv txn` and `atoll shell` share them.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/shell/value_format.h"
#include "shared/kv/kv_request.h"
#include "shared/memory/control_layout.h"

namespace atolldb::shell {

/// Rows that `scan` prints without --limit.
inline constexpr uint64_t kDefaultScanRows = 100;

/// A statement as the user wrote it.
struct Statement {
  KvCode code = KvCode::count_;
  std::string storage;
  std::string key;
  std::string value;  // add: the number
  uint32_t offset = 0;
  std::string number = "i64";      // add: type of the number
  bool returns_value = false;      // add: print the sum
  bool is_blind = false;           // add: missing bytes of the record count as zeros
  bool is_absent = false;          // check: the key must not exist
  std::optional<std::string> low;  // scan
  std::optional<std::string> high;
  std::optional<std::string> prefix;
  std::optional<std::string> after;
  uint64_t limit = kDefaultScanRows;  // scan: 0: all rows
  bool reverse = false;
  bool keys_only = false;
};

/// Adds the statements as commands of `parent`. Parsing sets `statement`, and then calls `chosen`.
/// `finish` adds more options to each of them.
void add_statements(CLI::App& parent, const std::shared_ptr<Statement>& statement,
                    const std::function<void()>& chosen,
                    const std::function<void(CLI::App&)>& finish);

/// Returns the index that the first 8 bytes of a key of an array mean. REQUIRES: it has them.
uint64_t array_index(KvBytes key);

/// How the user writes keys and values.
struct Formats {
  ValueFormat key = ValueFormat::plain(ValueFormat::Part::key);
  ValueFormat value = ValueFormat::plain(ValueFormat::Part::value);
};

/// A storage of the catalog.
struct StorageEntry {
  std::string name;
  StorageType type = StorageType::none;
  uint64_t payload_bytes = 0;
  uint64_t record_count = 0;

  bool is_array() const { return type == StorageType::array; }
};

/// Keys and values of one storage as text. A key of an array is its index in decimal digits.
class RecordText {
 public:
  RecordText(const Formats& formats, const StorageEntry& storage)
      : formats_(&formats), is_array_(storage.is_array()) {}

  std::expected<std::vector<std::byte>, std::string> key_bytes(std::string_view text) const;
  std::expected<std::vector<std::byte>, std::string> value_bytes(std::string_view text) const;
  std::expected<std::string, std::string> key(KvBytes bytes) const;
  std::expected<std::string, std::string> value(KvBytes bytes) const;
  std::expected<nlohmann::json, std::string> key_json(KvBytes bytes) const;
  std::expected<nlohmann::json, std::string> value_json(KvBytes bytes) const;

 private:
  const Formats* formats_;
  bool is_array_;
};

/// A statement with its arguments as bytes.
struct BoundStatement {
  KvCode code = KvCode::get;
  StorageEntry storage;
  std::vector<std::byte> key;
  std::vector<std::byte> value;
  uint32_t offset = 0;
  KvNumber number = KvNumber::none;
  bool returns_value = false;
  bool is_blind = false;
  bool is_absent = false;
  // scan
  std::vector<std::byte> low;
  bool has_low = false;
  std::vector<std::byte> high;
  bool has_high = false;
  uint64_t limit = 0;  // 0: all rows
  bool reverse = false;
  bool keys_only = false;

  /// Returns the range of a scan. It points into this object. `rows`: its limit.
  KvScan range(uint32_t rows) const;
  /// Adds the operation to a request; a scan with at most `rows` rows.
  void add_to(KvRequest& request, uint32_t rows) const;
};

/// Returns the statement with its arguments as bytes. The error names the argument, its value and
/// what is expected.
std::expected<BoundStatement, std::string> bind(const Statement& statement,
                                                const StorageEntry& storage,
                                                const Formats& formats);

}  // namespace atolldb::shell
