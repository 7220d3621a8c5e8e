// Requests, commands under reservations and the state of GPUs, in the store.
#include "store/sqlite_store.h"
#include "testing/temp_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpurota::store {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ports::StoredRequest make_request(std::uint64_t id) {
  ports::StoredRequest request;
  request.threshold = mib(700);
  request.id = RequestId{id};
  request.uid = 4000000000u;
  request.kind = "reservation";
  request.ticket = "0af3";
  request.since = WallTime(1700000000123ms);
  request.count = 2;
  request.gpus = {GpuUuid{"GPU-b"}, GpuUuid{"GPU-a"}};
  request.memory = SizeSpec{Bytes(), 50};
  request.soft_limit = SizeSpec{gib(3), 0};
  request.lasts = 90min;
  request.take_over = true;
  request.as_name = "caf\xc3\xa9 \xff";
  request.name = "train7";
  request.note = std::string("a\0b", 3);
  request.command = {"python", "", "x\ny"};
  request.holder = {12, UINT64_MAX};
  request.boot_id = "boot";
  request.swap = true;
  request.oversize = true;
  request.wishes = {"h100 \xff", gib(40),
                    90,          {GpuUuid{"GPU-a"}, GpuUuid{"MIG-b"}},
                    "big \xff",  {GpuUuid{"GPU-c"}, GpuUuid{"GPU-d"}}};
  request.priority = 3;
  request.quantum = 5s;
  request.warning = {90s, 12};
  request.latency = LatencyClass::kInteractive;
  request.compute = {30, 50};
  request.begins = WallTime(1800000000123ms);
  request.kept = {GpuUuid{"GPU-a"}, GpuUuid{"MIG-b"}};
  return request;
}

ports::StoredLease make_lease() {
  ports::StoredLease lease;
  lease.id = LeaseId{7};
  lease.kind = "reservation";
  lease.ticket = "0af3";
  lease.ends = WallTime(1700000000456ms);
  lease.as_name = "\xff";
  lease.name = "train7";
  lease.gpus = {{GpuUuid{"GPU-a"}, std::nullopt, std::nullopt}};
  lease.commands = {{{10, 100}, {11, 110}, "/cgroup/x", WallTime(5ms)},
                    {{20, 200}, {21, 210}, "", std::nullopt}};
  return lease;
}

TEST(QueueStore, ARequestThatHasAnOlderPlaceComesFirst) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE(store) << store.error().message;
  ports::StoredRequest first = make_request(1), second = make_request(2);
  second.since = first.since - 1h;
  ASSERT_TRUE((*store)->save_request(first));
  ASSERT_TRUE((*store)->save_request(second));
  const auto requests = (*store)->load_requests();
  ASSERT_TRUE(requests);
  EXPECT_EQ(*requests, (std::vector{second, first}));
}

TEST(QueueStore, GivesRequestsBackAsTheyWereInTheirOrder) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE(store) << store.error().message;
  ports::StoredRequest plain = make_request(1);
  plain.memory.reset();
  plain.soft_limit.reset();
  plain.lasts.reset();
  plain.gpus.clear();
  plain.begins.reset();
  plain.kept.clear();
  ASSERT_TRUE((*store)->save_request(make_request(2)));
  ASSERT_TRUE((*store)->save_request(plain));
  EXPECT_THAT(*(*store)->load_requests(), ElementsAre(plain, make_request(2)));
  ASSERT_TRUE((*store)->remove_request(RequestId{1}));
  EXPECT_THAT(*(*store)->load_requests(), ElementsAre(make_request(2)));
}

TEST(QueueStore, ARequestBecomesItsLeaseInOneStep) {
  auto store = SqliteStore::open_in_memory();
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->save_request(make_request(1)));
  ASSERT_TRUE((*store)->grant_request(RequestId{1}, make_lease()));
  EXPECT_THAT(*(*store)->load_requests(), IsEmpty());
  EXPECT_THAT(*(*store)->load_leases(), ElementsAre(make_lease()));
}

TEST(QueueStore, RequestIdsAreNeverGivenTwice) {
  testing::TempDir dir;
  {
    auto store = SqliteStore::open(dir.path());
    EXPECT_EQ(*(*store)->next_request_id(), RequestId{1});
  }
  auto store = SqliteStore::open(dir.path());
  EXPECT_EQ(*(*store)->next_request_id(), RequestId{2});
  EXPECT_EQ(*(*store)->next_lease_id(), LeaseId{1});
}

TEST(QueueStore, KeepsWhatIsKnownOfGpus) {
  auto store = SqliteStore::open_in_memory();
  ports::StoredGpuState gpu{GpuUuid{"GPU-a"}, true, "fan\xff", WallTime(5ms), 1000};
  ASSERT_TRUE((*store)->save_gpu(gpu));
  gpu.draining = false;
  gpu.last_user.reset();
  gpu.context_cost = mib(518);
  gpu.context_driver = "580.65.06";
  gpu.baseline = ports::StoredBaseline{mib(600), "a boot"};
  ASSERT_TRUE((*store)->save_gpu(gpu));
  EXPECT_THAT(*(*store)->load_gpus(), ElementsAre(gpu));
}

TEST(QueueStore, StoresSinceWhenAFindingExists) {
  auto store = SqliteStore::open_in_memory();
  ports::StoredGpuState one{GpuUuid{"GPU-a"}}, other{GpuUuid{"GPU-b"}};
  one.ages = {{"unused", std::nullopt, LeaseId{3}, WallTime(5ms)},
              {"unreserved_use", 1000, std::nullopt, WallTime(7ms), {{12, 340}}, "a boot"}};
  other.ages = {{"unreserved_use", std::nullopt, std::nullopt, WallTime(9ms), {}, "a boot"}};
  ASSERT_TRUE((*store)->save_gpu(one));
  ASSERT_TRUE((*store)->save_gpu(other));
  EXPECT_THAT(*(*store)->load_gpus(), UnorderedElementsAre(one, other));
  one.ages.pop_back();
  ASSERT_TRUE((*store)->save_gpu(one));
  EXPECT_THAT(*(*store)->load_gpus(), UnorderedElementsAre(one, other));
}

}  // namespace
}  // namespace gpurota::store
