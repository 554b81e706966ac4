// LMDB as a store. Its cache is the page cache, so the caller limits the memory of the program.
#include <lmdb.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "bench/larger_than_memory/store.h"

namespace atolldb::peers {

namespace {

constexpr size_t kMapBytes = size_t{1} << 40;  // address space, not memory
constexpr uint32_t kRecordsPerCommit = 20'000;
constexpr uint32_t kCommitsPerSync = 10;

void check(int result, const char* what) {
  if (result != 0) fail(std::string("lmdb: ") + what + ": " + mdb_strerror(result));
}

MDB_val to_val(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB does not write to it
}

std::string_view to_view(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

class LmdbSession final : public Session {
 public:
  LmdbSession(MDB_env* env, MDB_dbi table) : env_(env), table_(table) {
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader_), "begin");
    check(mdb_cursor_open(reader_, table_, &cursor_), "open a cursor");
    mdb_txn_reset(reader_);
  }
  ~LmdbSession() override {
    mdb_cursor_close(cursor_);
    mdb_txn_abort(reader_);
  }

  bool read(std::string_view key, std::span<char> value) override {
    check(mdb_txn_renew(reader_), "begin");
    MDB_val key_val = to_val(key);
    MDB_val found{};
    const int result = mdb_get(reader_, table_, &key_val, &found);
    if (result != MDB_NOTFOUND) check(result, "get");
    const bool is_found = result == 0 && found.mv_size == value.size();
    if (is_found) std::memcpy(value.data(), found.mv_data, value.size());
    mdb_txn_reset(reader_);
    return is_found;
  }

  void write(std::string_view key, std::string_view value) override {
    MDB_txn* writer = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &writer), "begin");
    MDB_val key_val = to_val(key);
    MDB_val value_val = to_val(value);
    check(mdb_put(writer, table_, &key_val, &value_val, 0), "put");
    check(mdb_txn_commit(writer), "commit");
  }

  uint32_t scan(std::string_view first, std::string_view last, uint32_t count,
                std::span<char> value) override {
    check(mdb_txn_renew(reader_), "begin");
    check(mdb_cursor_renew(reader_, cursor_), "renew a cursor");
    MDB_val key = to_val(first);
    MDB_val found{};
    uint32_t scanned = 0;
    int result = mdb_cursor_get(cursor_, &key, &found, MDB_SET_RANGE);
    while (result == 0 && to_view(key) <= last) {
      std::memcpy(value.data(), found.mv_data, std::min(value.size(), found.mv_size));
      if (++scanned == count) break;
      result = mdb_cursor_get(cursor_, &key, &found, MDB_NEXT);
    }
    if (result != MDB_NOTFOUND) check(result, "scan");
    mdb_txn_reset(reader_);
    return scanned;
  }

 private:
  MDB_env* env_;
  MDB_dbi table_;
  MDB_txn* reader_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
};

class LmdbStore final : public Store {
 public:
  explicit LmdbStore(const StoreOptions& options) {
    // Without MDB_WRITEMAP, commits write to the file. The kernel writes the file to the device
    // later, because of MDB_NOSYNC.
    unsigned flags = MDB_NOSYNC;
    // Inserts split pages, which then are about two thirds full. Read-ahead would evict pages that
    // are needed as soon as such a file is larger than the memory.
    if (options.data_bytes * 3 / 2 > options.cache_bytes) flags |= MDB_NORDAHEAD;
    check(mdb_env_create(&env_), "create");
    check(mdb_env_set_mapsize(env_, kMapBytes), "set the size of the map");
    check(mdb_env_set_maxreaders(env_, options.threads + 1), "set the number of readers");
    check(mdb_env_open(env_, options.directory.c_str(), flags, 0600), "open");
    begin_load();
    check(mdb_dbi_open(loader_, nullptr, 0, &table_), "open the table");
  }
  ~LmdbStore() override { mdb_env_close(env_); }

  void append(std::string_view key, std::string_view value) override {
    MDB_val key_val = to_val(key);
    MDB_val value_val = to_val(value);
    check(mdb_put(loader_, table_, &key_val, &value_val, MDB_APPEND), "append");
    if (++appended_ % kRecordsPerCommit != 0) return;
    commit_load();
    // Pages that are not written yet cannot be evicted. Too many would use up the memory.
    if (appended_ / kRecordsPerCommit % kCommitsPerSync == 0) check(mdb_env_sync(env_, 1), "sync");
    begin_load();
  }

  void end_load() override {
    commit_load();
    check(mdb_env_sync(env_, 1), "sync");
  }

  std::unique_ptr<Session> open_session() override {
    return std::make_unique<LmdbSession>(env_, table_);
  }

 private:
  void begin_load() { check(mdb_txn_begin(env_, nullptr, 0, &loader_), "begin"); }
  void commit_load() { check(mdb_txn_commit(loader_), "commit"); }

  MDB_env* env_ = nullptr;
  MDB_dbi table_ = 0;
  MDB_txn* loader_ = nullptr;
  uint64_t appended_ = 0;
};

}  // namespace

std::unique_ptr<Store> open_store(const StoreOptions& options) {
  return std::make_unique<LmdbStore>(options);
}

}  // namespace atolldb::peers
