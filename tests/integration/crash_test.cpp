// SIGKILL of the daemon before and after every write to its store: no lease is lost or invented,
// and a waiting client keeps its place.
#include "client/connection.h"
#include "running_daemon.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

// The daemon of one run. After it has killed itself, it is started again and then stays alive.
class MortalDaemon {
 public:
  MortalDaemon(int crash_at, bool after) : process_(start(crash_at, after)) {}

  // A connection to a running daemon.
  client::Connection connect() {
    for (int i = 0; i < 2000; ++i) {
      if (auto connection = client::Connection::open(dir_.file("control.sock"))) {
        return std::move(*connection);
      }
      restart_if_dead();
      (void)::poll(nullptr, 0, 5);
    }
    std::abort();
  }
  bool crashed() const { return crashed_; }

  template <class Method>
  Result<typename Method::Reply> call(const Method& method) {
    return connect().call(method);
  }

 private:
  std::unique_ptr<Child> start(int crash_at, bool after) {
    return std::make_unique<Child>(std::vector<std::string>{
        CRASHING_DAEMON, dir_.path(), std::to_string(crash_at), after ? "after" : "before"});
  }
  void restart_if_dead() {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WEXITED | WNOHANG | WNOWAIT) !=
            0 ||
        info.si_pid == 0) {
      return;
    }
    EXPECT_EQ(info.si_status, SIGKILL) << "it ended by itself";
    crashed_ = true;
    process_ = start(0, false);
  }

  TempDir dir_;
  std::unique_ptr<Child> process_;
  bool crashed_ = false;
};

// Waits in the queue as gpurota does: connects again with its ticket as often as needed.
class Client {
 public:
  Client(MortalDaemon& daemon, proto::Enqueue request)
      : daemon_(daemon), request_(std::move(request)), connection_(daemon.connect()) {
    (void)connection_.start_stream(request_);
  }

  // Waits for an answer with a lease or a request.
  void hear() {
    for (int i = 0; i < 1000 && !(reply_.lease || reply_.request); ++i) step();
    ASSERT_TRUE(reply_.lease || reply_.request) << request_.ticket << " hears nothing";
  }
  void wait_for_lease() {
    for (int i = 0; i < 1000 && !reply_.lease; ++i) step();
    ASSERT_TRUE(reply_.lease) << request_.ticket << " was lost";
  }
  LeaseId lease() const { return reply_.lease ? reply_.lease->lease_id : LeaseId{}; }
  client::Connection& connection() { return connection_; }

 private:
  void step() {
    auto answer = connection_.next_answer<proto::Enqueue>();
    if (!answer) {
      // A refusal by the daemon itself is final: the test fails.
      ASSERT_EQ(answer.error().code, Code::kGone) << answer.error().message;
      connection_ = daemon_.connect();
      (void)connection_.start_stream(request_);
      return;
    }
    if (*answer) {
      reply_ = (*answer)->reply;
      return;
    }
    pollfd polled{connection_.fd(), POLLIN, 0};
    (void)::poll(&polled, 1, 20);
  }

  MortalDaemon& daemon_;
  proto::Enqueue request_;
  proto::Enqueue::Reply reply_;
  client::Connection connection_;
};

// For calls that may be repeated when it is unknown whether they took effect.
template <class Method>
void insist(MortalDaemon& daemon, const Method& method) {
  for (int i = 0; i < 20; ++i) {
    const auto reply = daemon.call(method);
    // kNotFound: an earlier attempt took effect, and only its answer was lost.
    if (reply || reply.error().code == Code::kNotFound) return;
    ASSERT_EQ(reply.error().code, Code::kGone) << reply.error().message;
  }
}

void check(MortalDaemon& daemon, std::set<std::uint64_t>& seen) {
  for (int i = 0; i < 20; ++i) {
    const auto status = daemon.call(proto::Status{});
    if (!status) continue;
    ASSERT_LE(status->leases.size(), 1u) << "a GPU is leased twice";
    for (const proto::Lease& lease : status->leases) seen.insert(lease.lease_id.value);
    return;
  }
}

proto::Enqueue request(const char* ticket, const char* kind) {
  proto::Enqueue call;
  call.ticket = ticket;
  call.request.kind = kind;
  call.request.seconds = 600;
  return call;
}

