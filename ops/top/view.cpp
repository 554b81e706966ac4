#include "ops/top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "ops/cli/terminal.h"
#include "shared/base/check.h"

namespace atolldb::top {
namespace {

constexpr size_t kLabelWidth = 13;
/// Without a limit the table shows this many rows.
constexpr size_t kRowsWithoutLimit = 20;

constexpr const char* kHelp[] = {
    "Keys of atoll top",
    "  q, Ctrl-C     quit",
    "  p, space      pause and continue",
    "  1 2 3 4       rows: procedures, storages, nodes, sessions",
    "  Tab           the next kind of rows",
    "  < > (arrows)  sort by the column to the left or right",
    "  r             reverse the order",
    "  up, down, PgUp, PgDn, Home   move in the table",
    "  h, ?          show or hide this help",
    "Rates and latencies are of the time since the previous sample. Latencies of",
    "procedures are estimated within buckets. EXEC: on the worker, with all attempts.",
    "DUR: from the arrival of a request to its durable answer. Epochs: from the end",
    "of an epoch until all of its commits are durable.",
};

/// Returns the label and the parts that fit. A part is shown as a whole or not at all.
std::string parts_line(const char* label, std::initializer_list<std::string> parts, size_t width) {
  std::string line = fmt::format("{:<{}}", label, kLabelWidth);
  const char* gap = "";
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    const std::string more = gap + clean(part, 0);
    if (width != 0 && line.size() + more.size() > width) break;
    line += more;
    gap = "  ";
  }
  return clean(line, width);
}

std::string quantiles_text(const char* name, const Quantiles& latencies) {
  if (latencies.count == 0) return fmt::format("{}no calls", name);
  return fmt::format("{}p50 {} p99 {} p99.9 {}", name, latency_text(latencies, latencies.p50_us),
                     latency_text(latencies, latencies.p99_us),
                     latency_text(latencies, latencies.p999_us));
}

/// Returns the reasons of aborts, the most frequent one first.
std::string reasons_text(const Figures& figures) {
  std::vector<std::pair<std::string, double>> reasons(figures.aborts_per_s.begin(),
                                                      figures.aborts_per_s.end());
  std::ranges::stable_sort(reasons,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [reason, rate] : reasons) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, rate_text(rate));
  }
  return text;
}

Line title_line(const Figures& figures, const View& view, Size size, const std::string& clock) {
  const std::string problems =
      figures.problems == 0 ? "" : fmt::format(", {} problem(s)", figures.problems);
  const std::string text = fmt::format(
      "atoll top: {}: {}{}{}{}", figures.name, figures.state.empty() ? "no answer" : figures.state,
      figures.durability.empty() ? "" : ", durability " + figures.durability, problems,
      view.is_paused ? ", PAUSED" : "");
  if (clock.empty()) return {clean(text, size.width), LineKind::title};
  const bool has_room = size.width == 0 || text.size() + clock.size() + 2 <= size.width;
  return {clean(has_room ? text + "  " + clock : text, size.width), LineKind::title};
}

std::string aborts_line(const Figures& figures, size_t width) {
  const double aborts = figures.all_aborts_per_s();
  return parts_line(
      "aborts",
      {rate_text(aborts) + "/s",
       cli::format_percent(aborts, aborts + figures.commits_per_s()) + " of the attempts",
       reasons_text(figures)},
      width);
}

std::string log_line(const Figures& figures, size_t width) {
  if (!figures.epochs) return parts_line("log", {"none: durability is off"}, width);
  return parts_line("log",
                    {cli::format_bytes(static_cast<uint64_t>(figures.log_bytes_per_s)) + "/s",
                     figures.epochs->count == 0 ? "no epoch to write"
                                                : quantiles_text("epochs ", *figures.epochs)},
                    width);
}

std::string memory_line(const Figures& figures, size_t width) {
  return parts_line("memory",
                    {fmt::format("pools {:.1f} % of {}", figures.pool_used_percent,
                                 cli::format_bytes(figures.pool_bytes)),
                     figures.cache_bytes == 0 ? "snapshot cache none"
                                              : fmt::format("snapshot cache {}, {:.1f} % hits",
                                                            cli::format_bytes(figures.cache_bytes),
                                                            figures.cache_hit_percent)},
                    width);
}

std::string snapshot_line(const Figures& figures, size_t width) {
  return parts_line("snapshot",
                    {figures.snapshot == 0 ? "none yet"
                                           : fmt::format("{} of epoch {}", figures.snapshot,
                                                         cli::format_count(figures.snapshot_epoch)),
                     figures.job.empty() ? "" : "gleaner: " + figures.job},
                    width);
}

