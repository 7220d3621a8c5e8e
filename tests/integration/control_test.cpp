// Leases through the control socket.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::testing {
namespace {

using ::testing::HasSubstr;

TEST(Control, DescribesItsInterfaces) {
  RunningDaemon daemon;
  const auto info = daemon.call(proto::GetInfo{});
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->pid, ::getpid());
  EXPECT_EQ(info->gpus, 1);
  EXPECT_EQ(info->tenant_socket, daemon.tenant_socket());
}

TEST(Control, ASliceComesWithWhatTheCommandNeeds) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  const auto slice = daemon.acquire_slice(connection, gib(8));
  EXPECT_EQ(slice.lease.gpus[0].limit_bytes, gib(8));
  EXPECT_EQ(slice.preload, "/libgpurota.so");
  const auto has = [&](const std::string& name, const std::string& value) {
    return ::testing::Value(slice.environment, ::testing::Contains(proto::Variable{name, value}));
  };
  EXPECT_TRUE(has("CUDA_VISIBLE_DEVICES", "0"));
  EXPECT_TRUE(has("CUDA_DEVICE_ORDER", "PCI_BUS_ID"));
  EXPECT_TRUE(has("GPUROTA_LEASE", to_string(slice.lease.lease_id)));
}

TEST(Control, AnExclusiveLeaseNeedsNoPreload) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  const auto lease = connection.call(proto::Acquire{});
  ASSERT_TRUE(lease);
  EXPECT_FALSE(lease->preload);
  EXPECT_EQ(lease->lease.share, proto::Share::kExclusive);
  for (const auto& variable : lease->environment) EXPECT_NE(variable.name, "GPUROTA_SOCKET");
}

TEST(Control, ALeaseThatIsNotStartedEndsWithItsConnection) {
  RunningDaemon daemon;
  {
    auto connection = daemon.connect();
    daemon.acquire_slice(connection, gib(8));
    EXPECT_EQ(daemon.call(proto::Status{})->leases.size(), 1u);
  }
  EXPECT_TRUE(eventually([&] { return daemon.call(proto::Status{})->leases.empty(); }));
}

TEST(Control, AStartedLeaseLivesAsLongAsItsCommand) {
  RunningDaemon daemon;
  auto holding = daemon.connect();
  LeaseId id;
  Child command({"sleep", "600"});
  {
    auto connection = daemon.connect();
    id = daemon.acquire_slice(connection, gib(8)).lease.lease_id;
    ASSERT_TRUE(connection.call(proto::Start{id, command.pid(), {}}));
  }
  ASSERT_TRUE(holding.start_stream(proto::Hold{id}));
  EXPECT_EQ(daemon.call(proto::Status{})->leases.size(), 1u);
  command.kill();
  std::optional<proto::Ended> ended;
  EXPECT_TRUE(eventually([&] {
    const auto answer = holding.next_answer<proto::Hold>();
    if (answer && *answer) ended = (*answer)->reply.ended;
    return ended.has_value();
  }));
  EXPECT_EQ(ended, proto::Ended::kFinished);
  EXPECT_TRUE(daemon.call(proto::Status{})->leases.empty());
}

TEST(Control, LateQueryAboutALeaseReturnsHowItEnded) {
  RunningDaemon daemon;
  Child command({"sleep", "600"});
  LeaseId id;
  {
    auto connection = daemon.connect();
    id = daemon.acquire_slice(connection, gib(8)).lease.lease_id;
    ASSERT_TRUE(connection.call(proto::Start{id, command.pid(), {}}));
  }
  proto::Release release;
  release.lease_id = id;
  ASSERT_TRUE(daemon.call(release));
  ASSERT_TRUE(eventually([&] { return daemon.call(proto::Status{})->leases.empty(); }));
  const auto last = daemon.call(proto::Hold{id});
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->ended, proto::Ended::kReleased);
  EXPECT_TRUE(last->reason);
  EXPECT_EQ(daemon.call(proto::Hold{LeaseId{999}}).error().code, Code::kNotFound);
}

