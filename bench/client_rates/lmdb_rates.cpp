// Measures clients of an LMDB database, as threads of one process.
//
//   lmdb-rates FOLDER sync|nosync CASE CLIENTS SECONDS
//
// Each request is a transaction of its own. `nosync` sets MDB_NOSYNC.
#include <lmdb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bench/client_rates/rates.h"

namespace atolldb::rates {
namespace {

constexpr size_t kMapBytes = size_t{1} << 30;  // address space, not memory
constexpr mdb_mode_t kMode = 0600;

void check(int result) {
  if (result != 0) fail(std::string("lmdb: ") + mdb_strerror(result));
}

MDB_val val_of(const std::string& bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write to it
}

/// The environment of all clients: LMDB allows one per process.
class Environment {
 public:
  Environment(const char* folder, bool syncs) {
    check(mdb_env_create(&env_));
    check(mdb_env_set_mapsize(env_, kMapBytes));
    check(mdb_env_open(env_, folder, syncs ? 0u : unsigned{MDB_NOSYNC}, kMode));
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &txn));
    check(mdb_dbi_open(txn, nullptr, 0, &table_));
    check(mdb_txn_commit(txn));
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { mdb_env_close(env_); }

  MDB_env* env() const { return env_; }
  MDB_dbi table() const { return table_; }

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
};

class LmdbClient final : public Client {
 public:
  LmdbClient(const Environment& environment, const Case& its_case)
      : environment_(environment), case_(its_case) {
    check(mdb_txn_begin(environment_.env(), nullptr, MDB_RDONLY, &reader_));
    mdb_txn_reset(reader_);
  }
  ~LmdbClient() override { mdb_txn_abort(reader_); }

  void step(uint64_t number) override {
    const uint64_t count = case_.records();
    if (case_.puts) return put(number * count, count);
    check(mdb_txn_renew(reader_));
    for (uint64_t i = number * count; i < (number + 1) * count; ++i) get(i);
    mdb_txn_reset(reader_);
  }

 private:
  void get(uint64_t number) {
    MDB_val key = val_of(key_of(number));
    MDB_val found{};
    check(mdb_get(reader_, environment_.table(), &key, &found));
    // The other systems copy the value out, too.
    copy_.assign(static_cast<const char*>(found.mv_data), found.mv_size);
    if (copy_.size() != kValueBytes) fail("lmdb: a record has a wrong size");
  }
  void put(uint64_t first, uint64_t count) {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(environment_.env(), nullptr, 0, &txn));
    for (uint64_t i = first; i < first + count; ++i) {
      MDB_val key = val_of(key_of(i));
      MDB_val bytes = val_of(value());
      check(mdb_put(txn, environment_.table(), &key, &bytes, 0));
    }
    check(mdb_txn_commit(txn));
  }

  const Environment& environment_;
  const Case case_;
  MDB_txn* reader_ = nullptr;
  std::string copy_;
};

}  // namespace
}  // namespace atolldb::rates

int main(int argc, char** argv) {
  using namespace atolldb::rates;
  std::unique_ptr<Environment> environment;
  const auto connect = [&](const Case& its_case) {
    if (its_case.in_flight > 1) fail("lmdb: has no pipelined requests");
    return std::make_unique<LmdbClient>(*environment, its_case);
  };
  const auto prepare = [&] {
    environment = std::make_unique<Environment>(argv[1], std::string_view(argv[2]) == "sync");
    write_all(*connect(kWriteAll));
  };
  return measure(argc, argv, 2, "FOLDER sync|nosync", prepare, connect);
}
