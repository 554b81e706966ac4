// Measures connections to a SQLite database in the process of the client, in WAL mode with prepared
// statements.
//
//   sqlite-rates FILE FULL|NORMAL CASE CLIENTS SECONDS
//
// FULL and NORMAL are values of the pragma synchronous.
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/client_rates/rates.h"

namespace atolldb::rates {
namespace {

constexpr int kBusyMs = 60'000;

class SqliteClient final : public Client {
 public:
  SqliteClient(const std::string& file, const std::string& synchronous, const Case& its_case)
      : case_(its_case) {
    if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) fail("sqlite: cannot open " + file);
    sqlite3_busy_timeout(db_, kBusyMs);
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=" + synchronous);
    run("CREATE TABLE IF NOT EXISTS t (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID");
    get_ = prepare("SELECT v FROM t WHERE k = ?");
    put_ = prepare("INSERT OR REPLACE INTO t VALUES (?, ?)");
    begin_ = prepare(its_case.puts ? "BEGIN IMMEDIATE" : "BEGIN");
    commit_ = prepare("COMMIT");
  }
  ~SqliteClient() override {
    for (sqlite3_stmt* each : {get_, put_, begin_, commit_}) sqlite3_finalize(each);
    sqlite3_close(db_);
  }

  void step(uint64_t number) override {
    if (!case_.is_batch) return one(number);
    execute(begin_, SQLITE_DONE);
    for (uint64_t i = number * kBatch; i < (number + 1) * kBatch; ++i) one(i);
    execute(commit_, SQLITE_DONE);
  }

 private:
  void run(const std::string& text) {
    if (sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      fail("sqlite: " + text + ": " + sqlite3_errmsg(db_));
    }
  }
  sqlite3_stmt* prepare(const char* text) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, text, -1, &statement, nullptr) != SQLITE_OK) {
      fail(std::string("sqlite: ") + sqlite3_errmsg(db_));
    }
    return statement;
  }
  static void bind(sqlite3_stmt* statement, int place, const std::string& bytes) {
    sqlite3_bind_blob(statement, place, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_STATIC);
  }
  void execute(sqlite3_stmt* statement, int expected) {
    if (sqlite3_step(statement) != expected) fail(std::string("sqlite: ") + sqlite3_errmsg(db_));
    if (expected == SQLITE_ROW && sqlite3_column_bytes(statement, 0) != kValueBytes) {
      fail("sqlite: a record has a wrong size");
    }
    sqlite3_reset(statement);
  }
  void one(uint64_t number) {
    sqlite3_stmt* statement = case_.puts ? put_ : get_;
    bind(statement, 1, key_of(number));
    if (case_.puts) bind(statement, 2, value());
    execute(statement, case_.puts ? SQLITE_DONE : SQLITE_ROW);
  }

  const Case case_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* get_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
};

}  // namespace
}  // namespace atolldb::rates

int main(int argc, char** argv) {
  using namespace atolldb::rates;
  const auto connect = [&](const Case& its_case) {
    if (its_case.in_flight > 1) fail("sqlite: has no pipelined requests");
    return std::make_unique<SqliteClient>(argv[1], argv[2], its_case);
  };
  const auto prepare = [&] { write_all(*connect(kWriteAll)); };
  return measure(argc, argv, 2, "FILE FULL|NORMAL", prepare, connect);
}
