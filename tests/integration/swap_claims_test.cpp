// A process reports its memory when it connects; the daemon believes no more than is possible.
#include "swap_fixture.h"

#include <gtest/gtest.h>

#include <string>

#include <unistd.h>

namespace gpurota::testing {
namespace {

class ClaimsTest : public SwapTest {
 protected:
  proto::TurnLease turn_of(std::uint64_t lease) {
    for (const proto::TurnLease& each : turns().leases) {
      if (each.lease_id.value == lease) return each;
    }
    return {};
  }
  Bytes counted(std::uint64_t lease) {
    const proto::TurnLease turn = turn_of(lease);
    return turn.resident_bytes + turn.out_bytes + turn.wired_bytes +
           turn.coming_bytes.value_or(Bytes());
  }
  Bytes out_of_all() {
    const auto reply = daemon.call(proto::ListTurns{});
    EXPECT_TRUE(reply);
    return reply ? reply->host_out_bytes : Bytes();
  }
  // Waits until the tenant takes part in turns.
  bool has_joined(SwapClient& tenant) {
    return eventually([&] { return tenant.terms().has_value(); });
  }
  std::vector<std::string> program(std::uint64_t lease, Bytes bytes, const char* mode) {
    return {SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(lease),
            std::to_string(bytes.count()), mode};
  }
  bool wait_for_samples(int more) {
    const int seen = daemon.probe.samples_read();
    return eventually([&] { return daemon.probe.samples_read() > seen + more; });
  }
};

TEST_F(ClaimsTest, ClaimOfAProcessThatWasNeverATenantIsIgnored) {
  const std::uint64_t lied_for = make_lease(), other = make_lease();
  SwapClient honest(daemon.tenant_socket()), liar(daemon.tenant_socket());
  ASSERT_TRUE(honest.join(other));
  ASSERT_EQ(honest.grow(gib(16)), GPUROTA_OK);
  honest.set_busy(true);
  ASSERT_TRUE(liar.join(lied_for, {gib(20), {}, gib(2)}));
  ASSERT_TRUE(has_joined(liar));
  EXPECT_EQ(counted(lied_for), Bytes());
  EXPECT_EQ(out_of_all(), Bytes());
  EXPECT_EQ(honest.grow(gib(4)), GPUROTA_OK);
  EXPECT_FALSE(turns().takes_turns);
}

TEST_F(ClaimsTest, LeaseWithAFalseClaimGetsNoTurn) {
  const std::uint64_t lied_for = make_lease(), other = make_lease();
  SwapClient honest(daemon.tenant_socket()), liar(daemon.tenant_socket());
  ASSERT_TRUE(honest.join(other));
  ASSERT_EQ(honest.grow(gib(16)), GPUROTA_OK);
  honest.set_busy(true);
  ASSERT_TRUE(liar.join(lied_for, {gib(20), gib(20), {}, true}));
  ASSERT_TRUE(has_joined(liar));
  EXPECT_EQ(counted(lied_for), Bytes());
  EXPECT_FALSE(turns().takes_turns);
  ASSERT_TRUE(wait_for_samples(4));
  EXPECT_EQ(honest.resident(), gib(16));
  EXPECT_EQ(honest.turns(), 1) << "its gate was never shut";
}

TEST_F(ClaimsTest, NewConnectionCannotClaimMoreThanThePreviousOne) {
  const std::uint64_t lease = make_lease();
  SwapClient first(daemon.tenant_socket()), again(daemon.tenant_socket());
  ASSERT_TRUE(first.join(lease));
  ASSERT_EQ(first.grow(gib(4)), GPUROTA_OK);
  ASSERT_EQ(first.grow(gib(1), GPUROTA_SWAP_WIRED), GPUROTA_OK);
  first.disconnect();
  ASSERT_TRUE(again.join(lease, {gib(20), gib(20), gib(2), true}));
  ASSERT_TRUE(has_joined(again));
  EXPECT_EQ(counted(lease), gib(5));
}

// The last context of a program has ended, and the library has reported that its evicted memory is
// parked until there is another context.
TEST_F(ClaimsTest, ParkedMemoryIsCountedAgainAsFarAsHostMemoryAllows) {
  const std::uint64_t lease = make_lease();
  SwapClient first(daemon.tenant_socket()), other(daemon.tenant_socket());
  ASSERT_TRUE(first.join(lease) && other.join(make_lease()));
  ASSERT_EQ(first.grow(gib(16)), GPUROTA_OK);
  other.set_busy(true);
  ASSERT_EQ(other.grow(gib(16)), GPUROTA_OK);
  const Bytes here = first.resident(), out = first.out();
  ASSERT_GE(out, gib(8));
  first.send_shrink({}, out, {});
  ASSERT_TRUE(eventually([&] { return counted(lease) == here; }));
  first.disconnect();
  for (const Bytes has : {gib(2), gib(16)}) {
    daemon.host_memory = has.count();
    SwapClient again(daemon.tenant_socket());
    ASSERT_TRUE(again.join(lease, {gib(16), here, {}}));
    ASSERT_TRUE(has_joined(again));
    EXPECT_EQ(counted(lease), here + std::min(has + mib(512), out));
    again.send_shrink({}, out, {});
    ASSERT_TRUE(eventually([&] { return counted(lease) == here; }));
  }
}

TEST_F(ClaimsTest, NewDaemonIgnoresClaimsOfYoungerProcesses) {
  const std::uint64_t lease = make_lease();
  Child old(program(lease, gib(16), "out"));
  daemon.stop();
  daemon.start();
  ASSERT_TRUE(wait_for_samples(2)) << "processes start at ticks of 10 ms";
  Child young(program(lease, gib(16), "here"));
  young.write_line();
  ASSERT_EQ(young.read_line(), "joined");
  ASSERT_TRUE(wait_for_samples(2));
  EXPECT_EQ(counted(lease), Bytes());
  old.write_line();
  ASSERT_EQ(old.read_line(), "joined");
  EXPECT_TRUE(eventually([&] { return counted(lease) == gib(16); })) << "one that was there before";
}

TEST_F(ClaimsTest, NewDaemonIgnoresClaimsUnderYoungerLeases) {
  daemon.stop();
  daemon.start();
  const std::uint64_t lease = make_lease();
  SwapClient liar(daemon.tenant_socket());  // this process is older than the lease
  ASSERT_TRUE(liar.join(lease, {gib(16), {}, gib(1), true}));
  ASSERT_TRUE(has_joined(liar));
  EXPECT_EQ(counted(lease), Bytes());
}

// A sanitizer's own memory counts as the process's, so the limit differs there.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ClaimsTest, ClaimOfHostMemoryIsBoundedByTheProcessesUse) {
  const std::uint64_t lease = make_lease();
  daemon.stop();
  daemon.host_memory = gib(2).count();
  daemon.start();
  SwapClient liar(daemon.tenant_socket());
  ASSERT_TRUE(liar.join(lease, {gib(16), gib(4), {}}));
  ASSERT_TRUE(has_joined(liar));
  EXPECT_EQ(counted(lease), gib(4) + gib(2) + mib(512)) << "wherever it is by now";
}
#endif

TEST_F(ClaimsTest, ClaimOfGpuMemoryNeedsTheDriversConfirmation) {
  const std::uint64_t lied_for = make_lease(), lease = make_lease();
  Child liar(program(lied_for, gib(16), "here")), honest(program(lease, gib(4), "here"));
  daemon.stop();
  daemon.start();
  daemon.probe.set_process(gpu(), honest.pid(), gib(4) + mib(500));
  for (Child* child : {&liar, &honest}) {
    child->write_line();
    ASSERT_EQ(child->read_line(), "joined");
  }
  EXPECT_TRUE(eventually([&] { return happened(proto::EventType::kTurnTrouble); }));
  EXPECT_TRUE(eventually([&] { return counted(lied_for).is_zero(); }));
  ASSERT_TRUE(wait_for_samples(10));
  EXPECT_EQ(turn_of(lease).resident_bytes, gib(4));
}

TEST_F(ClaimsTest, ClaimIsBelievedIfTheDriverListsNoProcesses) {
  const std::uint64_t lease = make_lease();
  Child honest(program(lease, gib(4), "here"));
  daemon.stop();
  daemon.start();
  honest.write_line();
  ASSERT_EQ(honest.read_line(), "joined");
  ASSERT_TRUE(wait_for_samples(20));
  EXPECT_EQ(turn_of(lease).resident_bytes, gib(4));
}

}  // namespace
}  // namespace gpurota::testing
