// `atoll procedure call`: runs a procedure through a session, with inputs and outputs of any length
// that the cluster accepts.
#pragma once

#include <cstdint>
#include <string>

#include "ops/cli/cluster_finder.h"
#include "ops/cli/kv_options.h"
#include "shared/base/error.h"

namespace atolldb::cli {

struct ProcedureOptions : NodeChoice {
  std::string name;
  std::string input;
  std::string input_file;   // "-": standard input; empty: `input`
  std::string output_file;  // empty or "-": standard output
  std::string isolation;    // empty: the default of the procedure
  uint32_t snapshot = 0;
  std::string library;  // of `procedure reload`; empty: all of the config
  bool json = false;
};

/// Returns "procedure "NAME"" for errors.
std::string procedure_text(const std::string& name);

/// Calls the procedure and prints its output, or writes it to the file. Errors: usage for an input
/// past the limit of the cluster; recovering; coordinator_unreachable if the outcome is unknown;
/// disk_full or failed if the output cannot be written; else failed.
Result<void> call_procedure(const ClusterChoice& choice, const ProcedureOptions& options);

}  // namespace atolldb::cli
