// Random transactions on threads and processes, checked for Adya's anomalies.
#include "tests/engine/serializability/random_history_tests.h"
