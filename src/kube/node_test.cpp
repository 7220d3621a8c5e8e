#include "kube/node.h"

#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpurota::kube {
namespace {

using std::chrono::seconds;
using Ids = std::vector<std::string>;

class ANode : public ::testing::Test {
 protected:
  void SetUp() override { begin(); }
  // Restarts the plugin with the stored state.
  void begin() {
    Node::Settings settings;
    settings.names = {{Resource::kGpu, "g/gpu"}, {Resource::kMemory, "g/memory"}};
    settings.make_token = [this] { return char('a' + ++tokens_) + std::string(31, 'a'); };
    settings.now = [this] { return now_; };
    auto book = AllocationBook::open(dir_.file("book"), now_);
    ASSERT_TRUE(book);
    node_.emplace(std::move(settings), std::move(*book));
    node_->on_daemon(view_);
  }
  static DaemonView one_gpu() {
    DaemonView view;
    view.node.socket_folder = "/run/gpurota/container";
    view.node.library = "/usr/lib/libgpurota.so";
    NodeGpu gpu;
    gpu.uuid = GpuUuid{"GPU-a"};
    gpu.memory = gpu.free = gib(8);
    gpu.idle = true;
    view.node.gpus = {gpu};
    return view;
  }
  // Makes the lease for this order in the daemon's view.
  proto::Lease make(const LeaseOrder& order) {
    proto::Lease lease;
    lease.kind = proto::LeaseKind::kPod;
    lease.state = proto::LeaseState::kActive;
    lease.lease_id = LeaseId{++leases_};
    lease.allocation = order.allocation;
    view_.pods.push_back(lease);
    return lease;
  }
  // Takes a container from its admission to its start.
  LeaseOrder start(const Ids& ids) {
    EXPECT_TRUE(node_->allocate(Resource::kMemory, ids));
    const auto order = node_->pre_start(Resource::kMemory, ids);
    EXPECT_TRUE(order);
    node_->on_lease(order->allocation, make(*order));
    node_->on_daemon(view_);
    return *order;
  }
  // Lets the daemon see a process of the first lease in this pod.
  void see_process(const std::string& pod_uid) {
    view_.pods.front().processes = 1;
    view_.pod_uids[view_.pods.front().lease_id] = pod_uid;
    node_->on_daemon(view_);
  }
  void list(const std::vector<PodDevices>& pods) {
    now_ += seconds(2);
    node_->on_pods(pods, now_);
  }
  static PodDevices pod_with(const Ids& ids) {
    return {{"default", "train", "main"}, "g/memory", {ids.begin(), ids.end()}};
  }
  std::size_t healthy(Resource resource) {
    const auto offers = node_->offers(resource);
    return static_cast<std::size_t>(std::count_if(
        offers.begin(), offers.end(), [](const Offered& each) { return each.healthy; }));
  }

  testing::TempDir dir_;
  TimePoint now_{seconds(1000)};
  DaemonView view_ = one_gpu();
  int tokens_ = 0;
  std::uint64_t leases_ = 0;
  std::optional<Node> node_;
};

TEST_F(ANode, AnswersWithWhatAContainerNeeds) {
  const auto answer = node_->allocate(Resource::kMemory, {"GPU-a::0"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->variables.at("GPUROTA_SOCKET"), "/run/gpurota/container/tenant.sock");
  EXPECT_EQ(answer->variables.at("GPUROTA_TOKEN").size(), 32u);
  EXPECT_EQ(answer->variables.count("GPUROTA_WHOLE"), 0u);
}

TEST_F(ANode, TwoContainersHaveNoTokenInCommon) {
  const auto first = node_->allocate(Resource::kMemory, {"GPU-a::0"});
  const auto second = node_->allocate(Resource::kMemory, {"GPU-a::0"});
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->variables.at("GPUROTA_TOKEN"), second->variables.at("GPUROTA_TOKEN"));
}

TEST_F(ANode, OrdersTheSameLeaseAtEachStartOfAContainer) {
  const LeaseOrder first = start({"GPU-a::0", "GPU-a::1"});
  const auto second = node_->pre_start(Resource::kMemory, {"GPU-a::1", "GPU-a::0"});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->allocation, first.allocation);
  EXPECT_EQ(second->token, first.token);
}

