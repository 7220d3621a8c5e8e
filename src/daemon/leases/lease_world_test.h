// The parts of the daemon that make and change leases, put together for unit tests. For *_test.cpp
// only; one thread.
#pragma once

#include "daemon/gpus/samples.h"
#include "daemon/leases/allowances.h"
#include "daemon/leases/availability.h"
#include "daemon/leases/bookings.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_update.h"
#include "daemon/leases/past_bookings.h"
#include "daemon/leases/queue.h"

#include <functional>
#include <string>

namespace gpurota::daemon {

struct NoSamples final : Samples {
  void sample_soon(const GpuUuid&) override {}
  void poll_processes(const GpuUuid&, Duration) override {}
};

struct NoTurns final : TurnNeeds {
  Need need(const GpuUuid&, const std::function<bool(LeaseId)>&) const override { return {}; }
};

struct NoShares final : FairShares {
  std::optional<lease::FairShare> share_of(uid_t) override { return std::nullopt; }
};

struct LeaseWorld {
  LeaseWorld(ports::EventLoop& loop, ports::Store& store, ports::Processes& processes,
             GpuTable& gpus, lease::GrantBook& grants, const config::Config& config,
             const std::function<WallTime()>& wall, FairShares* shares = nullptr,
             ports::History* history = nullptr)
      : users(loop, nullptr, config, 0),
        budgets({config}),
        states(store, gpus),
        leases(tables, {loop, store, processes, gpus, states, grants, config, wall,
                        [] { return std::string(32, 'a'); }, samples, lease_hooks()}),
        allowances({tables, gpus, config, users, budgets,
                    [](uid_t, WallTime) { return std::optional<std::chrono::seconds>(); }, wall}),
        rooms({tables, gpus, states, grants, processes, config, turns,
               [](LeaseId) { return std::optional<LeaseStay>(); }}),
        order({tables, states, processes, config, wall, shares ? *shares : no_shares, users}),
        queue(tables, {.loop = loop,
                       .store = store,
                       .processes = processes,
                       .leases = leases,
                       .gpus = gpus,
                       .states = states,
                       .rooms = rooms,
                       .allowances = allowances,
                       .order = order,
                       .config = config,
                       .wall_clock = wall,
                       .publish =
                           [this](const RequestNews& news) {
                             if (on_request) on_request(news);
                           },
                       .on_settled = [] {},
                       .move_out = [](LeaseId, const std::string&) {}}),
        past_bookings({history, tables, gpus, wall}),
        bookings(tables, {loop, store, processes, leases, gpus, queue, order, rooms, allowances,
                          config, wall,
                          [this](const BookingNews& news) {
                            if (on_booking) on_booking(news);
                            past_bookings.on_booking(news);
                          },
                          [this](LeaseId lease) {
                            return stay_of ? stay_of(lease) : std::optional<LeaseStay>();
                          },
                          [this](LeaseId lease, bool aside, const std::string& why) {
                            if (set_aside) set_aside(lease, aside, why);
                          }}),
        availability({tables, order, rooms, allowances, config, wall}),
        updates({tables, leases, rooms, allowances, config, wall}) {}

  LeaseHooks lease_hooks() {
    return {.publish =
                [this](const LeaseEntry& entry, bool gone) {
                  past_bookings.on_lease_change(entry, gone);
                  if (on_lease) on_lease(entry, gone);
                },
            .check_new =
                [this](const LeaseEntry& entry) {
                  return check_new ? check_new(entry) : Result<void>();
                },
            .holds_memory = [this](LeaseId id) { return holds_memory && holds_memory(id); },
            .end_of_command = [](const LeaseEntry&) { return std::optional<std::string>(); },
            .grace_of = [](const LeaseEntry&) { return std::optional<Duration>(); },
            .on_time_over = [](const ports::ProcessId&, const std::string&) {},
            .on_moved = [this] { ++moved; }};
  }

  // Hooks of a test: called after a change, or asked about a lease.
  std::function<void(const LeaseEntry&, bool gone)> on_lease;
  int moved = 0;  // calls of LeaseHooks::on_moved
  std::function<void(const RequestNews&)> on_request;
  std::function<void(const BookingNews&)> on_booking;
  std::function<Result<void>(const LeaseEntry&)> check_new;
  std::function<bool(LeaseId)> holds_memory;
  std::function<std::optional<LeaseStay>(LeaseId)> stay_of;
  std::function<void(LeaseId, bool aside, const std::string& why)> set_aside;
  NoSamples samples;
  NoTurns turns;
  NoShares no_shares;
  Users users;
  UserBudgets budgets;
  GpuStates states;
  LeaseTables tables;
  LeaseManager leases;
  Allowances allowances;
  GpuRooms rooms;
  QueueOrder order;
  Queue queue;
  PastBookings past_bookings;
  Bookings bookings;
  Availability availability;
  LeaseUpdates updates;
};

}  // namespace gpurota::daemon
