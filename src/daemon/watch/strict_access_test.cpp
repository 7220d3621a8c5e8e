// Strict access on a folder of plain files: which users may open the files in each state, and how a
// daemon leaves the files.
#include "daemon/watch/strict_access.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/fake_accounts.h"
#include "testing/memory_store.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MemoryStore;
using testing::TempDir;

constexpr const char* kOpen = "user::rw-,group::rw-,other::rw-";
constexpr const char* kClosed = "user::rw-,group::---,mask::rw-,other::---";

class StrictAccessTest : public FakeWorldTest {
 protected:
  StrictAccessTest()
      : recorder({loop, nullptr, "", config, processes, gpus, [] { return WallTime(1h); }}),
        world(loop, store, processes, gpus, grants, config, [] { return WallTime(1s); }) {
    GpuInfo info = gpus.entries().front().info;
    info.device_minor = 0;
    gpus = GpuTable({info});
    EXPECT_TRUE(recorder.start({}));
    ::mkdir(dir.file("dev").c_str(), 0755);
    for (const char* name : {"nvidia0", "nvidia1", "nvidiactl"}) make(name);
    accounts->add_user("carol", 1003, {});
    accounts->add_group("monitor", 77);
  }
  void SetUp() override {
    const auto files = sys::read_device_files(dir.path());
    const auto set = sys::set_device_acl(dir.path(), "nvidia0", files->at("nvidia0").inode, kOpen);
    if (!set) GTEST_SKIP() << set.error().message;
  }
  void make(const std::string& name) {
    testing::write_file(dir.file("dev/" + name), "");
    ::chmod(dir.file("dev/" + name).c_str(), 0666);
  }
  // Starts a daemon, the successor of an earlier one if there was one.
  void begin() {
    strict.emplace(StrictAccess::Parts{.loop = loop,
                                       .config = config,
                                       .gpus = gpus,
                                       .tables = world.tables,
                                       .users = users,
                                       .processes = processes,
                                       .recorder = recorder,
                                       .root = dir.path(),
                                       .memory = memory});
    EXPECT_TRUE(users.resolve(10s));
    strict->start();
  }
  void turn(bool on) {
    config.access.strict = on;
    strict->refresh();
    const auto done = [&] {
      return on ? acl("nvidia0") != kOpen : ::access(memory.c_str(), F_OK) != 0;
    };
    EXPECT_TRUE(loop.run_until(done));
  }
  std::string acl(const std::string& name) const {
    return sys::read_device_files(dir.path())->at(name).acl;
  }
  LeaseId lease_of(uid_t uid) {
    AcquireRequest request;
    request.uid = uid;
    request.process = processes.id_of(processes.spawn({.uid = uid}));
    request.placement.memory = SizeSpec{gib(1), 0};
    const LeaseId id = (*world.queue.acquire(request))->lease.id;
    strict->on_lease_change(*world.tables.find(id), false);
    return id;
  }
  void end(LeaseId id) {
    leases.abandon(id);
    leases.check_endings();
    ASSERT_EQ(world.tables.find(id), nullptr);
    strict->on_lease_change(LeaseEntry(processes), true);
  }
  std::vector<std::string> events(proto::EventType type) const {
    std::vector<std::string> found;
    for (const auto& [id, event] : recorder.events().events()) {
      if (event.type == proto::to_string(type)) found.push_back(event.message);
    }
    return found;
  }

  TempDir dir;
  std::string memory = dir.file("device-files");
  MemoryStore store;
  lease::GrantBook grants;
  Recorder recorder;
  LeaseWorld world;
  LeaseManager& leases = world.leases;
  std::shared_ptr<testing::FakeAccounts> accounts = std::make_shared<testing::FakeAccounts>();
  Users users{loop, accounts, config, 0};
  std::optional<StrictAccess> strict;
};

TEST_F(StrictAccessTest, OffTouchesNothing) {
  begin();
  (void)lease_of(1001);
  loop.advance(1min);
  EXPECT_EQ(acl("nvidia0"), kOpen);
  EXPECT_FALSE(strict->report());
  EXPECT_NE(::access(memory.c_str(), F_OK), 0);
}

