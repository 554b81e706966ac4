// A library that the processes of a cluster load first, so that a test can delay their system
// calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {

/// While the object exists, new processes of this test load the library.
class PreloadedLibrary {
 public:
  /// Compiles the library from its source. `variable`, `value`: a variable of the environment,
  /// which the library reads.
  PreloadedLibrary(const CliRunner& runner, const std::string& source, const char* variable,
                   const std::string& value)
      : variable_(variable) {
    const std::string file = runner.folder() + "/preloaded.cpp";
    std::ofstream(file) << source;
    const std::string library = runner.folder() + "/preloaded.so";
    const Ran compiled =
        runner.run("/usr/bin/g++", {"-O1", "-fPIC", "-shared", file, "-o", library, "-ldl"});
    EXPECT_EQ(compiled.code, 0) << compiled.error;
    setenv(variable_, value.c_str(), 1);
    setenv("LD_PRELOAD", library.c_str(), 1);
  }
  ~PreloadedLibrary() {
    unsetenv("LD_PRELOAD");
    unsetenv(variable_);
  }
  PreloadedLibrary(const PreloadedLibrary&) = delete;
  PreloadedLibrary& operator=(const PreloadedLibrary&) = delete;

 private:
  const char* variable_;
};

}  // namespace atolldb::test
