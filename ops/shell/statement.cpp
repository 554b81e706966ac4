#include "ops/shell/statement.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstring>
#include <utility>

#include "shared/base/check.h"

namespace atolldb::shell {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::pair<std::string_view, KvNumber> kNumbers[] = {{"i32", KvNumber::i32},
                                                              {"i64", KvNumber::i64},
                                                              {"u32", KvNumber::u32},
                                                              {"u64", KvNumber::u64},
                                                              {"f64", KvNumber::f64}};

std::unexpected<std::string> wrong_argument(const char* argument, const std::string& why) {
  return std::unexpected(std::string(argument) + ": " + why);
}

class Adder {
 public:
  Adder(CLI::App& parent, const std::shared_ptr<Statement>& statement,
        const std::function<void()>& chosen)
      : parent_(parent), statement_(statement), chosen_(chosen) {}

  CLI::App& add(const char* name, const char* help, KvCode code) {
    CLI::App* command = parent_.add_subcommand(name, help);
    command->callback([statement = statement_, chosen = chosen_, code] {
      statement->code = code;
      chosen();
    });
    command->add_option("STORAGE", statement_->storage, "Name of the storage")->required();
    return *command;
  }
  void key(CLI::App& command) {
    command.add_option("KEY", statement_->key, "Key of the record; of an array its index")
        ->required();
  }
  void value(CLI::App& command, const char* help) {
    command.add_option("VALUE", statement_->value, help)->required();
  }
  void offset(CLI::App& command) {
    command.add_option("--offset", statement_->offset, "First byte in the record")
        ->check(CLI::Range(0U, kMaxKvValueBytes))
        ->capture_default_str();
  }

 private:
  CLI::App& parent_;
  const std::shared_ptr<Statement>& statement_;
  const std::function<void()>& chosen_;
};

void add_scan(Adder& adder, Statement& statement, const std::function<void(CLI::App&)>& finish) {
  CLI::App& scan = adder.add("scan", "Print the records of a range of keys", KvCode::scan);
  scan.add_option("--low", statement.low, "First key, inclusive")->type_name("KEY");
  scan.add_option("--high", statement.high, "Last key, exclusive")->type_name("KEY");
  CLI::Option* prefix =
      scan.add_option("--prefix", statement.prefix, "Only keys that begin with this text")
          ->type_name("KEY");
  prefix->excludes("--low")->excludes("--high");
  scan.add_option("--after", statement.after,
                  "Continue after this key, in the direction of the scan")
      ->type_name("KEY");
  scan.add_option("--limit", statement.limit, "Maximum number of rows; 0: no maximum")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  scan.add_flag("--reverse", statement.reverse, "From high to low keys");
  scan.add_flag("--keys-only", statement.keys_only, "Print no values");
  finish(scan);
}

std::expected<void, std::string> bind_range(const Statement& statement, const RecordText& text,
                                            const Formats& formats, BoundStatement& bound) {
  const auto bound_key = [&](const std::optional<std::string>& from, const char* option, Bytes& to,
                             bool& is_set) -> std::expected<void, std::string> {
    if (!from) return {};
    auto bytes = text.key_bytes(*from);
    if (!bytes) return wrong_argument(option, bytes.error());
    to = *std::move(bytes);
    is_set = true;
    return {};
  };
  if (bound.storage.type == StorageType::hash &&
      (statement.low || statement.high || statement.prefix || statement.reverse)) {
    return wrong_argument("scan", "storage \"" + bound.storage.name +
                                      "\" is a hash storage, whose keys have no order: omit "
                                      "--low, --high, --prefix and --reverse");
  }
  if (statement.prefix && bound.storage.is_array()) {
    return wrong_argument(
        "--prefix", "storage \"" + bound.storage.name + "\" is an array: use --low and --high");
  }
  if (statement.prefix) {
    auto bytes = formats.key.encode_prefix(*statement.prefix);
    if (!bytes) return wrong_argument("--prefix", bytes.error());
    bound.high = key_after_prefix(*bytes);
    bound.has_high = !bound.high.empty();
    bound.low = *std::move(bytes);
    bound.has_low = true;
  }
  auto done = bound_key(statement.low, "--low", bound.low, bound.has_low);
  if (done) done = bound_key(statement.high, "--high", bound.high, bound.has_high);
  if (!done || !statement.after) return done;
  if (statement.reverse) {
    Bytes high;
    bool has_high = false;
    done = bound_key(statement.after, "--after", high, has_high);
    if (done && (!bound.has_high || high < bound.high)) bound.high = std::move(high);
    bound.has_high = true;
    return done;
  }
  Bytes low;
  bool has_low = false;
  done = bound_key(statement.after, "--after", low, has_low);
  low = key_after(low);
  if (low.empty()) {
    // No key can follow, so the range is empty.
    bound.low = bound.high = Bytes(1);
    bound.has_low = bound.has_high = true;
    return done;
  }
  if (done && (!bound.has_low || bound.low < low)) bound.low = std::move(low);
  bound.has_low = true;
  return done;
}

std::expected<void, std::string> bind_number(const Statement& statement, BoundStatement& bound) {
  for (const auto& [name, number] : kNumbers) {
    if (statement.number == name) bound.number = number;
  }
  const auto format = ValueFormat::parse(statement.number, ValueFormat::Part::value);
  if (bound.number == KvNumber::none || !format) {
    return wrong_argument("--type", "\"" + statement.number + "\": use i32, i64, u32, u64 or f64");
  }
  auto bytes = format->encode(statement.value);
  if (!bytes) return wrong_argument("VALUE", bytes.error());
  bound.value = *std::move(bytes);
  return {};
}

}  // namespace

