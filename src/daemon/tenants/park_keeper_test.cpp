#include "daemon/tenants/park_keeper.h"

#include "abi/wire_park.h"
#include "daemon/gpus/fake_world_test.h"
#include "daemon/leases/lease_world_test.h"
#include "testing/fake_programs.h"
#include "testing/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/socket.h>

namespace gpurota::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr uid_t kAlice = 1000, kBob = 1001;

// The parts of a daemon that park leases, on a GPU of 24 GiB. Tenants are processes of the test.
class ParkKeeperTest : public FakeWorldTest, public Owners {
 protected:
  struct OneDaemon {
    explicit OneDaemon(ParkKeeperTest& test)
        : recorder({test.loop, nullptr, "", test.config, test.processes, test.gpus, test.clock()}),
          world(test.loop, test.store, test.processes, test.gpus, grants, test.config,
                test.clock()),
          attribution(test.processes, world.tables),
          turns({test.loop,
                 test.config,
                 test.gpus,
                 world.states,
                 world.tables,
                 world.leases,
                 recorder,
                 world.users,
                 test,
                 {}}),
          parker(parts_of(test)) {
      world.on_lease = [this](const LeaseEntry& entry, bool gone) {
        turns.on_lease_change(entry, gone);
        parker.on_lease_change(entry, gone);
        world.queue.poke();
        world.bookings.on_lease_change();
      };
    }
    ParkKeeper::Parts parts_of(ParkKeeperTest& test) {
      return {.loop = test.loop,
              .tables = world.tables,
              .leases = world.leases,
              .turns = turns,
              .tenants = tenants,
              .processes = test.processes,
              .samples = world.samples,
              .recorder = recorder,
              .checks = ParkChecks({.config = test.config,
                                    .gpus = test.gpus,
                                    .driver = test.driver,
                                    .tenants = tenants,
                                    .attribution = attribution,
                                    .processes = test.processes}),
              .room = ReturnRoom({.tables = world.tables,
                                  .gpus = test.gpus,
                                  .rooms = world.rooms,
                                  .queue = world.queue,
                                  .processes = test.processes,
                                  .config = test.config,
                                  .wall_clock = test.clock()}),
              .runner = &test.programs,
              .program = {"/sbin/gpurota-park", "/run/park.lock", "", ""},
              .set_aside = [this](LeaseId lease, bool aside) { turns.set_aside(lease, aside); },
              .hang_up = [](TenantId) {},
              .on_change = [&test] { ++test.changes; }};
    }

    lease::GrantBook grants;
    Recorder recorder;
    LeaseWorld world;
    Attribution attribution;
    TurnKeeper turns;
    TenantTable tenants;
    ParkKeeper parker;
  };

  ParkKeeperTest() {
    driver.info.emplace();
    driver.info->driver_version = "580.159.04";
    loop.advance(1s);
    gpus.find(kGpu)->taken = loop.now();
    daemon = std::make_unique<OneDaemon>(*this);
    daemon->turns.refresh();
  }
  void tell_owner(LeaseId, const std::string&) override {}
  std::function<WallTime()> clock() {
    return [this] {
      return WallTime(1000h) +
             std::chrono::duration_cast<std::chrono::milliseconds>(loop.now().time_since_epoch());
    };
  }

  // A new daemon on the same store and processes; `connected`: of these leases.
  void restart(const std::vector<LeaseId>& connected) {
    programs.running.clear();
    daemon.reset();
    daemon = std::make_unique<OneDaemon>(*this);
    daemon->world.on_lease = nullptr;
    ASSERT_TRUE(daemon->world.leases.restore());
    ASSERT_TRUE(daemon->world.bookings.restore());
    OneDaemon* const now = daemon.get();
    now->world.on_lease = [now](const LeaseEntry& entry, bool gone) {
      now->turns.on_lease_change(entry, gone);
      now->parker.on_lease_change(entry, gone);
    };
    daemon->turns.restore(loop.now());
    daemon->parker.restore();
    for (const LeaseId lease : connected) connect(lease, pids.at(lease));
  }