TEST_F(StrictAccessTest, ALeaseOpensTheFileOfItsGpuUntilItEnds) {
  config.access.strict = true;
  begin();
  EXPECT_EQ(acl("nvidia0"), kClosed);
  EXPECT_EQ(acl("nvidia1"), kClosed);
  const LeaseId one = lease_of(1001);
  const LeaseId two = lease_of(1001);
  EXPECT_THAT(acl("nvidia0"), HasSubstr("user:1001:rw-"));
  EXPECT_EQ(acl("nvidia1"), kClosed);
  end(one);
  EXPECT_THAT(acl("nvidia0"), HasSubstr("user:1001:rw-"));
  end(two);
  EXPECT_EQ(acl("nvidia0"), kClosed);
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("dev/nvidiactl").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  EXPECT_EQ(strict->report()->files, 2u);
  EXPECT_THAT(strict->report()->problems, IsEmpty());
}

TEST_F(StrictAccessTest, ConfiguredUsersHaveAccessWithoutALease) {
  config.access = {.strict = true, .users = {"carol"}, .groups = {"monitor"}};
  begin();
  EXPECT_EQ(acl("nvidia0"), "user::rw-,user:1003:rw-,group::---,group:77:rw-,mask::rw-,other::---");
}

TEST_F(StrictAccessTest, TurningOffRestoresAllFiles) {
  begin();
  turn(true);
  EXPECT_EQ(acl("nvidia1"), kClosed);
  turn(false);
  EXPECT_EQ(acl("nvidia0"), kOpen);
  EXPECT_EQ(acl("nvidia1"), kOpen);
  EXPECT_FALSE(strict->report());
  EXPECT_EQ(events(proto::EventType::kAccessSet).size(), 2u);
  turn(true);
  EXPECT_EQ(acl("nvidia1"), kClosed);
}

TEST_F(StrictAccessTest, NextDaemonTakesOverTheOriginalModes) {
  config.access.strict = true;
  begin();
  end(lease_of(1001));
  strict.reset();  // as a crash: nothing is put back
  EXPECT_EQ(acl("nvidia0"), kClosed);
  begin();
  EXPECT_EQ(acl("nvidia0"), kClosed);
  strict.reset();
  config.access.strict = false;
  begin();
  EXPECT_EQ(acl("nvidia0"), kOpen);
  EXPECT_EQ(acl("nvidia1"), kOpen);
}

TEST_F(StrictAccessTest, LeaseEndedWhileNoDaemonRanIsRevokedByTheNext) {
  config.access.strict = true;
  begin();
  const LeaseId id = lease_of(1001);
  strict.reset();
  leases.abandon(id);
  leases.check_endings();
  EXPECT_THAT(acl("nvidia0"), HasSubstr("user:1001:rw-"));
  begin();
  EXPECT_EQ(acl("nvidia0"), kClosed);
}

TEST_F(StrictAccessTest, ForeignChangeIsCorrectedAndReportedOnce) {
  config.access.strict = true;
  begin();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(::chmod(dir.file("dev/nvidia0").c_str(), 0666), 0);
    loop.advance(StrictAccess::kPeriod);
    EXPECT_TRUE(loop.run_until([&] { return acl("nvidia0") == kClosed; }));
  }
  EXPECT_EQ(strict->report()->undone, 2u);
  EXPECT_THAT(strict->report()->last_undone, HasSubstr("other::rw-"));
  EXPECT_EQ(events(proto::EventType::kAccessMended).size(), 1u);
}

TEST_F(StrictAccessTest, AChangeIsSeenWithoutWaitingForTheNextScan) {
  config.access.strict = true;
  begin();
  loop.advance(StrictAccess::kPause);
  EXPECT_TRUE(
      loop.run_until([&] { return loop.next_timer() == loop.now() + StrictAccess::kPeriod; }));
  ASSERT_EQ(::chmod(dir.file("dev/nvidia0").c_str(), 0666), 0);
  loop.run_until_idle();
  loop.advance(StrictAccess::kPause);
  EXPECT_TRUE(loop.run_until([&] { return acl("nvidia0") == kClosed; }));
  EXPECT_EQ(strict->report()->undone, 1u);
}