TEST_F(ANode, KnowsItsContainersAfterARestart) {
  const LeaseOrder order = start({"GPU-a::0"});
  begin();
  const auto again = node_->pre_start(Resource::kMemory, {"GPU-a::0"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, order.token);
  EXPECT_TRUE(node_->take_endings().empty());
}

TEST_F(ANode, NamesTheLeaseOnceKubeletHasListedThePod) {
  start({"GPU-a::0"});
  list({pod_with({"GPU-a::0", "GPU-a::1"})});
  const auto names = node_->take_names();
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names.front().pod.name, "train");
  list({pod_with({"GPU-a::0", "GPU-a::1"})});
  EXPECT_TRUE(node_->take_names().empty());
}

TEST_F(ANode, EndsTheLeaseOfAContainerThatNeitherKubeletNorAnyProcessKnows) {
  const LeaseOrder order = start({"GPU-a::0"});
  list({pod_with({"GPU-a::0"})});
  list({});
  EXPECT_TRUE(node_->missing_tokens().empty()) << "once may be a kubelet that has just started";
  list({});
  EXPECT_EQ(node_->missing_tokens(), std::set<std::string>{order.token});
  node_->on_living({order.token}, {order.token});
  EXPECT_TRUE(node_->take_endings().empty()) << "a process of it lives";
  node_->on_living({order.token}, {});
  const auto endings = node_->take_endings();
  ASSERT_EQ(endings.size(), 1u);
  EXPECT_EQ(endings.front().lease, LeaseId{1});
}

TEST_F(ANode, ListOlderThanTheContainerIsIgnored) {
  const TimePoint asked = now_;
  now_ += seconds(1);
  start({"GPU-a::0"});
  for (int i = 0; i < 5; ++i) node_->on_pods({}, asked);
  EXPECT_TRUE(node_->missing_tokens().empty());
}

TEST_F(ANode, AContainerWhoseLeaseHasEndedGetsAnother) {
  const LeaseOrder order = start({"GPU-a::0"});
  list({}), list({});
  node_->on_living({order.token}, {});
  (void)node_->take_endings();
  view_.pods.clear();
  node_->on_daemon(view_);
  const auto again = node_->pre_start(Resource::kMemory, {"GPU-a::0"});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, order.token);
  EXPECT_TRUE(node_->missing_tokens().empty());
}

// Kubelet before 1.34 also lists pods that have ended.
TEST_F(ANode, EndsTheLeaseOfAPodThatIsListedAndHasNoControlGroupAnyMore) {
  start({"GPU-a::0", "GPU-a::1"});
  const std::vector<PodDevices> listed = {pod_with({"GPU-a::0", "GPU-a::1"})};
  list(listed);
  EXPECT_FALSE(node_->wants_pod_groups()) << "nobody knows which pod it is";
  see_process("pod-uid");
  EXPECT_FALSE(node_->wants_pod_groups()) << "it runs";
  view_.pods.front().processes = 0;
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->wants_pod_groups());
  node_->on_pod_groups({});
  node_->on_pod_groups({"pod-uid"});
  node_->on_pod_groups({});
  EXPECT_TRUE(node_->take_endings().empty()) << "once may be a poll between two";
  node_->on_pod_groups({});
  EXPECT_EQ(node_->take_endings().size(), 1u);
  view_.pods.clear();
  view_.node.gpus.front().free = gib(1);  // others have the rest
  node_->on_daemon(view_);
  list(listed);
  EXPECT_EQ(healthy(Resource::kMemory), 1u) << "what it had is offered as far as it is free";
  EXPECT_TRUE(node_->pods().empty()) << "it is told nothing any more";
}

