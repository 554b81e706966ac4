#include "soc/node/job_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

Error no_such_job(uint64_t id) {
  return {ExitCode::failed,
          "job " + std::to_string(id) + ": unknown: it was never started, or is long finished"};
}

Json unfinished() { return {{"done", false}, {"outputs", Json::array()}}; }

}  // namespace

Json JobTable::answer_of(const Record& record) {
  Json answer = {{"done", true}, {"outputs", record.outputs}};
  if (record.status != Status::ok) answer["status"] = to_string(record.status);
  return answer;
}

Result<std::shared_ptr<Job>> JobTable::add(std::string name, std::string input,
                                           const std::vector<uint32_t>& workers) {
  CHECK(!workers.empty());
  const std::lock_guard guard(mutex_);
  if (is_closed_) {
    return make_error(
        ExitCode::not_running,
        "job " + name + ": the node stops and starts no more jobs: start the cluster again");
  }
  if (jobs_.size() >= kMaxJobs) {
    const auto finished = std::find_if(jobs_.begin(), jobs_.end(),
                                       [](const auto& entry) { return entry.second.is_done; });
    if (finished == jobs_.end()) {
      return make_error(ExitCode::resources, "job " + name + ": " + std::to_string(kMaxJobs) +
                                                 " jobs are running already: wait for them");
    }
    jobs_.erase(finished);
  }
  auto job = std::make_shared<Job>();
  job->id = next_id_++;
  job->name = std::move(name);
  job->input = std::move(input);
  Record& record = jobs_[job->id];
  record.job = job;
  record.running = workers.size();
  CHECK(jobs_.size() <= kMaxJobs);
  return job;
}

void JobTable::finish_worker(uint64_t id, uint32_t worker, Result<std::string> output,
                             uint64_t commit_epoch) {
  {
    const std::lock_guard guard(mutex_);
    const auto found = jobs_.find(id);
    CHECK(found != jobs_.end());  // a job with running workers stays in the table
    Record& record = found->second;
    CHECK(record.running > 0 && !record.is_done);
    if (output) {
      record.outputs.push_back({{"worker", worker}, {"ok", true}, {"output", *output}});
    } else {
      record.outputs.push_back({{"worker", worker},
                                {"ok", false},
                                {"code", static_cast<int>(output.error().code)},
                                {"message", output.error().message}});
    }
    record.commit_epoch = std::max(record.commit_epoch, commit_epoch);
    commit_epoch = record.commit_epoch;
    if (--record.running != 0) return;
    std::sort(record.outputs.begin(), record.outputs.end(), [](const Json& a, const Json& b) {
      return a["worker"].get<uint32_t>() < b["worker"].get<uint32_t>();
    });
  }
  if (fault::job_told_before_durable) return complete(id, true);
  hold_(commit_epoch, [this, id](bool is_durable) { complete(id, is_durable); });
}

void JobTable::complete(uint64_t id, bool is_durable) {
  PendingReplies<>::Replies replies;
  Json answer;
  {
    const std::lock_guard guard(mutex_);
    Record& record = jobs_.at(id);  // a job stays in the table until it is done
    CHECK(record.running == 0 && !record.is_done);
    record.is_done = true;
    if (!is_durable) {
      record.status = Status::outcome_unknown;
      for (Json& output : record.outputs) {
        output = {{"worker", output["worker"]},
                  {"ok", false},
                  {"code", static_cast<int>(ExitCode::failed)},
                  {"message", "job " + record.job->name +
                                  ": outcome_unknown: the cluster failed or ended before what the "
                                  "job committed was durable: read it again when the cluster "
                                  "runs"}};
      }
    }
    replies = record.waiting.take_all();
    answer = answer_of(record);
  }
  PendingReplies<>::answer(replies, answer);
}

void JobTable::wait(uint64_t id, Clock::time_point deadline, ControlReply reply) {
  Result<Json> answer = std::unexpected(no_such_job(id));
  {
    const std::lock_guard guard(mutex_);
    const auto found = jobs_.find(id);
    if (found != jobs_.end()) {
      Record& record = found->second;
      if (!record.is_done && may_wait_) {
        record.waiting.add(std::move(reply), deadline);
        return;
      }
      answer = record.is_done ? answer_of(record) : unfinished();
    }
  }
  reply(std::move(answer));
}

Result<void> JobTable::stop(uint64_t id) {
  const std::lock_guard guard(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::unexpected(no_such_job(id));
  found->second.job->stop.store(true, std::memory_order_relaxed);
  return {};
}

void JobTable::stop_all() {
  const std::lock_guard guard(mutex_);
  is_closed_ = true;
  for (auto& [id, record] : jobs_) record.job->stop.store(true, std::memory_order_relaxed);
}

std::optional<JobTable::Clock::time_point> JobTable::expire(Clock::time_point now) {
  PendingReplies<>::Replies due;
  std::optional<Clock::time_point> next;
  {
    const std::lock_guard guard(mutex_);
    for (auto& [id, record] : jobs_) {
      std::ranges::move(record.waiting.take_due(now), std::back_inserter(due));
      const auto deadline = record.waiting.next_deadline();
      if (deadline) next = std::min(next.value_or(*deadline), *deadline);
    }
  }
  PendingReplies<>::answer(due, unfinished());
  return next;
}

void JobTable::end_waits() {
  {
    const std::lock_guard guard(mutex_);
    may_wait_ = false;
  }
  // `wait` adds no reply any more, so no reply waits after this call.
  expire(Clock::time_point::max());
}

}  // namespace atolldb
