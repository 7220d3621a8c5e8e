#include "kube/dra/dra_node.h"

#include "kube/api/back_off.h"
#include "testing/temp_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace gpurota::kube {
namespace {

using std::chrono::seconds;

class ADraNode : public ::testing::Test {
 protected:
  void SetUp() override { begin(); }
  // Restarts the driver with the stored state.
  void begin() {
    DraNode::Settings settings;
    settings.make_token = [this] { return char('a' + ++tokens_) + std::string(31, 'a'); };
    settings.now = [this] { return now_; };
    auto book = ClaimBook::open(dir_.file("book"));
    ASSERT_TRUE(book);
    node_.emplace(std::move(settings), std::move(*book));
    node_->on_daemon(view_);
  }
  static DaemonView one_gpu() {
    DaemonView view;
    view.node.socket_folder = "/run/gpurota/container";
    view.node.library = "/usr/lib/libgpurota.so";
    NodeGpu gpu;
    gpu.uuid = GpuUuid{"GPU-A"};
    gpu.memory = gpu.free = gib(8);
    view.node.gpus = {gpu};
    return view;
  }
  static AllocatedClaim claim(const std::string& uid) {
    AllocatedClaim claim;
    claim.id = {uid, "default", "train"};
    claim.devices = {{"gpu", "n", "gpu-a", "s", GpuUuid{}, gib(2)}};
    return claim;
  }
  // Gives this allocation a lease in the daemon's view.
  LeaseId leased(const std::string& allocation, int processes = 0) {
    proto::Lease lease;
    lease.kind = proto::LeaseKind::kPod;
    lease.state = proto::LeaseState::kActive;
    lease.lease_id = LeaseId{++leases_};
    lease.allocation = allocation;
    lease.processes = processes;
    view_.pods.push_back(lease);
    return lease.lease_id;
  }
  SliceDevice memory_device() const {
    for (const SliceDevice& device : node_->devices()) {
      if (device.name == "gpu-a") return device;
    }
    return {};
  }
  LeaseId prepare(const std::string& uid) {
    EXPECT_TRUE(node_->add(claim(uid)));
    const LeaseId lease = leased(allocation_of(uid));
    node_->on_lease(uid, lease);
    node_->on_daemon(view_);
    EXPECT_TRUE(node_->keep(uid));
    return lease;
  }

  testing::TempDir dir_;
  TimePoint now_{seconds(1000)};
  DaemonView view_ = one_gpu();
  int tokens_ = 0;
  std::uint64_t leases_ = 0;
  std::optional<DraNode> node_;
};

TEST_F(ADraNode, KnowsItsClaimsAndTheirTokensAfterARestart) {
  prepare("u1");
  const std::string token = node_->find("u1").value().front().order.token;
  begin();
  const auto again = node_->find("u1");
  ASSERT_TRUE(again && again->size() == 1);
  EXPECT_EQ(again->front().order.token, token);
  EXPECT_EQ(again->front().devices.front().share_id, "s");
  EXPECT_EQ(again->front().order.request.memory, (SizeSpec{gib(2), 0}));
  EXPECT_TRUE(node_->take_endings().empty());
}

TEST_F(ADraNode, StoredClaimKeepsItsToken) {
  const auto first = node_->add(claim("u1")), second = node_->add(claim("u1"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->front().order.token, second->front().order.token);
}

TEST_F(ADraNode, StoresOnlyClaimsWithALease) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(node_->add(claim("u1")));
    ASSERT_TRUE(node_->remove("u1"));
  }
  EXPECT_FALSE(std::filesystem::exists(dir_.file("book")));
  prepare("u2");
  ASSERT_TRUE(node_->add(claim("u1")));
  begin();
  EXPECT_TRUE(node_->keys("u1").empty());
  EXPECT_EQ(node_->keys("u2").size(), 1u);
}

TEST_F(ADraNode, RequestsAReleasedLeaseAgain) {
  prepare("u1");
  EXPECT_TRUE(node_->take_orders().empty());
  view_.pods.clear();
  node_->on_daemon(view_);
  const auto orders = node_->take_orders();
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders.front().order.allocation, "claim-u1");
  EXPECT_EQ(orders.front().claim.pool, "n");
}

TEST_F(ADraNode, CountsOnlyClaimsThatTheApiServerHas) {
  const Bytes before = memory_device().memory;
  prepare("u1");
  view_.node.gpus.front().free = gib(6);
  node_->on_daemon(view_);
  ASSERT_EQ(memory_device().memory, before);
  node_->on_review("u1", false);
  EXPECT_EQ(memory_device().memory, gib(6)) << "the scheduler does not count it";
  node_->on_review("u1", true);
  EXPECT_EQ(memory_device().memory, before);
  node_->on_review("u1", false);
  ASSERT_TRUE(node_->remove("u1"));
  EXPECT_EQ(memory_device().memory, gib(6)) << "until the daemon says that it is free";
}

