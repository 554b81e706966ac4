// The procedure API, which gives applications the fastest access to the engine. Applications
// include only this header.
//
// A *procedure* is the body of one transaction. The transaction is serializable, unless the entry
// or the caller asks for another isolation (shared/base/isolation.h). The node begins, commits and
// retries the transaction. So the body may run several times, and must have no side effects of its
// own. Libraries linked into the node register with ATOLL_REGISTER_PROCEDURE. A user's shared
// library exports its list with ATOLL_PROCEDURE_LIBRARY (see bench/example_procedure/). Thread: a
// worker of the node.
//
// A *job* runs on one worker, outside of any transaction, and begins its own transactions (bulk
// loads, benchmark drivers). Input and output are text (JSON).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/engine.h"
#include "shared/base/error.h"

namespace atolldb {

inline constexpr uint32_t kProcedureApiVersion = 5;
inline constexpr uint32_t kMaxProcedureName = 60;
/// Limits of jobs, and of calls without a session. Sessions have the limits of the config.
inline constexpr uint32_t kMaxProcedureInputBytes = 1u << 20;
inline constexpr uint32_t kMaxProcedureOutputBytes = 1u << 20;

class ProcedureContext {
 public:
  ProcedureContext(Transaction& transaction, std::span<const std::byte> input,
                   std::vector<std::byte>& output, std::string* message = nullptr)
      : transaction_(&transaction), input_(input), output_(&output), message_(message) {}

  Transaction& transaction() { return *transaction_; }
  std::span<const std::byte> input() const { return input_; }
  std::string_view input_text() const {
    return {reinterpret_cast<const char*>(input_.data()), input_.size()};
  }
  /// Replaces the output. The caller receives it only if the transaction commits.
  void set_output(std::span<const std::byte> bytes) { output_->assign(bytes.begin(), bytes.end()); }
  void set_output(std::string_view text) { set_output(std::as_bytes(std::span(text))); }

  /// Sets the text that the caller receives with a status other than ok.
  void set_message(std::string message) {
    if (message_ != nullptr) *message_ = std::move(message);
  }

  /// Returns the storage of this name and type, or null if there is none.
  StorageControl* storage(std::string_view name, StorageType type) {
    return find_storage(*transaction_->worker().view().control, name, type);
  }

 private:
  Transaction* transaction_;
  std::span<const std::byte> input_;
  std::vector<std::byte>* output_;
  std::string* message_;
};

/// What a prefetch function gets. It names records that the next call will use, while another
/// transaction of the worker is about to commit. See atoll_api::Prefetch for what is guaranteed.
class PrefetchContext {
 public:
  /// REQUIRES: the transaction is active.
  PrefetchContext(Transaction& running, std::span<const std::byte> input)
      : running_(&running), input_(input) {}

  /// Input of the next call.
  std::span<const std::byte> input() const { return input_; }
  /// Prefetches these records. Ignores records without a volatile page: a read of a snapshot page
  /// would delay the commit of the running transaction.
  void records(const Array& array, std::span<const uint64_t> indexes) const {
    array.prefetch(*running_, indexes, 0, array.payload_bytes());
  }
  /// Does the same for the heads of these records and bytes [offset, offset + count) of their
  /// payloads. REQUIRES: the payloads have these bytes.
  void records(const Array& array, std::span<const uint64_t> indexes, uint32_t offset,
               uint32_t count) const {
    array.prefetch(*running_, indexes, offset, count);
  }
  /// Prefetches `records` records from each key on. 0: only the start of their page, for keys to
  /// insert.
  void records(const MasterTree& tree, std::span<const Bytes> keys, uint32_t records = 1) const {
    prefetch_ahead(*running_, tree, keys, records);
  }
  /// Returns the storage of this name and type, or null if there is none.
  StorageControl* storage(std::string_view name, StorageType type) const {
    return find_storage(control(), name, type);
  }
  ControlSegment& control() const { return *running_->worker().view().control; }

 private:
  Transaction* running_;
  std::span<const std::byte> input_;
};

class JobContext {
 public:
  JobContext(Transaction& transaction, Backoff& backoff, std::string_view input,
             uint32_t worker_ordinal, uint32_t workers_on_node, const std::atomic<bool>& stop)
      : transaction_(&transaction),
        backoff_(&backoff),
        input_(input),
        worker_ordinal_(worker_ordinal),
        workers_on_node_(workers_on_node),
        stop_(&stop) {}