TEST(Control, ReleaseEndsTheCommand) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  const LeaseId id = daemon.acquire_slice(connection, gib(8)).lease.lease_id;
  Child command({"sh", "-c", "trap '' TERM; echo ready; exec sleep 600"});
  EXPECT_EQ(command.read_line(), "ready");
  ASSERT_TRUE(connection.call(proto::Start{id, command.pid(), {}}));
  const auto released = daemon.call(proto::Release{{}, {}, true});
  ASSERT_TRUE(released);
  EXPECT_EQ(released->lease_ids, std::vector<LeaseId>{id});
  EXPECT_TRUE(command.ended());
  EXPECT_TRUE(eventually([&] { return daemon.call(proto::Status{})->leases.empty(); }));
}

TEST(Control, RefusalsSayWhatToDo) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  daemon.acquire_slice(connection, gib(20));
  const auto refused = [&](const proto::Acquire& request) {
    const auto reply = daemon.call(request);
    return reply ? Error{} : reply.error();
  };
  EXPECT_EQ(refused({}).code, Code::kNoGpu);
  EXPECT_EQ(refused({.request = {.gpus = 2}}).code, Code::kInvalid);
  EXPECT_EQ(refused({.request = {.memory = SizeSpec{gib(30), 0}}}).code, Code::kLimit);
  EXPECT_THAT(refused({.request = {.memory = SizeSpec{gib(8), 0}}}).message,
              HasSubstr("4 GiB left"));
  EXPECT_THAT(refused({.request = {.gpu_ids = std::vector<std::string>{"7"}}}).message,
              HasSubstr("GPUs here"));
  EXPECT_EQ(daemon.call(proto::Release{LeaseId{99}, {}, {}}).error().code, Code::kNotFound);
  EXPECT_EQ(daemon.call(proto::Release{}).error().code, Code::kInvalid);
}

TEST(Control, CheckAcceptsARequestThatCanWaitButNotOneTheMachineCannotFill) {
  RunningDaemon daemon;
  const auto check = [&](const proto::CheckRequest& request) { return daemon.call(request); };
  EXPECT_TRUE(check({.request = {.memory = SizeSpec{gib(8), 0}}}));
  EXPECT_TRUE(daemon.call(proto::Drain{{"0"}, {}}));
  EXPECT_TRUE(check({.request = {.memory = SizeSpec{gib(8), 0}}})) << "it is back some day";
  const proto::Acquire too_much{{.memory = SizeSpec{gib(30), 0}}};
  const auto never = check({.request = {.memory = too_much.request.memory}});
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::kLimit);
  EXPECT_EQ(never.error().message, daemon.call(too_much).error().message);
  EXPECT_EQ(check({.request = {.gpus = 2}}).error().code, Code::kInvalid);
  EXPECT_THAT(check({.request = {.gpu_ids = std::vector<std::string>{"7"}}}).error().message,
              HasSubstr("GPUs here"));
  EXPECT_THAT(check({.request = {.quantum = "5s"}}).error().message, HasSubstr("--swap"));
  EXPECT_THAT(check({.request = {.priority = 1}}).error().message, HasSubstr("priorities up to 0"));
  daemon.stop();
  daemon.probe.set_failure({Code::kUnavailable, 0, "no NVIDIA driver"});
  daemon.start();
  EXPECT_TRUE(check({.request = {.gpus = 2}})) << "nobody knows";
}

TEST(Control, DaemonReportsAMissingDriverAndFindsItLater) {
  RunningDaemon daemon;
  daemon.stop();
  daemon.probe.set_failure({Code::kUnavailable, 0, "no NVIDIA driver"});
  daemon.start();
  EXPECT_THAT(daemon.call(proto::Acquire{}).error().message, HasSubstr("no NVIDIA driver"));
  daemon.probe.clear_failure();
  EXPECT_TRUE(eventually([&] { return daemon.call(proto::GetInfo{})->gpus == 1; }));
}

TEST(Control, GpuThatDoesNotAnswerDelaysNobody) {
  RunningDaemon daemon;
  const GpuInfo second = daemon.probe.add_gpu(gib(24));
  daemon.stop();
  daemon.start();
  daemon.probe.block(second.uuid);
  auto connection = daemon.connect();
  daemon.acquire_slice(connection, gib(8));
  EXPECT_EQ(daemon.call(proto::Status{})->gpus.size(), 2u);
  daemon.probe.unblock();
}

