// The same with tiny pages and fan-outs: splits, twins, adoptions, layers and merges all the time.
#include "tests/engine/serializability/random_history_tests.h"
