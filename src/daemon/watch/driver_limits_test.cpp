#include "daemon/watch/driver_limits.h"

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/fake_gpu_probe.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using config::Enforcement;
using testing::FakeGpuProbe;
using ::testing::HasSubstr;
using testing::MemoryStore;

class DriverLimitsTest : public FakeWorldTest {
 protected:
  DriverLimitsTest() {
    probe->add_gpu(gib(24));
    probe->set_has_limits(true);
    processes.cgroups().put(::getpid(), "/daemon", 0);
    world.on_lease = [this](const LeaseEntry& entry, bool gone) {
      limits.on_lease_change(entry, gone);
    };
    world.check_new = [this](const LeaseEntry& entry) { return limits.check_new(entry); };
  }
  void begin(Enforcement enforcement) {
    config.enforcement = enforcement;
    limits.start();
    settle();
  }
  // Waits until the driver has answered about the last change.
  void settle() {
    EXPECT_TRUE(loop.run_until([this] {
      loop.run_until_idle();
      return !limits.is_asking();
    }));
  }
  static AcquireRequest slice(Bytes memory) {
    AcquireRequest request;
    request.uid = 1000;
    request.placement.memory = SizeSpec{memory, 0};
    return request;
  }
  LeaseId make(AcquireRequest request) {
    request.process = processes.id_of(processes.spawn());
    holder = request.process.pid;
    return (*world.queue.acquire(request))->lease.id;
  }
  AcquireRequest pod_slice(Bytes memory) {
    AcquireRequest request = slice(memory);
    request.kind = LeaseKind::kPod;
    request.pod_uid = "1b-2";
    return request;
  }
  std::string refusal(const AcquireRequest& request) {
    const auto made = world.queue.acquire(request);
    return made ? "none" : made.error().error.message;
  }
  std::string start(LeaseId id) {
    const auto group = world.leases.start(id, processes.spawn({.parent = holder}), false);
    settle();
    return group && *group ? **group : "";
  }
  // The driver has not answered when this returns.
  std::string start_without_answer(LeaseId id) {
    const auto group = world.leases.start(id, processes.spawn({.parent = holder}), false);
    return group && *group ? **group : "";
  }
  // The pid of its first process, and its control group.
  std::pair<pid_t, std::string> start_command(LeaseId id) {
    const pid_t caller = processes.spawn(), child = processes.spawn({.parent = caller});
    const auto group = world.leases.start_command(id, {child, processes.id_of(caller), false, {}});
    settle();
    return {child, group && *group ? **group : ""};
  }
  // A process of this user in a container shows that it is in the lease.
  std::string add_container(LeaseId id, uid_t uid) {
    const pid_t pid = processes.spawn({.uid = uid, .cgroup = kContainer});
    EXPECT_TRUE(world.leases.add_process(id, processes.id_of(pid)));
    loop.advance(DriverLimits::kPeriod);
    settle();
    return kContainer;
  }
  const LeaseEntry& entry(LeaseId id) { return *world.tables.find(id); }

  const std::string kContainer = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
  const std::string kPod =
      std::string(testing::FakeControlGroups::kRoot) + "/kubepods/burstable/pod1b-2";
  MemoryStore store;
  lease::GrantBook grants;
  std::shared_ptr<FakeGpuProbe> probe = std::make_shared<FakeGpuProbe>();
  LeaseWorld world{loop, store, processes, gpus, grants, config, [] { return WallTime(1s); }};
  std::map<LeaseId, std::string> ended;
  int changes = 0;
  DriverState driver;
  DriverLimits limits{{.loop = loop,
                       .config = config,
                       .gpus = gpus,
                       .tables = world.tables,
                       .processes = processes,
                       .driver = driver,
                       .make_probe = [this] { return probe; },
                       .end =
                           [this](LeaseId id, const std::string& why) {
                             ended[id] = why;
                             world.leases.end(id, EndCause::kReleased, why);
                           },
                       .on_change = [this] { ++changes; },
                       .file = {}}};
  pid_t holder = 0;
};

