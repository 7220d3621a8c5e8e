// Leases and the way to them, as the daemon's unit tests use them. For *_test.cpp only; one thread.
#pragma once

#include "daemon/gpus/samples.h"
#include "daemon/leases/allowances.h"
#include "daemon/leases/availability.h"
#include "daemon/leases/bookings.h"
#include "daemon/leases/gpu_rooms.h"
#include "daemon/leases/lease_members.h"
#include "daemon/leases/lease_update.h"
#include "daemon/leases/past_bookings.h"
#include "daemon/leases/queue.h"

#include <functional>
#include <string>

namespace gpurota::daemon {

struct NoSamples final : Samples {
  void look_soon(const GpuUuid&) override {}
  void glimpse(const GpuUuid&, Duration) override {}
};

struct NoTurns final : TurnNeeds {
  Need need(const GpuUuid&) const override { return {}; }
};

struct LeaseWorld {
  LeaseWorld(ports::EventLoop& loop, ports::Store& store, ports::Processes& processes,
             GpuTable& gpus, lease::GrantBook& grants, const config::Config& config,
             const std::function<WallTime()>& wall, FairShares* shares = nullptr,
             ports::History* history = nullptr)
      : users(loop, nullptr, config, 0),
        budgets({config}),
        states(store, gpus),
        leases({loop, store, processes, gpus, states, grants, config, wall,
                [] { return std::string(32, 'a'); }, samples}),
        members(leases),
        allowances({leases, gpus, config, users, budgets, nullptr, wall,
                    [this] { return past_bookings.booked_times(); }}),
        rooms({leases, gpus, states, grants, processes, config, turns}),
        queue({loop, store, processes, leases, gpus, states, rooms, allowances, config, wall,
               shares}),
        past_bookings({history, leases, gpus, wall}),
        bookings({loop, store, processes, leases, gpus, queue, rooms, allowances, config, wall}),
        availability({queue, rooms, allowances, config, wall}),
        updates({leases, queue, rooms, allowances, config, wall}) {
    rooms.set_bookings(bookings);
    bookings.add_listener(past_bookings);
    leases.add_listener(past_bookings);
  }

  NoSamples samples;
  NoTurns turns;
  Users users;
  UserBudgets budgets;
  GpuStates states;
  LeaseManager leases;
  LeaseMembers members;
  Allowances allowances;
  GpuRooms rooms;
  Queue queue;
  PastBookings past_bookings;
  Bookings bookings;
  Availability availability;
  LeaseUpdates updates;
};

}  // namespace gpurota::daemon
