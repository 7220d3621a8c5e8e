// Oversize leases: the part beyond the GPU's memory is always in host memory.
#include "sched/host_needs.h"
#include "sched/turns_fixture_test.h"

namespace gpurota::sched {
namespace {

const Settings kSmallHost = [] {
  Settings settings;
  settings.host_budget = gib(100);
  return settings;
}();

class OversizeTest : public TurnsTest {
 protected:
  OversizeTest() : TurnsTest(kSmallHost) {}

  Result<void> make(LeaseId lease, TenantId tenant, Bytes limit, Bytes oversize) {
    LeaseTerms terms;
    terms.id = lease;
    terms.gpus = {{kGpu0, limit, {}, oversize}};
    GPUROTA_TRY(turns.check_lease(terms));
    turns.add_lease(terms);
    send(AddTenant{tenant, lease, {}, false});
    return {};
  }
  AnswerGrow ask(TenantId tenant, Bytes bytes, bool hosted = false) {
    send(Grow{tenant, kGpu0, ++seq, bytes, false, hosted});
    return of<AnswerGrow>().back();
  }
  Bytes hosted(LeaseId lease) const {
    return turns.residency().of_lease(lease, *turns.residency().slot_of(kGpu0)).hosted;
  }
};

TEST_F(OversizeTest, MemoryBeyondTheLimitMayLieInHostMemory) {
  ASSERT_TRUE(make(kLeaseA, kA, gib(70), gib(40)));
  EXPECT_EQ(ask(kA, gib(60)).answer, GrowAnswer::kGranted);
  const AnswerGrow refused = ask(kA, gib(30));
  EXPECT_EQ(refused.answer, GrowAnswer::kRefusedLimit);
  EXPECT_EQ(refused.to_host, gib(20));
  EXPECT_EQ(ask(kA, gib(20), true).answer, GrowAnswer::kGranted);
  EXPECT_EQ(ask(kA, gib(10)).answer, GrowAnswer::kGranted);
  EXPECT_EQ(hosted(kLeaseA), gib(20));
}

TEST_F(OversizeTest, HostMemoryIsBoundedByEachLease) {
  ASSERT_TRUE(make(kLeaseA, kA, gib(70), gib(40)));
  EXPECT_EQ(ask(kA, gib(41), true).answer, GrowAnswer::kRefusedLimit);
  EXPECT_EQ(ask(kA, gib(40), true).answer, GrowAnswer::kGranted);
  EXPECT_EQ(ask(kA, mib(2), true).answer, GrowAnswer::kRefusedLimit);
  EXPECT_EQ(ask(kA, gib(71)).to_host, Bytes());
  send(Shrink{kA, kGpu0, {}, {}, {}, gib(10)});
  EXPECT_EQ(ask(kA, gib(71)).to_host, gib(1));
  ASSERT_TRUE(make(kLeaseB, kB, gib(70), {}));
  EXPECT_EQ(ask(kB, gib(71)).to_host, Bytes());
  EXPECT_EQ(ask(kB, mib(2), true).answer, GrowAnswer::kRefusedLimit);
}

TEST_F(OversizeTest, ShareInHostMemoryIsWholePages) {
  ASSERT_TRUE(make(kLeaseA, kA, gib(70) - mib(1), gib(40)));
  EXPECT_EQ(ask(kA, gib(70)).to_host, mib(2));
}

TEST_F(OversizeTest, HostMemoryIsReservedFromStartToEndOfTheLease) {
  ASSERT_TRUE(make(kLeaseA, kA, gib(70), gib(60)));
  const auto refused = make(kLeaseB, kB, gib(70), gib(41));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("41 GiB of host memory is needed, and 40 GiB"),
            std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(make(kLeaseB, kB, gib(70), gib(40)));
  take(turns.remove_lease(kLeaseA, now));
  EXPECT_TRUE(make(kLeaseC, kC, gib(70), gib(60)));
}

TEST_F(OversizeTest, ReservationLeavesHostMemoryForEvictions) {
  ASSERT_TRUE(make(kLeaseA, kA, gib(70), gib(60)));
  ASSERT_TRUE(make(kLeaseB, kB, gib(70), {}));
  EXPECT_EQ(ask(kA, gib(60)).answer, GrowAnswer::kGranted);
  work(kA);
  // The GPU has 80 GiB: 20 or 30 GiB of each lease may be evicted, and 40 of 100 GiB of host memory
  // are left for that.
  EXPECT_EQ(ask(kB, gib(38)).answer, GrowAnswer::kGranted);
  EXPECT_EQ(ask(kB, gib(10)).answer, GrowAnswer::kRefusedHost);
}

TEST_F(OversizeTest, HostMemoryIsNeitherEvictedNorWaitedFor) {
  ASSERT_TRUE(make(kLeaseA, kA, gib(40), gib(40)));
  ASSERT_TRUE(make(kLeaseB, kB, gib(70), {}));
  EXPECT_EQ(ask(kA, gib(40)).answer, GrowAnswer::kGranted);
  work(kA);
  EXPECT_EQ(ask(kB, gib(50)).answer, GrowAnswer::kGranted);
  work(kB);
  EXPECT_EQ(ask(kA, gib(40), true).answer, GrowAnswer::kGranted) << "without its turn";
  for (int i = 0; i < 5; ++i) pass(seconds(60));
  EXPECT_GT(evicted[kA], Bytes());
  EXPECT_EQ(turns.residency().deficit(*turns.residency().slot_of(kGpu0)), gib(10));
  EXPECT_EQ(hosted(kLeaseA), gib(40));
}

TEST_F(OversizeTest, NewDaemonLearnsTheMemoryOfTenants) {
  LeaseTerms terms;
  terms.id = kLeaseA;
  terms.gpus = {{kGpu0, gib(70), {}, gib(60)}};
  turns.add_lease(terms);
  send(AddTenant{kA, kLeaseA, {{kGpu0, gib(10), gib(10), {}, gib(50)}}, true});
  EXPECT_EQ(ask(kA, gib(11), true).answer, GrowAnswer::kRefusedLimit);
  EXPECT_EQ(HostNeeds(turns.residency()).left(), gib(40));
}

}  // namespace
}  // namespace gpurota::sched
