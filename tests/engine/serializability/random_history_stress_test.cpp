// Random histories on the engine with tiny pages and fan-outs: constant splits, adoptions, new
// layers and merges.
#include "tests/engine/serializability/random_history_tests.h"
