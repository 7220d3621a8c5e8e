// Waiting, reservations and restarts, with real sockets and processes.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// A client that waits in the queue, or whose wait is over.
class WaitingClient {
 public:
  WaitingClient(const RunningDaemon& daemon, proto::Enqueue request)
      : request_(std::move(request)), connection_(daemon.connect()) {
    EXPECT_TRUE(connection_.start_stream(request_));
  }
  // Connects again after a restart of the daemon.
  void come_back(const RunningDaemon& daemon) {
    connection_ = daemon.connect();
    EXPECT_TRUE(connection_.start_stream(request_));
  }
  // The next answer of the daemon; aborts the test after some seconds.
  proto::Enqueue::Reply next() {
    for (int i = 0; i < 500; ++i) {
      auto answer = connection_.next_answer<proto::Enqueue>();
      EXPECT_TRUE(answer) << answer.error().message;
      if (!answer) return {};
      if (*answer) return (*answer)->reply;
      pollfd polled{connection_.fd(), POLLIN, 0};
      (void)::poll(&polled, 1, 20);
    }
    ADD_FAILURE() << "the daemon says nothing";
    return {};
  }
  proto::Lease lease() {
    for (int i = 0; i < 50; ++i) {
      auto reply = next();
      if (reply.lease) return *reply.lease;
      if (!reply.request) break;
    }
    ADD_FAILURE() << "it gets no lease";
    return {};
  }
  client::Connection& connection() { return connection_; }

 private:
  proto::Enqueue request_;
  client::Connection connection_;
};

proto::Enqueue whole(const std::string& ticket) {
  proto::Enqueue call;
  call.ticket = ticket;
  return call;
}

proto::Enqueue reservation(const std::string& ticket, std::int64_t seconds) {
  proto::Enqueue call = whole(ticket);
  call.request.kind = "reservation";
  call.request.seconds = seconds;
  return call;
}

