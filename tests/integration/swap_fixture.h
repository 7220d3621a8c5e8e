// A daemon with turns on one GPU of 24 GiB, and swap leases.
#pragma once

#include "running_daemon.h"
#include "swap_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace gpurota::testing {

inline config::Config with_turns() {
  config::Config config = RunningDaemon::quick();
  config.turns.host_budget = SizeSpec{gib(256), 0};
  config.turns.every.quantum = std::chrono::milliseconds(50);
  return config;
}

class SwapTest : public ::testing::Test {
 protected:
  explicit SwapTest(const config::Config& config = with_turns()) : daemon(config) {}

  static proto::Acquire swap_request(std::optional<Bytes> memory = {}) {
    proto::Acquire call;
    call.request.swap = true;
    if (memory) call.request.memory = SizeSpec{*memory, 0};
    return call;
  }
  // The lease is held until the test ends: the end of the lease would kill the test's own process.
  Result<proto::Acquire::Reply> acquire(const proto::Acquire& request) {
    connections.push_back(daemon.connect());
    return connections.back().call(request);
  }
  std::uint64_t make_lease(std::optional<Bytes> memory = {}) {
    const auto reply = acquire(swap_request(memory));
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->lease.lease_id.value : 0;
  }
  proto::TurnGpu turns() {
    const auto reply = daemon.call(proto::ListTurns{});
    EXPECT_TRUE(reply);
    return reply ? reply->gpus.at(0) : proto::TurnGpu();
  }
  GpuUuid gpu() { return turns().uuid; }
  bool happened(proto::EventType type) {
    const auto events = daemon.call(proto::Events{});
    return events && std::any_of(events->events.begin(), events->events.end(),
                                 [&](const proto::Event& event) { return event.type == type; });
  }

  std::deque<client::Connection> connections;  // outlive the daemon
  RunningDaemon daemon;                        // one GPU of 24 GiB
};

}  // namespace gpurota::testing
