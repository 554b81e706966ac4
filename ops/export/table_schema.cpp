#include "ops/export/table_schema.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "engine/array/array.h"
#include "engine/hash/hash_key.h"
#include "engine/mastertree/mastertree.h"
#include "engine/sequential/sequential.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"

namespace atolldb {
namespace {

static_assert(kMaxColumnBytes >= MasterTree::kMaxPayloadBytes &&
              kMaxColumnBytes >= MasterTree::kMaxKeyBytes &&
              kMaxColumnBytes >= Array::kMaxPayloadBytes &&
              kMaxColumnBytes >= Sequential::kMaxPayloadBytes);

constexpr uint32_t kArrayKeyBytes = 8;

struct NumberName {
  std::string_view name;
  ColumnType type;
  uint32_t size;
};
constexpr NumberName kNumberNames[] = {
    {"i8", ColumnType::integer, 1},
    {"i16", ColumnType::integer, 2},
    {"i32", ColumnType::integer, 4},
    {"i64", ColumnType::integer, 8},
    {"u8", ColumnType::natural, 1},
    {"u16", ColumnType::natural, 2},
    {"u32", ColumnType::natural, 4},
    {"u64", ColumnType::natural, 8},
    {"f32", ColumnType::real, 4},
    {"f64", ColumnType::real, 8},
    {"timestamp", ColumnType::timestamp, 8},
};

/// A type like "decimal(12,2)": its word and its numbers.
struct TypeWords {
  std::string_view word;
  std::vector<uint32_t> numbers;
};

/// Returns nothing if the text has another form.
std::optional<TypeWords> split_type_name(std::string_view text) {
  TypeWords words;
  const size_t open = text.find('(');
  words.word = text.substr(0, open);
  if (open == std::string_view::npos) return words;
  if (!text.ends_with(')')) return std::nullopt;
  text = text.substr(open + 1, text.size() - open - 2);
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view digits = text.substr(0, comma);
    uint32_t number = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (problem != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    words.numbers.push_back(number);
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

bool is_schema_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= kMaxSchemaNameBytes &&
         std::ranges::all_of(name, is_allowed);
}

/// The bits of a key or payload that columns use.
class UsedBits {
 public:
  explicit UsedBits(uint32_t bytes) : bits_(size_t{bytes} * 8) {}

  /// Marks the bits as used. Returns false if one of them lies outside, or is used already.
  bool use(uint64_t first, uint64_t count) {
    if (first + count > bits_.size()) return false;
    for (uint64_t i = first; i < first + count; ++i) {
      if (bits_[i]) return false;
      bits_[i] = true;
    }
    return true;
  }

 private:
  std::vector<bool> bits_;
};

class SchemaParser {
 public:
  explicit SchemaParser(std::string file) : file_(std::move(file)) {}

  Result<ExportSchema> parse(const toml::table& root) {
    ATOLL_TRY(refuse_unknown(root, {"encoding", "table"}));
    ATOLL_ASSIGN(const auto encoding, text(root, "encoding", "utf-8"));
    if (encoding != "utf-8" && encoding != "latin1") {
      return fault(*root.get("encoding"),
                   fmt::format("encoding: expected \"utf-8\" or \"latin1\", got \"{}\"", encoding));
    }
    is_latin1_ = encoding == "latin1";
    ATOLL_ASSIGN(const auto tables, list(root, "table", kMaxSchemaTables));
    if (tables.empty()) return fault(root, "table: expected at least one [[table]], got none");
    ExportSchema schema;
    for (const toml::table* one : tables) {
      ATOLL_ASSIGN(TableSchema table, parse_table(*one));
      if (schema.find(table.name) != nullptr) {
        return fault(*one, fmt::format("name: two tables have the name \"{}\"", table.name));
      }
      schema.tables.push_back(std::move(table));
    }
    return schema;
  }

  std::unexpected<Error> fault(const toml::node& at, const std::string& what) const {
    return fault_at(at.source().begin, what);
  }
  std::unexpected<Error> fault_at(const toml::source_position& at, const std::string& what) const {
    return make_error(ExitCode::config,
                      fmt::format("{}:{}:{}: {}", file_, at.line, at.column, what));
  }

 private:
  Result<void> refuse_unknown(const toml::table& table,
                              std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      std::string choices;
      for (const std::string_view one : known) {
        choices += (choices.empty() ? "" : ", ") + std::string(one);
      }
      return fault_at(key.source().begin, fmt::format("{}: there is no such key here: choose one "
                                                      "of {}",
                                                      key.str(), choices));
    }
    return {};
  }

  /// Returns the text of the key, or `otherwise` if it is missing. Without `otherwise` the key is
  /// required.
  Result<std::string> text(const toml::table& table, std::string_view key,
                           std::optional<std::string> otherwise = std::nullopt) const {
    const toml::node* node = table.get(key);
    if (node == nullptr && otherwise) return *otherwise;
    if (node == nullptr) return fault(table, fmt::format("{}: is missing", key));
    if (const auto* value = node->as_string()) return value->get();
    return fault(*node, fmt::format("{}: expected a text", key));
  }

  Result<int64_t> number(const toml::table& table, std::string_view key, int64_t low, int64_t high,
                         std::optional<int64_t> otherwise = std::nullopt) const {
    CHECK(low <= high);
    const toml::node* node = table.get(key);
    if (node == nullptr && otherwise) return *otherwise;
    if (node == nullptr) return fault(table, fmt::format("{}: is missing", key));
    const auto* value = node->as_integer();
    if (value != nullptr && value->get() >= low && value->get() <= high) return value->get();
    return fault(*node,
                 fmt::format("{}: expected an integer from {} to {}, got {}", key, low, high,
                             value != nullptr ? std::to_string(value->get()) : "something else"));
  }

  Result<std::vector<const toml::table*>> list(const toml::table& table, std::string_view key,
                                               size_t limit) const {
    std::vector<const toml::table*> entries;
    const toml::node* node = table.get(key);
    if (node == nullptr) return entries;
    const auto* array = node->as_array();
    if (array == nullptr) return fault(*node, fmt::format("{}: expected a list of tables", key));
    for (const toml::node& entry : *array) {
      const auto* one = entry.as_table();
      if (one == nullptr) return fault(entry, fmt::format("{}: expected a table", key));
      entries.push_back(one);
    }
    if (entries.size() > limit) {
      return fault(*node, fmt::format("{}: expected at most {} entries, got {}", key, limit,
                                      entries.size()));
    }
    return entries;
  }

  Result<std::string> name_of(const toml::table& table) const {
    ATOLL_ASSIGN(auto name, text(table, "name"));
    if (is_schema_name(name)) return name;
    return fault(*table.get("name"),
                 fmt::format("name: expected 1 to {} letters, digits and underscores, got \"{}\"",
                             kMaxSchemaNameBytes, name));
  }

  Result<TableSchema> parse_table(const toml::table& table) const {
    ATOLL_TRY(refuse_unknown(table, {"name", "storage", "type", "payload_bytes", "key", "column"}));
    TableSchema schema;
    ATOLL_ASSIGN(schema.name, name_of(table));
    ATOLL_ASSIGN(schema.storage, text(table, "storage", schema.name));
    if (schema.storage.empty() || schema.storage.size() > kMaxStorageName) {
      return fault(*table.get("storage"), fmt::format("storage: expected 1 to {} bytes, got {}",
                                                      kMaxStorageName, schema.storage.size()));
    }
    ATOLL_ASSIGN(const auto type, text(table, "type"));
    schema.type = storage_type(type);
    if (schema.type == StorageType::none) {
      return fault(
          *table.get("type"),
          fmt::format("type: expected array, mastertree, sequential or hash, got \"{}\"", type));
    }
    ATOLL_ASSIGN(const auto payload, number(table, "payload_bytes", 0, kMaxColumnBytes));
    schema.payload_bytes = static_cast<uint32_t>(payload);
    ATOLL_TRY(parse_columns(table, schema));
    return schema;
  }

  Result<void> parse_columns(const toml::table& table, TableSchema& schema) const {
    ATOLL_ASSIGN(const auto keys, list(table, "key", kMaxTableColumns));
    ATOLL_ASSIGN(const auto columns, list(table, "column", kMaxTableColumns));
    if (keys.size() + columns.size() > kMaxTableColumns) {
      return fault(table, fmt::format("column: expected at most {} columns with those of the key, "
                                      "got {}",
                                      kMaxTableColumns, keys.size() + columns.size()));
    }
    if (keys.empty() == (schema.type != StorageType::sequential)) {
      return fault(table, keys.empty() ? "key: is missing: list its columns"
                                       : "key: a sequential storage has no keys: remove it");
    }
    if (keys.empty() && columns.empty()) return fault(table, "column: is missing: list some");
    std::vector<const toml::table*> sources;
    for (const bool is_key : {true, false}) {
      for (const toml::table* one : is_key ? keys : columns) {
        const bool is_of_array = is_key && schema.type == StorageType::array;
        ATOLL_ASSIGN(TableColumn column,
                     is_of_array ? parse_index_column(*one) : parse_column(*one, is_key));
        const auto same = std::ranges::find(schema.columns, column.name, &TableColumn::name);
        if (same != schema.columns.end()) {
          return fault(*one, fmt::format("name: two columns of table \"{}\" have the name \"{}\"",
                                         schema.name, column.name));
        }
        schema.columns.push_back(std::move(column));
        sources.push_back(one);
      }
    }
    if (schema.type == StorageType::array) {
      schema.key_bytes = kArrayKeyBytes;
      ATOLL_TRY(check_strides(schema, sources));
    } else {
      for (size_t i = 0; i < keys.size(); ++i) {
        const TableColumn& column = schema.columns[i];
        const uint32_t most =
            schema.type == StorageType::hash ? HashKey::kMaxKeyBytes : MasterTree::kMaxKeyBytes;
        if (column.offset + column.size > most) {
          return fault(*sources[i], fmt::format("offset: a key has at most {} bytes, column \"{}\" "
                                                "ends at {}",
                                                most, column.name, column.offset + column.size));
        }
        const bool is_rest = column.length == TextLength::rest;
        schema.key_bytes = std::max(schema.key_bytes, column.offset + (is_rest ? 0 : column.size));
      }
    }
    return check_places(schema, sources);
  }

  /// Parses a column of an array's index.
  Result<TableColumn> parse_index_column(const toml::table& table) const {
    ATOLL_TRY(refuse_unknown(table, {"name", "type", "stride", "first"}));
    TableColumn column;
    column.is_key = true;
    ATOLL_ASSIGN(column.name, name_of(table));
    ATOLL_TRY(parse_type(table, column));
    if (column.type != ColumnType::natural) {
      return fault(*table.get("type"), "type: expected u8 to u64 in the key of an array");
    }
    ATOLL_ASSIGN(const auto stride, number(table, "stride", 1, INT64_MAX, 1));
    ATOLL_ASSIGN(const auto first, number(table, "first", 0, INT64_MAX, 0));
    column.stride = static_cast<uint64_t>(stride);
    column.first = static_cast<uint64_t>(first);
    column.bits = column.size * 8;
    return column;
  }

  Result<TableColumn> parse_column(const toml::table& table, bool is_key) const {
    if (is_key) {
      ATOLL_TRY(refuse_unknown(table, {"name", "type", "offset", "size", "shift", "bits"}));
    } else {
      ATOLL_TRY(refuse_unknown(
          table, {"name", "type", "offset", "stored", "null", "length_offset", "length_bytes"}));
    }
    TableColumn column;
    column.is_key = is_key;
    column.is_latin1 = is_latin1_;
    ATOLL_ASSIGN(column.name, name_of(table));
    ATOLL_TRY(parse_type(table, column));
    ATOLL_ASSIGN(const auto offset, number(table, "offset", 0, kMaxColumnBytes));
    column.offset = static_cast<uint32_t>(offset);
    if (is_key) {
      ATOLL_TRY(parse_key_number(table, column));
    } else {
      ATOLL_TRY(parse_payload_keys(table, column));
    }
    return column;
  }

  Result<void> parse_key_number(const toml::table& table, TableColumn& column) const {
    const bool is_number = column.type == ColumnType::natural;
    if (!is_number && column.type != ColumnType::text && column.type != ColumnType::bytes) {
      return fault(*table.get("type"),
                   "type: expected u8 to u64, char, varchar or bytes in the key of a mastertree");
    }
    if (!is_number) {
      if (table.contains("size") || table.contains("shift") || table.contains("bits")) {
        return fault(table, "size: size, shift and bits belong to numbers of a key: remove them");
      }
      return {};
    }
    const uint32_t type_bits = column.size * 8;
    ATOLL_ASSIGN(const auto size, number(table, "size", 1, 8, column.size));
    column.size = static_cast<uint32_t>(size);
    ATOLL_ASSIGN(const auto shift, number(table, "shift", 0, size * 8 - 1, 0));
    column.shift = static_cast<uint32_t>(shift);
    const int64_t most = std::min<int64_t>(type_bits, size * 8 - shift);
    ATOLL_ASSIGN(const auto bits, number(table, "bits", 1, most, most));
    column.bits = static_cast<uint32_t>(bits);
    return {};
  }

  Result<void> parse_payload_keys(const toml::table& table, TableColumn& column) const {
    if (table.contains("null")) {
      const bool is_whole =
          column.type == ColumnType::integer || column.type == ColumnType::natural ||
          column.type == ColumnType::decimal || column.type == ColumnType::timestamp;
      if (!is_whole) {
        return fault(*table.get("null"), "null: only stored integers can stand for null");
      }
      const bool is_natural = column.type == ColumnType::natural;
      const uint32_t bits = column.size * 8;
      const int64_t high =
          bits == 64 ? INT64_MAX : (int64_t{1} << (is_natural ? bits : bits - 1)) - 1;
      const int64_t low = is_natural ? 0 : -high - 1;
      ATOLL_ASSIGN(const auto null, number(table, "null", low, high));
      column.null = static_cast<uint64_t>(null);
    }
    if (!table.contains("length_offset")) {
      if (table.contains("length_bytes")) return fault(table, "length_offset: is missing");
      return {};
    }
    if (column.type != ColumnType::text || column.length == TextLength::padded) {
      return fault(*table.get("length_offset"), "length_offset: only a varchar has a length");
    }
    ATOLL_ASSIGN(const auto at, number(table, "length_offset", 0, kMaxColumnBytes));
    ATOLL_ASSIGN(const auto bytes, number(table, "length_bytes", 1, 4, 2));
    if (bytes == 3 || (bytes == 1 && column.size > UINT8_MAX)) {
      return fault(table, "length_bytes: expected 1, 2 or 4, and room for the longest text");
    }
    column.length = TextLength::member;
    column.length_offset = static_cast<uint32_t>(at);
    column.length_bytes = static_cast<uint32_t>(bytes);
    return {};
  }

  Result<void> parse_type(const toml::table& table, TableColumn& column) const {
    ATOLL_ASSIGN(column.type_name, text(table, "type"));
    const toml::node& at = *table.get("type");
    const auto words = split_type_name(column.type_name);
    const size_t numbers = words ? words->numbers.size() : 0;
    if (words && numbers == 0) {
      const auto* found = std::ranges::find(kNumberNames, words->word, &NumberName::name);
      if (found != std::end(kNumberNames)) {
        column.type = found->type;
        column.size = found->size;
        return refuse_stored(table);
      }
    }
    if (words && words->word == "decimal" && numbers == 2)
      return parse_decimal(table, *words, column);
    if (words && numbers == 1 &&
        (words->word == "char" || words->word == "varchar" || words->word == "bytes")) {
      column.size = words->numbers[0];
      column.type = words->word == "bytes" ? ColumnType::bytes : ColumnType::text;
      column.length = words->word == "varchar" ? TextLength::rest : TextLength::padded;
      if (column.size >= 1 && column.size <= kMaxColumnBytes) return refuse_stored(table);
      return fault(
          at, fmt::format("type: expected 1 to {} bytes, got {}", kMaxColumnBytes, column.size));
    }
    return fault(at, fmt::format("type: expected i8 to i64, u8 to u64, f32, f64, decimal(p,s), "
                                 "timestamp, char(n), varchar(n) or bytes(n), got \"{}\"",
                                 column.type_name));
  }

  Result<void> refuse_stored(const toml::table& table) const {
    if (!table.contains("stored")) return {};
    return fault(*table.get("stored"), "stored: only decimals have it: remove it");
  }

  Result<void> parse_decimal(const toml::table& table, const TypeWords& words,
                             TableColumn& column) const {
    ATOLL_ASSIGN(const auto stored, text(table, "stored", "i64"));
    if (stored != "i64" && stored != "i32") {
      return fault(*table.get("stored"),
                   fmt::format("stored: expected \"i32\" or \"i64\", got \"{}\"", stored));
    }
    column.type = ColumnType::decimal;
    column.size = stored == "i64" ? 8 : 4;
    column.precision = words.numbers[0];
    column.scale = words.numbers[1];
    const uint32_t most = column.size == 8 ? kMaxDecimalDigits : kMaxShortDecimalDigits;
    if (column.precision >= 1 && column.precision <= most && column.scale <= column.precision) {
      return {};
    }
    return fault(*table.get("type"), fmt::format("type: expected 1 to {} digits in an {}, and at "
                                                 "most as many decimals, got \"{}\"",
                                                 most, stored, column.type_name));
  }

  /// Checks that the strides descend, so that each index belongs to at most one row.
  Result<void> check_strides(const TableSchema& schema,
                             const std::vector<const toml::table*>& sources) const {
    for (size_t i = 1; i < schema.columns.size() && schema.columns[i].is_key; ++i) {
      const uint64_t before = schema.columns[i - 1].stride;
      if (schema.columns[i].stride < before) continue;
      return fault(*sources[i],
                   fmt::format("stride: expected less than the {} of the column before, got {}",
                               before, schema.columns[i].stride));
    }
    return {};
  }

  /// Checks that no two columns share a bit, and that all lie in the key or payload.
  Result<void> check_places(const TableSchema& schema,
                            const std::vector<const toml::table*>& sources) const {
    UsedBits key(schema.key_bytes);
    UsedBits payload(schema.payload_bytes);
    for (size_t i = 0; i < schema.columns.size(); ++i) {
      const TableColumn& column = schema.columns[i];
      if (column.is_key && schema.type == StorageType::array) continue;
      UsedBits& used = column.is_key ? key : payload;
      const uint32_t end = column.is_key ? schema.key_bytes : schema.payload_bytes;
      bool is_good = true;
      if (column.length == TextLength::rest) {
        const bool is_last =
            i + 1 == schema.columns.size() || schema.columns[i + 1].is_key != column.is_key;
        is_good = is_last && column.offset == end && schema.type != StorageType::array;
      } else if (column.is_key && column.type == ColumnType::natural) {
        is_good = used.use(uint64_t{column.offset + column.size} * 8 - column.shift - column.bits,
                           column.bits);
      } else {
        is_good = used.use(uint64_t{column.offset} * 8, uint64_t{column.size} * 8);
      }
      if (column.length == TextLength::member) {
        is_good = is_good &&
                  used.use(uint64_t{column.length_offset} * 8, uint64_t{column.length_bytes} * 8);
      }
      if (is_good) continue;
      return fault(*sources[i],
                   fmt::format("offset: column \"{}\" overlaps another one, goes beyond the {} "
                               "bytes of the {}, or is a varchar without a length that does not "
                               "end it",
                               column.name, end, column.is_key ? "key" : "payload"));
    }
    return {};
  }

  std::string file_;
  bool is_latin1_ = false;
};

}  // namespace

bool TableSchema::has_rest(bool of_key) const {
  return std::ranges::any_of(columns, [&](const TableColumn& column) {
    return column.is_key == of_key && column.type == ColumnType::text &&
           column.length == TextLength::rest;
  });
}

const TableSchema* ExportSchema::find(std::string_view name) const {
  const auto found = std::ranges::find(tables, name, &TableSchema::name);
  return found != tables.end() ? &*found : nullptr;
}

Result<ExportSchema> parse_export_schema(std::string_view text, const std::string& file) {
  SchemaParser parser(file);
  try {
    const toml::table root = toml::parse(text, file);
    return parser.parse(root);
  } catch (const toml::parse_error& error) {
    return parser.fault_at(error.source().begin, std::string(error.description()));
  }
}

}  // namespace atolldb