  std::optional<LeaseId> try_lease(std::optional<Bytes> memory, uid_t uid,
                                   LeaseKind kind = LeaseKind::kRun, int compute = 0) {
    AcquireRequest request;
    request.uid = uid;
    request.kind = kind;
    request.process = processes.id_of(processes.spawn());
    if (memory) request.placement.memory = SizeSpec{*memory, 0};
    request.placement.compute.least = compute;
    const auto made = daemon->world.queue.acquire(request);
    if (!made) return std::nullopt;
    return (*made)->lease.id;
  }
  // A lease with one process that is connected.
  LeaseId lease(Bytes memory, uid_t uid, LeaseKind kind = LeaseKind::kRun, int compute = 0) {
    const LeaseId id = try_lease(memory, uid, kind, compute).value();
    testing::FakeProcesses::Spawn spawn;
    spawn.uid = uid;
    pids[id] = processes.spawn(spawn);
    connect(id, pids[id]);
    return id;
  }
  void connect(LeaseId lease, pid_t pid) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    sockets[pid] = Fd(ends[1]);
    auto tenant = std::make_unique<Tenant>();
    tenant->id = daemon->tenants.next_id();
    tenant->lease = lease;
    tenant->process = *track(processes, processes.id_of(pid), nullptr);
    tenant->session = &session;
    tenant->has_parking = true;
    tenant->event = Fd(ends[0]);
    daemon->parker.on_connected(daemon->tenants.add(std::move(tenant)));
  }
  // The orders that the process has got since the last call; the library answers `close`.
  std::vector<std::uint32_t> orders(pid_t pid) {
    std::vector<std::uint32_t> all;
    gpurota_msg_park message{};
    while (::recv(sockets.at(pid).get(), &message, sizeof message, 0) ==
           static_cast<ssize_t>(sizeof message)) {
      all.push_back(message.order);
      if (message.order != GPUROTA_PARK_CLOSE) continue;
      gpurota_msg_park_ready ready{};
      ready.header.seq = message.header.seq;
      for (const auto& [id, tenant] : daemon->tenants.all()) {
        if (tenant->process.pid() == pid) return daemon->parker.on_ready(*tenant, ready), all;
      }
    }
    return all;
  }
  void park(LeaseId id) {
    const auto begun = daemon->parker.park(id, {kAlice});
    ASSERT_TRUE(begun) << begun.error().message;
    EXPECT_EQ(state(id), ParkState::kParking);
    orders(pids.at(id));
    programs.end();
    ASSERT_EQ(state(id), ParkState::kParked);
  }
  void end(LeaseId id) {
    daemon->world.leases.end(id, EndCause::kReleased, "it was released");
    loop.advance(2s);
    ASSERT_EQ(daemon->world.tables.find(id), nullptr);
  }
  ParkState state(LeaseId id) const { return daemon->world.tables.find(id)->lease.park; }
  void expect_back(LeaseId id) {
    EXPECT_EQ(state(id), ParkState::kUnparking);
    orders(pids.at(id));
    ASSERT_EQ(programs.running.size(), 1U);
    EXPECT_EQ(programs.running.front().program.argv[1], "unpark");
    programs.end();
    EXPECT_EQ(state(id), ParkState::kNone);
    EXPECT_EQ(orders(pids.at(id)).back(), std::uint32_t{GPUROTA_PARK_RUN});
  }

  testing::MemoryStore store;
  DriverState driver;
  testing::FakePrograms programs;
  int changes = 0;
  TenantSession session;
  std::map<LeaseId, pid_t> pids;
  std::map<pid_t, Fd> sockets;
  std::unique_ptr<OneDaemon> daemon;
};

TEST_F(ParkKeeperTest, ALeaseIsParkedAndBroughtBack) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  EXPECT_EQ(orders(pids[id]).back(), std::uint32_t{GPUROTA_PARK_PARKED});
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  expect_back(id);
  EXPECT_FALSE(daemon->parker.last_trouble(id));
}

TEST_F(ParkKeeperTest, OthersGetTheRoomOfAParkedLease) {
  const LeaseId id = lease(gib(16), kAlice);
  EXPECT_FALSE(try_lease(gib(16), kBob));
  ASSERT_TRUE(daemon->parker.park(id, {kAlice}));
  EXPECT_FALSE(try_lease(gib(16), kBob)) << "its memory is still there";
  orders(pids[id]);
  programs.end();
  EXPECT_EQ(daemon->world.availability.available_on(kGpu).slice, gib(24));
  const auto whole = try_lease(std::nullopt, kBob);
  ASSERT_TRUE(whole);
  end(*whole);
  EXPECT_TRUE(try_lease(gib(16), kBob));
}

TEST_F(ParkKeeperTest, ALeaseWithoutRoomWaitsForItAndNobodyElseGetsIt) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  const LeaseId other = try_lease(gib(16), kBob).value();
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  EXPECT_EQ(state(id), ParkState::kWaiting);
  ASSERT_NE(daemon->parker.wishes().waits_for(id), nullptr);
  EXPECT_THAT(daemon->parker.wishes().waits_for(id)->text, HasSubstr(to_string(other)));
  EXPECT_FALSE(try_lease(gib(8), kBob)) << "8 GiB are free, and the lease waits for them";
  loop.advance(1min);
  EXPECT_EQ(state(id), ParkState::kWaiting);
  EXPECT_TRUE(programs.running.empty());
  end(other);
  expect_back(id);
  EXPECT_EQ(daemon->parker.wishes().waits_for(id), nullptr);
  EXPECT_TRUE(try_lease(gib(8), kBob));
}