void add_statements(CLI::App& parent, const std::shared_ptr<Statement>& statement,
                    const std::function<void()>& chosen,
                    const std::function<void(CLI::App&)>& finish) {
  Adder adder(parent, statement, chosen);
  CLI::App& get = adder.add("get", "Print the value of a record", KvCode::get);
  adder.key(get);
  finish(get);

  CLI::App& put = adder.add("put", "Insert or overwrite a record", KvCode::put);
  adder.key(put);
  adder.value(put, "The new value");
  adder.offset(put);
  finish(put);

  CLI::App& insert = adder.add("insert", "Insert a record that does not exist", KvCode::insert);
  adder.key(insert);
  adder.value(insert, "Its value");
  finish(insert);

  CLI::App& erase = adder.add("del", "Delete a record", KvCode::erase);
  adder.key(erase);
  finish(erase);

  CLI::App& sum = adder.add("add", "Add to a number in a record", KvCode::add);
  adder.key(sum);
  adder.value(sum, "The number to add; it may be negative");
  sum.add_option("--type", statement->number, "Type of the number: i32, i64, u32, u64, f64")
      ->check(CLI::IsMember({"i32", "i64", "u32", "u64", "f64"}))
      ->capture_default_str();
  adder.offset(sum);
  sum.add_flag("--return", statement->returns_value, "Print the sum");
  sum.add_flag("--blind", statement->is_blind,
               "Count bytes that the record of a tree lacks as zeros, and create a missing record, "
               "so that a record on the device need not be read");
  finish(sum);

  CLI::App& append = adder.add("append", "Append a record to a sequential storage", KvCode::append);
  adder.value(append, "Its value");
  finish(append);

  CLI::App& check = adder.add("check", "Fail unless a record has this value", KvCode::compare);
  adder.key(check);
  CLI::Option* value = check.add_option("VALUE", statement->value, "The expected value");
  check.add_flag("--absent", statement->is_absent, "The record must not exist")->excludes(value);
  check.callback([statement, chosen, value] {
    if (!statement->is_absent && value->count() == 0) {
      throw CLI::RequiredError("VALUE or --absent");
    }
    statement->code = KvCode::compare;
    chosen();
  });
  finish(check);

  add_scan(adder, *statement, finish);
}

