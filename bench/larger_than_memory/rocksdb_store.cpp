// RocksDB as a store, with direct I/O, and the defaults of its program db_bench where they differ
// from those of the library.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "bench/larger_than_memory/store.h"

namespace atolldb::peers {

namespace {

void check(const rocksdb::Status& status, const char* what) {
  if (!status.ok()) fail(std::string("rocksdb: ") + what + ": " + status.ToString());
}

rocksdb::Slice to_slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

class RocksDbSession final : public Session {
 public:
  explicit RocksDbSession(rocksdb::DB& db) : db_(db) {}

  bool read(std::string_view key, std::span<char> value) override {
    rocksdb::PinnableSlice found;
    const rocksdb::Status status =
        db_.Get(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), to_slice(key), &found);
    if (status.IsNotFound()) return false;
    check(status, "get");
    if (found.size() != value.size()) return false;
    std::memcpy(value.data(), found.data(), value.size());
    return true;
  }

  void write(std::string_view key, std::string_view value) override {
    check(db_.Put(rocksdb::WriteOptions(), to_slice(key), to_slice(value)), "put");
  }

  uint32_t scan(std::string_view first, std::string_view last, uint32_t count,
                std::span<char> value) override {
    const std::unique_ptr<rocksdb::Iterator> cursor(db_.NewIterator(rocksdb::ReadOptions()));
    uint32_t scanned = 0;
    for (cursor->Seek(to_slice(first)); cursor->Valid() && scanned < count; cursor->Next()) {
      if (cursor->key().compare(to_slice(last)) > 0) break;
      const rocksdb::Slice found = cursor->value();
      std::memcpy(value.data(), found.data(), std::min(value.size(), found.size()));
      ++scanned;
    }
    check(cursor->status(), "scan");
    return scanned;
  }

 private:
  rocksdb::DB& db_;
};

class RocksDbStore final : public Store {
 public:
  explicit RocksDbStore(const StoreOptions& store_options) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(store_options.cache_bytes);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.use_direct_reads = true;
    options.use_direct_io_for_flush_and_compaction = true;
    options.enable_pipelined_write = true;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    check(rocksdb::DB::Open(options, store_options.directory, &db), "open");
    db_.reset(db);
  }

  void append(std::string_view key, std::string_view value) override {
    check(db_->Put(rocksdb::WriteOptions(), to_slice(key), to_slice(value)), "put");
  }

  void end_load() override {
    check(db_->Flush(rocksdb::FlushOptions()), "flush");
    check(db_->SyncWAL(), "sync");
  }

  std::unique_ptr<Session> open_session() override {
    return std::make_unique<RocksDbSession>(*db_);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Store> open_store(const StoreOptions& options) {
  return std::make_unique<RocksDbStore>(options);
}

}  // namespace atolldb::peers
