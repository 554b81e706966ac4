// Builds libraries of procedures with one compile line, outside of the tree.
#pragma once

#include <string>
#include <vector>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {

/// Returns the path of the shared library `<name>.so`. If the source file does not compile, adds a
/// failure and returns an empty text. `options`: more options of the compiler.
inline std::string build_procedures(const CliRunner& runner, const std::string& source_file,
                                    const std::string& name,
                                    const std::vector<std::string>& options = {}) {
  const std::string library = runner.folder() + "/" + name + ".so";
  const std::string root = ATOLL_SOURCE_DIR;
  std::vector<std::string> words = {
      "-std=c++23", "-O2", "-march=x86-64-v3",   "-fPIC",     "-shared", "-I",
      root,         "-I",  root + "/engine/api", source_file, "-o",      library};
  words.insert(words.end(), options.begin(), options.end());
  const Ran compiled = runner.run("/usr/bin/g++", words);
  EXPECT_EQ(compiled.code, 0) << compiled.error;
  return compiled.code == 0 ? library : "";
}

inline std::string build_example_procedure(const CliRunner& runner) {
  return build_procedures(
      runner, std::string(ATOLL_SOURCE_DIR) + "/bench/example_procedure/transfer.cpp", "transfer");
}

}  // namespace atolldb::test
