// Measures clients of the C library, over any connection string.
//
//   atoll-client-rates CONNECTION STORAGE CASE CLIENTS SECONDS
//
// STORAGE is a Master-tree. CASE is described in rates.h. Each client has a connection of its own.
#include <cstdint>
#include <memory>
#include <string>

#include "bench/client_rates/rates.h"
#include "shared/c_client/atoll_client.h"

namespace atolldb::rates {
namespace {

void check(atoll_status status) {
  if (status != ATOLL_OK) fail(std::string("atoll: ") + atoll_last_message());
}

atoll_bytes bytes_of(const std::string& text) { return atoll_make_bytes(text.data(), text.size()); }

class AtollClient final : public Client {
 public:
  AtollClient(const char* where, const char* storage, const Case& its_case)
      : storage_(storage), case_(its_case) {
    check(atoll_connect(where, &connection_));
    check(atoll_batch_new(&batch_));
  }
  ~AtollClient() override {
    atoll_batch_free(batch_);
    atoll_connection_free(connection_);
  }

  void step(uint64_t number) override {
    if (case_.in_flight > 1) return submit(number);
    if (case_.is_batch) return run_batch(number);
    single(number);
  }

  void finish() override {
    while (in_flight_ != 0) check(atoll_dispatch(connection_, -1, nullptr));
  }

 private:
  static void take_result(void* context, atoll_result* result) {
    if (atoll_result_status(result) != ATOLL_OK) fail("atoll: a request has failed");
    --static_cast<AtollClient*>(context)->in_flight_;
    atoll_result_free(result);
  }

  void single(uint64_t number) {
    atoll_result* result = nullptr;
    if (case_.puts) {
      return check(atoll_put(connection_, storage_, bytes_of(key_of(number)), bytes_of(value()),
                             nullptr, nullptr));
    }
    check(atoll_get(connection_, storage_, bytes_of(key_of(number)), nullptr, &result));
    if (atoll_result_value(result).size != kValueBytes) fail("atoll: a record has a wrong size");
    atoll_result_free(result);
  }

  void fill(uint64_t first, uint32_t count) {
    atoll_batch_clear(batch_);
    for (uint64_t i = first; i < first + count; ++i) {
      check(case_.puts ? atoll_batch_put(batch_, storage_, bytes_of(key_of(i)), bytes_of(value()))
                       : atoll_batch_get(batch_, storage_, bytes_of(key_of(i))));
    }
  }

  void submit(uint64_t number) {
    while (in_flight_ >= case_.in_flight) check(atoll_dispatch(connection_, -1, nullptr));
    fill(number * case_.records(), case_.records());
    ++in_flight_;
    check(atoll_submit(connection_, batch_, nullptr, take_result, this, nullptr));
  }

  void run_batch(uint64_t number) {
    fill(number * kBatch, kBatch);
    atoll_result* result = nullptr;
    check(atoll_batch_run(connection_, batch_, nullptr, &result));
    for (size_t i = 0; i < kBatch && !case_.puts; ++i) {
      if (atoll_result_value_at(result, i).size != kValueBytes) {
        fail("atoll: a record has a wrong size");
      }
    }
    atoll_result_free(result);
  }

  const char* const storage_;
  const Case case_;
  atoll_connection* connection_ = nullptr;
  atoll_batch* batch_ = nullptr;
  uint32_t in_flight_ = 0;
};

}  // namespace
}  // namespace atolldb::rates

int main(int argc, char** argv) {
  using namespace atolldb::rates;
  const auto connect = [&](const Case& its_case) {
    return std::make_unique<AtollClient>(argv[1], argv[2], its_case);
  };
  // Batches in flight share the wait for an epoch.
  const Case writes{.puts = true, .is_batch = true, .in_flight = 64};
  const auto prepare = [&] { write_all(*connect(writes)); };
  return measure(argc, argv, 2, "CONNECTION STORAGE", prepare, connect);
}
