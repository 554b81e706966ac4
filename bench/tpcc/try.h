// Hands an engine call's answer on unless it is ok.
#pragma once

#include "shared/status.h"

#define TPCC_TRY(expression)                                      \
  do {                                                            \
    const ::atolldb::Status tpcc_status = (expression);           \
    if (tpcc_status != ::atolldb::Status::ok) return tpcc_status; \
  } while (false)
