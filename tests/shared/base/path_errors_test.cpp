// Checks of folders, files and sockets that belong to other users.
#include "shared/base/path_errors.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "shared/base/process_id.h"
#include "shared/message/control_client.h"
#include "shared/session/session_socket.h"
#include "tests/cluster/cluster_folder.h"

namespace atolldb::test {
namespace {

constexpr uid_t kNobody = 65534;

TEST(PrivatePath, TrustsThisUserAndRootAlone) {
  EXPECT_TRUE(check_peer_user(geteuid(), "socket"));
  EXPECT_TRUE(check_peer_user(0, "socket"));
  const auto refused = check_peer_user(geteuid() + 1, "socket /x");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("socket /x: ")) << refused.error().message;
  EXPECT_NE(refused.error().message.find(std::to_string(geteuid() + 1)), std::string::npos);
  auto pair = session_socket_pair();
  ASSERT_TRUE(pair);
  EXPECT_TRUE(check_peer(pair->first.get(), "socket"));
  EXPECT_FALSE(check_peer(-1, "socket"));
}

TEST(PrivatePath, LooksAtEveryFolderAbove) {
  TestFolder folder;
  const std::string deep = folder.path() + "/x/y/z";
  std::filesystem::create_directories(folder.path() + "/x");
  EXPECT_TRUE(check_parents(deep, "key")) << "y does not exist yet";
  ASSERT_EQ(chmod((folder.path() + "/x").c_str(), 0777), 0);
  const auto refused = check_parents(deep, "key");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with(folder.path() + "/x: "))
      << refused.error().message;
}

/// A socket on which a process of another user listens. `type`: its type, as socket() takes it.
class ForeignSocket {
 public:
  ForeignSocket(const std::string& path, int type) {
    UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      const bool listens =
          setresuid(kNobody, kNobody, kNobody) == 0 &&
          bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
          listen(fd.get(), 5) == 0;
      if (!listens || write(ready[1], "r", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    listens_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
  }
  ~ForeignSocket() {
    if (pid_ <= 0) return;  // kill(0) would end the test's own process group
    kill(pid_, SIGKILL);
    reap(pid_);
  }
  ForeignSocket(const ForeignSocket&) = delete;
  ForeignSocket& operator=(const ForeignSocket&) = delete;
  bool listens() const { return listens_; }

 private:
  pid_t pid_ = 0;
  bool listens_ = false;
};

TEST(PrivatePath, ClientsTalkToNoProcessOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "this test listens as another user: it needs root";
  TestFolder folder;
  const std::string open_folder = folder.path() + "/open";
  std::filesystem::create_directories(open_folder);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(open_folder.c_str(), 01777), 0);
  const ForeignSocket session(open_folder + "/session", SOCK_SEQPACKET);
  const ForeignSocket control(open_folder + "/control", SOCK_STREAM);
  ASSERT_TRUE(session.listens() && control.listens());
  const auto connected = connect_to_sessions(open_folder + "/session");
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, ExitCode::failed);
  EXPECT_NE(connected.error().message.find("user 65534"), std::string::npos)
      << connected.error().message;
  const auto called = ControlClient("ipc://" + open_folder + "/control")
                          .call(ControlOperation::status, Json::object(), std::chrono::seconds(1));
  ASSERT_FALSE(called);
  EXPECT_NE(called.error().message.find("belongs to user 65534"), std::string::npos)
      << called.error().message;
  // Root may administer the cluster of a user that has a private folder.
  ASSERT_EQ(chmod(open_folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(open_folder.c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(check_socket_file(open_folder + "/control", "key"));
  EXPECT_FALSE(check_owned(open_folder + "/control", "key"));
}

}  // namespace
}  // namespace atolldb::test