  Transaction& transaction() { return *transaction_; }
  Backoff& backoff() { return *backoff_; }
  WorkerContext& worker() { return transaction_->worker(); }
  ControlSegment& control() { return *worker().view().control; }
  std::string_view input() const { return input_; }
  uint32_t node() const { return transaction_->worker().node(); }
  uint32_t node_count() const { return transaction_->worker().view().node_count; }
  uint32_t worker_ordinal() const { return worker_ordinal_; }
  uint32_t workers_on_node() const { return workers_on_node_; }
  /// Returns true if the job was cancelled, or if the cluster drains or has failed. The job should
  /// return soon then.
  bool should_stop() const {
    return stop_->load(std::memory_order_relaxed) ||
           transaction_->worker().view().control->state.load(std::memory_order_relaxed) !=
               static_cast<uint32_t>(ClusterState::running);
  }
  StorageControl* storage(std::string_view name, StorageType type) {
    return find_storage(control(), name, type);
  }

 private:
  Transaction* transaction_;
  Backoff* backoff_;
  std::string_view input_;
  uint32_t worker_ordinal_;
  uint32_t workers_on_node_;
  const std::atomic<bool>* stop_;
};

using ProcedureFunction = Status (*)(ProcedureContext&);
using PrefetchFunction = void (*)(PrefetchContext&);
using JobFunction = Result<std::string> (*)(JobContext&);

struct ProcedureEntry {
  const char* name = nullptr;
  ProcedureFunction procedure = nullptr;  // set exactly one of `procedure` and `job`
  JobFunction job = nullptr;
  /// Isolation of a procedure, unless the call names another one.
  Isolation isolation = Isolation::serializable;
  PrefetchFunction prefetch = nullptr;  // of a procedure; null: none
};

/// The list that a shared library exports as `atoll_procedure_library`.
struct ProcedureLibrary {
  uint32_t api_version;
  uint32_t count;
  const ProcedureEntry* entries;
};

/// Adds an entry to the list of built-in procedures, which every node reads at its start. Libraries
/// that are linked into the node's binary use it. Only static initialization changes the list.
class ProcedureRegistration {
 public:
  explicit ProcedureRegistration(ProcedureEntry entry) : entry_(entry), next_(head) { head = this; }
  static const ProcedureRegistration* first() { return head; }
  const ProcedureRegistration* next() const { return next_; }
  const ProcedureEntry& entry() const { return entry_; }

 private:
  static inline constinit const ProcedureRegistration* head = nullptr;
  ProcedureEntry entry_;
  const ProcedureRegistration* next_;
};

}  // namespace atolldb

#define ATOLL_REGISTER_PROCEDURE(variable, name, function) \
  static const ::atolldb::ProcedureRegistration variable({name, function, nullptr})
/// `prefetch`: the procedure's prefetch function.
#define ATOLL_REGISTER_PREFETCHED_PROCEDURE(variable, name, function, prefetch) \
  static const ::atolldb::ProcedureRegistration variable(                       \
      {name, function, nullptr, ::atolldb::Isolation::serializable, prefetch})
#define ATOLL_REGISTER_JOB(variable, name, function) \
  static const ::atolldb::ProcedureRegistration variable({name, nullptr, function})

/// Use once in a user's library: ATOLL_PROCEDURE_LIBRARY({"name", function}, {"other", function2}).
/// The entry {"report", function3, nullptr, Isolation::snapshot_read_only} reads the latest
/// snapshot.
#define ATOLL_PROCEDURE_LIBRARY(...)                                                \
  static const ::atolldb::ProcedureEntry atoll_procedure_entries[] = {__VA_ARGS__}; \
  extern "C" const ::atolldb::ProcedureLibrary atoll_procedure_library;             \
  const ::atolldb::ProcedureLibrary atoll_procedure_library = {                     \
      ::atolldb::kProcedureApiVersion,                                              \
      sizeof(atoll_procedure_entries) / sizeof(atoll_procedure_entries[0]),         \
      atoll_procedure_entries}