TEST_F(DriverLimitsTest, ByDefaultTheDriverIsNotAsked) {
  limits.start();
  const LeaseId id = make(slice(gib(2)));
  const std::string group = start(id);
  EXPECT_EQ(probe->group_limit(kGpu, group), std::nullopt);
  EXPECT_FALSE(limits.limits(entry(id)));
  EXPECT_EQ(limits.why_not(entry(id)), "");
  EXPECT_FALSE(limits.report());
}

TEST_F(DriverLimitsTest, ASliceGetsALimitAndLosesItWithTheSetting) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  EXPECT_EQ(limits.why_not(entry(id)), "its command has not started");
  const std::string group = start(id);
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(2), gib(24)));
  EXPECT_TRUE(limits.limits(entry(id)));
  EXPECT_EQ(limits.report()->limited, 1);
  config.enforcement = Enforcement::kLibrary;
  limits.refresh();
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, group), std::nullopt);
}

TEST_F(DriverLimitsTest, TheLimitFollowsTheLease) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  const std::string group = start(id);
  Lease changed = entry(id).lease;
  changed.gpus[0].limit = gib(4);
  ASSERT_TRUE(world.leases.change(changed));
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(4), gib(24)));
}

TEST_F(DriverLimitsTest, TurnsGetNone) {
  begin(Enforcement::kAuto);
  AcquireRequest request = slice(gib(2));
  request.placement.swap = true;
  const LeaseId id = make(request);
  const std::string group = start(id);
  EXPECT_EQ(probe->group_limit(kGpu, group), std::nullopt);
  EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("takes turns"));
}

TEST_F(DriverLimitsTest, SaysWhyThereIsNone) {
  begin(Enforcement::kAuto);
  processes.cgroups().set_available(false);
  const LeaseId id = make(slice(gib(2)));
  start(id);
  EXPECT_EQ(limits.why_not(entry(id)), "it has no control group of its own");
  EXPECT_TRUE(ended.empty());
}

TEST_F(DriverLimitsTest, AnOlderDriverChangesNothingUnlessTheLimitIsRequired) {
  probe->set_has_limits(false);
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  start(id);
  EXPECT_EQ(limits.why_not(entry(id)), "no memory limits");
  EXPECT_EQ(limits.report()->problems.size(), 1U);
  config.enforcement = Enforcement::kDriver;
  limits.refresh();
  settle();
  EXPECT_TRUE(ended.empty());  // the lease is older than the rule
  AcquireRequest request = slice(gib(2));
  request.process = processes.id_of(processes.spawn());
  EXPECT_FALSE(world.queue.acquire(request));
}

TEST_F(DriverLimitsTest, ARequiredLimitThatCannotBeSetRefusesTheStart) {
  begin(Enforcement::kDriver);
  probe->set_limit_error(Error{Code::kDenied, 0, "Insufficient Permissions"});
  const LeaseId id = make(slice(gib(2)));
  start_without_answer(id);
  EXPECT_TRUE(*limits.check_start(entry(id))) << "the driver is being asked";
  settle();
  const auto refused = limits.check_start(entry(id));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("Insufficient Permissions"));
  world.leases.end(id, EndCause::kReleased, "");
  processes.cgroups().set_available(false);
  const LeaseId other = make(slice(gib(2)));
  start_without_answer(other);
  ASSERT_FALSE(limits.check_start(entry(other)));
  EXPECT_THAT(limits.check_start(entry(other)).error().message, HasSubstr("no control group"));
}

TEST_F(DriverLimitsTest, ARequiredLimitThatIsLostEndsTheLease) {
  begin(Enforcement::kDriver);
  const LeaseId id = make(slice(gib(2)));
  start(id);
  EXPECT_FALSE(*limits.check_start(entry(id)));
  EXPECT_TRUE(ended.empty());
  probe->set_limit_error(Error{Code::kDenied, 0, "Insufficient Permissions"});
  Lease changed = entry(id).lease;
  changed.gpus[0].limit = gib(4);
  ASSERT_TRUE(world.leases.change(changed));
  settle();
  EXPECT_THAT(ended[id], HasSubstr("Insufficient Permissions"));
}

