#include "kube/api/pod_events.h"

#include "kube/api/event_writer.h"
#include "kube/api/json_internal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A pod with a lease on one GPU, and a clock.
class APod : public ::testing::Test {
 protected:
  APod() {
    lease_.lease_id = {7};
    proto::LeaseGpu& share = lease_.gpus.emplace_back();
    share.index = 2;
    share.limit_bytes = gib(8);
    over_.used_bytes = gib(9);
  }
  SeenPod claim(const std::string& key = "uid-1") {
    SeenPod seen;
    seen.key = key;
    seen.ref = {"default", "train", pod_uid_};
    if (has_lease_) seen.lease = &lease_;
    seen.is_ending = is_ending_;
    if (is_over_) seen.over_limit = &over_;
    seen.first_lease = first_lease_;
    return seen;
  }
  std::vector<std::string> reasons() {
    std::vector<std::string> found;
    for (const PodEvent& event : events_.observe({claim()}, now_)) found.push_back(event.reason);
    return found;
  }
  void wait_in_line(int position) {
    lease_.gpus[0].turn = "waiting";
    lease_.gpus[0].turn_position = position;
  }

  proto::Lease lease_;
  proto::Finding over_;
  std::string pod_uid_ = "pod-uid";
  std::optional<LeaseId> first_lease_ = LeaseId{7};
  bool has_lease_ = true, is_ending_ = false, is_over_ = false;
  PodEvents events_{"cannot have another now"};
  TimePoint now_{minutes(60)};
};

TEST_F(APod, HealthyPodGetsNoEvents) { EXPECT_THAT(reasons(), IsEmpty()); }

TEST_F(APod, WaitForATurnIsReportedOnceAfterADelay) {
  wait_in_line(2);
  EXPECT_THAT(reasons(), IsEmpty());
  now_ += PodEvents::kPatience;
  const auto events = events_.observe({claim()}, now_);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].message, "Waits for its turn on GPU 2; 1 is before it");
  EXPECT_FALSE(events[0].is_warning);
  now_ += minutes(60);
  EXPECT_THAT(reasons(), IsEmpty()) << "it is the same waiting";
}

TEST_F(APod, ChangingTurnsAreNotReported) {
  for (int i = 0; i < 100; ++i) {
    wait_in_line(i % 2);
    EXPECT_THAT(reasons(), IsEmpty());
    now_ += seconds(20);
  }
}

TEST_F(APod, EventAboutTooMuchMemoryIsSentAtOnceAndNotRepeatedWithinThePause) {
  is_over_ = true;
  const auto events = events_.observe({claim()}, now_);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].is_warning);
  EXPECT_EQ(events[0].message, "Holds 9 GiB of GPU 2 and may hold 8 GiB");
  is_over_ = false;
  now_ += seconds(5);
  EXPECT_THAT(reasons(), IsEmpty());
  is_over_ = true;
  now_ += seconds(5);
  EXPECT_THAT(reasons(), IsEmpty()) << "within the pause";
  now_ += PodEvents::kPause;
  EXPECT_EQ(reasons().size(), 1U) << "it holds too much still, and that was not said";
}

TEST_F(APod, EndedLeaseThatWasReplacedIsReported) {
  EXPECT_THAT(reasons(), IsEmpty());
  lease_.lease_id = {8};
  EXPECT_THAT(reasons(), ElementsAre("GpuLeaseEnded"));
  EXPECT_THAT(reasons(), IsEmpty());
}

TEST_F(APod, EndedLeaseThatCannotBeReplacedIsReportedOnce) {
  EXPECT_THAT(reasons(), IsEmpty());
  has_lease_ = false;
  EXPECT_THAT(reasons(), IsEmpty()) << "its claim may just be given up";
  now_ += PodEvents::kLossPatience;
  EXPECT_THAT(reasons(), ElementsAre("GpuLeaseEnded"));
  has_lease_ = true;
  lease_.lease_id = {8};
  EXPECT_THAT(reasons(), IsEmpty()) << "that was said";
}