TEST_F(ADraNode, KeepsTheLeasesOfAClaimForEachContainerApart) {
  AllocatedClaim two = claim("u1");
  two.of_resources = true;
  two.devices.push_back(two.devices.front());
  two.devices[0].request = "container-0-request-0";
  two.devices[1].request = "container-1-request-0";
  ASSERT_TRUE(node_->add(claim("u1-2")));  // its uid has the same beginning
  const auto works = node_->add(two);
  ASSERT_TRUE(works && works->size() == 2);
  EXPECT_NE(works->front().order.token, works->back().order.token);
  for (const DraNode::Work& work : *works) node_->on_lease(work.key, leased(work.order.allocation));
  ASSERT_TRUE(node_->keep("u1") && node_->keep("u1-2"));
  node_->on_daemon(view_);
  view_.pods.pop_back();  // the second one's lease was released
  node_->on_daemon(view_);
  std::vector<std::string> ordered;
  for (const auto& lost : node_->take_orders()) ordered.push_back(lost.order.allocation);
  EXPECT_EQ(ordered, std::vector<std::string>{"claim-u1.1"});
  begin();
  EXPECT_EQ(node_->keys("u1"), (std::vector<std::string>{"u1.0", "u1.1"}));
  EXPECT_EQ(node_->find("u1")->size(), 2u);
  ASSERT_TRUE(node_->remove("u1"));
  EXPECT_TRUE(node_->keys("u1").empty());
  EXPECT_EQ(node_->keys("u1-2"), std::vector<std::string>{"u1-2"});
}

TEST_F(ADraNode, OrdersNothingForAClaimThatIsOnlyBeingPrepared) {
  ASSERT_TRUE(node_->add(claim("u1")));
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->take_orders().empty());
}

TEST_F(ADraNode, CountsALeaseOnlyTogetherWithWhatTheDaemonSaysIsFree) {
  const Bytes before = memory_device().memory;
  ASSERT_TRUE(node_->add(claim("u1")));
  node_->on_lease("u1", leased("claim-u1"));
  EXPECT_EQ(memory_device().memory, before);
  view_.node.gpus.front().free = gib(6);
  node_->on_daemon(view_);
  EXPECT_EQ(memory_device().memory, before);
}

TEST_F(ADraNode, CapacityIsUnchangedWhileAClaimEnds) {
  const Bytes before = memory_device().memory;
  prepare("u1");
  view_.node.gpus.front().free = gib(6);
  node_->on_daemon(view_);
  ASSERT_EQ(memory_device().memory, before);
  ASSERT_TRUE(node_->remove("u1"));
  EXPECT_EQ(memory_device().memory, before) << "the daemon was not heard since";
  view_.pods.clear();
  view_.node.gpus.front().free = gib(8);
  node_->on_daemon(view_);
  EXPECT_EQ(memory_device().memory, before);
}

TEST_F(ADraNode, EndsALeaseOfNoClaimUnlessItIsUsed) {
  (void)leased("claim-unknown", 1);
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->take_endings().empty());
  view_.pods.front().processes = 0;
  node_->on_daemon(view_);
  EXPECT_EQ(node_->take_endings().size(), 1u);
}

TEST_F(ADraNode, EndsALeaseWhoseClaimWasGivenUpMeanwhile) {
  ASSERT_TRUE(node_->add(claim("u1")));
  ASSERT_TRUE(node_->remove("u1"));
  node_->on_lease("u1", LeaseId{7});
  ASSERT_EQ(node_->take_endings().size(), 1u);
}

TEST_F(ADraNode, SaysOfEachClaimOnceWhetherOneOfItsLeasesIsUsed) {
  AllocatedClaim two = claim("u1");
  two.pod_uid = "p1";
  two.of_resources = true;
  two.devices.push_back(two.devices.front());
  two.devices[0].request = "container-0-request-0";
  two.devices[1].request = "container-1-request-0";
  const auto works = node_->add(two);
  ASSERT_TRUE(works);
  for (const DraNode::Work& work : *works) node_->on_lease(work.key, leased(work.order.allocation));
  prepare("u2");
  ASSERT_EQ(node_->claims().size(), 2u);
  EXPECT_EQ(node_->claims().front().pod_uid, "p1");
  EXPECT_FALSE(node_->claims().front().is_used);
  view_.pods[1].processes = 1;  // in the second container
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->claims().front().is_used);
  EXPECT_FALSE(node_->claims().back().is_used);
}

TEST_F(ADraNode, LeavesLeasesOfOtherPluginsAlone) {
  (void)leased("kube-1");
  node_->on_daemon(view_);
  EXPECT_TRUE(node_->take_endings().empty());
}

TEST_F(ADraNode, NothingIsPublishedWhenTheDaemonIsAwayForLong) {
  now_ += seconds(29);
  node_->on_daemon(fail(Code::kUnavailable, "away"));
  EXPECT_EQ(node_->health().front().health, Health::kHealthy);
  EXPECT_TRUE(node_->devices().front().taints.empty());
  now_ += seconds(2);
  EXPECT_EQ(node_->devices().front().taints.size(), 1u);
  EXPECT_EQ(node_->health().front().health, Health::kUnknown);
}

TEST_F(ADraNode, RefusesAGpuThatIsNotThere) {
  AllocatedClaim odd = claim("u1");
  odd.devices.front().device = "gpu-b";
  EXPECT_FALSE(node_->add(odd));
  EXPECT_FALSE(node_->has("u1"));
}

TEST(ABackOff, GrowsToItsLimitWithRandomJitter) {
  BackOff back_off(std::chrono::seconds(1), std::chrono::seconds(4));
  EXPECT_EQ(back_off.next(0), std::chrono::milliseconds(500));
  EXPECT_EQ(back_off.next(512), std::chrono::milliseconds(1500));
  EXPECT_EQ(back_off.next(0), std::chrono::seconds(2));
  EXPECT_LT(back_off.next(1023), std::chrono::seconds(4));
  back_off.reset();
  EXPECT_EQ(back_off.next(0), std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace gpurota::kube
