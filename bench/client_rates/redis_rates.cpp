// Measures clients of a Redis server, with hiredis.
//
//   redis-rates SOCKET|PORT CASE CLIENTS SECONDS
//
// SOCKET is the path of a Unix socket, PORT a port of the loopback address.
#include <hiredis/hiredis.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/client_rates/rates.h"

namespace atolldb::rates {
namespace {

class RedisClient final : public Client {
 public:
  RedisClient(const std::string& where, const Case& its_case) : case_(its_case) {
    context_ = where.starts_with('/') ? redisConnectUnix(where.c_str())
                                      : redisConnect("127.0.0.1", std::atoi(where.c_str()));
    if (context_ == nullptr || context_->err != 0) fail("redis: cannot connect to " + where);
  }
  ~RedisClient() override { redisFree(context_); }

  void step(uint64_t number) override {
    // Half of the requests in flight are sent at once, and then half of the answers are read.
    const uint32_t most = case_.in_flight;
    while (in_flight_ >= most) take_answers(most / 2);
    append(number);
    ++in_flight_;
    if (most == 1) take_answers(0);
  }
  void finish() override { take_answers(0); }

 private:
  void append(uint64_t number) {
    arguments_.clear();
    if (case_.is_batch) {
      add(case_.puts ? "MSET" : "MGET");
      for (uint64_t i = number * kBatch; i < (number + 1) * kBatch; ++i) add_record(i);
    } else {
      add(case_.puts ? "SET" : "GET");
      add_record(number);
    }
    lengths_.clear();
    for (const char* each : arguments_) {
      lengths_.push_back(each == value().data() ? value().size()
                                                : std::char_traits<char>::length(each));
    }
    redisAppendCommandArgv(context_, static_cast<int>(arguments_.size()), arguments_.data(),
                           lengths_.data());
  }
  void add(const char* text) { arguments_.push_back(text); }
  void add_record(uint64_t number) {
    add(key_of(number).c_str());
    if (case_.puts) add(value().data());
  }

  void take_answers(uint32_t left) {
    for (; in_flight_ > left; --in_flight_) {
      void* answer = nullptr;
      if (redisGetReply(context_, &answer) != REDIS_OK) fail("redis: no answer");
      const auto* reply = static_cast<redisReply*>(answer);
      if (reply->type == REDIS_REPLY_ERROR) fail(std::string("redis: ") + reply->str);
      if (!case_.puts && !case_.is_batch && reply->len != kValueBytes) {
        fail("redis: a record has a wrong size");
      }
      freeReplyObject(answer);
    }
  }

  const Case case_;
  redisContext* context_ = nullptr;
  uint32_t in_flight_ = 0;
  std::vector<const char*> arguments_;
  std::vector<size_t> lengths_;
};

}  // namespace
}  // namespace atolldb::rates

int main(int argc, char** argv) {
  using namespace atolldb::rates;
  const auto connect = [&](const Case& its_case) {
    return std::make_unique<RedisClient>(argv[1], its_case);
  };
  const auto prepare = [&] { write_all(*connect(kWriteAll)); };
  return measure(argc, argv, 1, "SOCKET|PORT", prepare, connect);
}