bool is_running(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

std::size_t waiting(const RunningDaemon& daemon) {
  const auto reply = daemon.call(proto::ListRequests{});
  return reply ? reply->requests.size() : 99;
}

// A daemon with one GPU, and a client that may hold a reservation of it.
class QueueTest : public ::testing::Test {
 protected:
  // Reserves the GPU; the reservation outlives the connection.
  LeaseId reserve(std::int64_t seconds = 600) {
    holder_.emplace(daemon, reservation("holder", seconds));
    lease = holder_->lease();
    return lease.lease_id;
  }
  void release(LeaseId id) {
    proto::Release release;
    release.lease_id = id;
    ASSERT_TRUE(daemon.call(release));
  }
  void end_in(std::int64_t seconds) {
    proto::Update update;
    update.lease_id = lease.lease_id;
    update.seconds = seconds;
    ASSERT_TRUE(daemon.call(update));
  }
  void restart() {
    daemon.stop();
    daemon.start();
  }
  proto::Status::Reply status() { return *daemon.call(proto::Status{}); }
  // Whether the only lease has expired and is shown as expired.
  bool only_an_expired_lease() {
    const auto now = status();
    return now.leases.size() == 1 && now.leases[0].state == proto::LeaseState::kExpired;
  }

  RunningDaemon daemon;
  proto::Lease lease;

 private:
  std::optional<WaitingClient> holder_;
};

class ReservationTest : public QueueTest {
 protected:
  // A program of this user, started outside gpurota, holds 4 GiB of the GPU.
  void use(const Child& program) {
    daemon.probe.set_process(status().gpus[0].uuid, program.pid(), gib(4));
    ASSERT_TRUE(eventually([&] { return status().gpus[0].used_bytes >= gib(4); }));
  }
};

TEST_F(QueueTest, RequestsThatWaitAreServedInTurn) {
  const LeaseId taken = reserve();
  WaitingClient second(daemon, whole("b")), third(daemon, whole("c"));
  const auto told = second.next();
  ASSERT_TRUE(told.request);
  EXPECT_EQ(told.request->position, 1);
  ASSERT_TRUE(told.request->wait_reason);
  EXPECT_EQ(told.request->wait_reason->code, proto::ReasonCode::kLeasedUntil);
  EXPECT_THAT(told.request->wait_reason->text, HasSubstr("reservation (L1) ends at {time}"));
  EXPECT_TRUE(told.request->wait_reason->time);
  // The text for older programs already includes the time.
  EXPECT_THAT(told.request->reason, HasSubstr("reservation (L1) ends at "));
  EXPECT_THAT(told.request->reason, Not(HasSubstr("{time}")));
  EXPECT_EQ(third.next().request->position, 2);
  release(taken);
  EXPECT_NE(second.lease().lease_id, taken);
  // The reason for waiting may change before the place does.
  int position = 2;
  for (int told_again = 0; position == 2 && told_again < 5; ++told_again) {
    const auto news = third.next();
    ASSERT_TRUE(news.request);
    position = static_cast<int>(news.request->position);
  }
  EXPECT_EQ(position, 1) << "it moves up";
}

TEST_F(QueueTest, NonblockingRequestDoesNotOvertakeTheQueue) {
  daemon.stop();
  daemon.probe.add_gpu(gib(24));
  daemon.start();
  reserve();
  proto::Enqueue both = whole("b");
  both.request.gpus = 2;
  WaitingClient waits(daemon, both);
  ASSERT_TRUE(waits.next().request);
  const auto refused = daemon.call(proto::Acquire{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNoGpu);
  EXPECT_THAT(refused.error().message, HasSubstr("GPU 1 is free until "));
  EXPECT_THAT(refused.error().message, HasSubstr(", then R1 of "));
  EXPECT_THAT(refused.error().message, HasSubstr(", which goes first, starts there"));
  EXPECT_THAT(refused.error().message, Not(HasSubstr("{time}")));
  const auto status = daemon.call(proto::Status{});
  EXPECT_EQ(status->gpus[1].held_for, RequestId{1});
}

TEST_F(QueueTest, AClosedConnectionLeavesTheQueueAtOnce) {
  reserve();
  {
    WaitingClient gone(daemon, whole("b"));
    ASSERT_TRUE(gone.next().request);
    EXPECT_EQ(waiting(daemon), 1u);
  }
  EXPECT_TRUE(eventually([&] { return waiting(daemon) == 0; }));
  EXPECT_TRUE(daemon.store.requests().empty());
}

TEST_F(QueueTest, ImpossibleRequestIsRefusedAtOnce) {
  proto::Enqueue call = whole("a");
  call.request.gpus = 2;
  client::Connection connection = daemon.connect();
  const auto refused = connection.call(call);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_EQ(waiting(daemon), 0u);
}

TEST_F(QueueTest, CancelledRequestIsNotified) {
  reserve();
  WaitingClient waits(daemon, whole("b"));
  const RequestId id = waits.next().request->request_id;
  ASSERT_TRUE(daemon.call(proto::Cancel{id}));
  EXPECT_TRUE(eventually([&] {
    const auto answer = waits.connection().next_answer<proto::Enqueue>();
    return !answer && answer.error().message.find("cancelled") != std::string::npos;
  }));
}

TEST_F(QueueTest, PlacesSurviveARestartAndNobodyOvertakes) {
  const LeaseId taken = reserve();
  WaitingClient second(daemon, whole("b")), third(daemon, whole("c"));
  const RequestId place = second.next().request->request_id;
  third.next();
  restart();
  EXPECT_EQ(waiting(daemon), 2u);
  EXPECT_FALSE(daemon.call(proto::Acquire{}));
  third.come_back(daemon);
  second.come_back(daemon);
  const auto told = second.next();
  ASSERT_TRUE(told.request);
  EXPECT_EQ(told.request->request_id, place);
  EXPECT_EQ(told.request->position, 1);
  release(taken);
  second.lease();
}

TEST_F(QueueTest, ClientServedWhileDisconnectedGetsThatLeaseOnly) {
  reserve();
  WaitingClient waits(daemon, whole("b"));
  ASSERT_TRUE(waits.next().request);
  daemon.stop();
  // The reservation has ended while the daemon was stopped.
  auto stored = daemon.store.leases().begin()->second;
  stored.ends = WallTime(1s);
  ASSERT_TRUE(daemon.store.save_lease(stored));
  daemon.start();
  ASSERT_TRUE(eventually([&] {
    const auto status = daemon.call(proto::Status{});
    return status->leases.size() == 1 && status->leases[0].kind == proto::LeaseKind::kRun;
  }));
  const LeaseId made = status().leases[0].lease_id;
  waits.come_back(daemon);
  EXPECT_EQ(waits.lease().lease_id, made);
  EXPECT_EQ(status().leases.size(), 1u);
}

// After a reboot pids start again, so another process may have the pid of the client.
TEST_F(QueueTest, ARequestFromBeforeARebootHasNoPlaceAfterIt) {
  reserve();
  WaitingClient waits(daemon, whole("b")), stays(daemon, whole("c"));
  ASSERT_TRUE(waits.next().request);
  const RequestId place = stays.next().request->request_id;
  daemon.stop();
  auto stored = daemon.store.requests().begin()->second;
  stored.boot_id = "another";
  ASSERT_TRUE(daemon.store.save_request(stored));
  daemon.start();
  const auto left = daemon.call(proto::ListRequests{});
  ASSERT_EQ(left->requests.size(), 1u);
  EXPECT_EQ(left->requests[0].request_id, place);
  daemon.stop();
  EXPECT_EQ(daemon.store.requests().size(), 1u) << "nor does the daemon after next take it up";
}

TEST_F(QueueTest, ProcessWithAReusedPidDoesNotGetThePlace) {
  reserve();
  WaitingClient waits(daemon, whole("b"));
  ASSERT_TRUE(waits.next().request);
  daemon.stop();
  auto stored = daemon.store.requests().begin()->second;
  ++stored.holder.start_ticks;
  ASSERT_TRUE(daemon.store.save_request(stored));
  daemon.start();
  EXPECT_EQ(waiting(daemon), 0u);
  daemon.stop();
  EXPECT_TRUE(daemon.store.requests().empty());
}

TEST_F(QueueTest, DrainedGpuIsUnavailableWithItsReason) {
  ASSERT_TRUE(daemon.call(proto::Drain{{"0"}, "new fan"}));
  EXPECT_EQ(status().gpus[0].state, proto::GpuState::kDraining);
  WaitingClient waits(daemon, whole("a"));
  EXPECT_EQ(waits.next().request->reason, "GPU 0 is draining: new fan");
  restart();
  EXPECT_EQ(status().gpus[0].state, proto::GpuState::kDraining);
  waits.come_back(daemon);
  ASSERT_TRUE(daemon.call(proto::Undrain{{"0"}}));
  waits.lease();
}

TEST_F(ReservationTest, AReservationOutlivesItsConnectionAndADaemonAndEndsAtItsTime) {
  {
    WaitingClient client(daemon, reservation("a", 600));
    client.lease();
  }
  restart();
  ASSERT_EQ(status().leases.size(), 1u);
  const LeaseId id = status().leases[0].lease_id;
  proto::Update update;
  update.lease_id = id;
  update.seconds = 1;
  ASSERT_TRUE(daemon.call(update));
  EXPECT_TRUE(eventually([&] { return status().leases.empty(); }));
}

TEST_F(ReservationTest, CoversOtherProcessesOfItsUserAndShowsExpiryUntilTheyEnd) {
  reserve();
  Child program({"sleep", "600"});
  use(program);
  EXPECT_EQ(status().gpus[0].state, proto::GpuState::kInUse) << "it is no use without a lease";
  end_in(1);
  ASSERT_TRUE(eventually([&] { return only_an_expired_lease(); }));
  EXPECT_TRUE(is_running(program.pid())) << "nobody waits for the GPU";
}

TEST_F(ReservationTest, ExpiredReservationYieldsToWaitingRequests) {
  reserve(1);
  Child program({"sleep", "600"});
  use(program);
  ASSERT_TRUE(eventually([&] { return only_an_expired_lease(); }));
  WaitingClient next(daemon, whole("b"));
  ASSERT_TRUE(program.ended());
  daemon.probe.remove_process(program.pid());
  next.lease();
}

TEST_F(ReservationTest, ReleaseDoesNotEndCoveredProcesses) {
  reserve();
  Child program({"sleep", "600"});
  use(program);
  proto::Release release;
  release.reservations = true;
  ASSERT_TRUE(daemon.call(release));
  ASSERT_TRUE(eventually([&] {
    const auto status = daemon.call(proto::Status{});
    return status->leases.empty() && status->gpus[0].state == proto::GpuState::kUnreservedUse;
  }));
  EXPECT_TRUE(is_running(program.pid()));
}

// The reservation is released between two samples, so the daemon must use what the last sample
// showed.
TEST(GivenBack, ReleasedGpuThatIsStillUsedIsGivenToNobody) {
  config::Config config = RunningDaemon::quick();
  config.watch_period = config.watch.idle_period = std::chrono::minutes(5);
  RunningDaemon daemon(config);
  proto::Acquire call;
  call.request.kind = "reservation";
  call.request.seconds = 600;
  ASSERT_TRUE(daemon.call(call));
  Child program({"sleep", "600"});
  daemon.probe.set_process(daemon.call(proto::Status{})->gpus[0].uuid, program.pid(), gib(4));
  {
    // A waiting client makes the daemon sample the GPU.
    WaitingClient waits(daemon, whole("a"));
    ASSERT_TRUE(eventually(
        [&] { return daemon.call(proto::Status{})->leases[0].gpus[0].used_bytes == gib(4); }));
  }
  ASSERT_TRUE(eventually([&] { return daemon.call(proto::ListRequests{})->requests.empty(); }));
  proto::Release release;
  release.reservations = true;
  ASSERT_TRUE(daemon.call(release));
  ASSERT_TRUE(eventually([&] { return daemon.call(proto::Status{})->leases.empty(); }));
  EXPECT_EQ(daemon.call(proto::Status{})->gpus[0].state, proto::GpuState::kUnreservedUse);
  const auto next = daemon.call(proto::Acquire{});
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Code::kNoGpu);
}

TEST_F(ReservationTest, ForceTakesOverAGpuThatOnesOwnProcessesUse) {
  Child program({"sleep", "600"});
  daemon.probe.set_process(status().gpus[0].uuid, program.pid(), gib(4));
  ASSERT_TRUE(
      eventually([&] { return status().gpus[0].state == proto::GpuState::kUnreservedUse; }));
  proto::Acquire plain;
  plain.request.kind = "reservation";
  EXPECT_EQ(daemon.call(plain).error().code, Code::kNoGpu);
  plain.request.take_over = true;
  EXPECT_TRUE(daemon.call(plain));
}

TEST_F(ReservationTest, CommandsStartAndEndUnderAReservation) {
  const LeaseId id = reserve();
  client::Connection connection = daemon.connect();
  Child first({"sleep", "600"}), second({"sleep", "600"});
  ASSERT_TRUE(connection.call(proto::Start{id, first.pid(), {}, {}}));
  ASSERT_TRUE(connection.call(proto::Start{id, second.pid(), {}, 1}));
  EXPECT_TRUE(second.ended()) << "it had a second";
  first.kill();
  ASSERT_TRUE(eventually([&] { return daemon.store.lease_now(id).commands.empty(); }));
  EXPECT_EQ(status().leases[0].state, proto::LeaseState::kActive);
}

TEST_F(ReservationTest, CommandsOfAReservationSurviveADaemonAndEndWithIt) {
  const LeaseId id = reserve();
  Child command({"sleep", "600"});
  ASSERT_TRUE(daemon.call(proto::Start{id, command.pid(), {}, {}}));
  restart();
  EXPECT_TRUE(is_running(command.pid()));
  release(id);
  EXPECT_TRUE(command.ended());
}

TEST_F(ReservationTest, ReservationThatOthersWaitForCanBeShortenedButNotExtended) {
  // The daemon's own user is an administrator, who may extend and shorten the reservation. The
  // daemon's queue_test tests the rule itself; this test checks that the end moves.
  reserve();
  proto::Update update;
  update.lease_id = lease.lease_id;
  update.seconds = 60;
  const auto updated = daemon.call(update);
  ASSERT_TRUE(updated);
  EXPECT_LT(*updated->lease.ends, *lease.ends);
}

}  // namespace
}  // namespace gpurota::testing