/// Returns the lines above the table, the most important ones first.
std::vector<Line> summary_lines(const Figures& figures, const View& view, Size size,
                                const std::string& clock) {
  const size_t width = size.width;
  std::vector<Line> lines = {title_line(figures, view, size, clock)};
  if (!figures.note.empty()) lines.push_back({clean(figures.note, width), LineKind::problem});
  if (!figures.problem.empty()) {
    lines.push_back({clean("problem: " + figures.problem, width), LineKind::problem});
  }
  if (!figures.is_recent) {
    if (figures.note.empty()) lines.push_back({clean("waiting for a second sample", width)});
    return lines;
  }
  for (std::string& text : std::vector<std::string>{
           parts_line("transactions",
                      {rate_text(figures.commits_per_s()) + "/s",
                       "write " + rate_text(figures.write_commits_per_s),
                       "read-only " + rate_text(figures.read_only_commits_per_s)},
                      width),
           aborts_line(figures, width),
           parts_line("execution", {quantiles_text("", figures.execution)}, width),
           parts_line("durable",
                      {quantiles_text("", figures.durable),
                       fmt::format("lag {:.1f} ms",
                                   static_cast<double>(figures.durability_lag_us) * 1e-3)},
                      width),
           log_line(figures, width),
           parts_line("sessions",
                      {fmt::format("{} open", cli::format_count(figures.sessions)),
                       rate_text(figures.requests_per_s) + " requests/s",
                       rate_text(figures.refused_per_s) + " refused/s",
                       cli::format_bytes(figures.payload_bytes) + " of long payloads"},
                      width),
           memory_line(figures, width), snapshot_line(figures, width)}) {
    lines.push_back({std::move(text)});
  }
  return lines;
}

/// Returns the lines of the table, from its first row that is shown.
std::vector<Line> table_lines(const Figures& figures, const View& view, size_t width) {
  Table table = table_of(figures, view.rows);
  table.sort(view.sort().column, view.sort().is_reversed);
  if (table.rows.empty()) {
    return {{clean(view.rows == Rows::procedures
                       ? "no procedure has been called yet (jobs of benchmarks are none)"
                       : fmt::format("no {}", to_string(view.rows)),
                   width),
             LineKind::heading}};
  }
  std::vector<std::string> texts = table.lines(width, view.sort().column);
  const size_t hidden = std::min(view.first_row, table.rows.size() - 1);
  texts.erase(texts.begin() + 1, texts.begin() + 1 + static_cast<std::ptrdiff_t>(hidden));
  std::vector<Line> lines;
  for (std::string& text : texts) lines.push_back({std::move(text)});
  lines.front().kind = LineKind::heading;
  return lines;
}

std::vector<Line> help_lines(size_t width) {
  std::vector<Line> lines;
  for (const char* text : kHelp) lines.push_back({clean(text, width)});
  lines.front().kind = LineKind::heading;
  return lines;
}

std::string footer_text(const View& view, size_t width) {
  const std::string long_text = fmt::format(
      "{}  h help  p pause  1-4 rows  < > sort  r reverse  q quit", to_string(view.rows));
  return width != 0 && long_text.size() > width ? clean("h help  q quit", width) : long_text;
}

}  // namespace

View::View() {
  for (size_t i = 0; i < kRowKinds; ++i) sorts[i].column = first_sort_column(static_cast<Rows>(i));
}

void apply_key(View& view, Key key, size_t row_count, size_t page) {
  CHECK(key != Key::quit);
  const size_t columns = column_count(view.rows);
  const size_t last = row_count == 0 ? 0 : row_count - 1;
  const auto choose = [&](Rows rows) {
    view.rows = rows;
    view.first_row = 0;
  };
  switch (key) {
    case Key::none:
    case Key::quit:
      return;
    case Key::help:
      view.shows_help = !view.shows_help;
      return;
    case Key::pause:
      view.is_paused = !view.is_paused;
      return;
    case Key::next_rows:
      return choose(static_cast<Rows>((static_cast<size_t>(view.rows) + 1) % kRowKinds));
    case Key::procedures:
    case Key::storages:
    case Key::nodes:
    case Key::sessions:
      return choose(
          static_cast<Rows>(static_cast<size_t>(key) - static_cast<size_t>(Key::procedures)));
    case Key::sort_left:
      view.sort() = {(view.sort().column + columns - 1) % columns, false};
      return;
    case Key::sort_right:
      view.sort() = {(view.sort().column + 1) % columns, false};
      return;
    case Key::reverse:
      view.sort().is_reversed = !view.sort().is_reversed;
      return;
    case Key::up:
      view.first_row -= std::min<size_t>(view.first_row, 1);
      return;
    case Key::down:
      view.first_row = std::min(view.first_row + 1, last);
      return;
    case Key::page_up:
      view.first_row -= std::min(view.first_row, page);
      return;
    case Key::page_down:
      view.first_row = std::min(view.first_row + page, last);
      return;
    case Key::home:
      view.first_row = 0;
      return;
  }
}

std::vector<Line> render(const Figures& figures, const View& view, Size size,
                         const std::string& clock) {
  std::vector<Line> lines = summary_lines(figures, view, size, clock);
  std::vector<Line> table = view.shows_help     ? help_lines(size.width)
                            : figures.is_recent ? table_lines(figures, view, size.width)
                                                : std::vector<Line>();
  if (size.height == 0) {
    if (table.size() > kRowsWithoutLimit + 1) table.resize(kRowsWithoutLimit + 1);
    lines.insert(lines.end(), table.begin(), table.end());
    return lines;
  }
  // The table has at least half of the screen, and the summary at least its title.
  const size_t room = size.height < 3 ? size.height : size.height - 1;  // without the footer
  const size_t for_table = std::min(table.size(), std::max<size_t>(room / 2, 1));
  const size_t for_summary = std::max<size_t>(1, room - std::min(room, for_table));
  if (lines.size() > for_summary) lines.resize(for_summary);
  if (lines.size() + table.size() > room) table.resize(room - std::min(room, lines.size()));
  lines.insert(lines.end(), table.begin(), table.end());
  if (room == size.height) return lines;
  lines.resize(room);  // empty lines, so that the footer is the last line
  lines.push_back({footer_text(view, size.width), LineKind::footer});
  return lines;
}

}  // namespace atolldb::top
