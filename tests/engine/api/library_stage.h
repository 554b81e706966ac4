// Runs transactions through the public API, as a procedure library does.
#pragma once

#include <atoll/procedure.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/procedure_attempt.h"
#include "engine/transaction/run.h"
#include "shared/base/isolation.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

namespace api = atoll_api;

/// Looks a storage up, as a load function does.
template <typename Storage>
Storage library_storage(TestCluster& cluster, std::string_view name) {
  std::string message;
  LibraryLoad load(*cluster.view().control, message);
  api::Library library(node_functions(), load.number());
  Storage storage;
  EXPECT_EQ(library.find(name, storage), api::Status::ok) << message;
  return storage;
}

/// Runs `body(api::Transaction)` as a procedure. Returns the status of the transaction.
template <typename Body>
api::Status run_procedure(TestWorker& worker, Body&& body,
                          Isolation isolation = Isolation::serializable) {
  std::vector<std::byte> output;
  std::string message;
  const Status status = run(*worker.transaction, worker.backoff, kMaxEpoch,
                            [&](Transaction& transaction) {
                              const ProcedureAttempt attempt(transaction, output, message);
                              api::Context context(node_functions(), attempt.number(), "");
                              return static_cast<Status>(body(context.transaction()));
                            },
                            {.isolation = isolation});
  return static_cast<api::Status>(status);
}

/// The results and buffers of `get_many_for_update` of `count` keys.
struct FoundRecords {
  static constexpr uint32_t kStride = 24;

  explicit FoundRecords(size_t count)
      : results(count, api::Status::procedure_failed),
        places(count),
        lengths(count, ~uint32_t{0}),
        bytes(count * kStride) {}

  api::Status get(const api::Mastertree& tree, api::Transaction txn,
                  const std::vector<api::Bytes>& keys) {
    return tree.get_many_for_update(txn, keys.data(), keys.size(), bytes.data(), kStride,
                                    results.data(), places.data(), lengths.data());
  }
  /// The copied part of payload i.
  std::string payload(size_t i) const {
    return {bytes.data() + i * kStride, std::min(kStride, lengths[i])};
  }

  std::vector<api::Status> results;
  std::vector<api::Place> places;
  std::vector<uint32_t> lengths;
  std::vector<char> bytes;
};

inline std::vector<api::Bytes> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace atolldb::test
