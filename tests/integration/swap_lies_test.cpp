// Tenants of swap leases send false or unexpected messages.
#include "swap_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <unistd.h>

namespace gpurota::testing {
namespace {

class ForgedTest : public SwapTest, public ::testing::WithParamInterface<int> {};

TEST_P(ForgedTest, UnsolicitedMessageEndsItsConnectionOnly) {
  SwapClient forger(daemon.tenant_socket()), honest(daemon.tenant_socket());
  ASSERT_TRUE(forger.join(make_lease()) && honest.join(make_lease()));
  ASSERT_EQ(forger.grow(gib(4)), GPUROTA_OK);
  switch (GetParam()) {
    case 0:
      forger.send_moved(GPUROTA_SWAP_EVICT, gib(4), {});
      break;
    case 1:
      forger.send_moved(GPUROTA_SWAP_RESTORE, Bytes(UINT64_MAX), Bytes(UINT64_MAX));
      break;
    case 2:
      forger.send_status(1000);
      break;
    case 3:
      forger.here();  // a second time
      break;
    case 4:
      forger.send_moved(7, {}, {});
      break;
    default:
      (void)forger.ask(gib(1), 99);
  }
  EXPECT_TRUE(forger.hung_up());
  EXPECT_EQ(turns().leases.at(0).resident_bytes, gib(4)) << "it is counted all the same";
  EXPECT_EQ(honest.grow(gib(4)), GPUROTA_OK);
  EXPECT_TRUE(eventually([&] { return honest.gate_open(); }));
}
INSTANTIATE_TEST_SUITE_P(Kinds, ForgedTest, ::testing::Range(0, 6));

TEST_F(SwapTest, AClaimIsCutToTheLimitOfItsLease) {
  const std::uint64_t lease = make_lease(gib(8));
  daemon.stop();  // a new daemon has to ask for the memory
  daemon.start();
  SwapClient liar(daemon.tenant_socket()), honest(daemon.tenant_socket());
  ASSERT_TRUE(liar.join(lease, {Bytes(UINT64_MAX), Bytes(UINT64_MAX), gib(1)}));
  ASSERT_TRUE(honest.join(make_lease(gib(12))));
  EXPECT_EQ(honest.grow(gib(12)), GPUROTA_OK);
  EXPECT_EQ(turns().leases.at(0).resident_bytes, gib(8));
  EXPECT_EQ(turns().leases.at(0).wired_bytes, Bytes())
      << "memory that moves is not forgotten for it";
  liar.send_shrink(Bytes(UINT64_MAX), Bytes(UINT64_MAX), Bytes(UINT64_MAX));
  EXPECT_TRUE(eventually([&] { return turns().leases.at(0).resident_bytes.is_zero(); }));
}

TEST_F(SwapTest, ATenantThatConnectsAgainIsCountedOnce) {
  const std::uint64_t lease = make_lease();
  SwapClient first(daemon.tenant_socket()), second(daemon.tenant_socket());
  ASSERT_TRUE(first.join(lease));
  ASSERT_EQ(first.grow(gib(10)), GPUROTA_OK);
  const SwapClient::Has has = first.has();
  first.disconnect();
  EXPECT_TRUE(eventually([&] { return turns().used_bytes == gib(10); }));
  ASSERT_EQ(second.hello(lease), GPUROTA_OK);
  EXPECT_EQ(turns().used_bytes, gib(10)) << "until it has told";
  second.here(has);
  EXPECT_EQ(second.grow(gib(4)), GPUROTA_OK);
  EXPECT_EQ(turns().used_bytes, gib(14));
}

// A tenant whose memory the driver counts as used, whatever the tenant reports.
class LyingTest : public SwapTest {
 protected:
  LyingTest() {
    EXPECT_EQ(liar.read_line(), "granted");
    EXPECT_TRUE(honest.join(make_lease()));
    honest.set_busy(true);
    stays(true);
  }
  void stays(bool all) {
    if (all) return daemon.probe.set_process(gpu(), liar.pid(), gib(16));
    daemon.probe.remove_process(liar.pid());
  }
  bool wait_for_samples(int more) {
    const int seen = daemon.probe.samples_read();
    return eventually([&] { return daemon.probe.samples_read() > seen + more; });
  }
  Bytes wired_of_liar() {
    for (const proto::TurnLease& lease : turns().leases) {
      if (lease.lease_id.value == lied_for) return lease.wired_bytes;
    }
    return {};
  }

