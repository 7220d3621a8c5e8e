#include "daemon/leases/availability.h"

#include "daemon/leases/turn_wishes.h"
#include "lease/reason.h"

namespace gpurota::daemon {
namespace {

constexpr int kNearTheHead = 16;

}  // namespace

std::vector<lease::Available> Availability::available() const {
  const GpuRooms::Machine machine = parts_.rooms.machine();
  return lease::available(machine.rooms, machine.leases, parts_.tables.plans, parts_.wall_clock(),
                          machine.bookings, config::unbooked_for(parts_.config.bookings));
}

lease::Available Availability::available_on(const GpuUuid& gpu) const {
  const std::vector<lease::GpuRoom> rooms = parts_.rooms.list();
  const std::vector<lease::Available> all = available();
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    if (rooms[i].info.uuid == gpu) return all[i];
  }
  return {};
}

std::vector<lease::WayOut> Availability::ways_out(const QueueEntry& entry) const {
  const auto place = static_cast<std::size_t>(&entry - parts_.tables.requests.data());
  return ways_out(parts_.order.requests(), place, entry.asked);
}

std::vector<lease::WayOut> Availability::ways_out(const AcquireRequest& request) const {
  return ways_out(parts_.order.requests(&request), parts_.order.place_of(request.uid), request);
}

std::string Availability::remedy(const QueueEntry& entry) const {
  if (entry.waiting.position > kNearTheHead) return {};
  return lease::remedy_text(ways_out(entry), entry.asked.kind);
}

std::string Availability::remedy(const AcquireRequest& request) const {
  if (parts_.order.place_of(request.uid) >= kNearTheHead) return {};
  return lease::remedy_text(ways_out(request), request.kind);
}

std::vector<lease::WayOut> Availability::ways_out(const std::vector<lease::Request>& requests,
                                                  std::size_t place,
                                                  const AcquireRequest& asked) const {
  const GpuRooms::Machine machine = parts_.rooms.machine();
  const bool end_is_kept = asked.kind != LeaseKind::kReservation ||
                           parts_.config.expired_reservation != config::Expired::kKeep;
  auto ways = lease::ways_out(machine.view(requests, parts_.tables.keeping), place, end_is_kept,
                              parts_.wall_clock());
  // A change that would be refused does not help.
  std::erase_if(ways, [&](const lease::WayOut& way) {
    AcquireRequest changed = asked;
    changed.placement = lease::changed(changed.placement, way);
    if (way.kind == lease::WayOut::Kind::kTime) changed.lasts = way.lasts;
    return !parts_.allowances.check_ever(changed) || !check_latency(changed) ||
           !check_compute(changed);
  });
  return ways;
}

}  // namespace gpurota::daemon