TEST_F(APod, LeaseEndedBeforeTheFirstPollIsReported) {
  lease_.lease_id = {8};
  EXPECT_THAT(reasons(), ElementsAre("GpuLeaseEnded"));
}

TEST_F(APod, EndIsReportedOnceThePodsProgramsHaveEnded) {
  EXPECT_THAT(reasons(), IsEmpty());
  has_lease_ = false;
  is_ending_ = true;
  now_ += PodEvents::kLossPatience * 3;
  EXPECT_THAT(reasons(), IsEmpty());
  has_lease_ = true;
  is_ending_ = false;
  lease_.lease_id = {8};
  EXPECT_THAT(reasons(), ElementsAre("GpuLeaseEnded"));
}

TEST_F(APod, PodGetsNoEventsOfThePodThatHadItsClaimBefore) {
  is_over_ = true;
  EXPECT_THAT(reasons(), ElementsAre("GpuMemoryOverLimit"));
  pod_uid_ = "next-pod";
  lease_.lease_id = {8};
  first_lease_ = LeaseId{8};
  EXPECT_THAT(reasons(), ElementsAre("GpuMemoryOverLimit")) << "and nothing of the other's lease";
}

TEST_F(APod, PodOutsideOfTheQueueIsReportedAsWaiting) {
  lease_.gpus[0].turn = "waiting";
  lease_.gpus[0].moved_out_bytes = gib(2);
  EXPECT_THAT(reasons(), IsEmpty());
  now_ += PodEvents::kPatience;
  EXPECT_THAT(reasons(), ElementsAre("WaitingForGpuTurn"));
}

TEST_F(APod, EventsBeyondTheLimitAreDropped) {
  is_over_ = true;
  std::vector<SeenPod> many;
  for (std::size_t i = 0; i < PodEvents::kMost + 50; ++i) many.push_back(claim(std::to_string(i)));
  EXPECT_EQ(events_.observe(many, now_).size(), PodEvents::kMost);
}

TEST(PodEventJson, IsAnEventOfThePodThatKubectlFinds) {
  const PodEvent event{{"default", std::string(253, 'p'), "uid"}, true, "Reason", "a\xff sentence"};
  const Json json = parse_json(event_json(event, {"gpurota-dra", "node-1"}, WallTime(), "abc"));
  EXPECT_EQ(text_at(at(json, "involvedObject"), "uid"), "uid");
  EXPECT_EQ(text_at(at(json, "involvedObject"), "kind"), "Pod");
  EXPECT_EQ(text_at(json, "type"), "Warning");
  EXPECT_EQ(text_at(at(json, "metadata"), "name").size(), 253U);
  EXPECT_THAT(text_at(at(json, "metadata"), "name"), ::testing::EndsWith(".abc"));
  EXPECT_THAT(text_at(json, "message"), HasSubstr("sentence"));
  EXPECT_EQ(text_at(at(json, "involvedObject"), "fieldPath"), "");
}

TEST(PodEventJson, OfAClaimIsFoundByTheClaim) {
  const PodEvent event{{"default", "train-gpu", "uid", "", true}, true, "Reason", "A sentence"};
  const Json json = parse_json(event_json(event, {"gpurota-dra", "node-1"}, WallTime(), "abc"));
  EXPECT_EQ(text_at(at(json, "involvedObject"), "kind"), "ResourceClaim");
  EXPECT_EQ(text_at(at(json, "involvedObject"), "apiVersion"), "resource.k8s.io/v1");
}

TEST(PodEventJson, SaysOfWhichContainerItIs) {
  const PodEvent event{{"default", "train-0", "uid", "main"}, false, "Reason", "A sentence"};
  const Json json = parse_json(event_json(event, {"gpurota-dra", "node-1"}, WallTime(), "abc"));
  EXPECT_EQ(text_at(at(json, "involvedObject"), "fieldPath"), "spec.containers{main}");
}

}  // namespace
}  // namespace gpurota::kube
