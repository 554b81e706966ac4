// Bodies of tests of rules that a coordinator and its nodes keep together. A body returns an error
// text, or an empty text if all is right. The procedures that they call are in cluster_rules.cpp.
#pragma once

#include <string>

namespace atolldb::test {

/// R28: a running node refuses every request that could commit, until the savepoint lists its
/// loggers.
std::string requests_are_refused_until_the_loggers_are_listed();
/// R36: the epoch of a snapshot is durable when its job begins.
std::string snapshots_are_of_durable_epochs();
/// R38: the files of a snapshot are kept while a running transaction may hold a pointer to them.
std::string files_are_kept_while_transactions_may_hold_their_pointers();
/// R55, R56: every request that opens files names those of the kept snapshots for the scrub.
std::string every_open_names_the_files_of_kept_snapshots();
/// R61: while a snapshot is published, a client that goes from node to node never reads an older
/// snapshot than before.
std::string newest_snapshots_only_advance();
/// R62: without a snapshot, transactions read the empty database, or a snapshot taken for them.
std::string the_first_snapshot_is_taken_when_it_is_asked_for();
/// R59: when a job is reported as done, its commits are durable.
std::string jobs_are_done_when_their_commits_are_durable();
/// R34, R60: a drop waits for transactions that may use the storage, and blocks nothing else.
std::string drops_wait_for_transactions_and_hold_nothing_up();

/// A message says that a snapshot was not published, and what transactions read instead.
std::string a_failed_publication_is_logged();
/// While a node does not answer a request for its damage, storages can be created.
std::string a_slow_list_of_damage_delays_no_ddl();

}  // namespace atolldb::test
