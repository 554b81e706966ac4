// Texts of file errors, and the extraction of file name and errno from them.
#include "shared/file/file_errors.h"

#include <gtest/gtest.h>
#include <libintl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "shared/base/check.h"
#include "shared/base/path_errors.h"

namespace atolldb {
namespace {

constexpr const char* kPath = "/no such/dir: x/log 3.log";

void expect_found(const Error& error, const std::string& file, int error_number) {
  // The message as it arrives after passing through other processes.
  const std::string message = "cluster \"c\": node1 (pid 7): " + error.message +
                              ": the cluster has stopped: see /var/log/node1.log";
  const auto failure = file_failure_in(message);
  ASSERT_TRUE(failure) << message;
  EXPECT_EQ(failure->file, file) << message;
  EXPECT_EQ(failure->error_number, error_number) << message;
}

TEST(FileFailure, IsFoundInTheTextOfEachOperation) {
  const std::string path = "/no such/dir/log 3.log";
  for (const int number : {EIO, ENOSPC, EROFS, EACCES, EDQUOT, ENOENT, EFBIG}) {
    for (const std::string& what :
         {write_text(path, 4096, 8192), read_text(path, 0, 4096), "sync of " + path,
          "sync of " + path + " (0 to 4096)", "opening " + path, "sync of directory " + path,
          "creation of " + path + " with 4096 bytes",
          "creation of " + path + " with 4096 bytes (and it could not be removed again)",
          "growth of " + path + " from 0 to 8192 bytes", "renaming of /a to " + path}) {
      expect_found(io_error(what, number).error(), path, number);
    }
    expect_found(path_error(path, "cannot be made", number, "change it"), path, number);
  }
}

TEST(FileFailure, OfAPathWithAColonIsFoundFromItsLastPart) {
  const auto failure =
      file_failure_in(io_error("sync of " + std::string(kPath), EIO).error().message);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->error_number, EIO);
}

/// During the lifetime of this object, strerror(EIO) is another text, as in a locale with another
/// language.
class ForeignLocale {
 public:
  static constexpr const char* kText = "Ein-/Ausgabefehler";

  ForeignLocale() {
    CHECK(mkdtemp(folder_.data()) != nullptr);
    std::filesystem::create_directories(folder_ + "/xx/LC_MESSAGES");
    // Makes a catalog with one text. The header has the magic number, the revision, the number of
    // texts, and the offsets of the tables of originals and of translations. The last fields are
    // the size and offset of a hash table, which is absent. The tables have the length and offset
    // of each text.
    const std::string original = "Input/output error";
    const std::string translation = kText;
    const auto length = [](const std::string& text) { return static_cast<uint32_t>(text.size()); };
    const std::array<uint32_t, 11> words = {0x950412de,
                                            0,
                                            1,
                                            28,
                                            36,
                                            0,
                                            44,
                                            length(original),
                                            44,
                                            length(translation),
                                            44 + length(original) + 1};
    std::ofstream catalog(folder_ + "/xx/LC_MESSAGES/libc.mo", std::ios::binary);
    catalog.write(reinterpret_cast<const char*>(words.data()), sizeof words);
    catalog.write(original.c_str(), length(original) + 1);
    catalog.write(translation.c_str(), length(translation) + 1);
    catalog.close();
    setenv("LANGUAGE", "xx", 1);
    setlocale(LC_ALL, "C.UTF-8");
    bindtextdomain("libc", folder_.c_str());
  }
  ~ForeignLocale() {
    setlocale(LC_ALL, "C");
    unsetenv("LANGUAGE");
    std::filesystem::remove_all(folder_);
  }
  ForeignLocale(const ForeignLocale&) = delete;
  ForeignLocale& operator=(const ForeignLocale&) = delete;

 private:
  std::string folder_ = "/tmp/atoll-locale-XXXXXX";
};

TEST(FileFailure, IsFoundByAProcessWithAnotherLocale) {
  const std::string path = "/no such/dir/log 3.log";
  const Error before = io_error("sync of " + path, EIO).error();
  const ForeignLocale locale;
  if (std::string(std::strerror(EIO)) != ForeignLocale::kText) {
    GTEST_SKIP() << "the C library takes no text of this locale";
  }
  expect_found(before, path, EIO);
  EXPECT_EQ(io_error("sync of " + path, EIO).error().message, before.message);
  expect_found(path_error(path, "cannot be made", EIO, "change it"), path, EIO);
}

TEST(FileFailure, IsNotFoundInOtherTexts) {
  for (const char* text :
       {"", "cluster \"c\": node0 (pid 3) was killed by SIGKILL: see /x/node0.log",
        "cluster \"c\": node0 hung: no heartbeat for 500 ms: see /x/node0.log",
        "socketpair: Too many open files: raise `ulimit -n`"}) {
    EXPECT_FALSE(file_failure_in(text)) << text;
  }
}

TEST(PathError, OfAFullFileSystemNamesItAndHasItsCode) {
  const Error error = path_error("/tmp/none/x", "cannot be made", ENOSPC, "change the key");
  EXPECT_EQ(error.code, ExitCode::disk_full);
  EXPECT_NE(error.message.find("the file system of /tmp/none/x (mounted on /"), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("MiB free: free space there"), std::string::npos) << error.message;
  EXPECT_EQ(io_error("creation of /tmp/none/x with 1 bytes", EDQUOT).error().code,
            ExitCode::disk_full);
}

TEST(PathError, OfARefusalNamesTheFolderItsOwnerAndTheUser) {
  std::string folder = "/tmp/atoll-refusal-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  const std::string path = folder + "/below/file";
  constexpr uid_t kNobody = 65'534;
  const bool is_root = geteuid() == 0;
  if (!is_root) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << "only root can become another user";
  }
  ASSERT_EQ(seteuid(kNobody), 0);
  const Error error = path_error(path, "cannot be opened", EACCES, "change the key");
  const std::string of_file = io_error("opening " + path, EACCES).error().message;
  ASSERT_EQ(seteuid(0), 0);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(error.code, ExitCode::failed);
  const std::string who =
      folder + " belongs to " + user_text(0) + " with mode 0700, and this is " + user_text(kNobody);
  EXPECT_NE(error.message.find(who), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("Permission denied"), std::string::npos) << error.message;
  EXPECT_NE(of_file.find(who), std::string::npos) << of_file;
}

}  // namespace
}  // namespace atolldb
