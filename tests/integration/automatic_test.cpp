// Leases that programs without a lease request themselves, through the tenant socket.
#include "running_daemon.h"
#include "wire_tenant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::testing {
namespace {

config::Config automatic() {
  config::Config config = RunningDaemon::quick();
  config.automatic.enabled = true;
  config.automatic.memory = SizeSpec{gib(8), 0};
  return config;
}

std::vector<proto::Lease> leases(const RunningDaemon& daemon) {
  const auto status = daemon.call(proto::Status{});
  return status ? status->leases : std::vector<proto::Lease>();
}

bool marked(const RunningDaemon& daemon) {
  const std::string socket = daemon.tenant_socket();
  const std::string marker = socket.substr(0, socket.rfind('/')) + "/automatic";
  return ::access(marker.c_str(), F_OK) == 0;
}

// A process that requests a lease and lives until it is killed; prints the status of the answer.
struct Asker {
  explicit Asker(const RunningDaemon& daemon) : child({TENANT_PROGRAM, daemon.tenant_socket()}) {}
  Child child;
};

TEST(Automatic, IsOffUnlessTheSiteSwitchesItOn) {
  RunningDaemon off;
  EXPECT_FALSE(marked(off));
  WireTenant tenant(off.tenant_socket());
  EXPECT_EQ(tenant.ask_for_lease()->status, GPUROTA_UNMANAGED);
  EXPECT_TRUE(leases(off).empty());
  RunningDaemon on(automatic());
  EXPECT_TRUE(marked(on));
}

TEST(Automatic, ProcessGetsALeaseByPolicyAndTheSameOneOnASecondRequest) {
  RunningDaemon daemon(automatic());
  Asker asker(daemon);
  ASSERT_EQ(asker.child.read_line(), "0 visible 0");
  const auto made = leases(daemon);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].gpus[0].limit_bytes, gib(8));
  EXPECT_EQ(made[0].pid, asker.child.pid());
  ASSERT_TRUE(made[0].command && !made[0].command->empty());
  EXPECT_EQ(made[0].command->front(), TENANT_PROGRAM);
  ASSERT_EQ(asker.child.read_line(), "again 0");
  EXPECT_EQ(leases(daemon).size(), 1u);
}

TEST(Automatic, TheLeaseEndsWithItsLastProcess) {
  RunningDaemon daemon(automatic());
  Asker asker(daemon);
  ASSERT_EQ(asker.child.read_line(), "0 visible 0");
  asker.child.kill();
  EXPECT_TRUE(eventually([&] { return leases(daemon).empty(); }));
}

TEST(Automatic, TenantKeepsTheLeaseAfterTheRequesterHasEnded) {
  RunningDaemon daemon(automatic());
  Asker asker(daemon);
  ASSERT_EQ(asker.child.read_line(), "0 visible 0");
  const proto::Lease lease = leases(daemon)[0];
  Child tenant({TENANT_PROGRAM, daemon.tenant_socket(), std::to_string(lease.lease_id.value),
                std::to_string(gib(1).count())});
  ASSERT_EQ(tenant.read_line(), "granted");
  asker.child.kill();
  const int seen = daemon.probe.samples_read();
  EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 3; }));
  ASSERT_EQ(leases(daemon).size(), 1u);
  EXPECT_EQ(leases(daemon)[0].state, proto::LeaseState::kActive);
  tenant.kill();
  EXPECT_TRUE(eventually([&] { return leases(daemon).empty(); }));
}

TEST(Automatic, TheReleaseOfAnAutomaticLeaseEndsItsProcesses) {
  RunningDaemon daemon(automatic());
  Asker asker(daemon);
  ASSERT_EQ(asker.child.read_line(), "0 visible 0");
  proto::Release release;
  release.lease_id = leases(daemon)[0].lease_id;
  ASSERT_TRUE(daemon.call(release));
  EXPECT_TRUE(asker.child.ended());
  EXPECT_TRUE(eventually([&] { return leases(daemon).empty(); }));
}