  const std::uint64_t lied_for = make_lease();
  Child liar{{SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(lied_for),
              std::to_string(gib(16).count())}};
  SwapClient honest{daemon.tenant_socket()};
};

TEST_F(LyingTest, FalseReportOfMovedMemoryIsDetectedAndReported) {
  ASSERT_EQ(honest.grow(gib(16)), GPUROTA_OK) << "it is believed at first";
  EXPECT_TRUE(eventually([&] { return happened(proto::EventType::kTurnTrouble); }));
  const auto events = daemon.call(proto::Events{});
  ASSERT_TRUE(events);
  const auto told = std::find_if(events->events.begin(), events->events.end(), [](const auto& e) {
    return e.type == proto::EventType::kTurnTrouble;
  });
  EXPECT_NE(told->message.find("is still there"), std::string::npos) << told->message;
  EXPECT_EQ(told->lease_id, LeaseId{lied_for});
  EXPECT_TRUE(eventually([&] { return wired_of_liar() >= gib(8); })) << "what is there counts";
}

TEST_F(LyingTest, RoomOfADoubtedUserIsGivenOnlyOnceASampleConfirmsIt) {
  ASSERT_EQ(honest.grow(gib(16)), GPUROTA_OK);
  ASSERT_TRUE(eventually([&] { return happened(proto::EventType::kTurnTrouble); }));
  stays(false);
  int told = honest.turns();
  EXPECT_TRUE(eventually([&] { return honest.turns() > told + 3; })) << "it moves, and turns go on";
  const auto out = [&] { return honest.out() >= gib(8); };  // the other tenant has the turn
  ASSERT_TRUE(eventually(out));
  stays(true);
  ASSERT_TRUE(wait_for_samples(2));
  ASSERT_TRUE(eventually(out));
  told = honest.turns();
  ASSERT_TRUE(wait_for_samples(20));
  EXPECT_EQ(honest.turns(), told);
  EXPECT_LE(honest.resident(), gib(8)) << "of 24, and the other's 16 are there";
  stays(false);
  EXPECT_TRUE(eventually([&] { return honest.turns() > told; }));
}

TEST_F(SwapTest, AFalseReportStaysFalseAfterANewConnection) {
  const std::uint64_t lied_for = make_lease();
  SwapClient first(daemon.tenant_socket()), again(daemon.tenant_socket());
  ASSERT_TRUE(first.join(lied_for));
  ASSERT_EQ(first.grow(gib(16)), GPUROTA_OK);
  daemon.probe.set_process(gpu(), ::getpid(), gib(16));
  Child honest({SWAP_PROGRAM, daemon.tenant_socket(), std::to_string(make_lease()),
                std::to_string(gib(16).count())});
  ASSERT_EQ(honest.read_line(), "granted");
  ASSERT_TRUE(eventually([&] { return happened(proto::EventType::kTurnTrouble); }));
  daemon.probe.remove_process(::getpid());
  first.set_busy(true);
  ASSERT_TRUE(eventually([&] { return first.gate_open() && first.out().is_zero(); }));
  daemon.probe.set_process(gpu(), ::getpid(), gib(16));
  first.disconnect();
  ASSERT_EQ(again.hello(lied_for), GPUROTA_OK);
  again.here({gib(16), {}, {}});
  const int seen = daemon.probe.samples_read();
  EXPECT_TRUE(eventually([&] {
    const proto::TurnGpu now = turns();
    EXPECT_LE(now.used_bytes, now.capacity_bytes);
    return daemon.probe.samples_read() > seen + 20;
  }));
}

}  // namespace
}  // namespace gpurota::testing
