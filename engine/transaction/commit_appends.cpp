// The commit protocol's steps for appends to sequential storages (R17).
#include "engine/transaction/commit.h"

namespace atolldb {

Status CommitProtocol::prepare_appends() { return Status::ok; }
void CommitProtocol::begin_appends() {}
void CommitProtocol::apply_appends() {}
void CommitProtocol::cancel_appends() {}
Status CommitProtocol::verify_scans() { return Status::ok; }

}  // namespace atolldb
