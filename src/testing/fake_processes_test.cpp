#include "testing/fake_processes.h"

#include "testing/fake_event_loop.h"
#include "testing/fake_gpu_probe.h"

#include <gtest/gtest.h>

#include <csignal>

namespace gpurota::testing {
namespace {

TEST(FakeProcesses, DeathIsReportedOnceAndOnTheHandle) {
  FakeEventLoop loop;
  FakeProcesses processes(loop);
  const pid_t pid = processes.spawn();
  auto handle = processes.open(processes.id_of(pid));
  ASSERT_TRUE(handle);
  int deaths = 0;
  auto source = processes.on_death(**handle, [&] { ++deaths; });
  processes.die(pid);
  EXPECT_FALSE((*handle)->alive());
  loop.run_until_idle();
  EXPECT_EQ(deaths, 1);
  auto late = processes.on_death(**handle, [&] { ++deaths; });
  loop.run_until_idle();
  EXPECT_EQ(deaths, 2);
}

TEST(FakeProcesses, AReusedPidIsAnotherProcess) {
  FakeEventLoop loop;
  FakeProcesses processes(loop);
  const pid_t pid = processes.spawn();
  const ports::ProcessId id = processes.id_of(pid);
  auto old = processes.open(id);
  processes.die(pid);
  processes.spawn({.pid = pid});
  EXPECT_FALSE((*old)->alive());
  EXPECT_EQ(processes.open(id).error().code, Code::kGone);
  EXPECT_TRUE((*old)->send_signal(SIGKILL));
  EXPECT_TRUE(processes.alive(pid));
}

TEST(FakeProcesses, StubbornOnesOnlyDieBySigkill) {
  FakeEventLoop loop;
  FakeProcesses processes(loop);
  const pid_t pid = processes.spawn({.stubborn = true});
  auto handle = processes.open(processes.id_of(pid));
  ASSERT_TRUE((*handle)->send_signal(SIGTERM));
  EXPECT_TRUE((*handle)->alive());
  ASSERT_TRUE((*handle)->send_signal(SIGKILL));
  EXPECT_FALSE((*handle)->alive());
  EXPECT_EQ(processes.signals().size(), 2u);
}

TEST(FakeProcesses, ChildrenAreInTheCgroupAndDieWithIt) {
  FakeEventLoop loop;
  FakeProcesses processes(loop);
  const pid_t main = processes.spawn();
  const auto cgroup = processes.cgroups().make_below(main, "gpurota-L1");
  ASSERT_TRUE(cgroup);
  EXPECT_TRUE(processes.cgroups().members(*cgroup)->empty());
  processes.cgroups().enter(*cgroup, main, [](const Result<void>& moved) { EXPECT_TRUE(moved); });
  const pid_t child = processes.spawn({.parent = main});
  const pid_t other = processes.spawn();
  EXPECT_EQ(*processes.cgroups().members(*cgroup), (std::vector<pid_t>{main, child}));
  processes.cgroups().remove(*cgroup, [](const Result<void>& result) { EXPECT_FALSE(result); });
  ASSERT_TRUE(processes.cgroups().kill(*cgroup));
  processes.cgroups().remove(*cgroup, [](const Result<void>& result) { EXPECT_TRUE(result); });
  EXPECT_FALSE(processes.cgroups().exists(*cgroup));
  EXPECT_TRUE(processes.alive(other));
}

TEST(FakeGpuProbe, SumsItsProcessesAndListsMigInstancesAfterTheirParent) {
  FakeGpuProbe probe;
  const GpuInfo first = probe.add_gpu(gib(24));
  const GpuInfo second = probe.add_gpu(gib(80));
  const GpuInfo mig = probe.add_mig(first.uuid, gib(10));
  const auto gpus = probe.read_gpus();
  ASSERT_EQ(gpus->size(), 3u);
  EXPECT_TRUE((*gpus)[0].mig_enabled);
  EXPECT_EQ((*gpus)[1].uuid, mig.uuid);
  EXPECT_TRUE(uuid_bytes(mig.uuid));
  probe.set_process(second.uuid, 7, gib(3));
  probe.set_process(second.uuid, 8, std::nullopt, true);
  probe.set_unattributed(second.uuid, mib(100));
  EXPECT_EQ(probe.read_sample(second).used, gib(3) + mib(100));
  probe.remove_process(7);
  EXPECT_EQ(probe.read_sample(second).processes.size(), 1u);
}

}  // namespace
}  // namespace gpurota::testing
