// Orders of a shop with branches: what makes a transaction with many records fast. README.md in
// this folder explains it.
#include <atoll/procedure.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

using namespace atoll_api;

#define TRY(call) \
  if (const Status status = (call); status != Status::ok) return status

static Array branches;     // a branch has the number of its next order
static Array stock;        // an item has the number of pieces that are left
static Mastertree orders;  // lines of orders, by line_key

static Status find_storages(Library& library) {
  TRY(library.find("branches", branches));
  TRY(library.find("stock", stock));
  return library.find("orders", orders);
}

struct Line {
  uint64_t item;
  int64_t pieces;
};

static constexpr size_t kMaxLines = 15;
// A key has 16 bits of the branch, 40 bits of the number, and 8 bits of the line.
static constexpr uint64_t kLastBranch = (uint64_t{1} << 16) - 1;
static constexpr uint64_t kLastNumber = (uint64_t{1} << 40) - 1;
static_assert(kMaxLines < 1 << 8);

/// An order, in the form in which calls for many records take their indexes.
struct Order {
  uint64_t branch = 0;
  size_t count = 0;
  std::array<uint64_t, kMaxLines> items{};
  std::array<int64_t, kMaxLines> pieces{};
};

using Key = std::array<std::byte, 8>;

/// The lines of an order are neighbours, and a new order of a branch follows all others of it.
/// Larger numbers would give the key of another order, so the callers check them.
static Key line_key(uint64_t branch, uint64_t number, uint64_t line) {
  return ordered_key(branch << 48 | number << 8 | line);
}

/// Removes a number from the start of `text`. Returns false if there is none, or if it is too
/// large.
template <typename Number>
static bool take_number(std::string_view& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, number);
  text = std::string_view(next, static_cast<size_t>(end - next));
  return error == std::errc();
}

/// Removes `wanted` from the start of `text`. Returns false if another character is there.
static bool take_character(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

/// Returns whether the input is "branch item:pieces item:pieces ...".
static bool read_order(Bytes input, Order& order) {
  std::string_view text = input.text();
  if (!take_number(text, order.branch)) return false;
  for (; order.count < kMaxLines && take_character(text, ' '); ++order.count) {
    int64_t& pieces = order.pieces[order.count];
    if (!take_number(text, order.items[order.count]) || !take_character(text, ':')) return false;
    if (!take_number(text, pieces) || pieces <= 0) return false;
  }
  return text.empty() && order.count != 0;
}

/// Takes the pieces from the stock.
static Status take(Transaction txn, const Order& order) {
  // One call looks all records up, so the waits for memory overlap. The places save the look-ups of
  // the reads and writes below.
  std::array<Place, kMaxLines> places;
  TRY(stock.find_many_for_update(txn, order.items.data(), order.count, places.data()));
  for (size_t i = 0; i < order.count; ++i) {
    int64_t left = 0;
    TRY(stock.get(txn, places[i], left));
    left -= order.pieces[i];
    if (left < 0) return Status::user_abort;  // rolls the whole transaction back
    TRY(stock.update(txn, places[i], left));
  }
  return Status::ok;
}

/// Inserts the lines with one call. Their keys ascend, so one page lock is enough for most orders.
static Status insert_lines(Transaction txn, const Order& order, uint64_t number) {
  std::array<Line, kMaxLines> lines;
  std::array<Key, kMaxLines> keys;
  std::array<Bytes, kMaxLines> key_bytes;
  std::array<Bytes, kMaxLines> line_bytes;
  for (size_t i = 0; i < order.count; ++i) {
    lines[i] = {order.items[i], order.pieces[i]};
    keys[i] = line_key(order.branch, number, i);
    key_bytes[i] = keys[i];
    line_bytes[i] = Bytes(&lines[i], sizeof(Line));
  }
  return orders.insert_many(txn, key_bytes.data(), line_bytes.data(), order.count);
}

/// Input: "branch item:pieces item:pieces ...". Output: the number of the order in its branch.
static Status place_order(Context& context) {
  Order order;
  if (!read_order(context.input().bytes(), order)) return Status::invalid_argument;
  if (order.branch > kLastBranch) return Status::out_of_range;
  const Transaction txn = context.transaction();
  TRY(take(txn, order));
  uint64_t number = 0;
  Place next;
  TRY(branches.get_for_update(txn, order.branch, number, next));
  if (number > kLastNumber) return Status::out_of_range;
  TRY(branches.update(txn, next, number + 1));
  TRY(insert_lines(txn, order, number));
  return context.set_output(std::to_string(number));
}

/// Names the records of the next order, while the worker commits the present transaction.
static void prefetch_order(Prefetch& prefetch) {
  Order order;
  if (!read_order(prefetch.input(), order) || order.branch > kLastBranch) return;
  // The number is not known yet. The greatest one leads to the page of the latest order.
  const Key last = line_key(order.branch, kLastNumber, 0);
  const Bytes last_bytes = last;
  prefetch.records({stock.wanted(order.items.data(), order.count),
                    branches.wanted(&order.branch, 1), orders.wanted(&last_bytes, 1, 0)});
}

/// Input: "branch number". Removes an order, and puts its pieces back. Output: number of its lines.
static Status cancel_order(Context& context) {
  std::string_view text = context.input().text();
  uint64_t branch = 0;
  uint64_t number = 0;
  if (!take_number(text, branch) || !take_character(text, ' ') || !take_number(text, number) ||
      !text.empty()) {
    return Status::invalid_argument;
  }
  if (branch > kLastBranch || number > kLastNumber) return Status::out_of_range;
  const Transaction txn = context.transaction();
  Cursor cursor(orders, txn);
  cursor.from(line_key(branch, number, 0)).until(line_key(branch, number, kMaxLines));
  for (int lines = 0;; ++lines) {
    const Status found = cursor.next();
    if (found == Status::end_of_scan && lines == 0) return Status::not_found;
    if (found == Status::end_of_scan) return context.set_output(std::to_string(lines));
    TRY(found);
    Line line;
    __builtin_memcpy(&line, cursor.payload().data(), sizeof(line));
    Place place;
    TRY(cursor.get_place(place));
    TRY(orders.remove(txn, place, cursor.key()));
    // The commit adds the pieces. So orders of the same items do not conflict with this one.
    TRY(stock.increment(txn, line.item, line.pieces));
  }
}

ATOLL_LIBRARY(find_storages, {"order", place_order, Isolation::serializable, prefetch_order},
              {"cancel", cancel_order});