TEST_F(DriverLimitsTest, ADriverThatFailsEndsALeaseOnlyAfterAWhile) {
  begin(Enforcement::kDriver);
  const LeaseId id = make(slice(gib(2)));
  start(id);
  EXPECT_FALSE(*limits.check_start(entry(id)));
  probe->set_limit_error(Error{Code::kIo, 0, "Uninitialized"});
  Lease changed = entry(id).lease;
  changed.gpus[0].limit = gib(4);
  ASSERT_TRUE(world.leases.change(changed));
  settle();
  EXPECT_TRUE(ended.empty());
  EXPECT_EQ(limits.why_not(entry(id)), "Uninitialized");
  loop.advance(DriverLimits::kDriverPatience);
  settle();
  limits.refresh();
  settle();
  EXPECT_THAT(ended[id], HasSubstr("Uninitialized"));
}

TEST_F(DriverLimitsTest, AStartWaitsForItsLimit) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  const std::string group = start_without_answer(id);
  EXPECT_TRUE(*limits.check_start(entry(id)));
  const int before = changes;
  settle();
  EXPECT_GT(changes, before) << "so that the start is tried again";
  EXPECT_FALSE(*limits.check_start(entry(id)));
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(2), gib(24)));
}

TEST_F(DriverLimitsTest, AStartWaitsForASlowDriverOnlyUntilItsTimeIsOver) {
  for (const Enforcement mode : {Enforcement::kAuto, Enforcement::kDriver}) {
    begin(mode);
    const LeaseId id = make(slice(gib(2)));
    probe->block(kGpu);
    start_without_answer(id);
    EXPECT_TRUE(*limits.check_start(entry(id)));
    loop.advance(DriverLimits::kStartPatience / 2);
    EXPECT_TRUE(*limits.check_start(entry(id)));
    const int before = changes;
    loop.advance(DriverLimits::kStartPatience / 2);
    EXPECT_EQ(changes, before + 1);
    const auto waits = limits.check_start(entry(id));
    if (mode == Enforcement::kAuto) {
      EXPECT_FALSE(*waits);
      EXPECT_EQ(limits.why_not(entry(id)), "the driver has not answered yet");
    } else {
      ASSERT_FALSE(waits);
      EXPECT_THAT(waits.error().message, HasSubstr("did not answer in time"));
    }
    probe->unblock();
    settle();
    world.leases.end(id, EndCause::kReleased, "");
  }
}

TEST_F(DriverLimitsTest, TheContainerOfALeaseGetsTheLimitAndItsCommandDoesNot) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  const std::string group = start(id);
  const std::string container = add_container(id, 1000);
  EXPECT_EQ(probe->group_limit(kGpu, container), driver_limit(gib(2), gib(24)));
  EXPECT_EQ(probe->group_limit(kGpu, group), std::nullopt) << "never the limit once for each";
  EXPECT_FALSE(limits.limits(entry(id)));
  EXPECT_EQ(limits.why_not(entry(id)),
            "it is in 2 control groups, and the driver limits only the one of a container");
}

TEST_F(DriverLimitsTest, AContainerWithProgramsOfOthersGetsNoLimit) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  const std::string group = start(id);
  processes.spawn({.uid = 1001, .cgroup = kContainer});
  add_container(id, 1000);
  EXPECT_EQ(probe->group_limit(kGpu, kContainer), std::nullopt);
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(2), gib(24)));
  EXPECT_EQ(limits.why_not(entry(id)),
            "it is in 2 control groups, and the driver limits only the one of a command");
}