TEST(Automatic, AnAutomaticLeaseOutlivesTheDaemon) {
  RunningDaemon daemon(automatic());
  Asker asker(daemon);
  ASSERT_EQ(asker.child.read_line(), "0 visible 0");
  const proto::Lease lease = leases(daemon)[0];
  daemon.stop();
  daemon.start();
  ASSERT_EQ(leases(daemon).size(), 1u);
  EXPECT_EQ(leases(daemon)[0].lease_id, lease.lease_id);
  asker.child.kill();
  EXPECT_TRUE(eventually([&] { return leases(daemon).empty(); }));
}

TEST(Automatic, LeaseOutlivesItsHolderWhenAnotherProcessReconnects) {
  config::Config config = automatic();
  config.reconnect_grace = std::chrono::milliseconds(2000);
  RunningDaemon daemon(config);
  Asker asker(daemon);
  ASSERT_EQ(asker.child.read_line(), "0 visible 0");
  const std::string id = std::to_string(leases(daemon)[0].lease_id.value);
  daemon.stop();
  asker.child.kill();
  daemon.start();
  Child tenant({TENANT_PROGRAM, daemon.tenant_socket(), id, "0"});
  ASSERT_NE(tenant.read_line(), "");
  const int seen = daemon.probe.samples_read();
  // Waits until the grace period is over; samples come every 20 ms.
  EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen + 150; }));
  EXPECT_EQ(leases(daemon).size(), 1u);
  tenant.kill();
  EXPECT_TRUE(eventually([&] { return leases(daemon).empty(); }));
}

TEST(Automatic, ProcessWithoutRoomHasNoGpuUnlessTheSiteLetsItContinue) {
  config::Config config = automatic();
  config.automatic.memory = SizeSpec{Bytes(), 75};
  RunningDaemon daemon(config);
  Asker first(daemon);
  ASSERT_EQ(first.child.read_line(), "0 visible 0");
  Asker second(daemon);
  EXPECT_EQ(second.child.read_line(), std::to_string(GPUROTA_REFUSED_LIMIT) + " visible ");

  config.automatic.when_full = config::Automatic::WhenFull::kUnmanaged;
  RunningDaemon lenient(config);
  Asker third(lenient);
  ASSERT_EQ(third.child.read_line(), "0 visible 0");
  Asker fourth(lenient);
  EXPECT_EQ(fourth.child.read_line(), std::to_string(GPUROTA_UNMANAGED) + " visible ");
}

TEST(Automatic, UsersOutsideThePolicyContinueWithoutALease) {
  config::Config config = automatic();
  config.automatic.users = {"nobody-of-this-name", "@no-such-group"};
  RunningDaemon others(config);
  WireTenant stranger(others.tenant_socket());
  EXPECT_EQ(stranger.ask_for_lease()->status, GPUROTA_UNMANAGED);

  config.automatic.users = {std::to_string(::getuid())};
  RunningDaemon own(config);
  Asker asker(own);
  EXPECT_EQ(asker.child.read_line(), "0 visible 0");
}

TEST(Automatic, ProcessOfALeaseGetsThatLeaseWhateverThePolicy) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  const auto made = daemon.acquire_slice(connection, gib(4));
  Child command({TENANT_PROGRAM, daemon.tenant_socket(), "later"});
  ASSERT_EQ(command.read_line(), "waits");
  ASSERT_TRUE(connection.call(proto::Start{made.lease.lease_id, command.pid(), {}}));
  command.write_line();
  EXPECT_EQ(command.read_line(), "0 visible 0");
  EXPECT_EQ(leases(daemon).size(), 1u);
}

TEST(Automatic, DoctorShowsAutomaticLeases) {
  RunningDaemon daemon(automatic());
  std::string said;
  const auto reply = daemon.call(proto::Doctor{});
  for (const proto::Check& check : reply->checks) said += check.summary + "\n";
  EXPECT_NE(said.find("8 GiB of 1 GPU for each program that has no lease"), std::string::npos)
      << said;
}

