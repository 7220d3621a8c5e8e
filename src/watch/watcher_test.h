// Processes, leases and readings for the tests of the watcher.
#pragma once

#include "watch/watcher.h"

#include <gtest/gtest.h>

namespace gpurota::watch {

using namespace std::chrono_literals;

inline const GpuUuid kGpu{"GPU-0"};
constexpr uid_t kAlice = 1000, kBob = 1001;
constexpr LeaseId kLease{1};

inline SeenProcess process(pid_t pid, std::optional<uid_t> uid, Bytes used,
                           std::optional<LeaseId> lease = std::nullopt) {
  SeenProcess seen;
  seen.pid = pid;
  seen.start_ticks = static_cast<std::uint64_t>(pid) * 10;
  seen.uid = uid;
  seen.used = used;
  seen.lease = lease;
  seen.executable = "/usr/bin/python3";
  return seen;
}

inline SeenLease exclusive(LeaseId id, uid_t uid) {
  SeenLease lease;
  lease.id = id;
  lease.uid = uid;
  return lease;
}

inline SeenLease slice(LeaseId id, uid_t uid, Bytes limit) {
  SeenLease lease = exclusive(id, uid);
  lease.limit = limit;
  return lease;
}

class WatcherTest : public ::testing::Test {
 protected:
  WatcherTest() {
    policy.action = [this](FindingKind, std::optional<uid_t>) { return action; };
    reading.gpu = kGpu;
  }

  std::vector<Step> see(Duration later = 250ms) {
    now += later;
    reading.used = Bytes();
    for (const SeenProcess& each : reading.processes) {
      reading.used = reading.used.value_or(Bytes()) + each.used.value_or(Bytes());
    }
    return watcher.decide(reading, policy, now);
  }
  std::vector<Step> see_until(Duration end) {
    std::vector<Step> all;
    for (Duration passed{}; passed < end; passed += 250ms) {
      for (Step& step : see()) all.push_back(std::move(step));
    }
    return all;
  }

  Watcher watcher;
  Policy policy;
  Action action = Action::kReport;
  Reading reading;
  TimePoint now{};
};

}  // namespace gpurota::watch
