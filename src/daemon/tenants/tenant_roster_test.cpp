#include "daemon/tenants/tenant_roster.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_processes.h"
#include "testing/temp_dir.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;

constexpr LeaseId kOne{1}, kTwo{2};

class TenantRosterTest : public ::testing::Test {
 protected:
  TenantRoster next() {
    TenantRoster roster(file);
    roster.load(processes, loop.now(), loop.now() + 3s);
    return roster;
  }
  ports::ProcessId process() { return processes.id_of(processes.spawn()); }

  testing::TempDir dir;
  const std::string file = dir.file("tenants");
  testing::FakeEventLoop loop;
  testing::FakeProcesses processes{loop};
  lease::GrantBook grants;
};

TEST_F(TenantRosterTest, LastReconnectionCompletesTheLease) {
  TenantRoster last(file);
  const auto a = process(), b = process(), c = process();
  last.add(kOne, a, TenantId{1}, loop.now());
  last.add(kOne, b, TenantId{2}, loop.now());
  last.add(kTwo, c, TenantId{3}, loop.now());
  ASSERT_TRUE(last.save(grants, loop.now()));

  TenantRoster roster = next();
  EXPECT_FALSE(roster.was_complete(kOne, loop.now()));
  EXPECT_FALSE(roster.was_complete(kTwo, loop.now()));
  EXPECT_TRUE(roster.was_complete(LeaseId{3}, loop.now())) << "nobody had connected for it";
  EXPECT_FALSE(roster.add(kOne, process(), TenantId{4}, loop.now())) << "a new one";
  EXPECT_FALSE(roster.add(kOne, b, TenantId{5}, loop.now()));
  EXPECT_FALSE(roster.add(kTwo, a, TenantId{6}, loop.now())) << "under another lease than before";
  EXPECT_TRUE(roster.add(kOne, a, TenantId{7}, loop.now()));
  EXPECT_FALSE(roster.add(kOne, a, TenantId{8}, loop.now())) << "once more";
  EXPECT_TRUE(roster.was_complete(kOne, loop.now()));
  EXPECT_FALSE(roster.was_complete(kTwo, loop.now()));
}

TEST_F(TenantRosterTest, ContextSizesSurviveARestart) {
  const GpuUuid gpu{"GPU-1"}, other{"GPU-2"};
  Lease lease;
  lease.id = kOne;
  lease.gpus = {{gpu, gib(8)}, {other, gib(8)}};
  grants.open(lease);
  TenantRoster last(file);
  const auto a = process(), b = process();
  grants.add_tenant(TenantId{1}, kOne, {{gpu, gib(2), 1, mib(300)}, {other, gib(1), 1}});
  last.add(kOne, a, TenantId{1}, loop.now());
  grants.add_tenant(TenantId{2}, kOne, {});
  last.add(kOne, b, TenantId{2}, loop.now());
  ASSERT_TRUE(last.save(grants, loop.now()));

  TenantRoster roster = next();
  ASSERT_FALSE(roster.was_complete(kOne, loop.now()));
  std::vector<lease::HeldMemory> held{{gpu, gib(2), 1}, {other, gib(1), 1}};
  roster.recall(kOne, b, held);
  EXPECT_FALSE(held[0].overhead) << "another process's";
  roster.recall(kOne, a, held);
  EXPECT_EQ(held[0].overhead, mib(300));
  EXPECT_FALSE(held[1].overhead) << "it was not measured";
  std::vector<lease::HeldMemory> two_contexts{{gpu, gib(2), 2}};
  roster.recall(kOne, a, two_contexts);
  EXPECT_FALSE(two_contexts[0].overhead);
}

TEST_F(TenantRosterTest, ATenantThatIsBackIsSampledBeforeItsLeaseIsServed) {
  TenantRoster last(file);
  const auto a = process();
  last.add(kOne, a, TenantId{1}, loop.now());
  ASSERT_TRUE(last.save(grants, loop.now()));
  TenantRoster roster = next();
  EXPECT_FALSE(roster.was_complete(kOne, loop.now() + 1s));
  EXPECT_TRUE(roster.add(kOne, a, TenantId{1}, loop.now()));
  EXPECT_FALSE(roster.was_complete(kOne, loop.now() - 1ms)) << "that sample had begun before";
  EXPECT_TRUE(roster.was_complete(kOne, loop.now()));
}

TEST_F(TenantRosterTest, TenantWithPossiblyEvictedMemoryBlocksOnlyItsLease) {
  TenantRoster last(file);
  const auto stays = process(), dies = process(), leaves = process();
  last.add(kOne, stays, TenantId{9}, loop.now());
  last.add(kOne, dies, TenantId{10}, loop.now());
  last.add(kOne, leaves, TenantId{11}, loop.now());
  last.add(kOne, leaves, TenantId{12}, loop.now());  // connected again
  last.remove(kOne, leaves, TenantId{11});
  last.remove(kOne, leaves, TenantId{12});
  ASSERT_TRUE(last.save(grants, loop.now()));
  processes.die(dies.pid);
  processes.spawn({.pid = dies.pid});  // another process has its pid
  for (int again = 0; again < 2; ++again) {
    TenantRoster roster = next();
    EXPECT_TRUE(roster.add(kOne, stays, TenantId{13}, loop.now()));
    EXPECT_FALSE(roster.was_complete(kOne, loop.now() + 1s));
    EXPECT_TRUE(roster.was_complete(kTwo, loop.now()));
    ASSERT_TRUE(roster.save(grants, loop.now())) << "the next one does not know more";
  }
}

