// The screen of `atoll top` as lines of text, and the effect of keys on it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "ops/top/figures.h"
#include "ops/top/table.h"

namespace atolldb::top {

/// What the user has chosen.
struct View {
  struct Sort {
    size_t column = 0;
    bool is_reversed = false;
  };

  View();
  Sort& sort() { return sorts[static_cast<size_t>(rows)]; }
  const Sort& sort() const { return sorts[static_cast<size_t>(rows)]; }

  Rows rows = Rows::procedures;
  std::array<Sort, kRowKinds> sorts;  // by kind of rows
  size_t first_row = 0;               // first row of the table that is shown
  bool is_paused = false;
  bool shows_help = false;
};

enum class Key {
  none,
  quit,
  help,
  pause,
  next_rows,
  procedures,
  storages,
  nodes,
  sessions,
  sort_left,
  sort_right,
  reverse,
  up,
  down,
  page_up,
  page_down,
  home,
};

/// Changes the view. `row_count`: rows of the current table. `page`: rows that a page has.
/// REQUIRES: the key is not `quit`.
void apply_key(View& view, Key key, size_t row_count, size_t page);

/// Size of a terminal in characters; 0: no limit.
struct Size {
  size_t width = 0;
  size_t height = 0;
};

enum class LineKind { plain, title, heading, problem, footer };
struct Line {
  std::string text;
  LineKind kind = LineKind::plain;
};

/// Returns the lines of the screen: a summary, the table, and a line about the keys. They fit the
/// size. `clock`: the time of the sample, as text. Without a height the line about the keys is left
/// out.
std::vector<Line> render(const Figures& figures, const View& view, Size size,
                         const std::string& clock);

}  // namespace atolldb::top
