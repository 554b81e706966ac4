// The Master-tree oracle.
#include "tests/engine/mastertree/oracle_bodies.h"

namespace atolldb::test {
namespace {

TEST(MasterTreeOracle, OneWorkerAgreesWithAMap) {
  oracle_with_threads(KeyShape::integers, 1, 1, rounds(4000, 100'000));
}

TEST(MasterTreeOracle, OneWorkerAgreesWithAMapOverManyLayers) {
  oracle_with_threads(KeyShape::layered, 1, 1, rounds(4000, 100'000));
}

TEST(MasterTreeOracle, ThreadsOfTwoNodesAgreeWithTheirMaps) {
  oracle_with_threads(KeyShape::integers, 2, 2, rounds(3000, 100'000));
}

TEST(MasterTreeOracle, ThreadsOfTwoNodesAgreeWithTheirMapsOverManyLayers) {
  oracle_with_threads(KeyShape::layered, 2, 2, rounds(3000, 100'000));
}

TEST(MasterTreeOracle, ThreadsOfTwoNodesAgreeWithTheirMapsOverHashes) {
  oracle_with_threads(KeyShape::hashed, 2, 2, rounds(3000, 100'000));
}

TEST(MasterTreeOracle, ProcessesAgreeWithTheirMapsOverHashes) {
  oracle_with_processes(KeyShape::hashed, 3, rounds(3000, 100'000));
}

TEST(MasterTreeOracle, ProcessesThatMapAtDifferentAddressesAgreeWithTheirMaps) {
  oracle_with_processes(KeyShape::integers, 3, rounds(3000, 100'000));
}

TEST(MasterTreeOracle, ProcessesAgreeWithTheirMapsOverManyLayers) {
  oracle_with_processes(KeyShape::layered, 3, rounds(3000, 100'000));
}

}  // namespace
}  // namespace atolldb::test
