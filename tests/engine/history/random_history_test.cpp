#include "tests/engine/history/random_history_bodies.h"

namespace atolldb::test {
namespace {

TEST(RandomHistories, OfThreadsAreSerializable) { random_histories(false, 2, 2, 40); }

TEST(RandomHistories, OfThreadsOnFewKeysAreSerializable) { random_histories(false, 2, 2, 8); }

TEST(RandomHistories, OfThreadsOnManyKeysAreSerializable) { random_histories(false, 2, 2, 400); }

TEST(RandomHistories, OfProcessesAreSerializable) { random_histories(true, 2, 2, 40); }

TEST(RandomHistories, OfFourProcessesAreSerializable) { random_histories(true, 4, 1, 16); }

}  // namespace
}  // namespace atolldb::test