TEST_F(ANode, PodWithProcessesOnAGpuHasNotEnded) {
  start({"GPU-a::0"});
  list({pod_with({"GPU-a::0"})});
  see_process("pod-uid");
  for (int i = 0; i < 5; ++i) node_->on_pod_groups({});
  EXPECT_TRUE(node_->take_endings().empty());
}

TEST_F(ANode, RemembersThePodAfterARestart) {
  start({"GPU-a::0"});
  list({pod_with({"GPU-a::0"})});
  see_process("pod-uid");
  view_.pods.front().processes = 0;
  begin();
  list({pod_with({"GPU-a::0"})});
  EXPECT_TRUE(node_->wants_pod_groups());
}

TEST_F(ANode, ListsPodsOnceTheirUidIsKnown) {
  start({"GPU-a::0"});
  list({pod_with({"GPU-a::0"})});
  EXPECT_TRUE(node_->pods().empty());
  EXPECT_EQ(node_->leases_of_unknown_pods(), std::vector<LeaseId>{LeaseId{1}});
  see_process("pod-uid");
  EXPECT_TRUE(node_->leases_of_unknown_pods().empty());
  ASSERT_EQ(node_->pods().size(), 1u);
  const SeenPod pod = node_->pods().front();
  EXPECT_EQ(pod.ref, (PodRef{"default", "train", "pod-uid", "main"}));
  ASSERT_NE(pod.lease, nullptr);
  EXPECT_EQ(pod.lease->lease_id, LeaseId{1});
  EXPECT_EQ(pod.first_lease, LeaseId{1});
  list({});
  EXPECT_EQ(node_->pods().size(), 1u) << "once may be a kubelet that has just started";
  list({});
  EXPECT_TRUE(node_->pods().empty()) << "its lease is about to end with it";
}

TEST_F(ANode, EndOfALeaseWithItsContainerIsNotReported) {
  const LeaseOrder order = start({"GPU-a::0"});
  list({pod_with({"GPU-a::0"})});
  see_process("pod-uid");
  list({}), list({});
  node_->on_living({order.token}, {});
  view_.pods.clear();
  node_->on_daemon(view_);
  list({pod_with({"GPU-a::0"})});  // it soon starts again
  ASSERT_EQ(node_->pods().size(), 1u);
  EXPECT_FALSE(node_->pods().front().first_lease);
}

TEST_F(ANode, ReallocatedDevicesEndTheirFormerLease) {
  start({"GPU-a::0"});
  ASSERT_TRUE(node_->allocate(Resource::kMemory, {"GPU-a::0", "GPU-a::1"}));
  EXPECT_EQ(node_->take_endings().size(), 1u);
}

TEST_F(ANode, UnknownLeaseEndsUnlessItIsUsed) {
  proto::Lease lease = make({"kube-unknown", {}, {}, {}});
  view_.pods.front().processes = 1;
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->take_endings().empty());
  view_.pods.front().processes = 0;
  node_->on_daemon(view_);
  ASSERT_EQ(node_->take_endings().size(), 1u);
}

TEST_F(ANode, LeavesLeasesOfOtherPluginsAlone) {
  (void)make({"dra-1", {}, {}, {}});
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->take_endings().empty());
}

TEST_F(ANode, StartOfAForgottenContainerIsRefusedWithTheRemedy) {
  const auto order = node_->pre_start(Resource::kMemory, {"GPU-a::5"});
  ASSERT_FALSE(order);
  EXPECT_NE(order.error().message.find("delete the pod"), std::string::npos);
}

TEST_F(ANode, PromisesNothingTwice) {
  ASSERT_TRUE(node_->allocate(Resource::kMemory, {"GPU-a::0"}));
  EXPECT_EQ(healthy(Resource::kGpu), 0u);
  now_ += seconds(121);
  node_->on_daemon(view_);
  EXPECT_EQ(healthy(Resource::kGpu), 1u) << "its pod was gone before it started";
}

