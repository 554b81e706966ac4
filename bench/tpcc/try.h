// The short name that the transactions of TPC-C use.
#pragma once

#include "bench/job/try.h"

#define TPCC_TRY(expression) BENCH_TRY(expression)
