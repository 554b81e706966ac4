// The same tests with tiny pages.
#include "tests/engine/serializability/delta_history_test.cpp"
