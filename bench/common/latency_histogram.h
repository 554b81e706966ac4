// Latencies in nanoseconds of one thread, which goes with its results to the driver.
#pragma once

#include "shared/metrics/histogram.h"

namespace atolldb::bench {

using LatencyHistogram = Histogram;

}  // namespace atolldb::bench