// The library in a container names the lease, because neither a control group nor an ancestor shows
// it.
class Joining : public ::testing::Test {
 protected:
  void reserve(std::optional<SizeSpec> memory) {
    proto::Acquire call;
    call.request.kind = "reservation";
    call.request.seconds = 600;
    call.request.memory = memory;
    lease_ = daemon_.call(call)->lease.lease_id;
    const auto needs = daemon_.call(proto::GetEnvironment{lease_, true});
    for (const proto::Variable& v : needs->environment) said_[v.name] = v.value;
  }
  std::vector<std::string> joiner(const std::string& token, const std::string& uid = "") const {
    std::vector<std::string> words = {TENANT_PROGRAM, daemon_.tenant_socket(), "joins",
                                      std::to_string(lease_.value), token};
    if (!uid.empty()) words.push_back(uid);
    return words;
  }
  static std::string status(std::uint32_t number) { return std::to_string(number); }

  RunningDaemon daemon_;
  LeaseId lease_;
  std::map<std::string, std::string> said_;
};

TEST_F(Joining, ProgramInAContainerJoinsItsLeaseOfWholeGpusAndEndsWithIt) {
  reserve({});
  EXPECT_EQ(said_["GPUROTA_WHOLE"], "1");
  EXPECT_EQ(said_["GPUROTA_TOKEN"].size(), GPUROTA_TOKEN_CHARS);
  Child inside(joiner(said_["GPUROTA_TOKEN"]));
  Child another(joiner("-"));
  ASSERT_EQ(inside.read_line(), status(GPUROTA_UNMANAGED));
  EXPECT_EQ(another.read_line(), status(GPUROTA_REFUSED_LEASE))
      << "root of one container is root of all";
  proto::Release release;
  release.lease_id = lease_;
  ASSERT_TRUE(daemon_.call(release));
  EXPECT_TRUE(inside.ended());
  Child late(joiner(said_["GPUROTA_TOKEN"]));
  EXPECT_EQ(late.read_line(), status(GPUROTA_REFUSED_LEASE)) << "the lease is over";
}

TEST_F(Joining, AnotherUserNeedsTheToken) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root: it switches users";
  const std::string socket = daemon_.tenant_socket();
  ASSERT_EQ(::chmod(socket.substr(0, socket.rfind('/')).c_str(), 0755), 0);
  ASSERT_EQ(::chmod(socket.c_str(), 0666), 0);
  reserve({});
  Child thief(joiner("0123456789abcdef0123456789abcdef", "65534"));
  EXPECT_EQ(thief.read_line(), status(GPUROTA_REFUSED_LEASE));
  Child container(joiner(said_["GPUROTA_TOKEN"], "65534"));
  EXPECT_EQ(container.read_line(), status(GPUROTA_UNMANAGED));
}

TEST_F(Joining, ProcessCannotJoinALeaseWithoutItsLimit) {
  reserve(SizeSpec{gib(8), 0});
  EXPECT_EQ(said_.count("GPUROTA_WHOLE"), 0u);
  Child unlimited(joiner(said_["GPUROTA_TOKEN"]));
  EXPECT_EQ(unlimited.read_line(), status(GPUROTA_REFUSED_LEASE));
}

TEST(Automatic, MalformedRequestEndsTheConnection) {
  RunningDaemon daemon(automatic());
  WireTenant bad(daemon.tenant_socket());
  gpurota_msg_automatic question{};
  question.header = {GPUROTA_MSG_AUTOMATIC, sizeof question, 1};
  std::vector<std::uint8_t> packet(sizeof question);
  std::memcpy(packet.data(), &question, sizeof question);  // no magic
  bad.send_raw(packet);
  EXPECT_TRUE(bad.hung_up());
}

}  // namespace
}  // namespace gpurota::testing
