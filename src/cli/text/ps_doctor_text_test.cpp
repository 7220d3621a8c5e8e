#include "cli/text/ps_doctor_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::cli {
namespace {

TEST(PsDoctorText, PsShowsWhoHasNoLease) {
  proto::ListProcesses::Reply reply;
  proto::Process& process = reply.processes.emplace_back();
  process.pid = 4711;
  process.type = proto::ProcessType::kCompute;
  process.used_bytes = mib(518);
  process.command = {{"./a.out"}};
  EXPECT_EQ(ps_text(reply, {}),
            "GPU   PID  USER  TYPE      MEMORY  LEASE  LIMITED  ALLOCS  REFUSED  COMMAND\n"
            "  0  4711  ?     compute  518 MiB  -      -             -        -  ./a.out\n");
  EXPECT_EQ(ps_text({}, {}), "no process on any GPU\n");
}

TEST(PsDoctorText, PsShowsAllocationsAndUnhookedFunctions) {
  proto::ListProcesses::Reply reply;
  proto::Process& process = reply.processes.emplace_back();
  process.pid = 4711;
  process.type = proto::ProcessType::kCompute;
  process.used_bytes = mib(518);
  process.tenant = true;
  process.allocations = 12;
  process.refusals = 3;
  process.unhooked = 5;
  process.unhooked_names = {{"cuMemAlloc_v9", "cuMemTeleport"}};
  EXPECT_EQ(ps_text(reply, {}),
            "GPU   PID  USER  TYPE      MEMORY  LEASE  LIMITED  ALLOCS  REFUSED  COMMAND\n"
            "  0  4711  ?     compute  518 MiB  -      yes          12        3\n"
            "4711 uses driver functions newer than this gpurota: cuMemAlloc_v9, cuMemTeleport\n");
}

TEST(PsDoctorText, PsSaysForHowLongWorkWasHeldBack) {
  proto::ListProcesses::Reply reply;
  proto::Process& process = reply.processes.emplace_back();
  process.pid = 4711;
  process.held_seconds = 0;
  EXPECT_EQ(ps_text(reply, {}).find("held back"), std::string::npos);
  process.held_seconds = 12;
  EXPECT_NE(
      ps_text(reply, {}).find("4711 has held back work for 12 s so far, for interactive leases\n"),
      std::string::npos);
  process.share_wait_seconds = 3;
  EXPECT_NE(
      ps_text(reply, {}).find("4711 has waited for 3 s so far until its lease could compute\n"),
      std::string::npos);
}

TEST(PsDoctorText, PsNamesContainersWhereThereAreAny) {
  proto::Process process;
  process.pid = 4711;
  process.type = proto::ProcessType::kCompute;
  process.command = {{"./a.out"}};
  proto::ListProcesses::Reply reply{{process, process, process}};
  reply.processes[1].container = {
      proto::ContainerEngine::kPodman, std::string(64, 'a'), {}, {}, {}};
  reply.processes[2].container = {proto::ContainerEngine::kKubernetes, "", "1b4e-28", {}, {}};
  EXPECT_EQ(ps_text(reply, {}),
            "GPU   PID  USER  TYPE     MEMORY  LEASE  LIMITED  ALLOCS  REFUSED  CONTAINER          "
            "     COMMAND\n"
            "  0  4711  ?     compute       ?  -      -             -        -                     "
            "     ./a.out\n"
            "  0  4711  ?     compute       ?  -      -             -        -  podman "
            "aaaaaaaaaaaa     ./a.out\n"
            "  0  4711  ?     compute       ?  -      -             -        -  kubernetes pod "
            "1b4e-28  ./a.out\n");
}

TEST(PsDoctorText, ContainersAreCalledByTheirNames) {
  proto::Container container{proto::ContainerEngine::kPodman, std::string(64, 'a'), {}, "web", "x"};
  EXPECT_EQ(container_text(container), "podman web");
  container = {
      proto::ContainerEngine::kContainerd, std::string(64, 'a'), "1b4e-28", "lab/train-0/main", {}};
  EXPECT_EQ(container_text(container), "containerd lab/train-0/main");
}

TEST(PsDoctorText, PsSaysWhyAProgramIsNotLimited) {
  using proto::LibraryState;
  proto::ListProcesses::Reply reply;
  for (const LibraryState state : {LibraryState::kSilent, LibraryState::kAbsent,
                                   LibraryState::kAway, LibraryState::kUnknown}) {
    proto::Process& process = reply.processes.emplace_back();
    process.pid = 4711 + static_cast<pid_t>(reply.processes.size());
    process.type = proto::ProcessType::kCompute;
    process.lease_id = LeaseId{7};
    process.library = state;
  }
  EXPECT_EQ(ps_text(reply, {}),
            "GPU   PID  USER  TYPE     MEMORY  LEASE  LIMITED     ALLOCS  REFUSED  COMMAND\n"
            "  0  4712  ?     compute       ?  L7     no               -        -\n"
            "  0  4713  ?     compute       ?  L7     not loaded       -        -\n"
            "  0  4714  ?     compute       ?  L7     away             -        -\n"
            "  0  4715  ?     compute       ?  L7     not known        -        -\n"
            "libgpurota is loaded in process 4712 but does not limit it: please report this, with "
            "what GPUROTA_DEBUG=1 prints\n");
}

TEST(PsDoctorText, AnOversizeLeaseIsWarnedAbout) {
  proto::Lease lease;
  lease.lease_id = LeaseId{7};
  lease.share = proto::Share::kSwap;
  proto::LeaseGpu& gpu = lease.gpus.emplace_back();
  gpu.limit_bytes = gib(36);
  EXPECT_EQ(oversize_warning(lease), "");
  gpu.oversize_bytes = gib(12);
  EXPECT_THAT(oversize_warning(lease),
              testing::HasSubstr("of its 36 GiB on GPU 0, 12 GiB lie in host"));
  EXPECT_EQ(lease_line(lease), "L7 on GPU 0 (36 GiB, 12 GiB of it in host memory), in turns");
}

TEST(PsDoctorText, AnInteractiveOrParkedLeaseSaysSo) {
  proto::Lease lease;
  lease.lease_id = LeaseId{7};
  lease.share = proto::Share::kSlice;
  lease.gpus.emplace_back().limit_bytes = gib(8);
  lease.latency = proto::LatencyClass::kNormal;
  EXPECT_EQ(lease_line(lease), "L7 on GPU 0 (8 GiB)");
  lease.latency = proto::LatencyClass::kInteractive;
  EXPECT_EQ(lease_line(lease), "L7 on GPU 0 (8 GiB), interactive");
  lease.parked = proto::ParkState::kParking;
  EXPECT_EQ(lease_line(lease), "L7 on GPU 0 (8 GiB), interactive, parking");
}

TEST(PsDoctorText, AMigInstanceIsNotNamedLikeAGpu) {
  proto::ListProcesses::Reply reply;
  reply.processes.emplace_back().gpu_label = "0:1";
  EXPECT_THAT(ps_text(reply, {}), ::testing::HasSubstr("\n0:1  "));
  proto::Lease lease;
  lease.lease_id = {3};
  lease.gpus = {{.index = 1, .label = "0:1"}, {.index = 1}};
  EXPECT_EQ(lease_line(lease), "L3 on GPU 0:1 (whole), GPU 1 (whole)") << "an older daemon's index";
}

TEST(PsDoctorText, DoctorShowsRemediesOnlyForProblems) {
  const std::vector<proto::Check> checks = {
      {"driver", proto::CheckStatus::kOk, "580", "not shown"},
      {"cgroup v2", proto::CheckStatus::kWarning, "cannot be written", "run as root"}};
  EXPECT_EQ(doctor_text(checks, {}),
            "ok       driver     580\n"
            "warning  cgroup v2  cannot be written\n"
            "         -> run as root\n");
}

TEST(Fit, CutsAtTerminalColumns) {
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("世界世", 5), "世界…");
  EXPECT_EQ(fit("世界世", 4), "世…");
  EXPECT_EQ(fit("abc", 0), "");
}

}  // namespace
}  // namespace gpurota::cli