TEST_F(ParkKeeperTest, AShareComesBackWithinTheUsersLimitAndAlsoIfTheLimitIsLowered) {
  config.limits.everyone.compute = 50;
  ASSERT_TRUE(daemon->world.users.resolve(1s, {}));
  const LeaseId id = lease(gib(8), kAlice, LeaseKind::kRun, 40);
  park(id);
  const LeaseId other = try_lease(gib(8), kAlice, LeaseKind::kRun, 40).value();
  UpdateRequest more{};
  more.compute = ComputeShare{45, 0};
  EXPECT_TRUE(daemon->world.updates.update(other, more)) << "a parked lease is on no GPU";
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  EXPECT_EQ(state(id), ParkState::kWaiting);
  config.limits.everyone.compute = 20;
  ASSERT_TRUE(daemon->world.users.resolve(1s, {}));
  end(other);
  expect_back(id);
}

TEST_F(ParkKeeperTest, LeasesComeBackInTheOrderInWhichThatWasAskedFor) {
  const LeaseId first = lease(gib(14), kAlice);
  park(first);
  const LeaseId second = lease(gib(14), kAlice);
  park(second);
  const LeaseId other = try_lease(gib(20), kBob).value();
  ASSERT_TRUE(daemon->parker.unpark(second, {kAlice}));
  ASSERT_TRUE(daemon->parker.unpark(first, {kAlice}));
  end(other);
  expect_back(second);
  loop.advance(10s);
  EXPECT_EQ(state(first), ParkState::kWaiting);
}

TEST_F(ParkKeeperTest, ASmallLeaseDoesNotOvertakeALargeOneThatWaits) {
  const LeaseId large = lease(gib(20), kAlice);
  park(large);
  const LeaseId small = lease(gib(8), kAlice);
  park(small);
  const LeaseId other = try_lease(gib(12), kBob).value();
  ASSERT_TRUE(daemon->parker.unpark(large, {kAlice}));
  ASSERT_TRUE(daemon->parker.unpark(small, {kAlice}));
  loop.advance(10s);
  EXPECT_EQ(state(large), ParkState::kWaiting);
  EXPECT_EQ(state(small), ParkState::kWaiting) << "12 GiB are free, and the large lease is first";
  end(other);
  expect_back(large);
  loop.advance(10s);
  EXPECT_EQ(state(small), ParkState::kWaiting);
}

TEST_F(ParkKeeperTest, ParkingEndsTheWait) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  const LeaseId other = try_lease(gib(16), kBob).value();
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  ASSERT_TRUE(daemon->parker.park(id, {kAlice}));
  EXPECT_EQ(state(id), ParkState::kParked);
  EXPECT_TRUE(try_lease(gib(8), kBob));
  end(other);
  loop.advance(10s);
  EXPECT_EQ(state(id), ParkState::kParked);
}

TEST_F(ParkKeeperTest, TheWaitSurvivesARestart) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  const LeaseId other = try_lease(gib(16), kBob).value();
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  restart({id});
  loop.advance(10s);
  EXPECT_EQ(state(id), ParkState::kWaiting);
  EXPECT_NE(daemon->parker.wishes().waits_for(id), nullptr);
  EXPECT_FALSE(try_lease(gib(8), kBob));
  EXPECT_EQ(orders(pids[id]).back(), std::uint32_t{GPUROTA_PARK_PARKED});
  end(other);
  expect_back(id);
}

TEST_F(ParkKeeperTest, AParkedLeaseWithoutProcessesIsNoLongerParked) {
  const LeaseId id = lease(gib(16), kAlice, LeaseKind::kReservation);
  park(id);
  processes.die(pids[id]);
  loop.advance(2s);
  EXPECT_EQ(state(id), ParkState::kNone);
  EXPECT_FALSE(try_lease(gib(16), kBob));
  EXPECT_EQ(programs.begun.size(), 1U) << "there was nothing to bring back";
}

TEST_F(ParkKeeperTest, AParkedLeaseWithoutProcessesWaitsUntilItsRoomIsFree) {
  const LeaseId id = lease(gib(16), kAlice, LeaseKind::kReservation);
  park(id);
  const LeaseId other = try_lease(gib(16), kBob).value();
  processes.die(pids[id]);
  loop.advance(2s);
  EXPECT_EQ(state(id), ParkState::kWaiting);
  EXPECT_FALSE(daemon->parker.park(id, {kAlice}));
  end(other);
  EXPECT_EQ(state(id), ParkState::kNone);
}

