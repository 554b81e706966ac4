// Accessors of results. None allocates.
#include "shared/base/check.h"
#include "shared/c_client/request.h"

namespace atolldb::c_client {
namespace {

atoll_bytes bytes_of(KvBytes bytes) {
  DCHECK(bytes.empty() || bytes.data() != nullptr);
  return atoll_make_bytes(bytes.data(), bytes.size());
}

/// Returns one result of a batch, or nothing if there is none.
const KvResultView* result_at(const atoll_result* result, size_t index) {
  if (result == nullptr || index >= result->outcome.results.size()) return nullptr;
  const KvResultView& view = result->outcome.results[index];
  DCHECK(view.status < Status::count_);
  DCHECK(view.rows.size() <= kMaxKvScanRows);
  return &view;
}

}  // namespace
}  // namespace atolldb::c_client

using namespace atolldb;
using namespace atolldb::c_client;

void atoll_result_free(atoll_result* result) { delete result; }

atoll_status atoll_result_status(const atoll_result* result) {
  return result == nullptr ? ATOLL_INVALID_ARGUMENT : result->outcome.status;
}

const char* atoll_result_message(const atoll_result* result) {
  return result == nullptr ? "" : result->outcome.message.c_str();
}

atoll_bytes atoll_result_value(const atoll_result* result) {
  if (result == nullptr) return {};
  if (!result->outcome.results.empty()) return bytes_of(result->outcome.results.front().value);
  // Only the reply of a procedure has an output without results.
  return result->outcome.status == ATOLL_OK ? bytes_of(result->outcome.reply.output)
                                            : atoll_bytes{};
}

uint64_t atoll_result_version(const atoll_result* result) {
  return atoll_result_version_at(result, 0);
}

uint64_t atoll_result_commit_epoch(const atoll_result* result) {
  return result == nullptr ? 0 : result->outcome.reply.commit_epoch;
}

uint64_t atoll_result_commit_version(const atoll_result* result) {
  return result == nullptr ? 0 : result->outcome.reply.commit_version;
}

uint64_t atoll_result_incarnation(const atoll_result* result) {
  return result == nullptr ? 0 : result->outcome.reply.incarnation;
}

int atoll_result_is_durable(const atoll_result* result) {
  if (result == nullptr || result->outcome.reply.status == Status::outcome_unknown) return 0;
  return result->outcome.reply.answered_at == AnswerAt::durable ? 1 : 0;
}

size_t atoll_result_count(const atoll_result* result) {
  if (result == nullptr) return 0;
  DCHECK(result->outcome.results.size() <= kMaxKvOperations);
  return result->outcome.results.size();
}

atoll_status atoll_result_status_at(const atoll_result* result, size_t index) {
  const KvResultView* view = result_at(result, index);
  return view == nullptr ? ATOLL_INVALID_ARGUMENT : status_of(view->status);
}

atoll_bytes atoll_result_value_at(const atoll_result* result, size_t index) {
  const KvResultView* view = result_at(result, index);
  return view == nullptr ? atoll_bytes{} : bytes_of(view->value);
}

uint64_t atoll_result_version_at(const atoll_result* result, size_t index) {
  const KvResultView* view = result_at(result, index);
  return view == nullptr ? 0 : view->version;
}

size_t atoll_result_rows_at(const atoll_result* result, size_t index, int* has_more) {
  const KvResultView* view = result_at(result, index);
  if (has_more != nullptr) *has_more = view != nullptr && view->has_more ? 1 : 0;
  return view == nullptr ? 0 : view->rows.size();
}

atoll_status atoll_result_row(const atoll_result* result, size_t index, size_t row,
                              atoll_bytes* key, atoll_bytes* value, uint64_t* version) {
  const KvResultView* view = result_at(result, index);
  if (view == nullptr) {
    return guarded([&] {
      return record_status(ATOLL_INVALID_ARGUMENT,
                           "result: has no operation " + std::to_string(index));
    });
  }
  if (row >= view->rows.size()) return record_status(ATOLL_END_OF_SCAN, "");
  const KvRowView& found = view->rows[row];
  DCHECK(found.key.size() <= kMaxKvKeyBytes && found.value.size() <= kMaxKvValueBytes);
  if (key != nullptr) *key = bytes_of(found.key);
  if (value != nullptr) *value = bytes_of(found.value);
  if (version != nullptr) *version = found.version;
  return ATOLL_OK;
}
