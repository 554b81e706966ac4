#include "ops/shell/print_result.h"

#include <cstdio>
#include <utility>

#include "shared/base/try.h"

namespace atolldb::shell {
namespace {

using nlohmann::json;

constexpr int kSchemaVersion = 1;

std::unexpected<Error> unfit(const BoundStatement& statement, const std::string& why) {
  return make_error(ExitCode::usage, name_of(statement) + ": " + why);
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_more(const char* advice) {
  std::fflush(stdout);
  std::fprintf(stderr, "more rows follow: %s\n", advice);
}

std::string compact(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Returns how the sum of an `add` is written.
ValueFormat sum_format(const BoundStatement& statement) {
  constexpr std::string_view kNames[] = {"text", "i32", "i64", "u32", "u64", "f64"};
  auto format =
      ValueFormat::parse(kNames[static_cast<size_t>(statement.number)], ValueFormat::Part::value);
  return format ? *std::move(format) : ValueFormat::plain(ValueFormat::Part::value);
}

bool is_sum(const BoundStatement& statement) { return statement.code == KvCode::add; }

}  // namespace

Result<std::string> ResultPrinter::row_text(const BoundStatement& statement,
                                            const KvRecord& record) const {
  const RecordText text(formats_, statement.storage);
  auto line = text.key(record.key);
  if (!line) return unfit(statement, line.error());
  if (statement.keys_only) return *line + "\n";
  const auto value = text.value(record.value);
  if (!value) return unfit(statement, "key " + *line + ": " + value.error());
  return *line + "\t" + *value + "\n";
}

Result<json> ResultPrinter::row_json(const BoundStatement& statement,
                                     const KvRecord& record) const {
  const RecordText text(formats_, statement.storage);
  auto key = text.key_json(record.key);
  if (!key) return unfit(statement, key.error());
  json row = {{"key", *std::move(key)}, {"version", record.version}};
  if (statement.keys_only) return row;
  auto value = text.value_json(record.value);
  if (!value) return unfit(statement, value.error());
  row["value"] = *std::move(value);
  return row;
}

bool ResultPrinter::row(const BoundStatement& statement, const KvRecord& record) {
  if (!json_) {
    const auto text = row_text(statement, record);
    if (text) {
      print(*text);
    } else {
      error_ = text.error();
    }
    return text.has_value();
  }
  const auto row = row_json(statement, record);
  if (!row) {
    error_ = row.error();
    return false;
  }
  print(is_open_ ? ",\n"
                 : "{\"schema_version\":" + std::to_string(kSchemaVersion) +
                       ",\"storage\":" + compact(statement.storage.name) + ",\"rows\":[\n");
  is_open_ = true;
  print(compact(*row));
  return true;
}

Result<std::string> ResultPrinter::result_text(const BoundStatement& statement,
                                               const StatementResult& result) const {
  if (!result.value) return std::string("ok\n");
  const auto text = is_sum(statement)
                        ? sum_format(statement).decode(*result.value)
                        : RecordText(formats_, statement.storage).value(*result.value);
  if (!text) return unfit(statement, text.error());
  return *text + "\n";
}

Result<json> ResultPrinter::result_json(const BoundStatement& statement,
                                        const StatementResult& result) const {
  json document = {{"storage", statement.storage.name}};
  const RecordText text(formats_, statement.storage);
  if (statement.code == KvCode::scan) {
    document["more"] = result.has_more;
    return document;
  }
  if (statement.code != KvCode::append) {
    auto key = text.key_json(statement.key);
    if (!key) return unfit(statement, key.error());
    document["key"] = *std::move(key);
  }
  if (!result.value) return document;
  auto value = is_sum(statement) ? sum_format(statement).to_json(*result.value)
                                 : text.value_json(*result.value);
  if (!value) return unfit(statement, value.error());
  document["value"] = *std::move(value);
  if (statement.code == KvCode::get) document["version"] = result.version;
  return document;
}

Result<void> ResultPrinter::end(const BoundStatement& statement, const StatementResult& result,
                                uint64_t commit_epoch) {
  if (error_.code != ExitCode::success) return std::unexpected(error_);
  const bool is_scan = statement.code == KvCode::scan;
  if (!json_) {
    if (is_scan) {
      if (result.has_more) print_more("--limit 0 prints all, --after KEY continues");
      return {};
    }
    ATOLL_ASSIGN(const std::string text, result_text(statement, result));
    print(text);
    return {};
  }
  if (is_scan && is_open_) {
    print("\n],\"more\":" + std::string(result.has_more ? "true" : "false") + "}\n");
    is_open_ = false;
    return {};
  }
  ATOLL_ASSIGN(json document, result_json(statement, result));
  document["schema_version"] = kSchemaVersion;
  if (is_scan) document["rows"] = json::array();
  if (!is_scan && commit_epoch != 0) document["commit_epoch"] = commit_epoch;
  print(compact(document) + "\n");
  return {};
}

bool ResultPrinter::keep_row(size_t index, const BoundStatement& statement,
                             const KvRecord& record) {
  if (json_) {
    auto row = row_json(statement, record);
    if (!row) {
      error_ = row.error();
      return false;
    }
    kept_json_[index].push_back(*std::move(row));
    return true;
  }
  const auto text = row_text(statement, record);
  if (text) {
    kept_text_[index] += *text;
  } else {
    error_ = text.error();
  }
  return text.has_value();
}

Result<void> ResultPrinter::end_together(const std::vector<BoundStatement>& statements,
                                         const RunResult& run) {
  if (error_.code != ExitCode::success) return std::unexpected(error_);
  json results = json::array();
  for (size_t i = 0; i < run.results.size(); ++i) {
    const BoundStatement& statement = statements[i];
    const StatementResult& result = run.results[i];
    const bool is_scan = statement.code == KvCode::scan;
    if (json_) {
      ATOLL_ASSIGN(json document, result_json(statement, result));
      if (is_scan) document["rows"] = kept_json_[i];
      results.push_back(std::move(document));
    } else if (is_scan) {
      print(kept_text_[i]);
      if (result.has_more) {
        print_more("all scans of a transaction print 32 KiB together: --after KEY continues");
      }
    } else {
      ATOLL_ASSIGN(const std::string text, result_text(statement, result));
      print(text);
    }
  }
  if (!json_) return {};
  const json whole = {{"schema_version", kSchemaVersion},
                      {"commit_epoch", run.commit_epoch},
                      {"version", run.commit_version},
                      {"results", std::move(results)}};
  print(compact(whole) + "\n");
  return {};
}

}  // namespace atolldb::shell
