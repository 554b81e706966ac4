// Schema files: how the records of a storage become the rows of a table. `README.md` of this folder
// lists the keys of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

inline constexpr size_t kMaxSchemaTables = 1'024;
/// Maximum number of columns of a table, including those of the key.
inline constexpr size_t kMaxTableColumns = 1'024;
/// Maximum size of the name of a table or column. The folder of a table has the name of the table.
inline constexpr size_t kMaxSchemaNameBytes = 63;
/// Maximum size of a column in a record: that of the largest payload.
inline constexpr uint32_t kMaxColumnBytes = 2'048;
/// Maximum number of digits of a decimal in an i64 (first constant) or in an i32 (second one).
inline constexpr uint32_t kMaxDecimalDigits = 18;
inline constexpr uint32_t kMaxShortDecimalDigits = 9;

enum class ColumnType : uint8_t {
  integer,    // i8 to i64
  natural,    // u8 to u64
  real,       // f32, f64
  decimal,    // decimal(p,s) in an i32 or i64: the value times 10^s
  timestamp,  // i64: microseconds since 1970, UTC
  text,       // char(n), varchar(n)
  bytes,      // bytes(n): in hexadecimal digits
};

/// Where the length of a text column is stored.
enum class TextLength : uint8_t {
  padded,  // char(n): zero bytes follow the text
  member,  // varchar(n) with `length_offset`: the record stores the length
  rest,    // varchar(n) without `length_offset`: text to the end of key or payload
};

struct TableColumn {
  std::string name;
  std::string type_name;  // as in the schema: "decimal(12,2)"
  ColumnType type = ColumnType::integer;
  bool is_key = false;
  uint32_t offset = 0;  // in the key or payload
  uint32_t size = 0;    // bytes in the record; TextLength::rest: maximum
  /// A number in the key of a Master-tree has `bits` bits, from bit `shift` on, of `size` bytes in
  /// big-endian order.
  uint32_t shift = 0;
  uint32_t bits = 0;
  /// In the key of an array, the index is the sum of (value - first) * stride over all columns.
  uint64_t stride = 0;
  uint64_t first = 0;
  uint32_t precision = 0;  // decimal: total digits
  uint32_t scale = 0;      // decimal: digits after the point
  /// The stored number that stands for null, extended to 64 bits.
  std::optional<uint64_t> null;
  TextLength length = TextLength::padded;
  uint32_t length_offset = 0;  // TextLength::member: offset of the length
  uint32_t length_bytes = 0;
  bool is_latin1 = false;  // texts are ISO 8859-1 in the record, and UTF-8 outside
};

struct TableSchema {
  std::string name;
  std::string storage;  // name of the storage
  StorageType type = StorageType::none;
  /// Bytes of each key and payload. If a column has TextLength::rest: bytes before that column.
  uint32_t key_bytes = 0;
  uint32_t payload_bytes = 0;
  std::vector<TableColumn> columns;  // columns of the key first

  bool has_rest(bool of_key) const;
};

struct ExportSchema {
  std::vector<TableSchema> tables;

  const TableSchema* find(std::string_view name) const;
};

/// Parses a schema. `file`: its name, for errors. Errors: code config, as "file:line:column: key:
/// what was expected, and what is there".
Result<ExportSchema> parse_export_schema(std::string_view text, const std::string& file);

}  // namespace atolldb
