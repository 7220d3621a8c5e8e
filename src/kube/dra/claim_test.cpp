#include "kube/dra/claim.h"

#include <gtest/gtest.h>

#include <string>

namespace gpurota::kube {
namespace {

const ClaimId kId{"uid-1", "default", "claim-1"};

std::string claim_json(const std::string& results, const std::string& configs = "",
                       const std::string& pods = R"({"resource":"pods","name":"train"})") {
  return R"({"metadata":{"uid":"uid-1"},"status":{"reservedFor":[)" + pods +
         R"(],"allocation":{"devices":{"results":[)" + results + R"(],"config":[)" + configs +
         "]}}}}";
}
std::string result(const std::string& device, const std::string& memory = "8Gi",
                   const std::string& request = "gpu") {
  return R"({"request":")" + request + R"(","driver":"gpurota.dev","pool":"n","device":")" +
         device + R"(","shareID":"s","consumedCapacity":{"memory":")" + memory + R"("}})";
}
std::string config(const char* source, const std::string& keys) {
  return std::string(R"({"source":")") + source +
         R"(","opaque":{"driver":"gpurota.dev","parameters":)"
         R"({"apiVersion":"gpurota.dev/v1","kind":"LeaseConfig",)" +
         keys + "}}}";
}
std::vector<NodeGpu> gpus() {
  NodeGpu a, b;
  a.uuid = GpuUuid{"GPU-A"};
  b.uuid = GpuUuid{"GPU-B"};
  return {a, b};
}
Result<std::vector<Claim>> leases_in(const std::string& json) {
  GPUROTA_ASSIGN_OR_RETURN(const AllocatedClaim claim, parse_claim(kId, json));
  return leases_of(claim, gpus());
}
Result<Claim> lease(const std::string& json) {
  GPUROTA_ASSIGN_OR_RETURN(std::vector<Claim> leases, leases_in(json));
  EXPECT_EQ(leases.size(), 1u);
  return std::move(leases.front());
}
std::string refusal(const Result<Claim>& claim) { return claim ? "none" : claim.error().message; }

TEST(AClaim, MemoryClaimIsASliceOfItsGpu) {
  const auto claim = lease(claim_json(result("gpu-a")));
  ASSERT_TRUE(claim) << refusal(claim);
  const LeaseOrder order = order_of(*claim);
  EXPECT_EQ(order.allocation, "claim-uid-1");
  EXPECT_EQ(order.request.memory, (SizeSpec{gib(8), 0}));
  EXPECT_EQ(order.request.gpu_ids, std::vector<std::string>{"GPU-A"});
  EXPECT_EQ(order.pod->name, "train");
  EXPECT_EQ(order.pod->container, "claim-1");
  EXPECT_FALSE(order.pod_uid);
}

TEST(AClaim, ClaimOfOnePodNamesThePodByItsUid) {
  const auto claim =
      lease(claim_json(result("gpu-a"), "", R"({"resource":"pods","name":"a","uid":"1b-2"})"));
  ASSERT_TRUE(claim) << refusal(claim);
  EXPECT_EQ(order_of(*claim).pod_uid, "1b-2");
}

TEST(AClaim, ClaimSharedBySeveralPodsHasItsOwnName) {
  const auto claim = lease(claim_json(
      result("gpu-a"), "", R"({"resource":"pods","name":"a"},{"resource":"pods","name":"b"})"));
  ASSERT_TRUE(claim);
  EXPECT_EQ(order_of(*claim).pod->name, "claim-1");
}

TEST(AClaim, TwoSharesOfOneGpuAreOneLimit) {
  const auto claim = lease(claim_json(result("gpu-a") + "," + result("gpu-a", "4Gi")));
  ASSERT_TRUE(claim);
  EXPECT_EQ(order_of(*claim).request.memory, (SizeSpec{gib(12), 0}));
}

TEST(AClaim, TurnsWithoutAnAmountGetTheLeastMemoryOfTheGpus) {
  const std::string two = result("gpu-a-turns", "79Gi") + "," + result("gpu-b-turns", "60Gi");
  const auto claim = lease(claim_json(two));
  ASSERT_TRUE(claim) << refusal(claim);
  EXPECT_EQ(order_of(*claim).request.memory, (SizeSpec{gib(60), 0}));
  EXPECT_EQ(order_of(*claim).request.gpu_ids->size(), 2u);
  std::string named = claim_json(two);
  named.insert(1, R"("spec":{"devices":{"requests":[{"name":"gpu","exactly":{"capacity":)"
                  R"({"requests":{"memory":"60Gi"}}}}]}},)");
  EXPECT_NE(refusal(lease(named)).find("unequal amounts"), std::string::npos) << "it is named";
}

TEST(AClaim, WithAdminAccessIsRefused) {
  std::string admin = result("gpu-a");
  admin.insert(1, R"("adminAccess":true,)");
  EXPECT_NE(refusal(lease(claim_json(admin))).find("adminAccess"), std::string::npos);
}

