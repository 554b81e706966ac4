// Bodies of tests of rules that a coordinator and its nodes keep together; empty, or what went
// wrong. Their procedures: cluster_rules.cpp.
#pragma once

#include <string>

namespace atolldb::test {

/// R28: a node that runs refuses what would commit until the savepoint lists the loggers.
std::string requests_are_refused_until_the_loggers_are_listed();
/// R36: the epoch of a snapshot is durable when its run begins.
std::string snapshots_are_of_durable_epochs();
/// R38: files of a snapshot stay while a transaction runs that may hold a pointer there.
std::string files_stay_while_transactions_may_hold_their_pointers();
/// R61: a client that goes from node to node while a snapshot is published never goes back.
std::string newest_snapshots_never_go_back();
/// R62: without a snapshot, transactions read the empty database or one that is taken for them.
std::string the_first_snapshot_is_taken_when_it_is_asked_for();
/// R59: when a job is told to be done, what it has committed is durable.
std::string jobs_are_done_when_their_commits_are_durable();
/// R34, R60: a drop waits for transactions that may use the storage, and holds nothing else up.
std::string drops_wait_for_transactions_and_hold_nothing_up();

}  // namespace atolldb::test
