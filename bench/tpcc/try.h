// Short name of BENCH_TRY for the transactions of TPC-C.
#pragma once

#include "bench/job/try.h"

#define TPCC_TRY(expression) BENCH_TRY(expression)
