// Limits of the files of procedure libraries. tests/cluster/procedure_test.cpp has libraries that
// work.
#include "soc/procedure/library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace atolldb {
namespace {

class LibraryTest : public ::testing::Test {
 protected:
  LibraryTest() {
    std::printf("seed: none, nothing here is random\n");
    std::string pattern = "/tmp/atoll-library-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ + "/empty.so";
  }
  ~LibraryTest() override { std::filesystem::remove_all(folder_); }

  /// Loads the file, which must fail. Returns the message.
  std::string failure() const {
    const auto loaded = LoadedLibrary::load(file_);
    EXPECT_FALSE(loaded);
    return loaded ? "" : loaded.error().message;
  }

  std::string folder_;
  std::string file_;
};

TEST_F(LibraryTest, AFileAboveTheLimitIsRefusedUnread) {
  std::ofstream(file_) << "\177ELF";
  std::filesystem::resize_file(file_, LoadedLibrary::kMaxFileBytes + 1);  // a hole, without blocks
  EXPECT_NE(failure().find("/empty.so: has 1073741825 bytes, more than the limit of 1073741824"),
            std::string::npos);
  file_ = folder_;
  EXPECT_NE(failure().find("is not a regular file"), std::string::npos);
}

TEST_F(LibraryTest, AProcessLoadsABoundedNumberOfVersions) {
  const std::string compile = "c++ -shared -fPIC -nostdlib -x c++ /dev/null -o " + file_;
  ASSERT_EQ(std::system(compile.c_str()), 0);
  for (uint32_t load = 0; load < LoadedLibrary::kMaxLoads; ++load) {
    const std::string why = failure();
    ASSERT_NE(why.find("/empty.so: it has no symbol atoll_library: use ATOLL_LIBRARY once in it"),
              std::string::npos)
        << load << ": " << why;
  }
  EXPECT_NE(failure().find("this process has loaded 1000 versions of libraries, which is the "
                           "limit: restart the cluster"),
            std::string::npos);
}

}  // namespace
}  // namespace atolldb
