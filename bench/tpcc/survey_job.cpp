// Job "tpcc.survey": measures the memory of each storage and of the pools.
#include "bench/job/survey.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/tables.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {

namespace {

Result<std::string> survey(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  return bench::survey_storages(context, "tpcc", storage_specs(input.warehouses, input.scale),
                                "tpcc_history_and_spare");
}

ATOLL_REGISTER_JOB(kSurvey, kSurveyJob, survey);

}  // namespace

}  // namespace atolldb::tpcc
