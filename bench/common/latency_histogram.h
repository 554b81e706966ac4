// A histogram of latencies in nanoseconds, filled by one thread and sent to the driver.
#pragma once

#include "shared/memory/histogram.h"

namespace atolldb::bench {

using LatencyHistogram = Histogram;

}  // namespace atolldb::bench
