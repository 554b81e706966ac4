// Job "ycsb.survey": measures the memory of the records and of the pools.
#include "bench/job/survey.h"
#include "bench/ycsb/table.h"
#include "shared/base/try.h"

namespace atolldb::ycsb {

namespace {

Result<std::string> survey(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  const auto specs = storage_specs(input, context.node_count());
  // Measures only the storage of the records. The control storage counts as spare, because only a
  // few of its pages exist.
  return bench::survey_storages(context, "ycsb", std::span(specs).first(1),
                                "ycsb_control_and_spare");
}

ATOLL_REGISTER_JOB(kSurvey, kSurveyJob, survey);

}  // namespace

}  // namespace atolldb::ycsb
