#include "kube/dra/claim_room.h"

#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

NodeGpu gpu(const char* uuid) {
  NodeGpu gpu;
  gpu.uuid = GpuUuid{uuid};
  gpu.label = uuid;
  gpu.memory = gib(80);
  gpu.free = gpu.free_for_turns = gib(79);
  gpu.idle = true;
  return gpu;
}
Claim lease(Resource resource, const char* uuid, Bytes memory = {}) {
  Claim claim;
  claim.resource = resource;
  claim.devices = {{"r", "n", "d", "", GpuUuid{uuid}, memory}};
  return claim;
}
std::string said(const Result<void>& result) { return result ? "" : result.error().message; }

TEST(ClaimRoom, WholeGpuIsForOneRequestOnly) {
  const std::vector<Claim> both = {lease(Resource::kGpu, "A"),
                                   lease(Resource::kTurn, "A", gib(79))};
  const std::vector<Claim> apart = {lease(Resource::kGpu, "A"),
                                    lease(Resource::kTurn, "B", gib(79))};
  EXPECT_NE(said(check_together(both, {gpu("A"), gpu("B")})).find("GPU A to 2 requests"),
            std::string::npos);
  EXPECT_TRUE(check_together(apart, {gpu("A"), gpu("B")}));
}

TEST(ClaimRoom, TurnsShareTheMemoryThatSlicesLeave) {
  std::vector<Claim> leases = {lease(Resource::kTurn, "A", gib(50)),
                               lease(Resource::kTurn, "A", gib(60)),
                               lease(Resource::kMemory, "A", gib(20))};
  EXPECT_TRUE(check_together(leases, {gpu("A")}));
  leases.push_back(lease(Resource::kMemory, "A", gib(1)));
  EXPECT_NE(said(check_together(leases, {gpu("A")})).find("delete the pod"), std::string::npos);
}

TEST(ClaimRoom, SaysWhichGpuHasNoRoomNow) {
  const std::vector<Claim> leases = {lease(Resource::kMemory, "A", gib(8)),
                                     lease(Resource::kGpu, "B")};
  EXPECT_TRUE(check_room(leases, {gpu("A"), gpu("B")}));
  NodeGpu full = gpu("A"), used = gpu("B"), drained = gpu("A");
  full.free = gib(7);
  used.idle = false;
  drained.in_service = false;
  EXPECT_NE(said(check_room(leases, {full, gpu("B")})).find("GPU A, which has 7 GiB left"),
            std::string::npos)
      << said(check_room(leases, {full, gpu("B")}));
  EXPECT_NE(said(check_room(leases, {gpu("A"), used})).find("GPU B"), std::string::npos);
  EXPECT_NE(said(check_room(leases, {drained, gpu("B")})).find("drained"), std::string::npos);
}

}  // namespace
}  // namespace gpurota::kube