// A reservation is released, a run lease takes its place and ends with its command, and a second
// reservation that waited meanwhile comes last. Returns whether the daemon was killed.
bool scenario(int crash_at, bool after) {
  MortalDaemon daemon(crash_at, after);
  std::set<std::uint64_t> leases;
  Client first(daemon, request("first", "reservation"));
  first.wait_for_lease();
  Client second(daemon, request("second", "reservation"));
  second.hear();
  Client third(daemon, request("third", "reservation"));
  third.hear();
  check(daemon, leases);
  proto::Release release;
  release.lease_id = first.lease();
  insist(daemon, release);
  second.wait_for_lease();
  check(daemon, leases);
  third.hear();
  release.lease_id = second.lease();
  insist(daemon, release);
  third.wait_for_lease();
  check(daemon, leases);
  EXPECT_LT(first.lease(), second.lease());
  EXPECT_LT(second.lease(), third.lease());
  EXPECT_EQ(leases, (std::set<std::uint64_t>{first.lease().value, second.lease().value,
                                             third.lease().value}))
      << "a lease was invented";
  const auto requests = daemon.call(proto::ListRequests{});
  EXPECT_TRUE(requests && requests->requests.empty());
  return daemon.crashed();
}

TEST(CrashTest, AKillAtAnyWriteLosesNoLeaseAndInventsNone) {
  for (const bool after : {false, true}) {
    int crash_at = 1;
    while (!::testing::Test::HasFailure()) {
      SCOPED_TRACE((after ? "after write " : "before write ") + std::to_string(crash_at));
      if (!scenario(crash_at, after)) break;
      ++crash_at;
    }
    EXPECT_GT(crash_at, 10) << "the scenario hardly writes";
  }
}

// The bookings, and the leases of those that have begun; empty while the daemon cannot answer.
struct Booked {
  std::size_t bookings = 0;
  std::vector<proto::Lease> leases;
};
std::optional<Booked> booked(MortalDaemon& daemon) {
  auto status = daemon.call(proto::Status{});
  if (!status) return std::nullopt;
  return Booked{status->bookings ? status->bookings->size() : 0, std::move(status->leases)};
}

Booked insist_on_booked(MortalDaemon& daemon) {
  for (int i = 0; i < 20; ++i) {
    if (auto there = booked(daemon)) return std::move(*there);
  }
  ADD_FAILURE() << "the daemon does not tell";
  return {};
}

// Makes a booking; false if it was refused because its time was over, or the answer is unknown.
bool book_soon(MortalDaemon& daemon) {
  const auto begins = std::chrono::system_clock::now() + std::chrono::milliseconds(300);
  proto::Book book;
  book.begins = {std::chrono::time_point_cast<WallTime::duration>(begins)};
  book.request.kind = "reservation";
  book.request.seconds = 600;
  const auto reply = daemon.call(book);
  if (reply) return true;
  // A daemon that starts slowly reads the call when the booking's time is over, and refuses it.
  const bool late = std::chrono::system_clock::now() >= begins;
  EXPECT_TRUE(reply.error().code == Code::kGone || (reply.error().code == Code::kInvalid && late))
      << reply.error().message;
  return false;
}

// A booking is made and begins. A client that gets no answer checks whether the booking exists.
// Returns whether the daemon was killed.
bool booking_scenario(int crash_at, bool after) {
  MortalDaemon daemon(crash_at, after);
  for (bool made = false; !made && !::testing::Test::HasFailure();) {
    if (book_soon(daemon)) break;
    const Booked there = insist_on_booked(daemon);
    made = there.bookings + there.leases.size() == 1;
  }
  std::optional<Booked> last;
  for (int i = 0; i < 2000 && !(last && last->leases.size() == 1); ++i) {
    last = booked(daemon);
    if (last) {
      EXPECT_LE(last->bookings + last->leases.size(), 1U) << "it is there twice";
    }
    (void)::poll(nullptr, 0, 5);
  }
  EXPECT_TRUE(last && last->leases.size() == 1) << "it was lost";
  if (last && last->leases.size() == 1) {
    EXPECT_EQ(last->leases[0].kind, proto::LeaseKind::kReservation);
    EXPECT_EQ(last->bookings, 0U);
  }
  return daemon.crashed();
}

TEST(CrashTest, AKillAtAnyWriteLosesNoBookingAndBeginsNoneTwice) {
  for (const bool after : {false, true}) {
    int crash_at = 1;
    while (!::testing::Test::HasFailure()) {
      SCOPED_TRACE((after ? "after write " : "before write ") + std::to_string(crash_at));
      if (!booking_scenario(crash_at, after)) break;
      ++crash_at;
    }
    EXPECT_GT(crash_at, 3) << "the scenario hardly writes";
  }
}

}  // namespace
}  // namespace gpurota::testing
