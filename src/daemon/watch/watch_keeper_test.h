// The fixture for tests of the watch, with fake processes and a fake store: which users are
// notified of what, and which processes are signalled.
#pragma once

#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "daemon/watch/watch_keeper.h"
#include "testing/memory_store.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace gpurota::daemon {

using namespace std::chrono_literals;
using testing::MemoryStore;

class WatchKeeperTest : public FakeWorldTest,
                        public TenantLeases,
                        public Owners,
                        public LeaseEnforcement,
                        public NoticeListener,
                        public UserGroups,
                        public Libraries {
 protected:
  WatchKeeperTest()
      : recorder({loop, nullptr, "", config, processes, gpus, [] { return WallTime(1h); }}),
        world(loop, store, processes, gpus, grants, config, [] { return WallTime(1s); }),
        attribution(processes, world.tables),
        keeper(parts()) {
    processes.set_user(1000, "alice");
    processes.set_user(1001, "bob\x1b[31m");
    sample.uuid = kGpu;
    EXPECT_TRUE(recorder.start({}));
  }

  WatchKeeper::Parts parts() {
    return {.loop = loop,
            .processes = processes,
            .config = config,
            .gpus = gpus,
            .tables = world.tables,
            .attribution = attribution,
            .recorder = recorder,
            .states = world.states,
            .tenants = *this,
            .owners = *this,
            .enforcement = *this,
            .samples = world.samples,
            .groups = *this,
            .notices = *this,
            .libraries = this,
            .read_container =
                [](const watch::Container&) {
                  return ContainerFiles{{"web", "alpine:3"}, 0};
                },
            .charge_of = [this](LeaseId lease, const LeaseGpu&) { return charges[lease]; },
            .counted_again = [this](const GpuUuid&) { return counted_again; },
            .wall_clock = [this] { return on_the_wall; }};
  }
  std::optional<LeaseId> lease_of(pid_t pid) const override {
    const auto tenant = tenants.find(pid);
    return tenant == tenants.end() ? std::nullopt : std::optional(tenant->second);
  }
  Bytes imported_by(pid_t pid, const GpuUuid&) const override {
    const auto bytes = imported.find(pid);
    return bytes == imported.end() ? Bytes() : bytes->second;
  }
  std::optional<Bytes> counted_in(pid_t pid, const GpuUuid&) const override {
    const auto bytes = counted.find(pid);
    return bytes == counted.end() ? std::nullopt : std::optional(bytes->second);
  }
  std::vector<pid_t> present_on(const GpuUuid&) const override { return {}; }
  void tell_owner(LeaseId lease, const std::string& text) override { notices[lease] += text; }
  void on_notice(const Notice& notice) override { sent[notice.to].push_back(notice); }
  void release(LeaseId lease, const std::string&) override { released.push_back(lease); }
  void on_over_limit(LeaseId lease, const std::string&) override { jobs_ended.push_back(lease); }
  std::optional<std::vector<std::string>> group_names(uid_t uid) override { return groups[uid]; }
  watch::Library state_of(const watch::SeenProcess& process, bool) override {
    return libraries[process.pid];
  }

  LeaseId lease_of(uid_t uid, std::optional<Bytes> memory, std::vector<std::string> command) {
    AcquireRequest request;
    request.uid = uid;
    request.process = processes.id_of(processes.spawn({.uid = uid}));
    if (memory) request.placement.memory = SizeSpec{*memory, 0};
    request.command = std::move(command);
    const LeaseId id = (*world.queue.acquire(request))->lease.id;
    EXPECT_TRUE(
        leases.start(id, processes.spawn({.uid = uid, .parent = request.process.pid}), false));
    return id;
  }
  void use(pid_t pid, Bytes used) {
    std::erase_if(sample.processes, [&](const GpuProcess& p) { return p.pid == pid; });
    sample.processes.push_back({pid, used, false});
  }
  void take_sample(Duration later = 250ms) {
    loop.advance(later);
    sample.used = Bytes();
    for (const GpuProcess& process : sample.processes) *sample.used += *process.used;
    keeper.on_sample(keeper.reading_of(sample));
  }
  std::vector<ports::StoredEvent> events(proto::EventType type) const {
    std::vector<ports::StoredEvent> found;
    for (const auto& [id, event] : recorder.events().events()) {
      if (event.type == proto::to_string(type)) found.push_back(event);
    }
    return found;
  }

  MemoryStore store;
  lease::GrantBook grants;
  Recorder recorder;
  LeaseWorld world;
  LeaseManager& leases = world.leases;
  Attribution attribution;
  WatchKeeper keeper;
  GpuSample sample;
  std::map<LeaseId, std::string> notices;     // on terminals
  std::map<uid_t, std::vector<Notice>> sent;  // for the channels
  std::vector<LeaseId> released;
  std::vector<LeaseId> jobs_ended;
  WallTime on_the_wall{1h};
  std::map<LeaseId, LeaseCharge> charges;
  Bytes counted_again;
  std::map<pid_t, Bytes> imported;
  std::map<pid_t, Bytes> counted;
  std::map<pid_t, LeaseId> tenants;
  std::map<pid_t, watch::Library> libraries;
  std::map<uid_t, std::optional<std::vector<std::string>>> groups;  // none: not known yet
};

}  // namespace gpurota::daemon