TEST(AClaim, TakesTurnsOnTheDeviceForThem) {
  const auto claim = lease(
      claim_json(result("gpu-b-turns"),
                 config("FromClass", R"("share":"turns","oversize":true)") + "," +
                     config("FromClaim", R"("quantum":"2s","priority":-3,"softLimit":"4Gi")")));
  ASSERT_TRUE(claim) << refusal(claim);
  const proto::LeaseRequest request = order_of(*claim).request;
  EXPECT_EQ(request.swap, true);
  EXPECT_EQ(request.oversize, true);
  EXPECT_EQ(request.quantum, "2000ms");
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.soft_limit, (SizeSpec{gib(4), 0}));
}

TEST(AClaim, OfAClassForWholeGpusIsExclusive) {
  const auto claim =
      lease(claim_json(result("gpu-a", "79Gi"), config("FromClass", R"("share":"whole")")));
  ASSERT_TRUE(claim);
  EXPECT_FALSE(order_of(*claim).request.memory);
  EXPECT_FALSE(order_of(*claim).request.swap);
}

TEST(AClaim, OfTheDeviceForAllOfAGpuIsExclusive) {
  const std::string whole =
      R"({"request":"gpu","driver":"gpurota.dev","pool":"n","device":"gpu-a-whole"})";
  const auto claim = lease(claim_json(whole, config("FromClass", R"("share":"whole")")));
  ASSERT_TRUE(claim) << refusal(claim);
  EXPECT_EQ(claim->resource, Resource::kGpu);
  EXPECT_EQ(claim->devices.front().gpu, GpuUuid{"GPU-A"});
  EXPECT_NE(refusal(lease(claim_json(whole, config("FromClass", R"("share":"memory")"))))
                .find("gives memory, and its selector has chosen gpu-a-whole"),
            std::string::npos);
}

TEST(AClaim, IsRefusedWithTheKeyThatIsWrong) {
  const auto of = [](const std::string& keys) {
    return refusal(lease(claim_json(result("gpu-a"), config("FromClaim", keys))));
  };
  EXPECT_NE(of(R"("softlimit":"1Gi")").find("softlimit is not known"), std::string::npos);
  EXPECT_NE(of(R"("share":"whole")").find("share can only be said by the device class"),
            std::string::npos);
  EXPECT_NE(of(R"("priority":1.5)").find("priority is not a number"), std::string::npos);
  EXPECT_NE(of(R"("priority":18446744073709551615)").find("priority is not a number"),
            std::string::npos);
  EXPECT_NE(of(R"("priority":5)").find("priority 5 is above 0"), std::string::npos);
  EXPECT_NE(of(R"("quantum":"5")").find("quantum is not the length of a turn"), std::string::npos);
  EXPECT_NE(of(R"("quantum":"5s")").find("only turns have a quantum"), std::string::npos);
  EXPECT_NE(of(R"("softLimit":"0")").find("softLimit is not an amount"), std::string::npos);
}

TEST(AClaim, AsksForAShareOfTheComputeTimeWithinItsClass) {
  const auto with = [](const std::string& of_class, const std::string& of_claim) {
    return lease(claim_json(result("gpu-a"),
                            config("FromClass", of_class) + "," + config("FromClaim", of_claim)));
  };
  auto claim = with(R"("maxCompute":"40%","computeMax":"60%")", R"("compute":"30%")");
  ASSERT_TRUE(claim) << refusal(claim);
  EXPECT_EQ(order_of(*claim).request.compute_percent, 30);
  EXPECT_EQ(order_of(*claim).request.compute_max_percent, 60);
  claim = with(R"("computeMax":"60%","compute":"10%")", R"("computeMax":"100%")");
  ASSERT_TRUE(claim) << refusal(claim);
  EXPECT_EQ(claim->terms.compute, (ComputeShare{10, 60})) << "a claim does not raise the bound";
  claim = with(R"("computeMax":"60%")", R"("computeMax":"50%")");
  ASSERT_TRUE(claim) << refusal(claim);
  EXPECT_EQ(claim->terms.compute, (ComputeShare{0, 50}));
  claim = with(R"("compute":"30%")", R"("computeMax":"20%")");
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->terms.compute, (ComputeShare{20, 20})) << "the share of the class is lowered";
  EXPECT_NE(refusal(with(R"("maxCompute":"40%")", R"("compute":"50%")"))
                .find("compute 50% is above 40%, which its device class allows"),
            std::string::npos);
  EXPECT_NE(refusal(with(R"("computeMax":"40%")", R"("compute":"50%")"))
                .find("compute 50% is above computeMax 40%"),
            std::string::npos);
  EXPECT_NE(refusal(with("\"priority\":0", R"("compute":50)")).find("is not a share from"),
            std::string::npos);
  EXPECT_NE(refusal(with("\"priority\":0", R"("maxCompute":"50%")"))
                .find("can only be said by the device class"),
            std::string::npos);
  const auto turns =
      lease(claim_json(result("gpu-b-turns"), config("FromClass", R"("share":"turns")") + "," +
                                                  config("FromClaim", R"("compute":"9%")")));
  EXPECT_NE(refusal(turns).find("only memory of one GPU has a share"), std::string::npos);
}

