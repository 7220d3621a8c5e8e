#include "ipc/peer.h"

#include "base/proc_stat.h"
#include "ipc/unix_socket.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <vector>

#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::ipc {
namespace {

using namespace std::chrono_literals;
using testing::TempDir;

bool ended(const Fd& pidfd) {
  pollfd poll_fd{pidfd.get(), POLLIN, 0};
  return ::poll(&poll_fd, 1, 0) == 1;
}

// A child that connects and waits to be killed.
class PeerTest : public ::testing::Test {
 protected:
  void start(const std::vector<gid_t>& groups = {}, uid_t uid = ::geteuid()) {
    listener_.emplace(
        *Listener::make(temp_.file("s"), {.type = SOCK_SEQPACKET, .mode = 0666, .group = {}}));
    ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
    child_ = ::fork();
    if (child_ == 0) {
      if (!groups.empty() && ::setgroups(groups.size(), groups.data()) != 0) ::_exit(1);
      if (uid != ::geteuid() && ::setresuid(uid, uid, uid) != 0) ::_exit(1);
      const auto fd = connect_unix(temp_.file("s"), SOCK_SEQPACKET, 10s);
      if (fd) ::pause();
      ::_exit(1);
    }
    pollfd waiting{listener_->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 10000), 1);
    connection_ = std::move(**listener_->accept());
  }
  void kill_child() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }
  void TearDown() override { kill_child(); }

  const TempDir temp_;
  std::optional<Listener> listener_;
  pid_t child_ = 0;
  Fd connection_;
};

TEST_F(PeerTest, PeerIsTheConnectingProcess) {
  start();
  const auto peer = read_peer(connection_.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->process.pid, child_);
  EXPECT_EQ(peer->process.start_ticks, read_proc_stat(child_)->start_ticks);
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_EQ(peer->gid, ::getegid());
}

TEST_F(PeerTest, BothWaysToThePidfdAgree) {
  start();
  const auto exact = read_peer_pidfd(connection_.get());
  if (exact || exact.error().code != Code::kUnavailable) {
    ASSERT_TRUE(exact) << exact.error().message;
    EXPECT_FALSE(ended(*exact));
  }
  const auto by_pid = open_peer_pidfd(child_, ::geteuid());
  ASSERT_TRUE(by_pid) << by_pid.error().message;
  EXPECT_FALSE(ended(*by_pid));
  const pid_t gone = child_;
  kill_child();
  EXPECT_TRUE(ended(*by_pid));
  EXPECT_EQ(open_peer_pidfd(gone, ::geteuid()).error().code, Code::kGone);
}

// Where the kernel has only the pid, a process of another user is not mistaken for the one that
// connected.
TEST_F(PeerTest, ReusedPidIsNotThePeer) {
  start();
  EXPECT_EQ(open_peer_pidfd(child_, ::geteuid() + 1).error().code, Code::kGone);
}

TEST_F(PeerTest, AProcessThatHasEndedIsNoPeer) {
  start();
  kill_child();
  EXPECT_EQ(read_peer(connection_.get()).error().code, Code::kGone);
}

TEST_F(PeerTest, HasItsSupplementaryGroupsManyToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to set groups";
  std::vector<gid_t> groups;
  for (gid_t group = 5000; group < 5100; ++group) groups.push_back(group);
  start(groups, 65534);
  const auto peer = read_peer(connection_.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->uid, 65534u);
  EXPECT_EQ(peer->groups.size(), groups.size());
  EXPECT_TRUE(peer->in_group(5099));
  EXPECT_TRUE(peer->in_group(::getegid()));
  EXPECT_FALSE(peer->in_group(6000));
}

}  // namespace
}  // namespace gpurota::ipc
