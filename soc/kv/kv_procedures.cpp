#include "soc/kv/kv_procedures.h"

#include <string>

#include "shared/kv/kv_format.h"
#include "soc/kv/kv_executor.h"

namespace atolldb {
namespace {

std::string where(size_t index, const KvOperationView& operation) {
  return "operation " + std::to_string(index) + " (" + std::string(to_string(operation.head.code)) +
         " of \"" + std::string(operation.storage) + "\"): ";
}

Status run_all(ProcedureContext& context, const std::vector<KvOperationView>& operations) {
  KvExecutor executor(context);
  for (size_t i = 0; i < operations.size(); ++i) {
    const Status status = executor.run(operations[i]);
    if (status != Status::ok) {
      const std::string why = executor.fault().empty() ? "" : ": " + executor.fault();
      context.set_message(where(i, operations[i]) + std::string(to_string(status)) + why);
      return status;
    }
    if (executor.reply().size() > kMaxKvReplyBytes) {
      context.set_message(where(i, operations[i]) + "the reply is longer than " +
                          std::to_string(kMaxKvReplyBytes) + " bytes: ask for less at a time");
      return Status::payload_too_long;
    }
  }
  context.set_output(executor.reply().bytes());
  return Status::ok;
}

Status run_request(ProcedureContext& context, KvCode only, bool needs_incarnation) {
  uint64_t incarnation = 0;
  const auto operations = read_kv_request(context.input(), incarnation);
  if (!operations) {
    context.set_message(operations.error());
    return Status::invalid_argument;
  }
  if (only != KvCode::count_ &&
      (operations->size() != 1 || operations->front().head.code != only)) {
    context.set_message("kv." + std::string(to_string(only)) +
                        " takes one operation of its own kind: use kv.txn for others");
    return Status::invalid_argument;
  }
  if (needs_incarnation && incarnation == 0) {
    context.set_message("kv.commit needs the incarnation that its versions were read in");
    return Status::invalid_argument;
  }
  if (needs_incarnation && !context.transaction().is_serializable()) {
    context.set_message(
        "kv.commit compares versions with the current ones: it must be a serializable "
        "transaction");
    return Status::invalid_argument;
  }
  const uint64_t own = context.transaction().worker().view().control->incarnation;
  if (incarnation != 0 && incarnation != own) {
    context.set_message("the request is for incarnation " + std::to_string(incarnation) +
                        ", this is incarnation " + std::to_string(own) + ": read again");
    return Status::user_abort;
  }
  return run_all(context, *operations);
}

template <KvCode kCode>
Status single(ProcedureContext& context) {
  return run_request(context, kCode, false);
}
Status transaction(ProcedureContext& context) {
  return run_request(context, KvCode::count_, false);
}
Status commit(ProcedureContext& context) { return run_request(context, KvCode::count_, true); }

/// Lists the snapshots that transactions may read: lines with id and epoch, the oldest first.
Status snapshots(ProcedureContext& context) {
  WorkerContext& worker = context.transaction().worker();
  if (!context.transaction().is_serializable()) {
    context.set_message("kv.snapshots reads no snapshot itself: call it as serializable");
    return Status::invalid_argument;
  }
  std::string text;
  if (const PublishedSnapshots* const published = worker.published(); published != nullptr) {
    const uint32_t newest = published->newest();
    for (const uint32_t id : published->ids()) {
      // One snapshot may be published here that the other nodes do not have yet (R61).
      if (id > newest) continue;
      // The slot names the snapshot as long as its view is used (R38).
      const SnapshotView* const view = published->use(worker.slot(), id);
      if (view != nullptr) {
        text += std::to_string(view->id()) + " " + std::to_string(view->epoch()) + "\n";
      }
      PublishedSnapshots::release(worker.slot());
    }
  }
  context.set_output(text);
  return Status::ok;
}

constexpr ProcedureEntry kEntries[] = {
    {"kv.txn", transaction, nullptr},
    {"kv.commit", commit, nullptr},
    {"kv.get", single<KvCode::get>, nullptr},
    {"kv.put", single<KvCode::put>, nullptr},
    {"kv.insert", single<KvCode::insert>, nullptr},
    {"kv.delete", single<KvCode::erase>, nullptr},
    {"kv.add", single<KvCode::add>, nullptr},
    {"kv.append", single<KvCode::append>, nullptr},
    {"kv.compare", single<KvCode::compare>, nullptr},
    {"kv.scan", single<KvCode::scan>, nullptr},
    {"kv.snapshots", snapshots, nullptr},
};

}  // namespace

std::span<const ProcedureEntry> kv_procedures() { return kEntries; }

}  // namespace atolldb