TEST(AClaim, ClaimLowersTheLimitOfItsClassButNeverRaisesIt) {
  const auto soft = [](const char* of_claim) {
    return lease(
        claim_json(result("gpu-a"), config("FromClaim", of_claim) + "," +
                                        config("FromClass", R"("softLimit":"4Gi","priority":10)")));
  };
  EXPECT_EQ(soft(R"("softLimit":"8Gi")")->terms.soft_limit, gib(4));
  EXPECT_EQ(soft(R"("softLimit":"2Gi")")->terms.soft_limit, gib(2));
  EXPECT_EQ(soft(R"("priority":3)")->terms.priority, 3);
  EXPECT_FALSE(soft(R"("priority":11)"));
  EXPECT_TRUE(lease(claim_json(result("gpu-a"), config("FromClass", R"("maxPriority":50)") + "," +
                                                    config("FromClaim", R"("priority":50)"))));
}

TEST(AClaim, ConfigurationForOtherRequestsIsIgnored) {
  const std::string other = R"({"source":"FromClaim","requests":["other"],)"
                            R"("opaque":{"driver":"gpurota.dev","parameters":7}})";
  EXPECT_TRUE(lease(claim_json(result("gpu-a"), other)));
  const std::string its = R"({"source":"FromClaim","requests":["gpu"],)"
                          R"("opaque":{"driver":"gpurota.dev","parameters":7}})";
  EXPECT_FALSE(lease(claim_json(result("gpu-a"), its)));
}

TEST(AClaim, ClaimThatIsNotOneLeaseIsRefused) {
  for (const std::string& results : {result("gpu-a") + "," + result("gpu-b", "4Gi"),
                                     result("gpu-a") + "," + result("gpu-b-turns")}) {
    EXPECT_NE(refusal(lease(claim_json(results))).find("make a claim for each"), std::string::npos);
  }
}

TEST(AClaim, HasALeaseForEachRequestIfItSaysSo) {
  const std::string per = config("FromClaim", R"("leasePer":"request")");
  const std::string results = result("gpu-a", "8Gi", "big") + "," +
                              result("gpu-a", "1Gi", "small/second") + "," +
                              result("gpu-b-turns", "2Gi", "turn");
  const auto leases = leases_in(claim_json(results, per));
  ASSERT_TRUE(leases) << leases.error().message;
  ASSERT_EQ(leases->size(), 3u);
  const LeaseOrder small = order_of((*leases)[1]);
  EXPECT_EQ(small.allocation, "claim-uid-1.1");
  EXPECT_EQ(small.request.memory, (SizeSpec{gib(1), 0}));
  EXPECT_EQ(small.pod->container, "small");
  EXPECT_EQ((*leases)[2].resource, Resource::kTurn);
  EXPECT_EQ(find_key(small.allocation), "uid-1.1");
  EXPECT_NE(refusal(lease(claim_json(result("gpu-a"), config("FromClaim", R"("leasePer":"pod")"))))
                .find("leasePer is neither"),
            std::string::npos);
}

TEST(AClaim, OfResourcesHasALeaseForEachContainer) {
  std::string json = claim_json(result("gpu-a", "2Gi", "container-0-request-1") + "," +
                                result("gpu-b", "2Gi", "container-0-request-1") + "," +
                                result("gpu-b-turns", "7Gi", "container-11-request-0"));
  const std::string uid = R"("uid":"uid-1")";
  json.replace(json.find(uid), uid.size(),
               uid + R"(,"annotations":{"resource.kubernetes.io/extended-resource-claim":"true"})");
  const auto leases = leases_in(json);
  ASSERT_TRUE(leases) << leases.error().message;
  ASSERT_EQ(leases->size(), 2u);
  EXPECT_EQ(leases->front().part, "container-0");
  EXPECT_EQ(leases->front().devices.size(), 2u);
  EXPECT_EQ(key_of(leases->back()), "uid-1.1");
  json.replace(json.find("container-11"), 12, "container-0");
  const auto two = leases_in(json);
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("let it ask for one"), std::string::npos);
}

TEST(AClaim, MalformedClaimIsRefused) {
  for (const char* text : {"", "{", "[]", "7", R"({"metadata":{"uid":7}})", R"({"metadata":[]})",
                           R"({"metadata":{"uid":"uid-2"}})", R"({"metadata":{"uid":"uid-1"}})"}) {
    EXPECT_FALSE(parse_claim(kId, text)) << text;
  }
  for (const char* result : {"7", "{}", R"({"driver":"gpurota.dev"})",
                             R"({"request":"g","driver":"gpurota.dev","pool":"n","device":"gpu-a",)"
                             R"("consumedCapacity":{"memory":"much"}})"}) {
    EXPECT_FALSE(parse_claim(kId, claim_json(result))) << result;
  }
}

TEST(AClaim, NamesThatBecomePathsAreChecked) {
  EXPECT_TRUE(check_uid("8d1c4c1c-5b0e-4d0f-9a52-1b9a2f0e0001"));
  for (const char* uid : {"", "..", "a/b", "a.b"}) EXPECT_FALSE(check_uid(uid)) << uid;
}

}  // namespace
}  // namespace gpurota::kube
