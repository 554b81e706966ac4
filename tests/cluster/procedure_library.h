// Builds libraries of procedures the way the example's README says: one compile line, outside of
// the tree.
#pragma once

#include <string>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {

/// Returns the path of the shared library `<name>.so`. If the source file does not compile, adds a
/// failure and returns an empty text.
inline std::string build_procedures(const CliRunner& runner, const std::string& source_file,
                                    const std::string& name) {
  const std::string library = runner.folder() + "/" + name + ".so";
  const Ran compiled =
      runner.run("/usr/bin/g++", {"-std=c++23", "-O2", "-march=x86-64-v3", "-fPIC", "-shared", "-I",
                                  std::string(ATOLL_SOURCE_DIR), source_file, "-o", library});
  EXPECT_EQ(compiled.code, 0) << compiled.error;
  return compiled.code == 0 ? library : "";
}

inline std::string build_example_procedure(const CliRunner& runner) {
  return build_procedures(
      runner, std::string(ATOLL_SOURCE_DIR) + "/bench/example_procedure/transfer.cpp", "transfer");
}

}  // namespace atolldb::test