TEST_F(DriverLimitsTest, APodIsLimitedOnceItsContainerIsKnown) {
  begin(Enforcement::kAuto);
  AcquireRequest request = slice(gib(2));
  request.kind = LeaseKind::kPod;
  const LeaseId id = make(request);
  EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("none of its programs has shown"));
  add_container(id, 1000);
  EXPECT_EQ(probe->group_limit(kGpu, kContainer), driver_limit(gib(2), gib(24)));
  EXPECT_TRUE(limits.limits(entry(id)));
}

TEST_F(DriverLimitsTest, APodIsLimitedBeforeItsContainersStart) {
  begin(Enforcement::kDriver);
  AcquireRequest request = pod_slice(gib(2));
  EXPECT_THAT(refusal(request), HasSubstr("no control group of cgroup v2"));
  processes.cgroups().add(kPod);
  const LeaseId id = make(request);
  EXPECT_TRUE(*limits.check_start(entry(id))) << "the driver is being asked";
  settle();
  EXPECT_FALSE(*limits.check_start(entry(id)));
  EXPECT_EQ(probe->group_limit(kGpu, kPod), driver_limit(gib(2), gib(24)));
  EXPECT_TRUE(limits.limits(entry(id)));
  processes.spawn({.uid = 1001, .cgroup = kPod + "/b"});
  limits.refresh();
  settle();
  EXPECT_TRUE(limits.limits(entry(id)));
  world.leases.end(id, EndCause::kReleased, "");
  loop.advance(DriverLimits::kPeriod);
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, kPod), std::nullopt);
}

TEST_F(DriverLimitsTest, APodWhoseGroupComesLaterIsLimitedThen) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(pod_slice(gib(2)));
  EXPECT_FALSE(*limits.check_start(entry(id)));
  EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("its pod has no control group"));
  processes.cgroups().add(kPod);
  loop.advance(DriverLimits::kPeriod);
  settle();
  EXPECT_TRUE(limits.limits(entry(id)));
  processes.cgroups().drop(kPod);
  loop.advance(DriverLimits::kPeriod);
  settle();
  EXPECT_FALSE(limits.limits(entry(id)));
}

TEST_F(DriverLimitsTest, TheLeasesOfAPodHaveOneLimitTogether) {
  begin(Enforcement::kAuto);
  processes.cgroups().add(kPod);
  const LeaseId one = make(pod_slice(gib(2))), two = make(pod_slice(gib(4)));
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, kPod),
            driver_limit(gib(2), gib(24)) + driver_limit(gib(4), gib(24)));
  for (const LeaseId id : {one, two}) {
    EXPECT_FALSE(limits.limits(entry(id))) << "each can use what the other one leaves";
    EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("all leases of its pod on a GPU together"));
  }
  world.leases.end(two, EndCause::kReleased, "");
  loop.advance(DriverLimits::kPeriod);
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, kPod), driver_limit(gib(2), gib(24)));
  EXPECT_TRUE(limits.limits(entry(one)));
}

TEST_F(DriverLimitsTest, ASecondLeaseOfAPodOnAGpuIsRefusedWhereTheLimitIsRequired) {
  begin(Enforcement::kDriver);
  processes.cgroups().add(kPod);
  const LeaseId one = make(pod_slice(gib(2)));
  settle();
  EXPECT_THAT(refusal(pod_slice(gib(4))), HasSubstr("its pod has L1 on the same GPU"));
  AcquireRequest swap = pod_slice(gib(2));
  swap.placement.swap = true;
  EXPECT_THAT(refusal(swap), HasSubstr("its pod has L1 on the same GPU"));
  EXPECT_TRUE(limits.limits(entry(one)));
  EXPECT_TRUE(ended.empty());
}

TEST_F(DriverLimitsTest, ASecondLeaseOfAPodIsRefusedAlsoIfTheFirstNeedsNoLimit) {
  begin(Enforcement::kAuto);
  processes.cgroups().add(kPod);
  make(pod_slice(gib(2)));
  settle();
  config.enforcement = Enforcement::kDriver;
  EXPECT_THAT(refusal(pod_slice(gib(4))), HasSubstr("all leases of its pod on a GPU together"));
}