TEST(Control, HangingDriverDelaysNeitherDoctorNorTheEndOfTheDaemon) {
  RunningDaemon daemon;
  const GpuUuid gpu = daemon.call(proto::Status{})->gpus[0].uuid;
  daemon.probe.block(gpu);
  const int seen = daemon.probe.samples_read();
  EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > seen; }));
  EXPECT_FALSE(daemon.call(proto::Doctor{})->checks.empty());
  daemon.stop();
  daemon.probe.unblock();
  daemon.start();
  EXPECT_EQ(daemon.call(proto::Status{})->gpus.size(), 1u);
}

TEST(Control, DoctorShowsSettingsAndGpusThatDidNotAnswerAtDiscovery) {
  RunningDaemon daemon;
  daemon.stop();
  daemon.probe.set_problems({"GPU 3 does not answer: GPU is lost"});
  daemon.probe.set_settings({{"compute_mode", "exclusive process"}});
  daemon.start();
  std::string said;
  EXPECT_TRUE(eventually([&] {
    said.clear();
    const auto reply = daemon.call(proto::Doctor{});
    if (!reply) return false;
    for (const proto::Check& check : reply->checks) said += check.summary + "\n";
    return said.find("exclusive process") != std::string::npos;
  })) << said;
  EXPECT_THAT(said, HasSubstr("GPU 3 does not answer: GPU is lost"));
}

TEST(Control, EventsWithoutMoreComeInPagesWithTheRemainder) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  proto::Update update;
  update.lease_id = daemon.acquire_slice(connection, gib(1)).lease.lease_id;
  for (int i = 0; i < 1100; ++i) {
    update.note = std::to_string(i);
    ASSERT_TRUE(connection.call(update));
  }
  proto::Events call;
  const auto newest = connection.call(call);
  ASSERT_TRUE(newest) << newest.error().message;
  EXPECT_EQ(newest->events.size(), 1000u);
  EXPECT_GE(newest->left_out, 100u);
  std::uint64_t last = 0, seen = 0, left = 1;
  while (left > 0) {
    call.after = last;
    const auto page = connection.call(call);
    ASSERT_TRUE(page && !page->events.empty());
    for (const proto::Event& event : page->events) {
      EXPECT_GT(event.event_id, last);
      last = event.event_id;
    }
    seen += page->events.size();
    left = page->left_out;
  }
  EXPECT_EQ(seen, newest->left_out + 1000);
}

// The same call before and after a change: the second call must not get the cached answer.
TEST(Control, AStatusIsNeverOlderThanAChange) {
  RunningDaemon daemon;
  auto connection = daemon.connect();
  const auto status = [&] { return *connection.call(proto::Status{}); };
  EXPECT_TRUE(status().leases.empty());
  const auto slice = daemon.keep_slice(gib(4));
  ASSERT_EQ(status().leases.size(), 1u);
  for (int i = 0; i < 50; ++i) {
    proto::Update update;
    update.lease_id = slice.lease.lease_id;
    update.note = std::to_string(i);
    ASSERT_TRUE(connection.call(update));
    ASSERT_EQ(status().leases[0].note, update.note);
  }
  proto::Drain drain;
  drain.gpu_ids = {"0"};
  ASSERT_TRUE(connection.call(drain));
  EXPECT_EQ(status().gpus[0].state, proto::GpuState::kDraining);
  proto::Undrain undrain;
  undrain.gpu_ids = {"0"};
  ASSERT_TRUE(connection.call(undrain));
  EXPECT_NE(status().gpus[0].state, proto::GpuState::kDraining);
}

TEST(Control, UseWithoutALeaseIsShownAndLeftOut) {
  RunningDaemon daemon;
  const GpuUuid gpu = daemon.call(proto::Status{})->gpus[0].uuid;
  daemon.probe.set_process(gpu, 1, gib(4));
  EXPECT_TRUE(eventually([&] {
    return daemon.call(proto::Status{})->gpus[0].state == proto::GpuState::kUnreservedUse;
  }));
  EXPECT_EQ(daemon.call(proto::Acquire{}).error().code, Code::kNoGpu);
  const auto processes = daemon.call(proto::ListProcesses{});
  ASSERT_EQ(processes->processes.size(), 1u);
  EXPECT_FALSE(processes->processes[0].lease_id);
}

}  // namespace
}  // namespace gpurota::testing
