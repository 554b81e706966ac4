// Computes the savepoint and the DDL records of a restored cluster (R66).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/log/ddl_log.h"
#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns the savepoint of a complete backup, or code corruption if the file is not such a
/// savepoint.
Result<Savepoint> savepoint_of_backup(FileSystem& file_system, const std::string& folder);

/// Returns the savepoint with which a start-up recovers exactly the state at the end of `epoch`. It
/// names one snapshot only: the newest that is not after `epoch`. No block after `epoch` counts:
/// the cut of each incarnation is at most `epoch`, and later incarnations are not listed. It keeps
/// the largest numbers of the backup, so that no epoch and no id is used again. The directory of
/// all logs is `data_dir`. REQUIRES: `backup` is the savepoint of a backup, and
/// `epoch` is not before its oldest snapshot.
Savepoint savepoint_at(const Savepoint& backup, uint64_t epoch, const std::string& data_dir);

/// The snapshot or checkpoint with which a start-up begins.
struct RestoreBase {
  uint64_t epoch = 0;           // of the snapshot; the one before the checkpoint's replay epoch
  std::set<uint32_t> storages;  // ids of its storages
};

/// Returns the DDL records that give the catalog at the end of `epoch`. A drop after `epoch` is
/// omitted. A creation after `epoch` stays, with a drop right after it. The id of that storage is
/// never given again, and a snapshot may name it already (R34, R52).
/// `base`: what the start-up begins with, or null. Its list of storages is made after its
/// epoch, so it may lack a storage that is dropped later. Such a drop stays: the storage was hidden
/// already, and must not exist without its content.
std::vector<DdlRecord> ddl_at(const std::vector<DdlRecord>& records, uint64_t epoch,
                              const RestoreBase* base);

}  // namespace atolldb
