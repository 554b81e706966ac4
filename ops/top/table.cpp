#include "ops/top/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "ops/cli/terminal.h"
#include "shared/base/check.h"

namespace atolldb::top {
namespace {

/// A longer name is cut, so that the figures beside it fit a terminal.
constexpr size_t kMaxNameWidth = 32;
constexpr size_t kMinNameWidth = 8;
constexpr size_t kColumnGap = 2;

constexpr Column kProcedureColumns[] = {
    {"PROCEDURE", true}, {"COMMIT/s"}, {"ABORT/s"}, {"EXEC p50"}, {"p99"},
    {"p99.9"},           {"DUR p50"},  {"p99"},     {"p99.9"},    {"RETRIES/s"},
    {"ABORTED BY", true}};
constexpr Column kStorageColumns[] = {{"STORAGE", true}, {"OPERATIONS/s"}, {"PAGES READ/s"},
                                      {"IN CACHE"},      {"EVICTIONS/s"},  {"PAGES READ"},
                                      {"TYPE", true}};
constexpr Column kNodeColumns[] = {{"NODE", true}, {"COMMIT/s"},   {"ABORT/s"},  {"POOL"},
                                   {"LOG B/s"},    {"SYNCS/s"},    {"LAG"},      {"REMOTE"},
                                   {"CACHE"},      {"HITS"},       {"SESSIONS"}, {"REQUESTS/s"},
                                   {"WAITS/s"},    {"STATE", true}};
constexpr Column kSessionColumns[] = {{"SESSION", true}, {"IN FLIGHT"},   {"ANSWERED/s"},
                                      {"FOR s"},         {"PID"},         {"PROGRAM", true},
                                      {"STATE", true},   {"OLDEST", true}};

std::span<const Column> columns_of(Rows rows) {
  switch (rows) {
    case Rows::procedures:
      return kProcedureColumns;
    case Rows::storages:
      return kStorageColumns;
    case Rows::nodes:
      return kNodeColumns;
    case Rows::sessions:
      return kSessionColumns;
  }
  return {};
}

Cell text_cell(const std::string& text) { return {clean(text, kMaxNameWidth)}; }
Cell rate_cell(double per_second) { return {rate_text(per_second), per_second}; }
Cell percent_cell(double percent) { return {fmt::format("{:.1f} %", percent), percent}; }
/// Without the blank before the unit, so that all latencies fit a terminal of 80 columns.
Cell latency_cell(const Quantiles& latencies, double us) {
  std::string text = latency_text(latencies, us);
  std::erase(text, ' ');
  return {std::move(text), us};
}
Cell bytes_cell(double bytes) {
  return {cli::format_bytes(static_cast<uint64_t>(std::llround(bytes))), bytes};
}
Cell count_cell(uint64_t count) { return {cli::format_count(count), static_cast<double>(count)}; }

std::vector<Cell> cells_of(const ProcedureFigures& row) {
  return {text_cell(row.name),
          rate_cell(row.commits_per_s),
          rate_cell(row.aborts_per_s),
          latency_cell(row.execution, row.execution.p50_us),
          latency_cell(row.execution, row.execution.p99_us),
          latency_cell(row.execution, row.execution.p999_us),
          latency_cell(row.durable, row.durable.p50_us),
          latency_cell(row.durable, row.durable.p99_us),
          latency_cell(row.durable, row.durable.p999_us),
          rate_cell(row.retries_per_s),
          text_cell(row.abort_reason)};
}

std::vector<Cell> cells_of(const StorageFigures& row) {
  return {text_cell(row.name),
          rate_cell(row.operations_per_s),
          rate_cell(row.pages_read_per_s),
          bytes_cell(static_cast<double>(row.cache_bytes)),
          rate_cell(row.evictions_per_s),
          count_cell(row.pages_read),
          text_cell(row.type)};
}

std::vector<Cell> cells_of(const NodeFigures& row) {
  return {text_cell(fmt::format("node{}", row.node)),
          rate_cell(row.commits_per_s),
          rate_cell(row.aborts_per_s),
          percent_cell(row.pool_used_percent),
          bytes_cell(row.log_bytes_per_s),
          rate_cell(row.syncs_per_s),
          count_cell(row.epoch_lag),
          percent_cell(row.remote_percent),
          bytes_cell(static_cast<double>(row.cache_bytes)),
          percent_cell(row.cache_hit_percent),
          count_cell(row.sessions),
          rate_cell(row.requests_per_s),
          rate_cell(row.stalls_per_s),
          text_cell(row.state)};
}

std::vector<Cell> cells_of(const SessionFigures& row) {
  return {text_cell(row.session),
          count_cell(row.in_flight),
          rate_cell(row.answered_per_s),
          {fmt::format("{:.2f}", row.oldest_s), row.oldest_s},
          {row.pid == 0 ? "-" : std::to_string(row.pid), static_cast<double>(row.pid)},
          text_cell(row.program),
          text_cell(row.state),
          text_cell(row.procedure)};
}

template <typename Row>
Table make_table(Rows kind, const std::vector<Row>& rows) {
  const std::span<const Column> columns = columns_of(kind);
  Table table{{columns.begin(), columns.end()}, {}};
  for (const Row& row : rows) {
    table.rows.push_back(cells_of(row));
    CHECK(table.rows.back().size() == columns.size());
  }
  return table;
}

std::string heading_of(const Table& table, size_t column, size_t marked) {
  return (column == marked ? "*" : "") + std::string(table.columns[column].heading);
}

/// Returns the widths of the columns that fit, from the left.
std::vector<size_t> fitting_widths(const Table& table, size_t width, size_t marked) {
  std::vector<size_t> widths;
  size_t used = 0;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    size_t wanted = heading_of(table, i, marked).size();
    for (const auto& row : table.rows) wanted = std::max(wanted, row[i].text.size());
    const size_t needed = wanted + (i == 0 ? 0 : kColumnGap);
    if (width != 0 && used + needed > width) {
      if (i == 0) widths.push_back(width);
      // A long name gives way to the first figure.
      const size_t excess = used + needed - width;
      if (i != 1 || widths[0] < kMinNameWidth + excess) break;
      widths[0] -= excess;
      used -= excess;
    }
    widths.push_back(wanted);
    used += needed;
  }
  return widths;
}

}  // namespace

