// Builds the example procedure the way its README says: one compile line, outside of the tree.
#pragma once

#include <string>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {

/// Path of the shared library; empty, and a failure, when it does not build.
inline std::string build_example_procedure(const CliRunner& runner) {
  const std::string source = ATOLL_SOURCE_DIR;
  const std::string library = runner.folder() + "/transfer.so";
  const Ran compiled = runner.run(
      "/usr/bin/g++", {"-std=c++23", "-O2", "-march=x86-64-v3", "-fPIC", "-shared", "-I", source,
                       source + "/bench/example_procedure/transfer.cpp", "-o", library});
  EXPECT_EQ(compiled.code, 0) << compiled.error;
  return compiled.code == 0 ? library : "";
}

}  // namespace atolldb::test
