// Rows of CSV from records, and records from rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/export/csv.h"
#include "ops/export/table_schema.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns the names of all columns as a row, with its line end.
std::string header_row(const TableSchema& schema);

/// Appends the record as a row, with its line end. `key`: in gleaned form.
/// Returns the error "column: value: reason" if the record does not fit the schema; `row` is then
/// undefined.
std::expected<void, std::string> append_row(const TableSchema& schema, std::string_view key,
                                            std::span<const std::byte> payload, std::string& row);

/// A record for a storage. Bytes that belong to no column are zero.
struct TableRecord {
  std::string key;  // empty for a sequential storage
  std::vector<std::byte> payload;
};

/// The index of the column of each field in a file.
using FieldOrder = std::vector<size_t>;

/// Returns an error if a column is missing, unknown, or named twice.
std::expected<FieldOrder, std::string> order_of_fields(const TableSchema& schema,
                                                       const std::vector<CsvField>& header);

/// Returns the error "column: value: reason and limit" if the row does not fit the schema.
std::expected<TableRecord, std::string> parse_row(const TableSchema& schema,
                                                  const FieldOrder& order,
                                                  const std::vector<CsvField>& fields);

}  // namespace atolldb