TEST_F(ParkKeeperTest, AReservationThatWasParkedBeforeARebootWaitsForItsRoom) {
  const LeaseId id = lease(gib(16), kAlice, LeaseKind::kReservation);
  park(id);
  const LeaseId other = try_lease(gib(16), kBob, LeaseKind::kReservation).value();
  processes.die(pids[id]);
  processes.set_boot_id("22222222-2222-3333-4444-555555555555");
  restart({});
  loop.advance(2s);
  EXPECT_EQ(state(id), ParkState::kWaiting);
  end(other);
  EXPECT_EQ(state(id), ParkState::kNone);
}

TEST_F(ParkKeeperTest, ALeaseThatCannotBeBroughtBackStaysParkedAndKeepsNoRoom) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  orders(pids[id]);
  EXPECT_FALSE(try_lease(gib(16), kBob));
  ports::ProgramEnd failed;
  failed.code = 1;
  failed.output = fmt::format("{0} restore OUT_OF_MEMORY 0.1\n{0} state checkpointed\n", pids[id]);
  programs.end(failed);
  EXPECT_EQ(state(id), ParkState::kParked);
  EXPECT_THAT(daemon->parker.last_trouble(id).value_or(""), HasSubstr("OUT_OF_MEMORY"));
  EXPECT_TRUE(try_lease(gib(16), kBob));
}

TEST_F(ParkKeeperTest, ALeaseThatCannotBeParkedKeepsItsRoom) {
  const LeaseId id = lease(gib(16), kAlice);
  ASSERT_TRUE(daemon->parker.park(id, {kAlice}));
  orders(pids[id]);
  ports::ProgramEnd failed;
  failed.code = 1;
  failed.output = fmt::format("{0} lock NOT_READY 5.0\n{0} state running\n", pids[id]);
  programs.end(failed);
  EXPECT_EQ(state(id), ParkState::kNone);
  EXPECT_THAT(daemon->parker.last_trouble(id).value_or(""), HasSubstr("NOT_READY"));
  EXPECT_FALSE(try_lease(gib(16), kBob));
}

TEST_F(ParkKeeperTest, ALeaseThatEndsWaitsNoLonger) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  const LeaseId other = try_lease(gib(16), kBob).value();
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  processes.die(pids[id]);
  end(id);
  EXPECT_TRUE(try_lease(gib(8), kBob));
  EXPECT_NE(daemon->world.tables.find(other), nullptr);
}

TEST_F(ParkKeeperTest, ABookingThatWasMadeMeanwhileComesFirst) {
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  loop.advance(1min);
  AcquireRequest booking;
  booking.uid = kBob;
  booking.kind = LeaseKind::kReservation;
  booking.placement.memory = SizeSpec{gib(16), 0};
  booking.lasts = 1h;
  ASSERT_TRUE(daemon->world.bookings.make(booking, {clock()() + 30min}, true));
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  EXPECT_EQ(state(id), ParkState::kWaiting) << "the lease has no end, and would be in the way";
  loop.advance(31min);
  const auto& leases = daemon->world.tables.leases;
  const auto begun = std::find_if(leases.begin(), leases.end(),
                                  [&](const auto& each) { return each.second.lease.uid == kBob; });
  ASSERT_NE(begun, leases.end()) << "the booking has begun although the lease waits";
  EXPECT_EQ(state(id), ParkState::kWaiting);
  end(begun->first);
  expect_back(id);
}

TEST_F(ParkKeeperTest, AGpuWithUnifiedMemoryHasNoMoreRoomWhenALeaseIsParked) {
  GpuInfo info = gpus.find(kGpu)->info;
  info.unified = true;
  gpus = GpuTable({info});
  gpus.find(kGpu)->taken = loop.now();
  const LeaseId id = lease(gib(16), kAlice);
  park(id);
  EXPECT_FALSE(try_lease(gib(16), kBob));
  ASSERT_TRUE(daemon->parker.unpark(id, {kAlice}));
  expect_back(id);
}

TEST_F(ParkKeeperTest, TheLimitOfAParkedLeaseDoesNotChange) {
  const LeaseId id = lease(gib(8), kAlice);
  park(id);
  UpdateRequest larger;
  larger.memory = SizeSpec{gib(16), 0};
  const auto updated = daemon->world.updates.update(id, larger);
  ASSERT_FALSE(updated);
  EXPECT_THAT(updated.error().message, HasSubstr("is parked"));
}

}  // namespace
}  // namespace gpurota::daemon