TEST_F(DriverLimitsTest, APodWithALeaseThatTakesTurnsHasNoLimitOnThatGpu) {
  begin(Enforcement::kAuto);
  processes.cgroups().add(kPod);
  const LeaseId slice = make(pod_slice(gib(2)));
  AcquireRequest swap = pod_slice(gib(2));
  swap.placement.swap = true;
  make(swap);
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, kPod), std::nullopt);
  EXPECT_FALSE(*limits.check_start(entry(slice)));
  EXPECT_EQ(limits.why_not(entry(slice)), "another lease of its pod takes turns on its GPU");
}

TEST_F(DriverLimitsTest, OneCommandOfAReservationGetsTheLimit) {
  begin(Enforcement::kAuto);
  AcquireRequest request = slice(gib(2));
  request.kind = LeaseKind::kReservation;
  request.lasts = 1h;
  const LeaseId id = make(request);
  EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("a reservation has no control group"));
  const auto [first, group] = start_command(id);
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(2), gib(24)));
  EXPECT_FALSE(limits.limits(entry(id)));
  EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("a shell with the reservation's variables"));
  const std::string second = start_command(id).second;
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(2), gib(24)));
  EXPECT_EQ(probe->group_limit(kGpu, second), std::nullopt);
  EXPECT_THAT(limits.why_not(entry(id)), HasSubstr("in 2 control groups"));
  processes.die(first);
  loop.advance(1s);
  settle();
  EXPECT_EQ(probe->group_limit(kGpu, second), driver_limit(gib(2), gib(24)));
}

TEST_F(DriverLimitsTest, WhereTheLimitIsRequiredAReservationIsRefusedAndAWholeGpuIsNot) {
  begin(Enforcement::kDriver);
  AcquireRequest request = slice(gib(2));
  request.kind = LeaseKind::kReservation;
  request.lasts = 1h;
  EXPECT_FALSE(world.queue.acquire(request));
  EXPECT_THAT(limits.check_request(request).error().message,
              HasSubstr("a reservation has no control group of its own"))
      << "also a booking";
  AcquireRequest whole;
  whole.uid = 1000;
  EXPECT_TRUE(limits.check_request(whole));
  EXPECT_NE(make(whole), LeaseId());
}

// Where limits nest, the memory of the inner lease counts in the group of the outer one.
TEST_F(DriverLimitsTest, TheLimitOfALeaseHasRoomForLeasesWithinIt) {
  begin(Enforcement::kAuto);
  const LeaseId outer = make(slice(gib(2)));
  const std::string group = start(outer);
  AcquireRequest request = slice(gib(4));
  const pid_t shell = processes.spawn({.cgroup = group});
  request.process = processes.id_of(shell);
  const LeaseId inner = (*world.queue.acquire(request))->lease.id;
  const auto below = world.leases.start(inner, processes.spawn({.parent = shell}), false);
  settle();
  ASSERT_TRUE(below && *below && (*below)->starts_with(group));
  EXPECT_EQ(probe->group_limit(kGpu, **below), driver_limit(gib(4), gib(24)));
  EXPECT_EQ(probe->group_limit(kGpu, group), driver_limit(gib(6), gib(24)));
  EXPECT_EQ(limits.others_group(entry(inner)), "");
  EXPECT_TRUE(limits.limits(entry(outer)));
}

TEST_F(DriverLimitsTest, LimitsOfOthersAreSeenAndReported) {
  begin(Enforcement::kAuto);
  const LeaseId id = make(slice(gib(2)));
  const std::string group = start(id);
  probe->set_group_limit(kGpu, group, gib(1));
  loop.advance(DriverLimits::kPeriod);
  settle();
  EXPECT_EQ(limits.limit_of(entry(id), kGpu), gib(1));
  EXPECT_EQ(limits.others_group(entry(id)), group);
  EXPECT_EQ(limits.report()->others.size(), 1U);
}

}  // namespace
}  // namespace gpurota::daemon
