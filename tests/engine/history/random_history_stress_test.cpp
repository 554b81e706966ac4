#include "tests/engine/history/random_history_bodies.h"

namespace atolldb::test {
namespace {

TEST(RandomHistoriesOnTinyPages, OfThreadsAreSerializable) { random_histories(false, 2, 2, 40); }

TEST(RandomHistoriesOnTinyPages, OfThreadsOnFewKeysAreSerializable) {
  random_histories(false, 2, 2, 8);
}

TEST(RandomHistoriesOnTinyPages, OfThreadsOnManyKeysAreSerializable) {
  random_histories(false, 2, 2, 400);
}

TEST(RandomHistoriesOnTinyPages, OfProcessesAreSerializable) { random_histories(true, 2, 2, 40); }

TEST(RandomHistoriesOnTinyPages, OfFourProcessesAreSerializable) {
  random_histories(true, 4, 1, 16);
}

}  // namespace
}  // namespace atolldb::test
