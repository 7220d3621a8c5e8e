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
};

TEST_F(TenantRosterTest, TheLastWhoComesBackCompletesItsLease) {
  TenantRoster last(file);
  const auto a = process(), b = process(), c = process();
  last.add(kOne, a);
  last.add(kOne, b);
  last.add(kTwo, c);
  ASSERT_TRUE(last.save(loop.now()));

  TenantRoster roster = next();
  EXPECT_FALSE(roster.is_complete(kOne));
  EXPECT_FALSE(roster.is_complete(kTwo));
  EXPECT_TRUE(roster.is_complete(LeaseId{3})) << "nobody had connected for it";
  EXPECT_FALSE(roster.add(kOne, process())) << "a new one";
  EXPECT_FALSE(roster.add(kOne, b));
  EXPECT_FALSE(roster.add(kTwo, a)) << "under another lease than before";
  EXPECT_TRUE(roster.add(kOne, a));
  EXPECT_FALSE(roster.add(kOne, a)) << "once more";
  EXPECT_TRUE(roster.is_complete(kOne));
  EXPECT_FALSE(roster.is_complete(kTwo));
}

TEST_F(TenantRosterTest, WhoHasDiedIsNotAwaited) {
  TenantRoster last(file);
  const auto stays = process(), dies = process(), leaves = process();
  last.add(kOne, stays);
  last.add(kOne, dies);
  last.add(kOne, leaves);
  last.add(kOne, leaves);  // connected again
  last.remove(kOne, leaves);
  last.remove(kOne, leaves);
  ASSERT_TRUE(last.save(loop.now()));
  processes.die(dies.pid);
  processes.spawn({.pid = dies.pid});  // its number is somebody else's
  TenantRoster roster = next();
  EXPECT_FALSE(roster.is_complete(kOne));
  EXPECT_TRUE(roster.add(kOne, stays));
}

TEST_F(TenantRosterTest, IsBelievedOnce) {
  TenantRoster last(file);
  ASSERT_TRUE(last.save(loop.now()));
  EXPECT_TRUE(next().is_complete(kOne));
  EXPECT_FALSE(next().is_complete(kOne)) << "the daemon before was killed";
}

TEST_F(TenantRosterTest, NothingIsSaidWhileItIsNotKnownWhoIsMissing) {
  TenantRoster killed_before = next();
  killed_before.add(kOne, process());
  ASSERT_TRUE(killed_before.save(loop.now() + 1s));
  EXPECT_FALSE(next().is_complete(kOne));
  TenantRoster later = next();
  ASSERT_TRUE(later.save(loop.now() + 3s));
  TenantRoster roster(file);
  roster.load(processes, loop.now() + 3s, loop.now() + 6s);
  EXPECT_TRUE(roster.is_complete(kOne));
}

TEST_F(TenantRosterTest, WhoIsStillAwaitedIsAwaitedByTheNextOneToo) {
  TenantRoster last(file);
  const auto a = process();
  last.add(kOne, a);
  ASSERT_TRUE(last.save(loop.now()));
  ASSERT_TRUE(next().save(loop.now()));
  TenantRoster roster = next();
  EXPECT_FALSE(roster.is_complete(kOne));
  EXPECT_TRUE(roster.add(kOne, a));
}

TEST_F(TenantRosterTest, WhatIsOldOrOfAnotherBootIsNotBelieved) {
  TenantRoster last(file);
  for (const auto age : {-1ms, 10001ms}) {
    ASSERT_TRUE(last.save(loop.now() - age));
    EXPECT_FALSE(next().is_complete(kOne));
  }
  ASSERT_TRUE(last.save(loop.now() - 10s));
  EXPECT_TRUE(next().is_complete(kOne));
}

TEST_F(TenantRosterTest, WhatIsNotWholeIsNotBelieved) {
  const std::string head = "gpurota tenants 1\n";
  const std::string now = fmt::format(
      "{}\n",
      std::chrono::duration_cast<std::chrono::milliseconds>(loop.now().time_since_epoch()).count());
  testing::write_file(file, head + now + "end\n");
  ASSERT_TRUE(next().is_complete(kOne));
  for (const std::string& text :
       {std::string(), head, head + now, head + "x\nend\n", head + now + "1 2\nend\n",
        "gpurota tenants 2\n" + now + "end\n", head + now + "1 1 x\nend\n"}) {
    testing::write_file(file, text);
    EXPECT_FALSE(next().is_complete(kOne)) << text;
    EXPECT_NE(::access(file.c_str(), F_OK), 0) << text;
  }
  TenantRoster none("");
  none.load(processes, loop.now(), loop.now());
  EXPECT_FALSE(none.is_complete(kOne));
  EXPECT_TRUE(none.save(loop.now() + 3s));
}

}  // namespace
}  // namespace gpurota::daemon
