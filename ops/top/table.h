// The tables of `atoll top`: procedures, storages, nodes and sessions, with columns to sort by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/top/figures.h"

namespace atolldb::top {

enum class Rows : uint8_t { procedures, storages, nodes, sessions };
inline constexpr size_t kRowKinds = 4;
/// Returns "procedures", for example.
const char* to_string(Rows rows);

struct Column {
  const char* heading;
  bool is_text = false;  // sorted by text, smallest first; else by value, largest first
};

struct Cell {
  std::string text;
  double value = 0;  // of columns that are no text
};

/// The first column is the name of the row.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;

  /// Rows with equal cells are ordered by their names. REQUIRES: the column exists.
  void sort(size_t column, bool is_reversed);
  /// Returns the heading, then the lines of the rows. A line has at most `width` characters; 0: no
  /// limit. Columns that do not fit are left out, from the right. The heading of column `marked`
  /// begins with "*".
  std::vector<std::string> lines(size_t width, size_t marked) const;
};

Table table_of(const Figures& figures, Rows rows);
/// Returns the number of columns, and the one that is sorted by at first.
size_t column_count(Rows rows);
size_t first_sort_column(Rows rows);

/// Returns "1,234", or "1.2" for rates below 10.
std::string rate_text(double per_second);
/// Returns "850 us", "1.2 ms" or "3.45 s"; "-" if there were no calls.
std::string latency_text(const Quantiles& latencies, double us);

/// Makes text fit for one cell or line: control characters and bytes that are not ASCII become "?".
/// A text longer than `width` is cut, and then ends in "~"; 0: no limit.
std::string clean(std::string_view text, size_t width);

}  // namespace atolldb::top
