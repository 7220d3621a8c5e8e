// How much the daemon does for a call before it returns to its loop, counted in steps
// (base/steps.h). A user who calls at full speed delays others by at most these steps, on any
// machine.
#include "base/steps.h"

#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

void expect_bounded(const char* what) {
  const steps::Counts most = steps::most();
  constexpr std::array kNames = {"entries", "processes", "bytes"};
  for (std::size_t kind = 0; kind < steps::kKinds; ++kind) {
    EXPECT_LE(most[kind], steps::kMost[kind]) << kNames[kind] << ", " << what;
  }
  steps::forget_most();
}

// A process below `depth` others, each the child of the previous one. All end with this object.
class DeepTree {
 public:
  explicit DeepTree(int depth) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    group_ = ::fork();
    if (group_ == 0) {
      (void)::setpgid(0, 0);
      for (int i = 0; i < depth; ++i) {
        if (::fork() != 0) {
          for (;;) ::pause();
        }
      }
      const pid_t self = ::getpid();
      (void)!::write(ends[1], &self, sizeof self);
      for (;;) ::pause();
    }
    EXPECT_EQ(::read(ends[0], &last_, sizeof last_), static_cast<ssize_t>(sizeof last_));
    (void)::close(ends[0]);
    (void)::close(ends[1]);
  }
  ~DeepTree() {
    (void)::kill(-group_, SIGKILL);
    (void)::waitpid(group_, nullptr, 0);
  }
  DeepTree(const DeepTree&) = delete;
  DeepTree& operator=(const DeepTree&) = delete;
  pid_t last() const { return last_; }

 private:
  pid_t group_ = -1, last_ = -1;
};

TEST(Steps, AQuestionAboutADeepProcessIsAnsweredInPieces) {
  const DeepTree tree(200);
  RunningDaemon daemon;
  const auto lease = daemon.keep_slice(gib(8)).lease;
  WireTenant tenant(daemon.tenant_socket());
  ASSERT_EQ(tenant.hello(lease.lease_id.value), GPUROTA_OK);
  steps::forget_most();
  gpurota_msg_processes question{};
  question.header.type = GPUROTA_MSG_PROCESSES;
  question.header.seq = 77;
  question.count = GPUROTA_WIRE_PIDS;
  std::fill(std::begin(question.pid), std::end(question.pid), tree.last());
  std::vector<std::uint8_t> packet(sizeof question);
  const auto members = [&] {
    std::memcpy(packet.data(), &question, sizeof question);
    tenant.send_raw(packet);
    return tenant.take_members();
  };
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(members(), std::uint32_t{GPUROTA_WIRE_PIDS}) << "below the program with the lease";
  }
  EXPECT_GT(steps::most()[static_cast<std::size_t>(steps::Kind::kProcesses)], 5u);
  std::fill(std::begin(question.pid), std::end(question.pid), ::getppid());
  EXPECT_EQ(members(), 0u) << "a stranger's";
  expect_bounded("PROCESSES");
}

TEST(Steps, LongHistoryIsSentInPieces) {
  RunningDaemon daemon;
  {
    client::Connection connection = daemon.connect();
    for (int i = 0; i < 700; ++i) {
      const auto lease = daemon.acquire_slice(connection, gib(1)).lease.lease_id;
      ASSERT_TRUE(connection.call(proto::Release{{lease}}));
    }
  }
  steps::forget_most();
  const auto events = daemon.call(proto::Events{});
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(events->events.size(), 1000u);
  EXPECT_GT(events->left_out, 0u);
  EXPECT_GT(steps::most()[static_cast<std::size_t>(steps::Kind::kBytes)], 10000u);
  ASSERT_TRUE(daemon.call(proto::Doctor{}));
  ASSERT_TRUE(daemon.call(proto::History{}));
  expect_bounded("Events, Doctor, History");
}

}  // namespace
}  // namespace gpurota::testing