// With a smaller offer, a pod that the scheduler sends meanwhile would be refused for good.
TEST_F(ANode, OffersNoLessWhileALeaseEnds) {
  const LeaseOrder order = start({"GPU-a::0", "GPU-a::1"});
  view_.node.gpus.front().free = gib(6);
  node_->on_daemon(view_);
  EXPECT_EQ(healthy(Resource::kMemory), 8u);
  list({}), list({});
  node_->on_living({order.token}, {});
  EXPECT_EQ(healthy(Resource::kMemory), 8u) << "the daemon was not heard since";
  view_.pods.front().state = proto::LeaseState::kEnding;
  node_->on_daemon(view_);
  EXPECT_EQ(healthy(Resource::kMemory), 8u) << "its programs are being ended";
  view_.pods.clear();
  view_.node.gpus.front().free = gib(8);
  node_->on_daemon(view_);
  EXPECT_EQ(healthy(Resource::kMemory), 8u);
}

TEST_F(ANode, OffersNoLessWhileALeaseMakesRoomForTheNext) {
  start({"GPU-a::0", "GPU-a::1"});
  view_.node.gpus.front().free = gib(6);
  view_.pods.front().share = proto::Share::kSlice;
  proto::LeaseGpu& share = view_.pods.front().gpus.emplace_back();
  share.uuid = GpuUuid{"GPU-a"};
  share.limit_bytes = gib(2);
  node_->on_daemon(view_);
  ASSERT_TRUE(node_->allocate(Resource::kMemory, {"GPU-a::1", "GPU-a::2"}));
  EXPECT_EQ(healthy(Resource::kMemory), 8u);
  view_.node.gpus.front().free = gib(4);  // others have taken 2 GiB
  node_->on_daemon(view_);
  EXPECT_EQ(healthy(Resource::kMemory), 6u);
}

TEST_F(ANode, OffersNothingTwiceWhileALeaseBegins) {
  view_.node.gpus.front().free = gib(4);  // others have the rest
  node_->on_daemon(view_);
  const Ids ids = {"GPU-a::0", "GPU-a::1"};
  ASSERT_TRUE(node_->allocate(Resource::kMemory, ids));
  EXPECT_EQ(healthy(Resource::kMemory), 4u);
  const auto order = node_->pre_start(Resource::kMemory, ids);
  ASSERT_TRUE(order);
  node_->on_lease(order->allocation, make(*order));
  EXPECT_EQ(healthy(Resource::kMemory), 4u) << "the daemon was not heard since";
}

TEST_F(ANode, NothingIsOfferedWhenTheDaemonIsAwayForLong) {
  start({"GPU-a::0"});
  const Error away{Code::kUnavailable, 0, "away"};
  node_->on_daemon(tl::unexpected(away));
  now_ += seconds(29);
  EXPECT_EQ(healthy(Resource::kMemory), 8u);
  now_ += seconds(2);
  EXPECT_EQ(healthy(Resource::kMemory), 1u) << "what a container has";
  node_->on_daemon(view_);
  EXPECT_EQ(healthy(Resource::kMemory), 8u);
}

TEST_F(ANode, AGpuThatIsLostIsStillListed) {
  start({"GPU-a::0"});
  view_.node.gpus.clear();
  node_->on_daemon(view_);
  EXPECT_EQ(node_->offers(Resource::kMemory).size(), 8u);
  EXPECT_EQ(healthy(Resource::kMemory), 0u);
}

TEST_F(ANode, RefusesDevicesThatAreNotItsOwn) {
  EXPECT_FALSE(node_->allocate(Resource::kMemory, {"GPU-a"}));
  EXPECT_FALSE(node_->allocate(Resource::kMemory, {}));
  EXPECT_FALSE(node_->allocate(Resource::kGpu, {"GPU-b"}));
}

}  // namespace
}  // namespace gpurota::kube
