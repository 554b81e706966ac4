// Returns the status of an operation from a transaction's body unless it is ok.
#pragma once

#include "shared/base/status.h"

#define BENCH_TRY(expression)                                       \
  do {                                                              \
    const ::atolldb::Status bench_status = (expression);            \
    if (bench_status != ::atolldb::Status::ok) return bench_status; \
  } while (false)
