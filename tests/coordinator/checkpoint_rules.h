// Bodies of tests of checkpoints and their recovery, with and without a mutant. Each returns an
// empty text, or what is wrong.
#pragma once

#include <string>

#include "tests/coordinator/staged_cluster.h"

namespace atolldb::test {

/// A cluster that takes checkpoints on request only.
Config checkpoint_config(uint32_t nodes);

/// R96. The cluster restarts with a log that has no checkpoint.
std::string the_settled_epoch_is_held_until_all_nodes_have_replayed();

/// R100. Node 1 says later than node 0 that it has read its files.
std::string nodes_exchange_when_all_have_read_their_files();

/// R100. If nodes divide the files differently, a file may have no reader.
std::string different_divisions_of_the_files_are_refused();

/// R97. Needs the sync points of mutant builds.
std::string a_storage_that_is_created_during_a_checkpoint_loses_nothing();

/// R102. A transaction delays the drop of a storage while a checkpoint is requested.
std::string checkpoints_wait_for_drops_that_are_not_logged();

}  // namespace atolldb::test
