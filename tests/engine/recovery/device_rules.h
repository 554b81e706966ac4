// Bodies for rows of kRules in tests/engine/rules_mutant_test.cpp: what a start-up may rely on
// after a failed sync (R53). A body returns an error text, or an empty text if all is right.
#pragma once

#include <string>

#include "tests/engine/log/written_log.h"
#include "tests/support/fault_injector.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

/// A sync of the log fails, and the cluster ends. The device has refused some blocks, but the page
/// cache keeps them and marks them clean. The page cache drops these blocks after the next start-up
/// has determined its cut.
inline std::string a_start_reads_what_the_device_has() {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    PowerCutFileSystem disk;
    FaultInjector files(disk);
    files.on_failed_sync = [&](const std::string& path) { disk.fail_sync(path, seed); };
    auto start = examine(disk, "/data");
    CHECK(start && store_cut(disk, "/data", *start));
    create_storages(disk, start->savepoint.cluster_uuid);
    LogWriter writer = make_writer(files, kFirst, start->incarnation, start->start_epoch, 32,
                                   start->savepoint.cluster_uuid);
    CHECK(begin_incarnation(disk, "/data", *start, {kFirst}).has_value());
    std::mt19937_64 random(seed);
    write_epoch(writer, 1, 2, 0, random);
    write_epoch(writer, 2, 2, 1, random);
    files.fail(IoCall::sync, files.calls(IoCall::sync) + 1, Fault::io_error);
    if (writer.close_epoch(3, 2)) return "the sync did not fail";

    auto next = examine(disk, "/data");
    if (!next) return next.error().message;
    const uint64_t cut = next->last.at(0).cut_epoch;
    if (cut < 2) return "an epoch that was durable is cut off";
    if (!store_cut(disk, "/data", *next)) return "the cut is not stored";
    disk.evict();
    auto scan = scan_incarnation(disk, next->savepoint, next->savepoint.incarnations.at(0));
    if (!scan) return scan.error().message;
    if (scan->corruption) return "the cut counts what the device never had";
  }
  return "";
}

}  // namespace atolldb::test
