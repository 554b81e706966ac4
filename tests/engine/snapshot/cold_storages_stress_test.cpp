// The tests of cold_storages_test.cpp with tiny pages: many levels, many splits.
#include "tests/engine/snapshot/cold_storages_test.cpp"
