// Bodies of tests of jobs (R59). A body returns an error text, or an empty text if all is right.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "soc/node/job_table.h"

namespace atolldb::test {

/// A job table whose results become durable when the test says so.
class JobStage {
 public:
  JobTable& jobs() { return jobs_; }
  uint64_t start(const std::vector<uint32_t>& workers) {
    return (*jobs_.add("load", "", workers))->id;
  }
  std::future<Result<Json>> wait(
      uint64_t id, JobTable::Clock::time_point deadline = JobTable::Clock::time_point::max()) {
    auto told = std::make_shared<std::promise<Result<Json>>>();
    jobs_.wait(id, deadline, [told](Result<Json> answer) { told->set_value(std::move(answer)); });
    return told->get_future();
  }
  static bool is_told(const std::future<Result<Json>>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  /// The epoch that the table waits for. 0: none.
  uint64_t held() const { return held_; }
  void deliver(bool is_durable) { deliver_(is_durable); }

 private:
  uint64_t held_ = 0;
  std::function<void(bool)> deliver_;
  JobTable jobs_{[this](uint64_t epoch, std::function<void(bool)> deliver) {
    held_ = epoch;
    deliver_ = std::move(deliver);
  }};
};

/// All workers of a job have ended, but a crash could still undo their commits. The job is done
/// only when these commits are durable.
inline std::string a_job_is_done_when_what_it_committed_is_durable() {
  JobStage stage;
  const uint64_t id = stage.start({0, 1});
  auto first = stage.wait(id);
  stage.jobs().finish_worker(id, 0, "0", 12);
  if (stage.held() != 0) return "it waits for durability although a worker still runs";
  stage.jobs().finish_worker(id, 1, "1", 11);
  if (JobStage::is_told(first)) return "its end is told before its commits are durable";
  if (stage.held() != 12) return "it does not wait for its latest commit";
  auto second = stage.wait(id);
  if (JobStage::is_told(second)) return "a later question is answered early";
  auto hasty = stage.wait(id, JobTable::Clock::now());
  stage.jobs().expire(JobTable::Clock::now());
  if (!JobStage::is_told(hasty)) return "a question whose time is over is not answered";
  if (hasty.get()->at("done") != false) return "a job is done that is not durable";
  stage.deliver(true);
  for (auto* answer : {&first, &second}) {
    if (!JobStage::is_told(*answer)) return "its end is not told";
    const Json told = answer->get().value();
    if (told["done"] != true || told["outputs"].size() != 2) return "it answers " + told.dump();
    if (told.contains("status")) return "a durable job has the status " + told["status"].dump();
  }
  return "";
}

}  // namespace atolldb::test
