// A lease manager, which a test can restart, on fake processes and GPUs and a store in memory. For
// *_test.cpp only; one thread.
#pragma once

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/memory_store.h"

#include <gtest/gtest.h>

#include <optional>

namespace gpurota::daemon {

using namespace std::chrono_literals;
using testing::MemoryStore;

class LeaseManagerTest : public FakeWorldTest {
 protected:
  LeaseManagerTest() { restart(); }

  // A new daemon on the same store and the same processes.
  void restart() {
    stop();
    begin();
    ASSERT_TRUE(manager->restore());
  }
  void stop() {
    manager = nullptr;
    world.reset();
  }
  void begin() {
    grants.emplace();
    world.emplace(loop, store, processes, gpus, *grants, config, [] { return WallTime(1s); });
    manager = &world->leases;
    world->on_lease = [this](const LeaseEntry& entry, bool gone) {
      if (gone) last_gone = entry.lease.id;
    };
    world->holds_memory = [this](LeaseId) { return memory_is_held; };
  }

  tl::expected<const LeaseEntry*, lease::Refusal> acquire(std::optional<Bytes> memory, pid_t pid) {
    AcquireRequest request;
    request.uid = 1000;
    request.process = processes.id_of(pid);
    if (memory) request.placement.memory = SizeSpec{*memory, 0};
    return world->queue.acquire(request);
  }

  MemoryStore store;
  std::optional<lease::GrantBook> grants;
  std::optional<LeaseWorld> world;
  LeaseManager* manager = nullptr;
  bool memory_is_held = false;
  LeaseId last_gone;
};

}  // namespace gpurota::daemon