uint64_t array_index(KvBytes key) {
  uint64_t index = 0;
  CHECK(key.size() >= sizeof(index));
  std::memcpy(&index, key.data(), sizeof(index));
  return __builtin_bswap64(index);
}

std::expected<Bytes, std::string> RecordText::key_bytes(std::string_view text) const {
  if (!is_array_) return formats_->key.encode(text);
  uint64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::unexpected("\"" + escape_text(std::as_bytes(std::span(text))) +
                           "\": the key of an array is an index, a number from 0 on");
  }
  const auto bytes = ordered_index_key(index);
  return Bytes(bytes.begin(), bytes.end());
}

std::expected<Bytes, std::string> RecordText::value_bytes(std::string_view text) const {
  return formats_->value.encode(text);
}

std::expected<std::string, std::string> RecordText::key(KvBytes bytes) const {
  if (!is_array_ || bytes.size() != 8) return formats_->key.decode(bytes);
  return std::to_string(array_index(bytes));
}

std::expected<std::string, std::string> RecordText::value(KvBytes bytes) const {
  return formats_->value.decode(bytes);
}

std::expected<nlohmann::json, std::string> RecordText::key_json(KvBytes bytes) const {
  if (!is_array_ || bytes.size() != 8) return formats_->key.to_json(bytes);
  return nlohmann::json(array_index(bytes));
}

std::expected<nlohmann::json, std::string> RecordText::value_json(KvBytes bytes) const {
  return formats_->value.to_json(bytes);
}

KvScan BoundStatement::range(uint32_t rows) const {
  return {.low = low,
          .has_low = has_low,
          .high = high,
          .has_high = has_high,
          .limit = rows,
          .reverse = reverse,
          .keys_only = keys_only,
          .unordered = storage.type == StorageType::hash};
}

void BoundStatement::add_to(KvRequest& request, uint32_t rows) const {
  const std::string_view name = storage.name;
  switch (code) {
    case KvCode::get:
      request.get(name, key, true);
      break;
    case KvCode::put:
      request.put(name, key, value, offset);
      break;
    case KvCode::insert:
      request.insert(name, key, value);
      break;
    case KvCode::erase:
      request.erase(name, key);
      break;
    case KvCode::add:
      request.add(name, key, number, value, offset, returns_value, is_blind);
      break;
    case KvCode::append:
      request.append(name, value);
      break;
    case KvCode::compare:
      is_absent ? request.compare_absent(name, key) : request.compare(name, key, value);
      break;
    default:
      request.scan(name, range(rows));
  }
}

std::expected<BoundStatement, std::string> bind(const Statement& statement,
                                                const StorageEntry& storage,
                                                const Formats& formats) {
  BoundStatement bound;
  bound.code = statement.code;
  bound.storage = storage;
  bound.offset = statement.offset;
  bound.returns_value = statement.returns_value;
  bound.is_blind = statement.is_blind;
  bound.is_absent = statement.is_absent;
  bound.limit = statement.limit;
  bound.reverse = statement.reverse;
  bound.keys_only = statement.keys_only;
  const RecordText text(formats, storage);
  if (statement.code == KvCode::scan) {
    const auto done = bind_range(statement, text, formats, bound);
    if (!done) return std::unexpected(done.error());
    return bound;
  }
  if (statement.code != KvCode::append) {
    auto key = text.key_bytes(statement.key);
    if (!key) return wrong_argument("KEY", key.error());
    bound.key = *std::move(key);
  }
  if (statement.code == KvCode::add) {
    const auto done = bind_number(statement, bound);
    if (!done) return std::unexpected(done.error());
  } else if (statement.code != KvCode::get && statement.code != KvCode::erase) {
    auto value = text.value_bytes(statement.value);
    if (!value && !statement.is_absent) return wrong_argument("VALUE", value.error());
    if (value) bound.value = *std::move(value);
  }
  return bound;
}

}  // namespace atolldb::shell
