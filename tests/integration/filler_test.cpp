// Leases of kind filler: a request that needs their GPU gets it when they have ended, and until
// then its reason names them. tests/e2e/fillers.bats tests the programs that the daemon itself runs
// as fillers.
#include "running_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <future>

namespace gpurota::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

config::Config seldom_looking() {
  config::Config config = RunningDaemon::quick();
  config.watch_period = 60s;
  config.watch.idle_period = 60s;
  return config;
}

class FillerTest : public ::testing::Test {
 protected:
  // Adds a program that holds nearly all memory.
  void fill() {
    proto::Acquire call;
    call.request.kind = "filler";
    const auto lease = connection.call(call);
    ASSERT_TRUE(lease) << lease.error().message;
    id = lease->lease.lease_id;
    ASSERT_TRUE(connection.call(proto::Start{id, program.pid(), {}, {}}));
    gpu = lease->lease.gpus.front().uuid;
    daemon.probe.set_process(gpu, program.pid(), gib(21));
  }
  bool is_there() const {
    const auto status = daemon.call(proto::Status{});
    for (const proto::Lease& lease : status->leases) {
      if (lease.lease_id == id) return true;
    }
    return false;
  }

  RunningDaemon daemon{seldom_looking()};
  client::Connection connection = daemon.connect();
  Child program{{"sleep", "600"}};
  LeaseId id;
  GpuUuid gpu;
};

TEST_F(FillerTest, ARequestThatWaitsOnlyForAFillerGetsTheGpuWhenItsMemoryIsBack) {
  fill();
  auto newcomer = std::async(std::launch::async, [this] { return daemon.call(proto::Acquire{}); });
  ASSERT_TRUE(program.ended());
  EXPECT_EQ(newcomer.wait_for(100ms), std::future_status::timeout) << "21 GiB are still held";
  EXPECT_EQ(daemon.call(proto::ListRequests{})->requests.front().reason,
            "a filler is leaving GPU 0");
  daemon.probe.remove_process(program.pid());
  const auto lease = newcomer.get();
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->lease.kind, proto::LeaseKind::kRun);
  EXPECT_FALSE(is_there());
}

TEST_F(FillerTest, ARequestThatWaitsOnlyForAFillerIsRefusedWhenAnotherObstacleComes) {
  fill();
  auto newcomer = std::async(std::launch::async, [this] { return daemon.call(proto::Acquire{}); });
  ASSERT_TRUE(program.ended());
  ASSERT_TRUE(daemon.call(proto::Drain{{"0"}, "fan"}));
  const auto lease = newcomer.get();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code, Code::kNoGpu);
  EXPECT_THAT(lease.error().message, HasSubstr("fan"));
  EXPECT_TRUE(daemon.call(proto::ListRequests{})->requests.empty());
}

TEST_F(FillerTest, ProcessWithoutALeaseEndsTheFillerBeforeTheNextRegularSample) {
  fill();
  Child stranger({"sleep", "600"});
  daemon.probe.set_process(gpu, stranger.pid(), mib(300));
  EXPECT_TRUE(program.ended()) << "the next look is a minute away";
  daemon.probe.remove_process(program.pid());
  EXPECT_TRUE(eventually([this] { return !is_there(); }));
  EXPECT_EQ(::kill(stranger.pid(), 0), 0) << "it may stay";
}

TEST_F(FillerTest, DesktopProcessDoesNotEndTheFiller) {
  fill();
  Child desktop({"sleep", "600"});
  daemon.probe.set_process(gpu, desktop.pid(), mib(300), true);
  const int samples = daemon.probe.samples_read();
  EXPECT_TRUE(eventually([&] { return daemon.probe.samples_read() > samples + 5; }));
  EXPECT_TRUE(is_there());
}

TEST_F(FillerTest, FillersDoNotCountAgainstTheLimitsOfOthers) {
  fill();
  proto::Acquire slice;
  slice.request.memory = SizeSpec{gib(1), 0};
  auto newcomer = std::async(std::launch::async, [&] { return daemon.call(slice); });
  EXPECT_TRUE(program.ended()) << "nobody shares a GPU with a filler";
  daemon.probe.remove_process(program.pid());
  (void)newcomer.get();
}

}  // namespace
}  // namespace gpurota::testing