const char* to_string(Rows rows) {
  constexpr const char* kNames[] = {"procedures", "storages", "nodes", "sessions"};
  static_assert(std::size(kNames) == kRowKinds);
  return kNames[static_cast<size_t>(rows)];
}

void Table::sort(size_t column, bool is_reversed) {
  CHECK(column < columns.size());
  const bool is_text = columns[column].is_text;
  std::ranges::sort(rows, [&](const std::vector<Cell>& a, const std::vector<Cell>& b) {
    const std::vector<Cell>& first = is_reversed ? b : a;
    const std::vector<Cell>& second = is_reversed ? a : b;
    if (is_text && first[column].text != second[column].text) {
      return first[column].text < second[column].text;
    }
    if (!is_text && first[column].value != second[column].value) {
      return first[column].value > second[column].value;
    }
    return a[0].text < b[0].text;
  });
}

std::vector<std::string> Table::lines(size_t width, size_t marked) const {
  const std::vector<size_t> widths = fitting_widths(*this, width, marked);
  const auto line_of = [&](auto text_of) {
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string text = clean(text_of(i), widths[i]);
      if (i != 0) line.append(kColumnGap, ' ');
      line += columns[i].is_text ? fmt::format("{:<{}}", text, widths[i])
                                 : fmt::format("{:>{}}", text, widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::vector<std::string> result = {
      line_of([&](size_t column) { return heading_of(*this, column, marked); })};
  for (const auto& row : rows) {
    result.push_back(line_of([&](size_t column) { return row[column].text; }));
  }
  return result;
}

Table table_of(const Figures& figures, Rows rows) {
  switch (rows) {
    case Rows::procedures:
      return make_table(rows, figures.procedure_rows);
    case Rows::storages:
      return make_table(rows, figures.storage_rows);
    case Rows::nodes:
      return make_table(rows, figures.node_rows);
    case Rows::sessions:
      return make_table(rows, figures.session_rows);
  }
  return {};
}

size_t column_count(Rows rows) { return columns_of(rows).size(); }

size_t first_sort_column(Rows rows) { return rows == Rows::nodes ? 0 : 1; }

std::string rate_text(double per_second) {
  constexpr double kFirstWithoutFraction = 9.95;
  if (per_second == 0) return "0";
  if (per_second < kFirstWithoutFraction) return fmt::format("{:.1f}", per_second);
  return cli::format_count(static_cast<uint64_t>(std::llround(per_second)));
}

std::string latency_text(const Quantiles& latencies, double us) {
  if (latencies.count == 0) return "-";
  if (us < 1'000) return fmt::format("{:.0f} us", us);
  if (us < 1'000'000) return fmt::format("{:.1f} ms", us * 1e-3);
  return fmt::format("{:.2f} s", us * 1e-6);
}

std::string clean(std::string_view text, size_t width) {
  std::string result(text);
  for (char& c : result) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  if (width == 0 || result.size() <= width) return result;
  result.resize(width);
  result.back() = '~';
  return result;
}

}  // namespace atolldb::top