TEST_F(TenantRosterTest, UnmeasuredContextDelaysItsLease) {
  const GpuUuid gpu{"GPU-1"};
  Lease lease;
  lease.id = kOne;
  lease.gpus = {{gpu, gib(8)}};
  grants.open(lease);
  grants.learn_context_cost(gpu, mib(300));
  const auto a = process();
  grants.add_tenant(TenantId{1}, kOne, {});
  const auto complete_after = [&] {
    TenantRoster last(file);
    last.add(kOne, a, TenantId{1}, loop.now());
    EXPECT_TRUE(last.save(grants, loop.now()));
    TenantRoster roster = next();
    EXPECT_TRUE(roster.add(kOne, a, TenantId{1}, loop.now()));
    return roster.was_complete(kOne, loop.now());
  };
  EXPECT_TRUE(complete_after()) << "it has none";
  lease::GrowRequest context;
  context.tenant = TenantId{1};
  context.context = true;
  ASSERT_FALSE(grants.grow(gpu, context, loop.now()).empty());
  EXPECT_FALSE(complete_after()) << "it is making one";
  grants.set_contexts(TenantId{1}, gpu, 1, loop.now());
  EXPECT_FALSE(complete_after());
  lease::Measurement seen;
  seen.held = mib(310);
  seen.listed = true;
  seen.taken = loop.now() + 1ms;
  (void)grants.measure(kOne, gpu, {{TenantId{1}, seen}}, {}, loop.now() + 1ms);
  EXPECT_TRUE(complete_after());
  (void)grants.mark_dead(TenantId{1}, loop.now() + 2ms);
  EXPECT_FALSE(complete_after()) << "its memory is not back";
}

TEST_F(TenantRosterTest, RosterIsUsedOnlyOnce) {
  TenantRoster last(file);
  ASSERT_TRUE(last.save(grants, loop.now()));
  EXPECT_TRUE(next().was_complete(kOne, loop.now()));
  EXPECT_FALSE(next().was_complete(kOne, loop.now())) << "the daemon before was killed";
}

TEST_F(TenantRosterTest, NothingIsReportedWhileMissingTenantsAreUnknown) {
  TenantRoster killed_before = next();
  killed_before.add(kOne, process(), TenantId{14}, loop.now());
  ASSERT_TRUE(killed_before.save(grants, loop.now() + 1s));
  EXPECT_FALSE(next().was_complete(kOne, loop.now()));
  TenantRoster later = next();
  ASSERT_TRUE(later.save(grants, loop.now() + 3s));
  TenantRoster roster(file);
  roster.load(processes, loop.now() + 3s, loop.now() + 6s);
  EXPECT_TRUE(roster.was_complete(kOne, loop.now() + 3s));
}

TEST_F(TenantRosterTest, ATenantThatIsAwaitedIsAwaitedByTheNextDaemonToo) {
  TenantRoster last(file);
  const auto a = process();
  last.add(kOne, a, TenantId{15}, loop.now());
  ASSERT_TRUE(last.save(grants, loop.now()));
  ASSERT_TRUE(next().save(grants, loop.now()));
  TenantRoster roster = next();
  EXPECT_FALSE(roster.was_complete(kOne, loop.now()));
  EXPECT_TRUE(roster.add(kOne, a, TenantId{16}, loop.now()));
}

TEST_F(TenantRosterTest, OldRosterOrOneOfAnotherBootIsIgnored) {
  TenantRoster last(file);
  for (const auto age : {-1ms, 5001ms}) {
    ASSERT_TRUE(last.save(grants, loop.now() - age));
    EXPECT_FALSE(next().was_complete(kOne, loop.now()));
  }
  ASSERT_TRUE(last.save(grants, loop.now() - 5s));
  EXPECT_TRUE(next().was_complete(kOne, loop.now()));
}

TEST_F(TenantRosterTest, IncompleteRosterIsIgnored) {
  const std::string head = "gpurota tenants 1\n";
  const std::string now = fmt::format(
      "{}\n",
      std::chrono::duration_cast<std::chrono::milliseconds>(loop.now().time_since_epoch()).count());
  testing::write_file(file, head + now + "end\n");
  ASSERT_TRUE(next().was_complete(kOne, loop.now()));
  for (const std::string& text :
       {std::string(), head, head + now, head + "x\nend\n", head + now + "1 2\nend\n",
        "gpurota tenants 2\n" + now + "end\n", head + now + "1 1 x\nend\n"}) {
    testing::write_file(file, text);
    EXPECT_FALSE(next().was_complete(kOne, loop.now())) << text;
    EXPECT_NE(::access(file.c_str(), F_OK), 0) << text;
  }
  TenantRoster none("");
  none.load(processes, loop.now(), loop.now());
  EXPECT_FALSE(none.was_complete(kOne, loop.now()));
  EXPECT_TRUE(none.save(grants, loop.now() + 3s));
}

}  // namespace
}  // namespace gpurota::daemon