TEST_F(StrictAccessTest, RecreatedFileIsRestrictedAndRestoredToItsNewMode) {
  config.access.strict = true;
  begin();
  make("new");
  ::chmod(dir.file("dev/new").c_str(), 0640);
  ASSERT_EQ(::rename(dir.file("dev/new").c_str(), dir.file("dev/nvidia1").c_str()), 0);
  make("nvidia2");
  loop.advance(StrictAccess::kPeriod);
  EXPECT_TRUE(
      loop.run_until([&] { return acl("nvidia1") == kClosed && acl("nvidia2") == kClosed; }));
  EXPECT_EQ(strict->report()->undone, 1u);
  turn(false);
  EXPECT_EQ(acl("nvidia1"), "user::rw-,group::r--,other::---");
  EXPECT_EQ(acl("nvidia2"), kOpen);
}

TEST_F(StrictAccessTest, ModeThatCannotBeStoredIsNotChanged) {
  memory = dir.file("nowhere/device-files");
  config.access.strict = true;
  begin();
  EXPECT_EQ(acl("nvidia0"), kOpen);
  EXPECT_THAT(strict->report()->problems, ElementsAre(HasSubstr("nowhere")));
}

TEST_F(StrictAccessTest, OtherFilesStayManagedWhenANewOneCannotBeStored) {
  config.access.strict = true;
  begin();
  ASSERT_EQ(::mkdir((memory + ".new").c_str(), 0700), 0);  // nothing can be written now
  make("nvidia2");
  ASSERT_EQ(::chmod(dir.file("dev/nvidia0").c_str(), 0666), 0);
  loop.advance(StrictAccess::kPeriod);
  EXPECT_TRUE(loop.run_until([&] { return acl("nvidia0") == kClosed; }));
  EXPECT_EQ(acl("nvidia2"), kOpen);
  EXPECT_THAT(strict->report()->problems, ElementsAre(HasSubstr("device-files.new")));
  ASSERT_EQ(::rmdir((memory + ".new").c_str()), 0);
  loop.advance(StrictAccess::kPeriod);
  EXPECT_TRUE(loop.run_until([&] { return acl("nvidia2") == kClosed; }));
  EXPECT_THAT(strict->report()->problems, IsEmpty());
}

TEST_F(StrictAccessTest, DamagedFileOfModesLeavesDeviceFilesUnchanged) {
  testing::write_file(memory, "what\n");
  config.access.strict = true;
  begin();
  strict->refresh();
  loop.advance(1min);
  EXPECT_EQ(acl("nvidia0"), kOpen);
  EXPECT_THAT(strict->report()->problems, ElementsAre(HasSubstr("damaged")));
  EXPECT_EQ(testing::read_file(memory), "what\n");
}

TEST_F(StrictAccessTest, UnknownDeviceFileIsAProblem) {
  GpuInfo info = gpus.entries().front().info;
  info.device_minor = 5;
  gpus = GpuTable({info});
  config.access.strict = true;
  begin();
  EXPECT_THAT(strict->report()->problems, ElementsAre(HasSubstr("nvidia5")));
}

TEST_F(StrictAccessTest, OpenDescriptorsAreReported) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ::chmod(dir.path().c_str(), 0755);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)!::setuid(1004);
    // A failing test must not leave the child behind with ctest's pipe.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::open(dir.file("dev/nvidia1").c_str(), O_RDWR) < 0) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  const auto has_it_open = [&] {
    return !sys::read_device_openers(dir.path(), {"nvidia1"}).empty();
  };
  const bool seen = loop.run_until(has_it_open);
  config.access.strict = true;
  begin();
  ::kill(child, SIGKILL);
  ASSERT_TRUE(seen);
  ASSERT_EQ(strict->report()->openers.size(), 1u);
  EXPECT_EQ(strict->report()->openers[0].pid, child);
  EXPECT_THAT(events(proto::EventType::kAccessSet)[0], HasSubstr("1 process"));
}

}  // namespace
}  // namespace gpurota::daemon
